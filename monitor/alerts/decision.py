"""Alerts on what is decided with a version: what it accepts, what it hands to people, and from where its inputs come."""

from __future__ import annotations

from collections.abc import Sequence

from monitor.alerts.alert import ATTRIBUTE, WINDOW, Alert, Detail, Form, Needs, Severity
from monitor.alerts.promql import MATURE, VERSION_NAMES, WINDOW_START


def _count(gauge: str) -> Detail:
    return Detail(f'max by ($by) ({gauge}{{$m,segment="all"}})', Form.COUNT)


def _ratio(gauge: str) -> Detail:
    return Detail(f'max by ($by) ({gauge}{{$m,segment="all"}})', Form.RATIO)


DECISION: Sequence[Alert] = (
    Alert(
        name="CalmonSelectiveRiskOverBudget",
        severity=Severity.PAGE,
        needs=Needs.LABELS,
        # Errors may be found sooner than the rest: accepted predictions without a label count as right, as in the evidence.
        expression=f"""(
  calmon_selective_risk_lower_ratio{{segment="all"}}
  * calmon_labelled_accepted{{segment="all"}}
  / (
    calmon_labelled_accepted{{segment="all"}}
    + ${{unlabelled_right}} * (calmon_accepted{{segment="all"}} - calmon_labelled_accepted{{segment="all"}})
  )
)
> calmon_selective_risk_budget_ratio{{segment="all"}}
and calmon_labelled_accepted{{segment="all"}} >= ${{labelled}}
{MATURE}""",
        form=Form.RATIO,
        wait="1h",
        hold="2h",
        labels=WINDOW,
        summary="{model} {model_version} is wrong too often where its predictions are accepted",
        description="Of the accepted predictions of {model} {model_version} in window {window} at least {value} are wrong, the budget is "
        "{budget}. The share found is {risk} of {accepted} labelled ones; {completeness} of the window has labels, and of the accepted "
        "without one {unlabelled_right} count as right. The window began {since}.",
        dashboard="calmon-version",
        details={
            "budget": _ratio("calmon_selective_risk_budget_ratio"),
            "risk": _ratio("calmon_selective_risk_ratio"),
            "accepted": _count("calmon_labelled_accepted"),
            "completeness": _ratio("calmon_completeness_ratio"),
            "since": WINDOW_START,
        },
    ),
    Alert(
        name="CalmonRejectionJump",
        severity=Severity.TICKET,
        needs=Needs.TARGET,
        # The one alert on windows that have not matured: whether a prediction was rejected is known at once.
        expression=f"""(
  calmon_rejection_lower_ratio{{segment="all"}}
  - on ({VERSION_NAMES}) group_left ()
  max by ({VERSION_NAMES}) (calmon_rejection_upper_ratio{{segment="all"}} {MATURE})
)
> ${{rejection_jump}}
and calmon_decided{{segment="all"}} >= ${{labelled}}""",
        form=Form.RATIO,
        wait="30m",
        hold="1h",
        labels=WINDOW,
        summary="{model} {model_version} hands far more predictions to people than before",
        description="The rejection rate of {model} {model_version} in window {window} is {rate} of {decided} predictions: higher by at "
        "least {value} than in any mature window (bound: {rejection_jump}). Window {window} began {since}.",
        dashboard="calmon-version",
        details={"rate": _ratio("calmon_rejection_ratio"), "decided": _count("calmon_decided"), "since": WINDOW_START},
    ),
    Alert(
        name="CalmonGroupDisparity",
        severity=Severity.TICKET,
        needs=Needs.TARGET,
        expression=f"""calmon_group_rejection_spread_ratio > ${{disparity}}
and calmon_group_rejection_p_ratio < ${{disparity_p}}
{MATURE}""",
        form=Form.RATIO,
        wait="1h",
        hold="6h",
        labels=ATTRIBUTE,
        summary="{model} {model_version} rejects one {segment} more often than another",
        description="Rejection rates of {model} {model_version} differ by {value} between values of {segment} (bound: {disparity}), "
        "corrected p-value {p} (bound: {disparity_p}), over {groups} values in window {window}, which began {since}.",
        dashboard="calmon-version",
        details={
            "p": Detail("max by ($by) (calmon_group_rejection_p_ratio{$m})", Form.NUMBER),
            "groups": Detail("max by ($by) (calmon_groups_used{$m})", Form.COUNT),
            "since": WINDOW_START,
        },
    ),
    Alert(
        name="CalmonOodFalseAcceptance",
        severity=Severity.TICKET,
        needs=Needs.LABELS,
        expression=f"""calmon_ood_false_acceptance_lower_ratio{{segment="all"}} > ${{false_acceptance}}
and calmon_ood_scored{{segment="all"}} >= ${{labelled}}
{MATURE}""",
        form=Form.RATIO,
        wait="1h",
        hold="6h",
        labels=WINDOW,
        summary="{model} {model_version} accepts inputs from where it was not made for",
        description="Of the inputs of {model} {model_version} known to be out of distribution at least {value} passed the OOD threshold "
        "(bound: {false_acceptance}); the share found is {found}, {scored} predictions of window {window} have a score. The window began "
        "{since}.",
        dashboard="calmon-version",
        details={"found": _ratio("calmon_ood_false_acceptance_ratio"), "scored": _count("calmon_ood_scored"), "since": WINDOW_START},
    ),
    Alert(
        name="CalmonOodAcceptanceDrift",
        severity=Severity.TICKET,
        needs=Needs.TARGET,
        expression=f"""calmon_drift_ood_acceptance_difference{{segment="all"}}
and abs(calmon_drift_ood_acceptance_difference{{segment="all"}}) > ${{acceptance_drift}}
and abs(calmon_drift_ood_acceptance_difference_z{{segment="all"}}) > ${{difference_z}}
and calmon_ood_scored{{segment="all"}} >= ${{labelled}}
{MATURE}""",
        form=Form.RATIO,
        wait="1h",
        hold="6h",
        labels=WINDOW,
        summary="inputs of {model} {model_version} no longer look as in the reference",
        description="The share of inputs of {model} {model_version} accepted as in distribution has changed by {value} against the "
        "reference (bound: {acceptance_drift}), {z} standard deviations (bound: {difference_z}), over {scored} scores of window {window}, "
        "which began {since}.",
        dashboard="calmon-version",
        details={
            "z": Detail('max by ($by) (calmon_drift_ood_acceptance_difference_z{$m,segment="all"})', Form.NUMBER),
            "scored": _count("calmon_ood_scored"),
            "since": WINDOW_START,
        },
        families=("drift",),
    ),
    Alert(
        name="CalmonConfidenceDrift",
        severity=Severity.INFO,
        needs=Needs.TARGET,
        expression=f"""calmon_drift_confidence_psi{{segment="all"}} > ${{confidence_psi}}
and calmon_drift_confidence_psi{{segment="all"}} > 2 * calmon_drift_confidence_psi_floor{{segment="all"}}
and calmon_predictions{{segment="all"}} >= ${{labelled}}
{MATURE}""",
        form=Form.NUMBER,
        wait="1h",
        hold="6h",
        labels=WINDOW,
        summary="confidences of {model} {model_version} no longer look as in the reference",
        description="The population stability index of the confidences of {model} {model_version} against the reference is {value} (bound: "
        "{confidence_psi}; without drift it is {floor} on average), over {predictions} predictions of window {window}, which began "
        "{since}. It proves no miscalibration.",
        dashboard="calmon-version",
        details={
            "floor": Detail('max by ($by) (calmon_drift_confidence_psi_floor{$m,segment="all"})', Form.NUMBER),
            "predictions": _count("calmon_predictions"),
            "since": WINDOW_START,
        },
        families=("drift",),
    ),
)
"""In the order of their severity."""
