"""Another configuration is another layout: the old sums stay what they were, and gauges wait until the window has only the new ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from monitor.app import Engine
from monitor.clock import ManualClock
from monitor.config_file import parse_config
from monitor.errors import StateError
from monitor.pipeline.digest import dump
from monitor.pipeline.pages import Rendered, render_snapshot
from monitor.pipeline.shard import Shard
from monitor.state import keys
from monitor.state.protocol import Changes
from tests.doubles.list_source import ListSource
from tests.doubles.memory_store import MemoryStore
from tests.recovery.stream import DAY_MS, HOUR_MS, MINUTE_MS, START_MS, encode, label, prediction

TEN = "defaults: {bins: 10}\n"
FIVE = "defaults: {bins: 5}\n"


def run(store: MemoryStore, folder: Path, text: str, events: list[object], now_ms: int) -> tuple[Engine, Rendered]:
    """One life of a service: read some events after those read before, tick once."""
    head = "state: {directory: unused, horizon: none}\nwindows: [{name: 1h, length: 1h}, {name: 24h, length: 24h}]\n"
    config = parse_config(f"{head}quarantine: {{file: {folder / 'quarantine'}}}\n{text}", "test", {})
    # Each life reads a partition of its own.
    records = [(f"events-{store.commits}", encode(event)) for event in events]
    engine = Engine(config, ManualClock(now_ms), source=_Lenient(records), store=store)
    engine.runner.start()
    while engine.runner.step(3):
        pass
    return engine, render_snapshot(engine.evaluator.tick())


class _Lenient(ListSource):
    """Starts although partitions of earlier lives are gone."""

    def start(self, positions: object, given_up: object = None) -> None:
        """Begin at the beginning."""
        del positions, given_up
        super().start({})


def gauge(page: Rendered, name: str, window: str, model: str = "m") -> list[float]:
    """Values of a gauge of a model in a window, segment all."""
    lines = page.metrics.decode().splitlines()
    wanted = (f'model="{model}"', f'window="{window}"', 'segment="all"')
    return [float(line.rpartition(" ")[2]) for line in lines if line.startswith(name + "{") and all(part in line for part in wanted)]


def bins(page: Rendered, window: str) -> set[str]:
    """Values of the label `bin`."""
    lines = [line for line in page.metrics.decode().splitlines() if line.startswith("calmon_bin_predictions{")]
    return {line.split('bin="')[1].split('"')[0] for line in lines if f'window="{window}"' in line}


def predictions(first: int, count: int, at_ms: int, model: str = "m") -> list[object]:
    """Some predictions, one a minute."""
    return [
        prediction(f"{model}{number}", at_ms + (number - first) * MINUTE_MS, 0.9, model=model) for number in range(first, first + count)
    ]


def test_the_same_configuration_goes_on(tmp_path: Path) -> None:
    store = MemoryStore()
    run(store, tmp_path, TEN, predictions(0, 4, START_MS), START_MS + 30 * MINUTE_MS)
    engine, page = run(store, tmp_path, TEN, predictions(10, 4, START_MS + 10 * MINUTE_MS), START_MS + 30 * MINUTE_MS)
    assert gauge(page, "calmon_predictions", "1h") == [8]
    assert len(engine.shard.layouts) == 1


def test_a_new_layout_begins_after_the_newest_pane_and_holds_gauges_back_until_the_window_is_in_it(tmp_path: Path) -> None:
    store = MemoryStore()
    run(store, tmp_path, TEN, predictions(0, 4, START_MS), START_MS + 30 * MINUTE_MS)
    engine, page = run(store, tmp_path, FIVE, predictions(10, 4, START_MS + 20 * MINUTE_MS), START_MS + 30 * MINUTE_MS)
    assert gauge(page, "calmon_predictions", "1h") == []
    assert page.status.count(b"is held back until the window lies inside its new epoch") == 1
    assert b"Window 1h: m is held back" in page.status
    # Events of the hour in which the configuration changed still count as before.
    assert [(epoch.start_ms, engine.shard.layouts[epoch.layout].report_edges[1]) for epoch in engine.shard.epochs["m"]] == [
        (0, 0.1),
        (START_MS + HOUR_MS, 0.2),
    ]
    _, page = run(store, tmp_path, FIVE, predictions(20, 4, START_MS + HOUR_MS), START_MS + 90 * MINUTE_MS)
    assert gauge(page, "calmon_predictions", "1h") == []
    _, page = run(store, tmp_path, FIVE, [], START_MS + 2 * HOUR_MS)
    assert gauge(page, "calmon_predictions", "1h") == [4]
    assert bins(page, "1h") == {"0-0.2", "0.2-0.4", "0.4-0.6", "0.6-0.8", "0.8-1"}
    assert gauge(page, "calmon_predictions", "24h") == []
    assert page.status.count(b"is held back") == 1
    _, page = run(store, tmp_path, FIVE, [], START_MS + 25 * HOUR_MS)
    assert gauge(page, "calmon_predictions", "24h") == [4]
    assert b"is held back" not in page.status


def test_a_late_label_changes_the_layout_that_its_prediction_counted_in(tmp_path: Path) -> None:
    store = MemoryStore()
    run(store, tmp_path, TEN, predictions(0, 1, START_MS), START_MS)
    engine, _ = run(store, tmp_path, FIVE, predictions(1, 1, START_MS + 2 * HOUR_MS), START_MS)
    before = b"".join(dump([engine.shard]))
    old, new = (epoch.layout.encode() for epoch in engine.shard.epochs["m"])
    engine, _ = run(store, tmp_path, FIVE, [label("m0", START_MS + DAY_MS, "yes")], START_MS)
    after = b"".join(dump([engine.shard]))
    assert [line for line in before.splitlines() if new in line] == [line for line in after.splitlines() if new in line]
    assert [line for line in before.splitlines() if old in line] != [line for line in after.splitlines() if old in line]


def test_only_the_model_whose_configuration_changed_is_held_back(tmp_path: Path) -> None:
    store = MemoryStore()
    events = predictions(0, 4, START_MS) + predictions(0, 4, START_MS, "n")
    run(store, tmp_path, TEN, events, START_MS + 30 * MINUTE_MS)
    _, page = run(store, tmp_path, TEN + "models: {n: {bins: 3}}\n", [], START_MS + 30 * MINUTE_MS)
    assert gauge(page, "calmon_predictions", "1h", "m") == [4]
    assert gauge(page, "calmon_predictions", "1h", "n") == []


def test_the_epoch_begins_where_the_configuration_says(tmp_path: Path) -> None:
    store = MemoryStore()
    run(store, tmp_path, TEN, predictions(0, 4, START_MS), START_MS + 30 * MINUTE_MS)
    text = "models: {m: {bins: 5, epoch_start: 2026-06-01T05:00:00Z}}\n"
    engine, _ = run(store, tmp_path, text, predictions(4, 1, START_MS + 5 * HOUR_MS - 1), START_MS)
    assert engine.shard.epochs["m"][-1].start_ms == START_MS + 5 * HOUR_MS
    _, page = run(store, tmp_path, text, predictions(5, 2, START_MS + 5 * HOUR_MS), START_MS + 6 * HOUR_MS)
    assert gauge(page, "calmon_predictions", "1h") == [2]


def test_an_epoch_that_would_begin_among_what_is_counted_already_is_refused(tmp_path: Path) -> None:
    store = MemoryStore()
    run(store, tmp_path, TEN, predictions(0, 4, START_MS + 5 * HOUR_MS), START_MS)
    with pytest.raises(StateError, match="model m: epoch_start lies before the end of the stored panes"):
        run(store, tmp_path, "models: {m: {bins: 5, epoch_start: 2026-06-01T05:00:00Z}}\n", [], START_MS)


def test_going_back_to_the_first_configuration_is_an_epoch_of_its_own(tmp_path: Path) -> None:
    store = MemoryStore()
    run(store, tmp_path, TEN, predictions(0, 4, START_MS), START_MS)
    run(store, tmp_path, FIVE, predictions(4, 4, START_MS + 2 * HOUR_MS), START_MS)
    engine, page = run(store, tmp_path, TEN, predictions(8, 4, START_MS + 4 * HOUR_MS), START_MS + 5 * HOUR_MS)
    assert [epoch.start_ms for epoch in engine.shard.epochs["m"]] == [0, START_MS + HOUR_MS, START_MS + 3 * HOUR_MS]
    assert len(engine.shard.layouts) == 2
    assert gauge(page, "calmon_predictions", "1h") == [4]


def test_a_change_that_was_undone_before_anything_came_leaves_no_gap(tmp_path: Path) -> None:
    store = MemoryStore()
    run(store, tmp_path, TEN, predictions(0, 4, START_MS), START_MS)
    run(store, tmp_path, FIVE, [], START_MS)  # never reads a record, so never checkpoints
    engine, page = run(store, tmp_path, TEN, [], START_MS + 30 * MINUTE_MS)
    assert len(engine.shard.epochs["m"]) == 1
    assert gauge(page, "calmon_predictions", "1h") == [4]


def test_a_state_opened_to_look_at_it_needs_no_configuration(tmp_path: Path) -> None:
    store = MemoryStore()
    engine, _ = run(store, tmp_path, TEN, predictions(0, 4, START_MS), START_MS)
    assert b"".join(dump([Shard(store.copy(), None, ())])) == b"".join(dump([engine.shard])) != b""


@pytest.mark.parametrize("key", [keys.CHECKPOINT, keys.LAYOUTS, keys.series(0)])
@pytest.mark.parametrize("damage", [b"", b"\x00", b"\xc1rubbish", b"{}", b"\x90"])
def test_damaged_metadata_is_an_error_of_the_state(key: bytes, damage: bytes, tmp_path: Path) -> None:
    store = MemoryStore()
    run(store, tmp_path, TEN, predictions(0, 4, START_MS), START_MS)
    store.commit(Changes(puts=[(key, damage)]))
    with pytest.raises(StateError, match="damaged"):
        Shard(store, None, ())
