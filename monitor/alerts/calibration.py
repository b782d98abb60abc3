"""Alerts on what a version's confidences are worth: they rest on evidence from matured labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from monitor.alerts.alert import VERSION, WINDOW, Alert, Detail, Form, Needs, Severity
from monitor.alerts.promql import MATURE, VERSION_NAMES, WINDOW_START, crossed_and_there

_MATURE_MEAN = f'avg by ($by) (calmon_overconfidence{{$m,segment="all"}} {MATURE})'


def _evidence(side: str) -> Mapping[str, Detail]:
    return {
        "matured_labelled": Detail("max by ($by) (calmon_evidence_matured_labelled{$m})", Form.COUNT),
        "matured_predictions": Detail("max by ($by) (calmon_evidence_matured_predictions{$m})", Form.COUNT),
        "mean_overconfidence": Detail(_MATURE_MEAN, Form.RATIO),
        "crossed": Detail(
            "min by ($by) (calmon_evidence_first_crossing_timestamp_seconds"
            f'{{$m,statistic=~"e_process|run_length",side="{side}",tolerance="0.02"}})',
            Form.TIME,
        ),
        "began": Detail(f'min by ($by) (calmon_evidence_change_start_timestamp_seconds{{$m,side="{side}",tolerance="0.02"}})', Form.TIME),
    }


_NUMBERS = (
    "Mean confidence minus accuracy of the mature windows is {mean_overconfidence}; evidence rests on {matured_labelled} labels of "
    "{matured_predictions} matured predictions. First crossed: {crossed}; most likely began: {began}."
)

CALIBRATION: Sequence[Alert] = (
    Alert(
        name="CalmonOverconfident",
        severity=Severity.PAGE,
        needs=Needs.LABELS,
        expression=crossed_and_there("over", "calmon_log_e_over_tolerance"),
        form=Form.NUMBER,
        wait="15m",
        hold="3h",
        labels=VERSION,
        summary="{model} {model_version} is over-confident by more than 2 points",
        description="Evidence that {model} {model_version} claims more than its accuracy plus 0.02 is {value} nats (bounds: {log_e} over "
        "its whole life, {log_run_length} since a change). It is over-confident somewhere by at least {lower}. " + _NUMBERS,
        dashboard="calmon-version",
        details={**_evidence("over"), "lower": Detail("max by ($by) (calmon_evidence_overconfidence_lower_ratio{$m})", Form.RATIO)},
    ),
    Alert(
        name="CalmonUnderconfident",
        severity=Severity.TICKET,
        needs=Needs.LABELS,
        expression=crossed_and_there("under", "calmon_log_e_under"),
        form=Form.NUMBER,
        wait="1h",
        hold="6h",
        labels=VERSION,
        summary="{model} {model_version} is under-confident by more than 2 points",
        description="Evidence that {model} {model_version} claims less than its accuracy minus 0.02 is {value} nats (bounds: {log_e} over "
        "its whole life, {log_run_length} since a change). " + _NUMBERS,
        dashboard="calmon-version",
        details=_evidence("under"),
    ),
    Alert(
        name="CalmonErrorsBeyondConfidence",
        severity=Severity.TICKET,
        needs=Needs.LABELS,
        expression=f"""calmon_evidence_block_log_e >= ${{log_e}}
and on ({VERSION_NAMES})
calmon_evidence_crossed{{statistic="block"}} == 1""",
        form=Form.NUMBER,
        wait="1h",
        hold="6h",
        labels=VERSION,
        summary="{model} {model_version} makes more errors than its confidences allow",
        description="Evidence by blocks, valid even where the errors of an hour come together, that {model} {model_version} makes more "
        "errors than it claims is {value} nats (bound: {log_e}), from {matured_labelled} labels of {matured_predictions} matured "
        "predictions. First crossed: {crossed}.",
        dashboard="calmon-version",
        details={
            "matured_labelled": _evidence("over")["matured_labelled"],
            "matured_predictions": _evidence("over")["matured_predictions"],
            "crossed": Detail('min by ($by) (calmon_evidence_first_crossing_timestamp_seconds{$m,statistic="block"})', Form.TIME),
        },
    ),
    Alert(
        name="CalmonWorseThanPreviousVersion",
        severity=Severity.TICKET,
        needs=Needs.LABELS,
        expression=f"""calmon_accuracy_difference{{segment="all"}}
and calmon_accuracy_difference_z{{segment="all"}} < -${{difference_z}}
and calmon_labelled_used{{segment="all"}} >= ${{labelled}}
{MATURE}""",
        form=Form.RATIO,
        wait="1h",
        hold="6h",
        labels=WINDOW,
        summary="{model} {model_version} is less accurate than the version before it",
        description="Accuracy of {model} {model_version} minus that of the previous version on the same window {window} is {value}, at "
        "most {upper}; {z} standard deviations (bound: -{difference_z}), from {labelled_used} labels of window {window}, which began "
        "{since}.",
        dashboard="calmon-version",
        details={
            "upper": Detail('max by ($by) (calmon_accuracy_difference_upper{$m,segment="all"})', Form.RATIO),
            "z": Detail('max by ($by) (calmon_accuracy_difference_z{$m,segment="all"})', Form.NUMBER),
            "labelled_used": Detail('max by ($by) (calmon_labelled_used{$m,segment="all"})', Form.COUNT),
            "since": WINDOW_START,
        },
        families=("comparison",),
    ),
)
"""In the order of their severity."""
