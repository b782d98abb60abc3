"""The product against the oracle: every gauge and the whole account, at any moment of any history."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from monitor.config import WindowConfig
from tests.oracle.events import Judgement, Label, Prediction, Refusal, judge
from tests.oracle.gauges import GaugeKey, Window, gauges
from tests.oracle.join import TWO_DAYS_MS, Joined, join_judged, label_outcome
from tests.oracle.metrics import ModelConfig
from tests.oracle.rounding import tolerances
from tests.oracle.strategies import CLASSES, DEFAULTS, MODELS, History, histories
from tests.property.play import DAY_MS, HOUR_MS, MINUTE_MS, WINDOWS, Play, make_config, quarantine_file

Samples = Sequence[tuple[str, dict[str, str], float]]

MINUTE_WINDOW_LIMIT_MS = 6 * HOUR_MS
STEPS_MS = (1, MINUTE_MS, 10 * MINUTE_MS, HOUR_MS, 3 * HOUR_MS, 5 * HOUR_MS, DAY_MS, 2 * DAY_MS, -MINUTE_MS, -2 * HOUR_MS, -DAY_MS)


@dataclass(frozen=True)
class Step:
    """A batch, and what happens after it; the clock may show the first moment before the batch already."""

    records: int
    restart: bool
    clock_first: bool
    moments_ms: list[int]


@st.composite
def walks(draw: st.DrawFn, history: History) -> list[Step]:
    """Batches until all records are read; between them restarts, and a clock that mostly runs on."""
    steps = []
    left = len(history.records)
    now_ms = history.moments_ms[0]
    while left > 0:
        records = draw(st.sampled_from([1, 3, 7, 20, 1000]))
        moments_ms = []
        for _ in range(draw(st.sampled_from([0, 0, 1, 1, 2]))):
            jump = draw(st.integers(0, 2)) == 0
            now_ms = draw(st.sampled_from(history.moments_ms)) if jump else now_ms + draw(st.sampled_from(STEPS_MS))
            moments_ms.append(now_ms)
        steps.append(Step(records, draw(st.integers(0, 3)) == 0, draw(st.booleans()), moments_ms))
        left -= records
    return [*steps, Step(1, False, False, history.moments_ms)]


@lru_cache(maxsize=100_000)
def judged(record: bytes) -> Judgement:
    return judge(record, CLASSES)


def oracle_windows(windows: Iterable[WindowConfig]) -> list[Window]:
    return [Window(window.name, window.length_ms, window.lag_ms) for window in windows]


def series_of(samples: Samples) -> dict[GaugeKey, float]:
    """Every sample about a window; each may be there once."""
    found = [((name, frozenset(labels.items())), value) for name, labels, value in samples if "window" in labels]
    assert len(dict(found)) == len(found)
    return dict(found)


def kept(play: Play, now_ms: int, highest_ms: int) -> list[Window]:
    """The windows whose panes must still be there; behind the highest clock or far behind the records these need not be all."""
    shard = play.engine.shard
    newest_ms = max(shard.newest_ms.values(), default=0)
    windows = []
    for window in oracle_windows(WINDOWS):
        by_minutes = window.length_ms <= MINUTE_WINDOW_LIMIT_MS
        if window.span(now_ms)[0] >= (shard.minute_floor_ms if by_minutes else shard.hour_floor_ms):
            windows.append(window)
        else:
            assert now_ms < (highest_ms if by_minutes else newest_ms - DAY_MS)
    return windows


def compare_gauges(
    samples: Samples,
    joined: Joined,
    now_ms: int,
    windows: Sequence[Window],
    models: Mapping[str, ModelConfig] = MODELS,
    held_back: Callable[[dict[str, str]], bool] = lambda labels: False,
) -> None:
    """The same gauges, without those whose labels are held back, and the same values as far as rounding allows."""
    want = gauges(joined.scored, models, DEFAULTS, now_ms, windows)
    want = {(name, labels): value for (name, labels), value in want.items() if not held_back(dict(labels))}
    allowed = tolerances(joined.scored, models, DEFAULTS, now_ms, windows)
    got = series_of(samples)
    undecidable = {key for key, tolerance in allowed.items() if math.isinf(tolerance)}
    assert (want.keys() ^ got.keys()) - undecidable == set()
    wrong = {key: (got[key], want[key], allowed[key]) for key in want.keys() & got.keys() if not abs(got[key] - want[key]) <= allowed[key]}
    assert wrong == {}


def label_outcomes(records: Iterable[tuple[int, Judgement]], horizon_ms: int | None) -> Counter[str]:
    """Outcomes and reasons of labels where labels that can never win again are forgotten, but for the first of them.

    The contract lets the store drop a label when another of its scope has a higher key and may win wherever it may. A repetition
    of a dropped one is then judged without it; the sums are the same.
    """
    newest: dict[int, int] = {}
    stored: dict[tuple[str, str | None, str | None], list[Label]] = {}
    counts: Counter[str] = Counter()
    for partition, record in records:
        if isinstance(record, Refusal):
            continue
        time_ms = record.predicted_at_ms if isinstance(record, Prediction) else record.labelled_at_ms
        newest[partition] = newest_ms = max(newest.get(partition, time_ms), time_ms)
        oldest_ms = None if horizon_ms is None else newest_ms - horizon_ms - TWO_DAYS_MS
        if isinstance(record, Prediction):
            continue
        if oldest_ms is not None and time_ms < oldest_ms:
            counts["expired"] += 1
            continue
        scope = (record.prediction_id, record.model, record.model_version)
        known = stored.setdefault(scope, [])
        outcome, refused = label_outcome(record, known, oldest_ms)
        counts[outcome] += 1
        if not refused and all((one.revision, one.labelled_at_ms) != (record.revision, record.labelled_at_ms) for one in known):
            stored[scope] = remembered([*known, record], horizon_ms)
    return counts


def remembered(labels: Sequence[Label], horizon_ms: int | None) -> list[Label]:
    """What is left of a scope's labels, in their order: those that may win, and the first that names a class (at each time)."""
    named: set[int] = set()
    left = []
    for label in labels:
        moment = 0 if horizon_ms is None else label.labelled_at_ms
        rivals = [one for one in labels if horizon_ms is None or one.labelled_at_ms == label.labelled_at_ms]
        highest = max(rivals, key=lambda one: (one.revision, one.labelled_at_ms))
        if label is highest or (label.label is not None and moment not in named):
            left.append(label)
        if label.label is not None:
            named.add(moment)
    return left


