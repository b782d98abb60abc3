"""The evidence tests as gauges: what is known now, what has crossed, and since when."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from prometheus_client.core import Metric

from monitor.evidence.course import ALARMS, DETECTOR_ALARMS, E_ALARMS, Alarm
from monitor.evidence.standing import Evidence, Standing
from monitor.export.exposition import gauge

_VERSION = ("model", "model_version")
_SIDED = (*_VERSION, "side", "tolerance")
_ALARM = (*_VERSION, "statistic", "side", "tolerance")
_PLAIN = 5

MOST_SERIES = 2 * (len(E_ALARMS) + len(ALARMS) + len(DETECTOR_ALARMS)) + _PLAIN
"""Series of a version once everything has crossed."""


def evidence_families(evidence: Evidence) -> list[Metric]:
    """One family a fact; what is undefined has no sample."""
    rows = evidence.standings

    def plain(name: str, text: str, value: Callable[[Standing], float]) -> Metric:
        return gauge(f"evidence_{name}", text, _VERSION, [((one.model, one.version), value(one)) for one in rows])

    def sided(name: str, text: str, values: Callable[[Standing], Mapping[Alarm, float]]) -> Metric:
        samples = [((one.model, one.version, *_side(alarm)), value) for one in rows for alarm, value in values(one).items()]
        return gauge(f"evidence_{name}", text, _SIDED, samples)

    families = [
        sided("log_e", "Natural logarithm of the evidence against calibration, from the labels as known now.", lambda one: one.log_e),
        gauge("evidence_crossed", "1 once the evidence has crossed its threshold, whatever came later.", _ALARM, _crossed(rows)),
        gauge(
            "evidence_first_crossing_timestamp_seconds",
            "End of the hour at whose close the evidence first crossed its threshold.",
            _ALARM,
            [
                ((one.model, one.version, alarm.statistic, *_side(alarm)), entry.pane_end_ms / 1000)
                for one in rows
                for alarm, entry in one.crossings.items()
            ],
        ),
        gauge("evidence_selected", "1 if the version is among those that e-BH reports at the level.", _SIDED, _selected(evidence)),
        sided("log_run_length", "Natural logarithm of the change detector; an alarm from ln 1000 on.", lambda one: one.log_run_length),
        sided(
            "change_start_timestamp_seconds",
            "Start of the hour where the trouble most likely began, while the change detector alarms.",
            lambda one: {alarm: start_ms / 1000 for alarm, start_ms in one.change_start_ms.items()},
        ),
        plain("block_log_e", "Natural logarithm of the evidence of over-confidence, one bet an hour.", lambda one: one.block_log_e),
        plain(
            "overconfidence_lower_ratio",
            "Lower bound of the worst over-confidence of the version, valid at any time.",
            lambda one: one.overconfidence_lower,
        ),
        plain("matured_predictions", "Predictions of the hours that have entered the evidence tests.", lambda one: one.predictions),
        plain("matured_labelled", "Those of them that have a label now.", lambda one: one.labelled),
        plain("restated", "1 if labels changed after their hour entered: it is not what was judged.", lambda one: one.restated),
    ]
    if evidence.matured_until_ms is not None:
        text = "Hours before it have entered the evidence tests."
        families.append(gauge("evidence_matured_until_timestamp_seconds", text, (), [((), evidence.matured_until_ms / 1000)]))
    return [family for family in families if family.samples]


def _side(alarm: Alarm) -> tuple[str, str]:
    return alarm.side, f"{alarm.tolerance:g}"


def _crossed(rows: Iterable[Standing]) -> list[tuple[tuple[str, ...], float]]:
    return [((one.model, one.version, alarm.statistic, *_side(alarm)), float(alarm in one.crossings)) for one in rows for alarm in ALARMS]


def _selected(evidence: Evidence) -> list[tuple[tuple[str, ...], float]]:
    return [
        ((one.model, one.version, *_side(alarm)), float(chosen))
        for alarm, chosen_ones in evidence.selected.items()
        for one, chosen in zip(evidence.standings, chosen_ones, strict=True)
    ]
