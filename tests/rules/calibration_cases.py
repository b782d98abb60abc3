"""Cases of the alerts on calibration."""

from __future__ import annotations

from tests.rules.case import (
    DAY_START,
    MATURE,
    PROVISIONAL,
    SCRAPED,
    VERSION,
    Firing,
    Series,
    Silent,
    of_version,
    of_window,
    series,
    windows,
)

_BEGAN = DAY_START + 6 * 3600


def _evidence(side: str, log_e: float, log_r: float, crossed: str = "") -> Series:
    """What the evidence tests say of a side; `crossed` names the statistic that has."""
    sided = {**VERSION, "side": side, "tolerance": "0.02"}
    found = {
        **windows(),
        **of_version(evidence_matured_labelled=4000, evidence_matured_predictions=5000, evidence_overconfidence_lower_ratio=0.05),
        **series("calmon_evidence_log_e", sided, log_e),
        **series("calmon_evidence_log_run_length", sided, log_r),
    }
    for statistic in ("e_process", "run_length"):
        found |= series("calmon_evidence_crossed", {**VERSION, "statistic": statistic, **_side(side)}, float(statistic == crossed))
    if crossed:
        first = {**VERSION, "statistic": crossed, **_side(side)}
        found |= series("calmon_evidence_first_crossing_timestamp_seconds", first, DAY_START + 9 * 3600)
    if log_r >= 6.91:
        found |= series("calmon_evidence_change_start_timestamp_seconds", sided, _BEGAN)
    return found


def _side(side: str) -> dict[str, str]:
    return {"side": side, "tolerance": "0.02"}


def _later_window(log_e: float, labelled: float = 300, side: str = "over") -> Series:
    """A mature window that began after the trouble."""
    name = {"over": "log_e_over_tolerance", "under": "log_e_under"}[side]
    late = series("calmon_window_start_timestamp_seconds", {**SCRAPED, "window": "24h"}, _BEGAN + 12 * 3600)
    return {**of_window(MATURE, **{name: log_e, "labelled_used": labelled, "predictions": 400}), **late}


_NUMBERS = (
    "Mean confidence minus accuracy of the mature windows is 8%; evidence rests on 4000 labels of 5000 matured predictions. "
    "First crossed: 2026-06-01 09:00:00 +0000 UTC; most likely began: {began}."
)
_OVER = (
    "Evidence that credit 7 claims more than its accuracy plus 0.02 is {value} nats (bounds: 2.996 over its whole life, 6.908 since a "
    "change). It is over-confident somewhere by at least 5%. "
) + _NUMBERS
_UNDER = (
    "Evidence that credit 7 claims less than its accuracy minus 0.02 is {value} nats (bounds: 2.996 over its whole life, 6.908 since a "
    "change). "
) + _NUMBERS
_MEAN = of_window(MATURE, overconfidence=0.08)
_BLOCK = {**VERSION, "statistic": "block", "side": "over", "tolerance": "0"}
_COMPARED = {
    **windows(),
    **of_window(MATURE, accuracy_difference=-0.04, accuracy_difference_upper=-0.02, accuracy_difference_z=-4.5, labelled_used=900),
}

