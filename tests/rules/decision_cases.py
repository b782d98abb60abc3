"""Cases of the alerts on decisions."""

from __future__ import annotations

from tests.rules.case import MATURE, PROVISIONAL, Firing, Series, Silent, of_window, series, windows

_LABELS = {**MATURE, "segment": "all", "value": "all"}
_BEGAN = "2026-06-01 00:00:00 +0000 UTC"


def _risk(window: dict[str, str] = MATURE, **other: float) -> Series:
    values = {
        "selective_risk_lower_ratio": 0.12,
        "selective_risk_ratio": 0.15,
        "selective_risk_budget_ratio": 0.1,
        "labelled_accepted": 400,
        "accepted": 400,
        "completeness_ratio": 0.9,
    }
    return {**windows(), **of_window(window, **{**values, **other})}


def _rejection(lower: float, decided: float, upper: float = 0.2) -> Series:
    now = of_window(PROVISIONAL, rejection_lower_ratio=lower, rejection_ratio=0.4, decided=decided)
    return {**windows(), **now, **of_window(MATURE, rejection_upper_ratio=upper, rejection_lower_ratio=0.15, decided=5000)}


def _disparity(window: dict[str, str], p: float, spread: float) -> Series:
    labels = {**window, "segment": "region", "value": "all"}
    return {
        **windows(),
        **series("calmon_group_rejection_p_ratio", labels, p),
        **series("calmon_group_rejection_spread_ratio", labels, spread),
        **series("calmon_groups_used", labels, 3),
    }


def _foreign(window: dict[str, str] = MATURE, **other: float) -> Series:
    values = {"ood_false_acceptance_lower_ratio": 0.6, "ood_false_acceptance_ratio": 0.7, "ood_scored": 800}
    return {**windows(), **of_window(window, **{**values, **other})}


def _drift(window: dict[str, str] = MATURE, **other: float) -> Series:
    values = {"drift_ood_acceptance_difference": -0.08, "drift_ood_acceptance_difference_z": -7, "ood_scored": 800}
    return {**windows(), **of_window(window, **{**values, **other})}


def _psi(window: dict[str, str] = MATURE, **other: float) -> Series:
    values = {"drift_confidence_psi": 0.35, "drift_confidence_psi_floor": 0.02, "predictions": 800}
    return {**windows(), **of_window(window, **{**values, **other})}


