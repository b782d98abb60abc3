"""The rules that neither the golden cases nor the streams show, worked out by hand: reasons, horizon, scopes, acceptance, groups."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings

from tests.oracle.events import Judgement, Label, Prediction, Refusal, judge
from tests.oracle.gauges import Window, gauges
from tests.oracle.join import Joined, join, join_judged
from tests.oracle.metrics import ModelConfig, metrics
from tests.oracle.rounding import tolerances
from tests.oracle.strategies import CLASSES, DAY_MS, DEFAULTS, HOUR_MS, INVALID, MODELS, START_MS, TOO_LARGE, History, histories

HORIZON_MS = 2 * DAY_MS
WINDOWS = [Window("1h", HOUR_MS), Window("6h", 6 * HOUR_MS, HOUR_MS), Window("24h", DAY_MS, DAY_MS), Window("7d", 7 * DAY_MS)]


def prediction(days: float = 0, model_version: str = "1", **changes: object) -> Prediction:
    whole = Prediction("p", "m", model_version, START_MS + int(days * DAY_MS), "a", 0.8, None, None, None, (), None)
    return replace(whole, **changes)  # type: ignore[arg-type]


def label(days: float = 0, name: str | None = "a", revision: int = 0, scope: tuple[str | None, str | None] = (None, None)) -> Label:
    return Label("p", scope[0], scope[1], START_MS + int(days * DAY_MS), name, revision, None)


def joined(*records: Prediction | Label, horizon_ms: int | None = HORIZON_MS) -> Joined:
    return join_judged([(0, record) for record in records], horizon_ms)


def outcomes(result: Joined) -> dict[str, int]:
    """Outcomes of labels and reasons of refusals."""
    of_labels = {outcome: count for (kind, outcome), count in result.account.outcomes.items() if kind == "label" and outcome != "refused"}
    return of_labels | result.account.rejected


@pytest.mark.parametrize(("reason", "line"), [*INVALID, ("too_large", TOO_LARGE)], ids=lambda part: part if isinstance(part, str) else "")
def test_each_reason(reason: str, line: bytes) -> None:
    verdict = judge(line, CLASSES)
    assert isinstance(verdict, Refusal)
    assert verdict.reason == reason


def test_limits_are_inclusive() -> None:
    record = {"type": "label", "prediction_id": "x" * 256, "label": "a", "labelled_at": START_MS, "revision": 2**53 - 1}
    at_the_limit = json.dumps(record | {"note": [[[[[[[]]]]]]], "brackets": "[[[[[[[[["}).encode()
    assert isinstance(judge(at_the_limit), Label)
    assert isinstance(judge(at_the_limit.ljust(1_048_576)), Label)


@pytest.mark.parametrize(
    ("written", "ms"),
    [
        (1780272000000.0, 1780272000000),
        ("2026-06-01T00:00:00.0019Z", 1780272000001),
        ("2026-06-01T02:30:00+02:30", 1780272000000),
        ("2026-05-31t20:00:00.5-04:00", 1780272000500),
        ("2000-01-01T00:00:00Z", 946684800000),
    ],
)
def test_one_moment_in_its_forms(written: object, ms: int) -> None:
    line = json.dumps({"type": "label", "prediction_id": "p", "label": None, "labelled_at": written}).encode()
    assert judge(line) == Label("p", None, None, ms, None, 0, None)


def test_the_vector_wins_over_the_confidence_and_ties_go_to_the_smallest_name() -> None:
    record = {"type": "prediction", "prediction_id": "p", "model": "m", "model_version": "1", "predicted_at": START_MS, "confidence": 7}
    of_dict = judge(json.dumps(record | {"probabilities": {"c": 0.2, "b": 0.4, "a": 0.4}}).encode())
    of_list = judge(json.dumps(record | {"probabilities": [0.4, 0.4, 0.2]}).encode(), CLASSES)
    assert of_dict == of_list
    assert isinstance(of_dict, Prediction)
    assert (of_dict.predicted_class, of_dict.confidence) == ("a", 0.4)


def test_a_late_label_neither_scores_nor_withdraws_nor_advances() -> None:
    late_null = joined(prediction(), label(1, "b"), label(2.001, None, revision=1))
    assert [event.label for event in late_null.scored] == ["b"]
    assert (late_null.account.late, late_null.account.pending) == (1, 0)
    assert outcomes(late_null) == {"applied": 1, "withdrawn": 1}
    assert [event.label for event in joined(prediction(), label(2)).scored] == ["a"]


def test_a_label_too_long_before_its_prediction_is_early() -> None:
    result = join_judged([(0, label(0)), (1, prediction(4.001)), (1, prediction(4, "2"))], HORIZON_MS)
    assert [event.label for event in result.scored] == [None, "a"]
    assert (result.account.early, result.account.pending) == (1, 1)


def test_a_record_older_than_its_own_partition_allows_is_expired() -> None:
    records: list[tuple[int, Judgement]] = [(0, prediction(5)), (0, label(0.999)), (0, label(1)), (1, label(0.999, "b"))]
    result = join_judged(records, HORIZON_MS)
    assert result.account.rejected == {"expired": 1}
    assert result.account.consumed == 4


def test_an_old_entry_scores_on_but_no_longer_decides() -> None:
    other = prediction(4.5, domain="id")
    result = joined(prediction(0), label(0, "b", revision=7), other, label(4.5, "a"))
    assert outcomes(result) == {"applied": 2}
    assert [event.label for event in result.scored] == ["b", "a"]
    assert outcomes(joined(prediction(0), prediction(3.9, domain="id"))) == {"conflicting_prediction": 1}


def test_labels_of_one_scope() -> None:
    applied, again, conflict = label(0, "a"), label(0, "a"), label(0, "b")
    advances, stale, conflict_with_stale = label(1, "a"), label(0.5, "c"), label(0.5, "a")
    corrected, withdrawn, older_withdrawal = label(2, "b"), label(3, None), label(2.5, None)
    first_half = joined(applied, again, conflict, advances, stale, conflict_with_stale)
    assert outcomes(first_half) == {"applied": 1, "duplicate": 2, "stale": 1, "conflicting_label": 2}
    result = joined(applied, again, conflict, advances, stale, conflict_with_stale, corrected, withdrawn, older_withdrawal)
    assert outcomes(result) == {"applied": 1, "duplicate": 3, "stale": 1, "conflicting_label": 2, "corrected": 1, "withdrawn": 1}
    assert result.account.orphan_labels == 1


def test_equal_keys_of_scopes_go_to_the_narrower_and_a_null_has_no_fall_back() -> None:
    any_scope, of_model, of_version = label(1, "a"), label(1, "b", scope=("m", None)), label(1, None, scope=("m", "2"))
    result = joined(prediction(), prediction(0, "2"), of_version, of_model, any_scope)
    assert [event.label for event in result.scored] == ["b", None]
    assert result.account.pending == 1


def test_the_seventeenth_label_that_may_win_is_refused() -> None:
    many = [label(i / 100, "ab"[i % 2]) for i in range(17)]
    assert outcomes(joined(*many)) == {"applied": 1, "corrected": 15, "too_many_labels": 1}
    assert outcomes(joined(*many, horizon_ms=None)) == {"applied": 1, "corrected": 16}
    assert outcomes(joined(*many[:16], label(0.15, "c", revision=1))) == {"applied": 1, "corrected": 16}


def test_a_withdrawn_label_takes_its_domain_along() -> None:
    own = prediction(domain="id")
    with_domain = replace(label(1), domain="camera-7")
    withdrawn = replace(label(1, None, revision=1), domain="camera-8")
    assert joined(own, with_domain).scored[0].domain == "camera-7"
    assert joined(own, with_domain, withdrawn).scored[0].domain == "id"


def test_groups_beyond_the_top_are_one_series() -> None:
    values = ["b", "b", "a", "c", "d"]
    scored = joined(*(prediction(groups=(("g", value),), prediction_id=str(i)) for i, value in enumerate(values))).scored
    found = gauges(scored, {}, ModelConfig(groups=("g",), max_group_values=2), START_MS + HOUR_MS, [Window("1h", HOUR_MS)])
    counts = {dict(labels)["value"]: number for (name, labels), number in found.items() if name == "calmon_predictions"}
    assert counts == {"all": 5, "b": 2, "a": 1, "__other__": 2}


@pytest.mark.parametrize(("length_ms", "end"), [(6 * HOUR_MS, "06:29"), (7 * HOUR_MS, "06:00")])
def test_the_end_of_a_window_is_floored_to_its_pane(length_ms: int, end: str) -> None:
    now_ms = START_MS + 7 * HOUR_MS + 29 * 60_000 + 59_999
    hour, minute = map(int, end.split(":"))
    assert Window("w", length_ms, HOUR_MS).span(now_ms)[1] == START_MS + hour * HOUR_MS + minute * 60_000


def test_a_high_score_may_mean_out_of_distribution() -> None:
    scored = joined(*(prediction(ood_score=score, prediction_id=str(score), domain="id") for score in (0.1, 0.2, 0.3))).scored
    config = ModelConfig(ood_threshold=0.2, ood_high_is="out_of_distribution")
    found = gauges(scored, {}, config, START_MS + HOUR_MS, [Window("1h", HOUR_MS)])
    assert {number for (name, _), number in found.items() if name == "calmon_id_acceptance_ratio"} == {2 / 3}


def test_a_label_outside_the_vector_has_probability_zero() -> None:
    scored = joined(prediction(confidence=0.6, probabilities=(("a", 0.6), ("b", 0.4))), label(0, "z")).scored
    found = metrics(scored, ModelConfig(), (0.0, 1.0))
    assert found["brier_multi"] == pytest.approx(0.6**2 + 0.4**2 + 1)
    assert found["nll_multi"] == pytest.approx(12 * math.log(10))
    assert (found["unknown_class"], found["nll_multi_clipped"], found["accuracy"]) == (1, 1, 0)


def test_events_outside_the_edges_are_labelled_but_not_used() -> None:
    scored = joined(*(prediction(confidence=c, prediction_id=str(c)) for c in (0.4, 0.5, 1.0))).scored
    scored = [replace(event, winner=label(0)) for event in scored]
    found = metrics(scored, ModelConfig(), (0.5, 0.9))
    assert (found["predictions"], found["labelled"], found["labelled_used"], found["mean_confidence"]) == (3, 3, 1, 0.5)


@given(history=histories(partitions=3))
@settings(max_examples=60)
@pytest.mark.parametrize("horizon_ms", [None, DAY_MS // 2])
def test_the_interleaving_of_partitions_never_matters(history: History, horizon_ms: int | None) -> None:
    arrived = join(history.records, horizon_ms, CLASSES)
    one_by_one = join(sorted(history.records, key=lambda record: record[0]), horizon_ms, CLASSES)
    assert arrived.account == one_by_one.account
    assert arrived.account.consumed == len(history.records)
    assert Counter(arrived.scored) == Counter(one_by_one.scored)


@given(history=histories())
@settings(max_examples=60)
def test_gauges_are_finite_and_each_has_a_tolerance(history: History) -> None:
    scored = join(history.records, None, CLASSES).scored
    for now_ms in history.moments_ms:
        found = gauges(scored, MODELS, DEFAULTS, now_ms, WINDOWS)
        assert found.keys() == tolerances(scored, MODELS, DEFAULTS, now_ms, WINDOWS).keys()
        assert all(math.isfinite(number) for number in found.values())