def compare_account(samples: Samples, records: Sequence[tuple[int, Judgement]], joined: Joined, horizon_ms: int | None) -> None:
    outcomes: Counter[tuple[str, str]] = Counter()
    refused: Counter[tuple[str, str]] = Counter()
    single: dict[str, float] = {}
    for name, labels, value in samples:
        if name == "calmon_records_total":
            outcomes[labels["kind"], labels["outcome"]] = int(value)
        elif name == "calmon_refused_total":
            refused[labels["kind"], labels["reason"]] = int(value)
        elif not labels:
            single[name] = value
    assert single["calmon_records_consumed_total"] == len(records) == joined.account.consumed == sum(outcomes.values())

    of_labels = label_outcomes(records, horizon_ms)
    want_refused = Counter({key: count for key, count in joined.account.refusals.items() if key != ("label", "conflicting_label")})
    want_refused["label", "conflicting_label"] = of_labels["conflicting_label"]
    assert refused == want_refused
    want = Counter({key: count for key, count in joined.account.outcomes.items() if key[0] != "label"})
    for outcome in ("applied", "duplicate", "corrected", "withdrawn", "stale"):
        want["label", outcome] = of_labels[outcome]
    want["label", "refused"] = sum(count for (kind, _), count in want_refused.items() if kind == "label")
    assert outcomes == want

    if horizon_ms is None:  # otherwise rows expire, and what waits in them is no longer waiting
        assert single["calmon_pending_predictions"] == joined.account.pending
        assert single["calmon_waiting_labels"] == joined.account.orphan_labels


@given(data=st.data(), partitions=st.integers(1, 3), follow=st.booleans())
@settings(max_examples=50)
@pytest.mark.parametrize(("horizon_ms", "history_ms"), [(None, None), (2 * DAY_MS, None), (HOUR_MS, 4 * DAY_MS)])
def test_every_gauge_at_any_moment(
    data: st.DataObject, partitions: int, follow: bool, horizon_ms: int | None, history_ms: int | None
) -> None:
    least = data.draw(st.sampled_from([0, 12, 30]))
    history = data.draw(histories(partitions=partitions, days=8, min_records=least), label="history")
    steps = data.draw(walks(history), label="walk")
    config = make_config(DEFAULTS, MODELS, horizon_ms, WINDOWS, history_ms)
    records = [(f"p{partition}", record) for partition, record in history.records]
    verdicts = [(partition, judged(record)) for partition, record in history.records]
    with quarantine_file() as quarantine:
        play = Play(config, records, quarantine, history.moments_ms[0], follow=follow)
        highest_ms = history.moments_ms[0]
        for step in steps:
            if step.clock_first and step.moments_ms:
                play.clock.set(step.moments_ms[0])
                highest_ms = max(highest_ms, step.moments_ms[0])
            play.feed(step.records)
            if step.restart:
                play.restart()
            joined = join_judged(verdicts[: play.fed], horizon_ms)
            for now_ms in step.moments_ms:
                highest_ms = max(highest_ms, now_ms)
                note(f"{play.fed} records read, clock {now_ms}")
                samples = play.tick(now_ms)
                compare_gauges(samples, joined, now_ms, kept(play, now_ms, highest_ms))
                compare_account(samples, verdicts[: play.fed], joined, horizon_ms)
        assert play.fed == len(records)


CHANGED = MODELS | {"m": ModelConfig(classes=CLASSES["m"], bins=7, groups=("device",), confidence_threshold=0.5)}
"""Another layout for one model."""


@given(data=st.data(), before=st.integers(0, 60))
@settings(max_examples=50)
def test_a_changed_layout_is_held_back_until_its_window_holds_nothing_else(data: st.DataObject, before: int) -> None:
    history = data.draw(histories(days=4, min_records=12), label="history")
    records = [("p0", record) for _, record in history.records]
    verdicts = [(0, judged(record)) for _, record in history.records]
    with quarantine_file() as quarantine:
        play = Play(make_config(DEFAULTS, MODELS, None), records, quarantine, history.moments_ms[0])
        if before:
            play.feed(before)
        play.restart(make_config(DEFAULTS, CHANGED, None))
        play.feed_all()
        begins_ms = {model: epochs[-1].start_ms for model, epochs in play.engine.shard.epochs.items()}
        joined = join_judged(verdicts, None)
        highest_ms = history.moments_ms[0]
        for moment_ms in history.moments_ms:
            for now_ms in (moment_ms, moment_ms + 4 * DAY_MS):
                highest_ms = max(highest_ms, now_ms)
                spans = {window.name: window.span(now_ms) for window in oracle_windows(WINDOWS)}
                compare_gauges(
                    play.tick(now_ms),
                    joined,
                    now_ms,
                    kept(play, now_ms, highest_ms),
                    CHANGED,
                    lambda labels, spans=spans: "model" in labels and spans[labels["window"]][0] < begins_ms[labels["model"]],  # type: ignore[misc]
                )