CASES = (
    Firing(
        "CalmonSelectiveRiskOverBudget",
        _risk(),
        "1h",
        _LABELS,
        "credit 7 is wrong too often where its predictions are accepted",
        "Of the accepted predictions of credit 7 in window 24h at least 12% are wrong, the budget is 10%. The share found is 15% of 400 "
        f"labelled ones; 90% of the window has labels, and of the accepted without one 100% count as right. The window began {_BEGAN}.",
    ),
    Silent("CalmonSelectiveRiskOverBudget", "it may be chance", _risk(selective_risk_lower_ratio=0.1)),
    Silent("CalmonSelectiveRiskOverBudget", "few labels", _risk(labelled_accepted=99, accepted=99)),
    Silent("CalmonSelectiveRiskOverBudget", "errors may have been labelled first", _risk(accepted=480)),
    Silent("CalmonSelectiveRiskOverBudget", "a provisional window", _risk(PROVISIONAL)),
    Silent(
        "CalmonSelectiveRiskOverBudget",
        "no budget",
        {**windows(), **of_window(MATURE, selective_risk_lower_ratio=0.9, labelled_accepted=400, accepted=400)},
    ),
    Firing(
        "CalmonRejectionJump",
        _rejection(0.35, 150),
        "30m",
        {**PROVISIONAL, "segment": "all", "value": "all"},
        "credit 7 hands far more predictions to people than before",
        "The rejection rate of credit 7 in window 1h is 40% of 150 predictions: higher by at least 15% than in any mature window (bound: "
        "10%). Window 1h began 2026-06-03 23:00:00 +0000 UTC.",
    ),
    Silent("CalmonRejectionJump", "a small rise", _rejection(0.29, 150)),
    Silent("CalmonRejectionJump", "few predictions", _rejection(0.35, 99)),
    Silent("CalmonRejectionJump", "it was as high before", _rejection(0.35, 150, upper=0.4)),
    Firing(
        "CalmonGroupDisparity",
        _disparity(MATURE, 0.00001, 0.2),
        "1h",
        {**MATURE, "segment": "region", "value": "all"},
        "credit 7 rejects one region more often than another",
        "Rejection rates of credit 7 differ by 20% between values of region (bound: 10%), corrected p-value 1e-05 (bound: 0.0001), over 3 "
        f"values in window 24h, which began {_BEGAN}.",
    ),
    Silent("CalmonGroupDisparity", "by chance", _disparity(MATURE, 0.001, 0.2)),
    Silent("CalmonGroupDisparity", "too small to matter", _disparity(MATURE, 0.00001, 0.09)),
    Silent("CalmonGroupDisparity", "a provisional window", _disparity(PROVISIONAL, 0.00001, 0.2)),
    Firing(
        "CalmonOodFalseAcceptance",
        _foreign(),
        "1h",
        _LABELS,
        "credit 7 accepts inputs from where it was not made for",
        "Of the inputs of credit 7 known to be out of distribution at least 60% passed the OOD threshold (bound: 50%); the share found is "
        f"70%, 800 predictions of window 24h have a score. The window began {_BEGAN}.",
    ),
    Silent("CalmonOodFalseAcceptance", "it may be chance", _foreign(ood_false_acceptance_lower_ratio=0.5)),
    Silent("CalmonOodFalseAcceptance", "few scores", _foreign(ood_scored=99)),
    Silent("CalmonOodFalseAcceptance", "a provisional window", _foreign(PROVISIONAL)),
    Firing(
        "CalmonOodAcceptanceDrift",
        _drift(),
        "1h",
        _LABELS,
        "inputs of credit 7 no longer look as in the reference",
        "The share of inputs of credit 7 accepted as in distribution has changed by -8% against the reference (bound: 5%), -7 standard "
        f"deviations (bound: 4), over 800 scores of window 24h, which began {_BEGAN}.",
    ),
    Firing(
        "CalmonOodAcceptanceDrift",
        _drift(drift_ood_acceptance_difference=0.06, drift_ood_acceptance_difference_z=4.5),
        "1h",
        _LABELS,
        "inputs of credit 7 no longer look as in the reference",
        "The share of inputs of credit 7 accepted as in distribution has changed by 6% against the reference (bound: 5%), 4.5 standard "
        f"deviations (bound: 4), over 800 scores of window 24h, which began {_BEGAN}.",
    ),
    Silent("CalmonOodAcceptanceDrift", "by chance", _drift(drift_ood_acceptance_difference_z=-3.9)),
    Silent("CalmonOodAcceptanceDrift", "too small to matter", _drift(drift_ood_acceptance_difference=-0.04)),
    Silent("CalmonOodAcceptanceDrift", "a provisional window", _drift(PROVISIONAL)),
    Firing(
        "CalmonConfidenceDrift",
        _psi(),
        "1h",
        _LABELS,
        "confidences of credit 7 no longer look as in the reference",
        "The population stability index of the confidences of credit 7 against the reference is 0.35 (bound: 0.2; without drift it is 0.02 "
        f"on average), over 800 predictions of window 24h, which began {_BEGAN}. It proves no miscalibration.",
    ),
    Silent("CalmonConfidenceDrift", "small", _psi(drift_confidence_psi=0.19)),
    Silent("CalmonConfidenceDrift", "no more than few events make by chance", _psi(drift_confidence_psi_floor=0.18)),
    Silent("CalmonConfidenceDrift", "a provisional window", _psi(PROVISIONAL)),
)
