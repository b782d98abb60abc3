"""Evidence as gauges and on the status page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from monitor.evidence.course import ALARMS, DETECTOR_ALARMS, E_ALARMS, Alarm
from monitor.evidence.standing import Crossing, Evidence, Standing
from monitor.export.evidence import MOST_SERIES, evidence_families
from monitor.export.exposition import render
from monitor.pipeline.evidence.page import evidence_section
from monitor.pipeline.pages import render_snapshot
from monitor.pipeline.tick import Snapshot

HOUR_MS = 3_600_000
PAGES = Alarm("e_process", "over", 0.02)
CHANGE = Alarm("run_length", "over", 0.02)

Samples = dict[str, dict[tuple[str, ...], float]]


def standing(version: str, crossed: tuple[Alarm, ...] = (), restated: bool = False) -> Standing:
    """A version whose k-th alarm stands at k."""
    crossings = {
        alarm: Crossing("m", version, alarm, 0.05, 3.0, 7 * HOUR_MS, 60 * HOUR_MS, 3.5, 100, 90, 5 * HOUR_MS if alarm == CHANGE else None)
        for alarm in crossed
    }
    return Standing(
        "m",
        version,
        since_ms=2 * HOUR_MS,
        predictions=200,
        labelled=150,
        log_e={alarm: float(place) for place, alarm in enumerate(E_ALARMS)},
        log_run_length={alarm: 10.0 + place for place, alarm in enumerate(DETECTOR_ALARMS)},
        change_start_ms={CHANGE: 5 * HOUR_MS} if crossed else {},
        block_log_e=-1.5,
        overconfidence_lower=0.03,
        restated=restated,
        crossings=crossings,
    )


EVIDENCE = Evidence(
    (standing("a<b", (PAGES, CHANGE), restated=True), standing("good")), {alarm: (alarm == PAGES, False) for alarm in E_ALARMS}, 9 * HOUR_MS
)


def samples(evidence: Evidence) -> Samples:
    """Values by name without the prefix, and by the values of the labels, in the order of their names."""
    found: Samples = {}
    for family in text_string_to_metric_families(render(evidence_families(evidence)).decode()):
        assert family.type == "gauge"
        for sample in family.samples:
            assert list(sample.labels)[:2] in (["model", "model_version"], [])
            found.setdefault(sample.name.removeprefix("calmon_evidence_"), {})[tuple(sample.labels.values())] = sample.value
    return found


def test_every_fact_has_a_family_and_its_labels() -> None:
    found = samples(EVIDENCE)
    assert found["log_e"]["m", "good", "over", "0"] == 0
    assert found["log_e"]["m", "good", "both", "0.02"] == 5
    assert found["log_run_length"]["m", "good", "under", "0.02"] == 13
    assert found["crossed"]["m", "a<b", "over", "e_process", "0.02"] == 1
    assert found["crossed"]["m", "a<b", "over", "e_process", "0"] == 0
    assert {labels[1] for labels, value in found["crossed"].items() if value} == {"a<b"}
    assert len(found["crossed"]) == 2 * len(ALARMS)
    assert found["selected"] == {
        ("m", one, alarm.side, f"{alarm.tolerance:g}"): float(one == "a<b" and alarm == PAGES)
        for one in ("a<b", "good")
        for alarm in E_ALARMS
    }
    assert found["block_log_e"] == {("m", "a<b"): -1.5, ("m", "good"): -1.5}
    assert found["overconfidence_lower_ratio"]["m", "good"] == 0.03
    assert (found["matured_predictions"]["m", "good"], found["matured_labelled"]["m", "good"]) == (200, 150)
    assert found["restated"] == {("m", "a<b"): 1, ("m", "good"): 0}
    assert found["matured_until_timestamp_seconds"] == {(): 9 * 3600}


def test_what_has_not_happened_has_no_time() -> None:
    found = samples(EVIDENCE)
    assert found["first_crossing_timestamp_seconds"] == {
        ("m", "a<b", "over", "e_process", "0.02"): 7 * 3600,
        ("m", "a<b", "over", "run_length", "0.02"): 7 * 3600,
    }
    assert found["change_start_timestamp_seconds"] == {("m", "a<b", "over", "0.02"): 5 * 3600}
    assert samples(Evidence()) == {}
    assert samples(Evidence((), dict.fromkeys(E_ALARMS, ()), 9 * HOUR_MS)) == {"matured_until_timestamp_seconds": {(): 9 * 3600}}


def test_the_page_says_since_when_and_what_crossed() -> None:
    page = evidence_section(EVIDENCE)
    assert "<td>a&lt;b</td><td>1970-01-01T02:00Z</td><td>200</td><td>150</td><td>3 (restated)</td><td>0.03</td>" in page
    assert "e_process over 0.02: 1970-01-01T07:00Z (3.5); run_length over 0.02: 1970-01-01T07:00Z (3.5, begun 1970-01-01T05:00Z)" in page
    assert page.count("<td>never</td>") == 1
    assert evidence_section(Evidence()) == ""


def test_a_version_of_which_everything_has_crossed_has_the_most_series() -> None:
    worst = replace(standing("worst", ALARMS), change_start_ms=dict.fromkeys(DETECTOR_ALARMS, 0))
    evidence = Evidence((worst,), dict.fromkeys(E_ALARMS, (True,)))
    assert sum(len(values) for values in samples(evidence).values()) == MOST_SERIES


def test_every_gauge_is_documented_and_no_other() -> None:
    text = (Path(__file__).parents[2] / "docs" / "evidence.md").read_text(encoding="utf-8")
    documented = {line.split("`")[1] for line in text.splitlines() if line.startswith("| `")}
    assert documented == {f"calmon_evidence_{name}" for name in samples(EVIDENCE)}


def test_both_are_in_what_is_served() -> None:
    rendered = render_snapshot(Snapshot(60 * HOUR_MS, evidence=EVIDENCE))
    assert render(evidence_families(EVIDENCE)) in rendered.metrics
    assert b"<h2>Evidence</h2>" in rendered.status
    assert rendered.series == sum(len(values) for values in samples(EVIDENCE).values())
    assert b"<h2>Evidence</h2>" not in render_snapshot(Snapshot(0)).status
