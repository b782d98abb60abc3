"""Which panes are mature: by the clock, and by what has been read of every partition."""

from __future__ import annotations

from pathlib import Path

from monitor.app import Engine
from monitor.clock import ManualClock
from monitor.config_file import parse_config
from monitor.duration import DAY_MS, HOUR_MS
from monitor.events.contract import LATEST_MS
from monitor.pipeline.evidence.maturity import known_until_ms, mature_pane
from monitor.sources.ndjson import NdjsonSource
from tests.doubles.list_source import ListSource
from tests.doubles.memory_store import MemoryStore
from tests.recovery.stream import START_MS, encode, label, prediction, write_lines


def engine_of(folder: Path, source: ListSource | NdjsonSource, clock: ManualClock) -> Engine:
    config = parse_config(f"state: {{directory: unused, horizon: none}}\nquarantine: {{file: {folder / 'quarantine'}}}\n", "test", {})
    return Engine(config, clock, source=source, store=MemoryStore())


def test_the_slowest_partition_decides() -> None:
    assert known_until_ms({"a", "b"}, {"a": 10, "b": 7, "done": 1}, {}) == 7
    assert known_until_ms({"a", "b"}, {"a": 10}, {}) == 0
    assert known_until_ms({"a", "b"}, {"a": 10, "b": 7}, {"b": 12}) == 10
    assert known_until_ms(set(), {"a": 10}, {}) == LATEST_MS


def test_a_pane_is_mature_when_its_end_is_long_enough_ago_by_both() -> None:
    end, wait = START_MS + HOUR_MS, 48 * HOUR_MS
    pane = START_MS // HOUR_MS
    assert mature_pane(end + wait - 1, LATEST_MS, wait) == mature_pane(LATEST_MS, end + wait - 1, wait) == pane
    assert mature_pane(end + wait, LATEST_MS, wait) == mature_pane(LATEST_MS, end + wait, wait) == pane + 1
    assert mature_pane(0, 0, wait) == 0


def test_the_runner_knows_nothing_before_the_start_and_what_is_stored_at_it(tmp_path: Path) -> None:
    records = [("a", encode(prediction("1", START_MS, 0.9))), ("b", encode(label("1", START_MS + DAY_MS, "yes")))]
    clock = ManualClock(START_MS + 9 * DAY_MS)
    engine = engine_of(tmp_path, ListSource(records, follow=True), clock)
    assert engine.runner.known_ms is None
    engine.runner.start()
    assert engine.runner.known_ms == 0
    engine.runner.step(1)
    assert engine.runner.known_ms == 0
    engine.runner.step(1)
    assert engine.runner.known_ms == START_MS
    engine.runner.step(1)
    assert engine.runner.known_ms == START_MS


def test_a_source_at_its_end_holds_nothing_back(tmp_path: Path) -> None:
    engine = engine_of(tmp_path, ListSource([("a", encode(prediction("1", START_MS, 0.9)))]), ManualClock(START_MS))
    engine.runner.start()
    engine.runner.step(1)
    assert engine.runner.known_ms == LATEST_MS


def test_a_followed_file_at_its_end_is_known_until_the_clock_of_that_poll(tmp_path: Path) -> None:
    events = write_lines(tmp_path / "events", [encode(prediction(str(number), START_MS, 0.9)) for number in range(3)])
    quiet = write_lines(tmp_path / "labels", [])
    clock = ManualClock(START_MS + DAY_MS)
    engine = engine_of(tmp_path, NdjsonSource([str(events), str(quiet)], follow=True), clock)
    engine.runner.start()
    try:
        while engine.runner.step(timeout_s=0):
            pass
        assert engine.runner.known_ms == START_MS + DAY_MS
        # What was seen at a time is not known of a later one.
        clock.set(START_MS + 2 * DAY_MS)
        assert engine.runner.known_ms == START_MS + DAY_MS
        with events.open("ab") as file:
            file.write(encode(prediction("late", START_MS, 0.9)) + b"\n")
        while engine.runner.step(1, timeout_s=0):
            pass
        assert engine.runner.known_ms == START_MS + 2 * DAY_MS
    finally:
        engine.close()
