"""Upkeep: what nothing can need any more goes, in time and without a trace in the sums; and a tick may come at any moment of it."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from monitor.app import Engine, nothing
from monitor.clock import ManualClock
from monitor.config import Config
from monitor.config_file import parse_config
from monitor.errors import StateError
from monitor.pipeline.digest import digest, dump
from monitor.pipeline.pages import render_snapshot
from monitor.state import keys
from monitor.state.protocol import Changes
from tests.doubles.list_source import ListSource
from tests.doubles.memory_store import MemoryStore
from tests.recovery.stream import DAY_MS, HOUR_MS, MINUTE_MS, START_MS, encode, label, make_stream, prediction

LATER_MS = START_MS + 300 * DAY_MS
HORIZON = "state: {directory: unused, horizon: 2d, history: 7d}\nwindows: [{name: 1h, length: 1h}, {name: 24h, length: 24h}]\n"
NO_HORIZON = "state: {directory: unused, horizon: none}\nwindows: [{name: 1h, length: 1h}, {name: 24h, length: 24h}]\n"

Record = tuple[str, bytes]


def configure(text: str, folder: Path) -> Config:
    """A configuration whose quarantine is in the folder; the store of these tests is in memory."""
    return parse_config(text + f"quarantine: {{file: {folder / 'quarantine'}}}\n", "test", {})


def start(
    config: Config,
    records: Sequence[Record],
    store: MemoryStore | None = None,
    now_ms: int = LATER_MS,
    reached: Callable[[str], None] = nothing,
    follow: bool = False,
) -> Engine:
    """An engine that is ready to step through records."""
    store = MemoryStore() if store is None else store
    engine = Engine(config, ManualClock(now_ms), source=ListSource(records, follow=follow), store=store, reached=reached)
    engine.runner.start()
    return engine


def step_all(engine: Engine, batch: int = 20) -> None:
    """Read to the end."""
    while engine.runner.step(batch):
        pass


def rows(engine: Engine) -> list[str]:
    """Ids that have a row."""
    return [key[1:].decode() for key, _ in engine.shard.store.scan(*keys.prefix_range(keys.ROW))]


def overdue(engine: Engine) -> int:
    """Lists of ids that are due and were not looked at."""
    slowest_ms = min(engine.shard.newest_ms.values())
    return len(list(engine.shard.store.scan(b"x", keys.due(slowest_ms // DAY_MS + 1, 0))))


def gauges(engine: Engine) -> list[str]:
    """Lines of `/metrics` that speak of windows, as of a tick now."""
    exposition = render_snapshot(engine.evaluator.tick()).metrics.decode()
    return [line for line in exposition.splitlines() if 'window="' in line]


def one_file(events: Sequence[object]) -> list[Record]:
    """Events as records of one partition."""
    return [("events", encode(event)) for event in events]


def test_a_row_goes_once_no_record_can_meet_it(tmp_path: Path) -> None:
    # An eligible label is at most 2 d later, and is accepted up to 2 d + 2 d after that.
    last_moment = START_MS + 6 * DAY_MS
    events = [prediction("old", START_MS, 0.9), prediction("a", last_moment, 0.9), prediction("b", last_moment + 2 * DAY_MS, 0.9)]
    engine = start(configure(HORIZON, tmp_path), one_file(events), follow=True)
    engine.runner.step(2)
    assert rows(engine) == ["a", "old"]
    assert engine.shard.account.pending == 2
    engine.runner.step(1)
    assert rows(engine) == ["a", "b"]
    assert engine.shard.account.pending == 2


def test_a_label_keeps_its_row_until_no_prediction_can_come(tmp_path: Path) -> None:
    labelled = START_MS + 2 * DAY_MS
    events = [
        prediction("p", START_MS, 0.9),
        label("p", labelled, "yes"),
        label("orphan", labelled, "yes"),
        prediction("x", START_MS + 8 * DAY_MS, 0.9),
        prediction("y", labelled + 8 * DAY_MS - 1, 0.9),
        prediction("z", labelled + 10 * DAY_MS, 0.9),
    ]
    engine = start(configure(HORIZON, tmp_path), one_file(events), follow=True)
    engine.runner.step(5)
    assert rows(engine) == ["orphan", "p", "x", "y"]
    assert (engine.shard.account.pending, engine.shard.account.waiting) == (2, 1)
    engine.runner.step(1)
    assert rows(engine) == ["x", "y", "z"]
    assert (engine.shard.account.pending, engine.shard.account.waiting) == (3, 0)


def test_a_slow_partition_holds_rows_back(tmp_path: Path) -> None:
    fast = [("fast", encode(prediction(f"f{day}", START_MS + day * DAY_MS, 0.9))) for day in range(0, 30, 3)]
    slow = [("slow", encode(label("f0", START_MS + HOUR_MS, "yes")))]
    engine = start(configure(HORIZON, tmp_path), [*fast, *slow], follow=True)
    for _ in fast:
        engine.runner.step(1)
    assert len(rows(engine)) == len(fast)
    engine.runner.step(1)
    assert engine.shard.account.outcomes[("label", "applied")] == 1
    assert engine.shard.account.pending == len(fast) - 1


def test_expiry_keeps_up_with_labels_that_scatter_over_days(tmp_path: Path) -> None:
    # Each day's ids are listed together, and fall apart into as many lists as their labels have days.
    events: list[tuple[int, object]] = []
    for hour in range(0, 40 * 24, 2):
        at_ms = START_MS + hour * HOUR_MS
        for number in range(4):
            one = f"{hour:04d}-{number}"
            events.append((at_ms + number, prediction(one, at_ms + number, 0.9)))
            delay_ms = (number * 16 + 1) * HOUR_MS
            events.append((at_ms + delay_ms, label(one, at_ms + delay_ms, "yes")))
    ordered = [event for _, event in sorted(events, key=lambda pair: pair[0])]
    engine = start(configure(HORIZON, tmp_path), one_file(ordered), follow=True)
    most = 0
    while engine.runner.step(100):
        assert overdue(engine) == 0
        most = max(most, len(rows(engine)))
    # 12 days of 48 ids a day is the longest that any row is needed.
    assert most <= 12 * 48


def test_without_a_horizon_nothing_goes(tmp_path: Path) -> None:
    lines = make_stream(dense=100, sparse=100)
    engine = start(configure(NO_HORIZON, tmp_path), [("events", line.value) for line in lines])
    step_all(engine)
    assert len(list(engine.shard.store.scan(*keys.prefix_range(b"x")))) == 0
    ids = {json.loads(line.value)["prediction_id"] for line in lines if line.refused is None}
    assert set(rows(engine)) >= ids
    assert engine.shard.days()[0] == START_MS // DAY_MS


def test_hours_go_when_history_ends(tmp_path: Path) -> None:
    events = [prediction(f"p{day}", START_MS + day * DAY_MS, 0.9) for day in range(20)]
    engine = start(configure(HORIZON, tmp_path), one_file(events), follow=True)
    step_all(engine, 1)
    first_day = START_MS // DAY_MS
    assert engine.shard.days() == list(range(first_day + 19 - 7, first_day + 20))
    reopened = start(configure(HORIZON, tmp_path), one_file(events), store=_memory(engine), follow=True)
    assert reopened.shard.days() == engine.shard.days()
    assert digest(dump([reopened.shard])) == digest(dump([engine.shard]))


def test_minutes_fold_into_hours_without_a_change_of_the_sums(tmp_path: Path) -> None:
    lines = [("events", line.value) for line in make_stream(dense=200, sparse=100)]
    hours_only = NO_HORIZON.replace("{name: 1h, length: 1h}, ", "")
    points: list[str] = []
    folded = start(configure(NO_HORIZON, tmp_path), lines, reached=points.append)
    step_all(folded)
    plain = start(configure(hours_only, tmp_path), lines)
    step_all(plain)
    assert points.count("folding") > 3
    assert digest(dump([folded.shard])) == digest(dump([plain.shard]))


@pytest.mark.parametrize("text", [HORIZON, NO_HORIZON])
@pytest.mark.parametrize("pause_h", [1, 2, 5, 30, 72])
def test_ticks_that_were_missed_leave_nothing_behind_in_a_window(text: str, pause_h: int, tmp_path: Path) -> None:
    # The process may have been suspended: records come before the next tick does, and their upkeep drops panes that windows still hold.
    config = configure(text.replace("length: 1h", "length: 6h"), tmp_path)
    events = [prediction(f"p{minute}", START_MS + minute * MINUTE_MS, 0.9) for minute in range(0, 6 * 60, 5)]
    events += [prediction(f"q{minute}", START_MS + (6 + pause_h) * HOUR_MS + minute * MINUTE_MS, 0.9) for minute in range(0, 90, 5)]
    clock = ManualClock(START_MS + 6 * HOUR_MS)
    engine = Engine(config, clock, source=ListSource(one_file(events), follow=True), store=MemoryStore())
    engine.runner.start()
    engine.runner.step(72)
    gauges(engine)
    clock.set(START_MS + (7 + pause_h) * HOUR_MS)
    step_all(engine)
    found = gauges(engine)
    fresh = start(config, one_file(events), now_ms=clock.now_ms(), follow=True)
    step_all(fresh)
    assert found == gauges(fresh)
    assert found != []


def test_a_tick_at_any_point_of_a_checkpoint_counts_nothing_twice(tmp_path: Path) -> None:
    lines = make_stream(dense=150, sparse=60)
    ticks: list[threading.Thread] = []

    def tick_now(point: str) -> None:
        if point in ("judged", "journalled"):  # points of a tick itself
            return
        for thread in ticks:
            if point not in ("committed", "folding"):  # another thread's tick waits until memory has what the store has
                thread.join()
        clock.set(engine.shard.newest_event_ms + 2 * MINUTE_MS)
        ticks.append(threading.Thread(target=engine.evaluator.tick))
        ticks[-1].start()

    clock = ManualClock(START_MS)
    source = ListSource([("events", line.value) for line in lines])
    engine = Engine(configure(HORIZON, tmp_path), clock, source=source, store=MemoryStore(), reached=tick_now)
    engine.runner.start()
    while engine.runner.step(10):
        for thread in ticks:
            thread.join()
        ticks.clear()
        fresh = Engine(configure(HORIZON, tmp_path), clock, source=ListSource([]), store=_memory(engine))
        assert gauges(engine) == gauges(fresh)


class FailingStore(MemoryStore):
    """A store that is full from a certain commit on, for a while."""

    def __init__(self) -> None:
        super().__init__()
        self.fails_at = -1

    def commit(self, changes: Changes) -> None:
        """Apply all changes, or none."""
        if self.commits == self.fails_at:
            self.fails_at = -1
            raise StateError("cannot write the state: no space left on device; nothing of this batch was stored")
        super().commit(changes)


def test_a_commit_that_fails_leaves_the_last_checkpoint(tmp_path: Path) -> None:
    config = configure(HORIZON, tmp_path)
    lines = [("events", line.value) for line in make_stream(dense=60, sparse=60)]
    points: list[tuple[str, int]] = []
    undisturbed = MemoryStore()
    whole = start(config, lines, store=undisturbed, follow=True, reached=lambda point: points.append((point, undisturbed.commits)))
    step_all(whole, 25)
    assert {"folding", "expiring"} <= {point for point, _ in points}
    # Up to the last batch: what its upkeep would have dropped is dropped after the next batch only.
    for fails_at in range(1, 1 + max(commits for point, commits in points if point == "joined")):
        store = FailingStore()
        store.fails_at = fails_at
        engine = start(config, lines, store=store, follow=True)
        with pytest.raises(StateError, match="no space left"):
            step_all(engine, 25)
        before = store.commits
        engine.close()
        assert store.commits == before  # half a batch is in memory: closing must not store it
        again = start(config, lines, store=store, follow=True)
        step_all(again, 25)
        assert again.shard.account == whole.shard.account, fails_at
        assert digest(dump([again.shard])) == digest(dump([whole.shard])), fails_at


def _memory(engine: Engine) -> MemoryStore:
    store = engine.shard.store
    assert isinstance(store, MemoryStore)
    return store.copy()


def test_a_tick_beside_a_batch_that_evicts_a_value_shows_what_is_committed(tmp_path: Path) -> None:
    """Panes leave the window while a value is losing its place: they are still that value's, as all the window is."""
    ranked = sorted((f"u{number}" for number in range(40)), key=lambda value: hashlib.sha256(value.encode()).digest())
    values, newcomer = ranked[20:24], ranked[0]
    hour = [
        prediction(f"{value}-{minute}", START_MS + minute * MINUTE_MS, 0.9, groups={"region": value})
        for minute in range(60)
        for value in values
    ]
    text = NO_HORIZON + "defaults: {groups: [region], max_group_values: 1}\n"
    found: list[dict[str, int]] = []

    def reached(name: str) -> None:
        if name == "joined" and engine.shard.series.evictions:
            found.append(shown(START_MS + 80 * MINUTE_MS))

    def shown(now_ms: int) -> dict[str, int]:
        window = engine.shard.advance(now_ms)[0][0]
        assert window is not None
        return {key.value: int(cell[0]) for key, cell in zip(window.keys, window.cells, strict=True) if key.segment == "region"}

    events = [*hour, prediction("new", START_MS + 59 * MINUTE_MS, 0.9, groups={"region": newcomer})]
    engine = start(configure(text, tmp_path), one_file(events), now_ms=START_MS + HOUR_MS, reached=reached)
    engine.runner.step(len(hour))
    assert shown(START_MS + HOUR_MS) == dict.fromkeys(values, 60)
    step_all(engine)
    assert found == [dict.fromkeys(values, 40)]
    assert sum(shown(START_MS + 80 * MINUTE_MS).values()) == 4 * 40 + 1
    engine.close()