CASES = (
    Firing(
        "CalmonOverconfident",
        {**_evidence("over", 4.2, 1.0, "e_process"), **_MEAN},
        "15m",
        VERSION,
        "credit 7 is over-confident by more than 2 points",
        _OVER.format(value="4.2", began="unknown"),
    ),
    Firing(
        "CalmonOverconfident",
        {**_evidence("over", -80, 7.5, "run_length"), **_MEAN},
        "15m",
        VERSION,
        "credit 7 is over-confident by more than 2 points",
        _OVER.format(value="7.5", began="2026-06-01 06:00:00 +0000 UTC"),
    ),
    Firing(  # a window that holds good days too says nothing yet
        "CalmonOverconfident",
        {
            **_evidence("over", -80, 7.5, "run_length"),
            **of_window(MATURE, overconfidence=0.08, log_e_over_tolerance=-3, labelled_used=300, predictions=400),
        },
        "15m",
        VERSION,
        "credit 7 is over-confident by more than 2 points",
        _OVER.format(value="7.5", began="2026-06-01 06:00:00 +0000 UTC"),
    ),
    Firing(  # a window after the trouble still speaks for it
        "CalmonOverconfident",
        {**_evidence("over", -80, 7.5, "run_length"), **_MEAN, **_later_window(1.1, labelled=31)},
        "15m",
        VERSION,
        "credit 7 is over-confident by more than 2 points",
        _OVER.format(value="7.5", began="2026-06-01 06:00:00 +0000 UTC"),
    ),
    Silent("CalmonOverconfident", "evidence short of both bounds", _evidence("over", 2.9, 6.9)),
    Silent("CalmonOverconfident", "evidence by corrected labels that was never judged so", _evidence("over", 9, 1)),
    Silent("CalmonOverconfident", "crossed once, and the evidence has gone", _evidence("over", 1, 2, "e_process")),
    Silent(
        "CalmonOverconfident", "the window after the trouble is calibrated", {**_evidence("over", 5, 9, "e_process"), **_later_window(-2)}
    ),
    Silent(
        "CalmonOverconfident",
        "the window after the trouble has too few labels to speak",
        {**_evidence("over", 5, 9, "e_process"), **_later_window(1.5, labelled=29)},
    ),
    Silent("CalmonOverconfident", "the other side", _evidence("under", 50, 50, "e_process")),
    Silent("CalmonOverconfident", "a fresh start", windows(matured=False)),
    Firing(
        "CalmonUnderconfident",
        {**_evidence("under", 4.2, 1.0, "e_process"), **of_window(MATURE, overconfidence=-0.08)},
        "1h",
        VERSION,
        "credit 7 is under-confident by more than 2 points",
        _UNDER.format(value="4.2", began="unknown").replace("is 8%", "is -8%"),
    ),
    Silent("CalmonUnderconfident", "evidence short of both bounds", _evidence("under", 2.9, 6.9)),
    Silent(
        "CalmonUnderconfident",
        "the window after the trouble is calibrated",
        {**_evidence("under", 5, 9, "e_process"), **_later_window(-2, side="under")},
    ),
    Firing(
        "CalmonErrorsBeyondConfidence",
        {
            **_evidence("over", 0, 0),
            **of_version(evidence_block_log_e=3.5),
            **series("calmon_evidence_crossed", _BLOCK, 1),
            **series("calmon_evidence_first_crossing_timestamp_seconds", _BLOCK, DAY_START),
        },
        "1h",
        VERSION,
        "credit 7 makes more errors than its confidences allow",
        "Evidence by blocks, valid even where the errors of an hour come together, that credit 7 makes more errors than it claims is 3.5 "
        "nats (bound: 2.996), from 4000 labels of 5000 matured predictions. First crossed: 2026-06-01 00:00:00 +0000 UTC.",
    ),
    Silent(
        "CalmonErrorsBeyondConfidence",
        "it has gone again",
        {**of_version(evidence_block_log_e=2.9), **series("calmon_evidence_crossed", _BLOCK, 1)},
    ),
    Silent(
        "CalmonErrorsBeyondConfidence",
        "another statistic",
        {**of_version(evidence_block_log_e=2.9), **_evidence("over", 50, 50, "e_process")},
    ),
    Firing(
        "CalmonWorseThanPreviousVersion",
        _COMPARED,
        "1h",
        {**MATURE, "segment": "all", "value": "all"},
        "credit 7 is less accurate than the version before it",
        "Accuracy of credit 7 minus that of the previous version on the same window 24h is -4%, at most -2%; -4.5 standard deviations "
        "(bound: -4), from 900 labels of window 24h, which began 2026-06-01 00:00:00 +0000 UTC.",
    ),
    Silent("CalmonWorseThanPreviousVersion", "by chance", {**_COMPARED, **of_window(MATURE, accuracy_difference_z=-3.9)}),
    Silent("CalmonWorseThanPreviousVersion", "few labels", {**_COMPARED, **of_window(MATURE, labelled_used=99)}),
    Silent("CalmonWorseThanPreviousVersion", "better", {**_COMPARED, **of_window(MATURE, accuracy_difference_z=4.5)}),
    Silent(
        "CalmonWorseThanPreviousVersion",
        "a provisional window",
        {**windows(), **of_window(PROVISIONAL, accuracy_difference=-0.4, accuracy_difference_z=-9, labelled_used=900)},
    ),
)
