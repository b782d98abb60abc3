"""Cases of the alerts on what comes in."""

from __future__ import annotations

from tests.rules.case import (
    CLOCK,
    MATURE,
    PROVISIONAL,
    SCRAPED,
    VERSION,
    Firing,
    Series,
    Silent,
    of_process,
    of_version,
    of_window,
    series,
    windows,
)

_HOUR, _DAY = 3600, 86_400


def _feed(label_age: float | None, prediction_age: float, **other: float) -> Series:
    """How old the newest records are; None: there never was a label."""
    found = {**windows(), **of_version(evidence_matured_predictions=5000), **of_process(pending_predictions=700)}
    found |= series("calmon_newest_event_timestamp_seconds", {**SCRAPED, "kind": "prediction"}, CLOCK - prediction_age)
    if label_age is not None:
        found |= series("calmon_newest_event_timestamp_seconds", {**SCRAPED, "kind": "label"}, CLOCK - label_age)
    found |= series("calmon_records_consumed_total", SCRAPED, 0, step=10)
    return {**found, **of_process(**other)}


def _complete(window: dict[str, str] = MATURE, ratio: float = 0.3, predictions: float = 900) -> Series:
    life = of_version(evidence_matured_labelled=4000, evidence_matured_predictions=5000)
    return {**windows(), **life, **of_window(window, completeness_ratio=ratio, predictions=predictions)}


def _delays(sum_step: float, labels_before: float = 9000, labels_a_minute: float = 1) -> Series:
    return {
        **series("calmon_label_delay_seconds_count", VERSION, labels_before, step=labels_a_minute),
        **series("calmon_label_delay_seconds_sum", VERSION, labels_before * _HOUR, step=sum_step),
    }


def _records(refused: float, consumed: float, reason: str = "bad_json") -> Series:
    return {
        **series("calmon_refused_total", {**SCRAPED, "kind": "prediction", "reason": reason}, 0, step=refused),
        **series("calmon_records_consumed_total", SCRAPED, 0, step=consumed),
        **of_process(quarantine_waiting_records=12),
    }


CASES = (
    Firing(
        "CalmonLabelFeedDead",
        _feed(4 * _DAY, 60),
        "2h",
        SCRAPED,
        "no labels come any more",
        "The newest label that a:9779 has seen is 4d 0h 0m 0s old (bound: 3d), of 2026-05-31 00:00:00 +0000 UTC; 700 predictions have no "
        "label. Nothing that needs labels can be told of any model or version until they come.",
    ),
    Firing(
        "CalmonLabelFeedDead",
        _feed(None, 60),
        "2h",
        SCRAPED,
        "no labels come any more",
        "The newest label that a:9779 has seen is 2d 0h 0m 0s old (bound: 3d), of unknown; 700 predictions have no label. Nothing that "
        "needs labels can be told of any model or version until they come.",
    ),
    Silent("CalmonLabelFeedDead", "a weekend", _feed(2.7 * _DAY, 60)),
    Silent("CalmonLabelFeedDead", "predictions have stopped too", _feed(4 * _DAY, 4 * _DAY)),
    Silent("CalmonLabelFeedDead", "hardly anything waits for a label", _feed(4 * _DAY, 60, pending_predictions=99)),
    Silent(
        "CalmonLabelFeedDead",
        "a fresh start, no label yet",
        {
            **windows(matured=False),
            **series("calmon_newest_event_timestamp_seconds", {**SCRAPED, "kind": "prediction"}, CLOCK),
            **of_process(pending_predictions=5000),
        },
    ),
    Firing(
        "CalmonCompletenessLow",
        _complete(),
        "12h",
        {**MATURE, "segment": "all", "value": "all"},
        "far fewer labels of credit 7 come than used to",
        "30% of the 900 predictions of credit 7 in window 24h have a label; over its whole life it is 80% (bound: 50% of that). The window "
        "began 2026-06-01 00:00:00 +0000 UTC.",
    ),
    Silent("CalmonCompletenessLow", "not that low", _complete(ratio=0.41), at=("14h",)),
    Silent("CalmonCompletenessLow", "few predictions", _complete(predictions=99), at=("14h",)),
    Silent("CalmonCompletenessLow", "a provisional window", _complete(PROVISIONAL), at=("14h",)),
    Silent("CalmonCompletenessLow", "not for long", _complete(), at=("11h",)),
    Firing(
        "CalmonLabelDelayGrew",
        _delays(6 * _HOUR, labels_before=90_000),
        "10h",
        VERSION,
        "labels of credit 7 come later than they used to",
        "Labels of credit 7 in the last 6 hours were 6h 0m 0s late on average, 1h 1m 59s over its whole life (bound: 2 times that); 360 "
        "labels came. Windows whose lag is shorter than that are provisional.",
    ),
    Silent("CalmonLabelDelayGrew", "a little later", _delays(1.9 * _HOUR, labels_before=90_000), at=("10h",)),
    Silent("CalmonLabelDelayGrew", "few labels ever", _delays(6 * _HOUR, labels_before=100, labels_a_minute=0.1), at=("10h",)),
    Firing(
        "CalmonNoPredictions",
        _feed(60, 7 * _HOUR),
        "2h",
        SCRAPED,
        "no predictions come any more",
        "The newest prediction that a:9779 has seen is 7h 0m 0s old (bound: 6h), of 2026-06-03 17:00:00 +0000 UTC; 600 records came in the "
        "last hour.",
    ),
    Silent("CalmonNoPredictions", "a pause", _feed(60, 5.9 * _HOUR)),
    Silent("CalmonNoPredictions", "a fresh start", windows(matured=False)),
    Firing(
        "CalmonQuarantineRatio",
        _records(0.3, 10),
        "2h",
        SCRAPED,
        "many records are refused",
        "a:9779 refused 3% of the 600 records of the last hour (bound: 1%); 12 wait for the quarantine.",
    ),
    Silent("CalmonQuarantineRatio", "few of many", _records(0.09, 10)),
    Silent("CalmonQuarantineRatio", "hardly any records", _records(1, 1.5)),
    Firing(
        "CalmonConflicts",
        _records(0.5, 100, "conflicting_label"),
        "2h",
        SCRAPED,
        "records contradict earlier ones",
        "a:9779 refused 30 records in the last hour because another of the same id says otherwise (bound: 10), of 6000 records.",
    ),
    Silent("CalmonConflicts", "a few", _records(0.15, 100, "conflicting_prediction")),
    Silent("CalmonConflicts", "refused for another reason", _records(5, 100)),
)
