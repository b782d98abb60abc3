"""Evidence in the engine: equal to one pass over the events themselves, however they were batched, sharded, restarted or expired."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from monitor.app import Engine
from monitor.clock import ManualClock
from monitor.config import Config
from monitor.config_file import parse_config
from monitor.duration import DAY_MS, HOUR_MS
from monitor.errors import StateError
from monitor.evidence.course import E_ALARMS, Alarm, log_e_now
from monitor.evidence.standing import Crossing, Evidence, Standing
from monitor.pipeline.evidence import tracker as tracker_module
from monitor.pipeline.evidence.book import Book
from monitor.pipeline.evidence.judgement import judge
from monitor.pipeline.pages import render_snapshot
from monitor.state import keys
from monitor.state.protocol import Changes
from tests.doubles.evidence_stream import MATURITY_MS, Event, cells, course, made, records, same
from tests.doubles.list_source import ListSource
from tests.doubles.memory_store import MemoryStore
from tests.doubles.sharded_source import ShardedSource
from tests.recovery.stream import START_MS, encode, label, prediction

KEEPS = "state: {directory: unused, horizon: none}\nwindows: [{name: 1h, length: 1h}]\n"
DROPS = "state: {directory: unused, horizon: 2d, history: 7d}\nwindows: [{name: 24h, length: 24h, lag: 48h}]\n"
PAGES = Alarm("e_process", "over", 0.02)

GOOD_AND_BAD = {"good": lambda c, hour: c, "bad": lambda c, hour: c if hour < 12 * 24 else c - 0.45}


def configure(folder: Path, text: str = KEEPS) -> Config:
    return parse_config(f"{text}quarantine: {{file: {folder / 'quarantine'}}}\n", "test", {})


def start(config: Config, lines: Sequence[bytes], store: MemoryStore | None = None) -> tuple[Engine, ManualClock]:
    clock = ManualClock(START_MS)
    source = ListSource([("events", line) for line in lines])
    engine = Engine(config, clock, source=source, store=MemoryStore() if store is None else store)
    engine.runner.start()
    return engine, clock


def read(engine: Engine, clock: ManualClock, batch: int, ticks_every: int = 1) -> None:
    """Read to the end, a tick every so many batches with the clock at the newest event."""
    batches = 0
    while engine.runner.step(batch):
        batches += 1
        clock.set(max(clock.now_ms(), *engine.shard.newest_ms.values()))
        if batches % ticks_every == 0:
            engine.evaluator.tick()


def finish(engine: Engine, clock: ManualClock, days: float = 3) -> Evidence:
    """Let everything mature."""
    clock.set(engine.shard.newest_event_ms + round(days * DAY_MS))
    while True:
        before = book(engine).next_pane
        evidence = engine.evaluator.tick().evidence
        if book(engine).next_pane == before:
            return evidence


def book(engine: Engine) -> Book:
    assert engine.tracker is not None
    return engine.tracker.book


def journal(engine: Engine) -> list[Crossing]:
    """Entries, but for what the clock showed."""
    return [replace(entry, noted_ms=0) for entry in book(engine).journal]


def standing(evidence: Evidence, version: str) -> Standing:
    (found,) = [one for one in evidence.standings if one.version == version]
    return found


def check(engine: Engine, events: Sequence[Event]) -> None:
    """Every version's course is one pass over its events."""
    versions = {event.version for event in events}
    assert book(engine).courses.keys() == {("m", version) for version in versions}
    for version in versions:
        assert same(book(engine).courses["m", version], course(events, version)), version


def lines_of(events: Sequence[Event]) -> list[bytes]:
    return [line for _, line in records(events)]


EVENTS = made(4, range(0, 14 * 24, 2), GOOD_AND_BAD, per_hour=12)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> list[Crossing]:
    engine, clock = start(configure(tmp_path_factory.mktemp("undisturbed")), lines_of(EVENTS))
    read(engine, clock, 100)
    finish(engine, clock)
    check(engine, EVENTS)
    return journal(engine)


def test_what_goes_bad_on_day_12_is_noted_and_its_good_twin_is_not(undisturbed: list[Crossing]) -> None:
    assert {entry.version for entry in undisturbed} == {"bad"}
    first = {entry.alarm: entry for entry in undisturbed}
    assert len(first) == len(undisturbed)
    assert {PAGES, Alarm("block", "over", 0.0), Alarm("run_length", "over", 0.02)} <= first.keys()
    assert all(entry.pane_end_ms > START_MS + 12 * DAY_MS for entry in undisturbed)
    begun = first[Alarm("run_length", "over", 0.02)].change_start_ms
    assert begun is not None
    assert abs(begun - (START_MS + 12 * DAY_MS)) <= 3 * HOUR_MS
    assert not [alarm for alarm in first if alarm.side == "under"]


def test_an_entry_says_what_was_counted_until_then(undisturbed: list[Crossing]) -> None:
    for entry in undisturbed:
        until = [event for event in EVENTS if event.version == "bad" and event.at_ms < entry.pane_end_ms]
        assert (entry.predictions, entry.labelled) == (len(until), sum(event.correct is not None for event in until))
        assert entry.value >= entry.threshold


@pytest.mark.parametrize(("batch", "ticks_every"), [(50, 5), (333, 1), (2000, 2), (100_000, 1)])
def test_batches_and_ticks_make_no_difference(batch: int, ticks_every: int, undisturbed: list[Crossing], tmp_path: Path) -> None:
    engine, clock = start(configure(tmp_path), lines_of(EVENTS))
    read(engine, clock, batch, ticks_every)
    finish(engine, clock)
    check(engine, EVENTS)
    assert journal(engine) == undisturbed


def test_restarts_make_no_difference(undisturbed: list[Crossing], tmp_path: Path) -> None:
    store, lines, done = MemoryStore(), lines_of(EVENTS), False
    chance = random.Random(3)  # noqa: S311 - the same every time
    while not done:
        engine, clock = start(configure(tmp_path), lines, store)
        for _ in range(chance.randrange(2, 30)):
            done = not engine.runner.step(100)
            clock.set(max(clock.now_ms(), *engine.shard.newest_ms.values()))
            engine.evaluator.tick()
        store = store.copy()
    evidence = finish(engine, clock)
    check(engine, EVENTS)
    assert journal(engine) == undisturbed
    again, clock = start(configure(tmp_path), lines, store.copy())
    assert finish(again, clock) == evidence
    assert again.tracker is not None
    assert book(again).journal == book(engine).journal


def test_a_service_that_was_down_lets_panes_mature_later_and_in_order(undisturbed: list[Crossing], tmp_path: Path) -> None:
    engine, clock = start(configure(tmp_path), lines_of(EVENTS))
    while engine.runner.step():
        pass
    finish(engine, clock, days=40)
    check(engine, EVENTS)
    assert journal(engine) == undisturbed


@pytest.mark.parametrize("most", [1, 7])
def test_a_bounded_number_of_panes_enters_in_a_tick(
    most: int, undisturbed: list[Crossing], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tracker_module, "PANES_A_TICK", most)
    engine, clock = start(configure(tmp_path), lines_of(EVENTS))
    while engine.runner.step():
        pass
    clock.set(START_MS + 40 * DAY_MS)
    engine.evaluator.tick()
    entered = {
        version: np.count_nonzero(cells([event for event in EVENTS if event.version == version])[0] < book(engine).next_pane)
        for version in ("good", "bad")
    }
    assert 1 <= entered["good"] == entered["bad"] <= most
    finish(engine, clock, days=40)
    check(engine, EVENTS)
    assert journal(engine) == undisturbed


@pytest.mark.parametrize("shards", [1, 4])
def test_shards_make_no_difference(shards: int, undisturbed: list[Crossing], tmp_path: Path) -> None:
    text = f"state: {{directory: {tmp_path / 'state'}, horizon: none}}\nsource: {{kafka: {{bootstrap_servers: [a:1]}}}}\n"
    config, clock = parse_config(text, "test", {}), ManualClock(START_MS)
    lines = lines_of(EVENTS)
    engine = Engine(config, clock, source=ShardedSource(lines, shards))
    engine.runner.start()
    batches = 0
    while engine.runner.step(2000):
        batches += 1
        clock.set(max(max(shard.newest_ms.values()) for shard in engine.shards))
        engine.evaluator.tick()
        if batches == 2:
            # A restart in the middle finds shards and book again.
            engine.close()
            engine = Engine(config, clock, source=ShardedSource(lines, shards))
            engine.runner.start()
    clock.set(START_MS + 17 * DAY_MS)
    evidence = engine.evaluator.tick().evidence
    try:
        assert len(engine.shards) == shards
        check(engine, EVENTS)
        assert journal(engine) == undisturbed
        assert not any(one.restated for one in evidence.standings)
    finally:
        engine.close()


def test_hours_without_predictions_are_nothing(tmp_path: Path) -> None:
    hours = [0, 1, 2, 30, 31, 90, 200, 201, 202]
    events = made(2, hours, {"v": lambda c, hour: c - 0.3}, per_hour=30) + made(3, [5, 100, 202], {"w": lambda c, hour: c}, per_hour=3)
    engine, clock = start(configure(tmp_path), lines_of(events))
    read(engine, clock, 10)
    finish(engine, clock)
    check(engine, events)


def test_a_correction_after_maturity_changes_what_is_known_and_not_what_was_judged(tmp_path: Path) -> None:
    events = [event for event in EVENTS if event.at_ms < START_MS + 5 * DAY_MS]
    engine, clock = start(configure(tmp_path), lines_of(events))
    read(engine, clock, 500)
    before = finish(engine, clock)
    assert not standing(before, "good").restated
    # Every second hour's labels of `good` turn out to be wrong, and some that were missing come.
    turned = [event for event in events if event.version == "good" and event.at_ms // HOUR_MS % 4 and event.at_ms < START_MS + 2 * DAY_MS]
    later_ms = events[-1].at_ms + 2 * DAY_MS
    late = [label(event.one, later_ms, "no" if event.correct else "yes", revision=1) for event in turned]
    store = engine.shard.store
    assert isinstance(store, MemoryStore)
    corrected, clock = start(configure(tmp_path), [*lines_of(events), *map(encode, late)], store.copy())
    read(corrected, clock, 50)
    after = finish(corrected, clock, days=3)
    known = [replace(event, correct=not event.correct) if event in turned else event for event in events]
    _, expected = cells([event for event in known if event.version == "good"])
    found = standing(after, "good")
    assert found.restated
    assert not standing(after, "bad").restated
    assert [found.log_e[alarm] for alarm in E_ALARMS] == log_e_now(expected.sum(axis=0)).tolist()
    assert found.log_e[PAGES] > standing(before, "good").log_e[PAGES] + 5
    assert found.labelled == sum(event.correct is not None for event in known if event.version == "good")
    assert journal(corrected) == journal(engine)
    check(corrected, events)
    # The same after a restart, and corrections that are taken back leave no trace.
    back = [
        label(event.one, later_ms, "yes" if event.correct else "no" if event.correct is False else None, revision=2) for event in turned
    ]
    store = corrected.shard.store
    assert isinstance(store, MemoryStore)
    undone, clock = start(configure(tmp_path), [*lines_of(events), *map(encode, late), *map(encode, back)], store.copy())
    assert standing(undone.evaluator.tick().evidence, "good") == found
    read(undone, clock, 50)
    assert finish(undone, clock, days=3) == before


def test_missing_labels_count_against_the_alarm(tmp_path: Path) -> None:
    events = made(4, range(60), {"v": lambda c, hour: c - 0.4}, per_hour=10, unlabelled=1.0)
    engine, clock = start(configure(tmp_path), lines_of(events))
    read(engine, clock, 100)
    found = standing(finish(engine, clock), "v")
    assert (found.predictions, found.labelled) == (600, 0)
    assert all(found.log_e[alarm] < 0 for alarm in E_ALARMS)
    assert found.block_log_e < 0
    assert found.overconfidence_lower == 0


def test_panes_that_expire_fold_into_what_is_carried(tmp_path: Path) -> None:
    events = made(5, range(0, 40 * 24, 2), {"v": lambda c, hour: c - 0.1}, per_hour=6, unlabelled=0)
    engine, clock = start(configure(tmp_path, DROPS), lines_of(events))
    read(engine, clock, 40)
    evidence = finish(engine, clock)
    assert engine.shard.days()[0] > (START_MS + 20 * DAY_MS) // DAY_MS
    _check_expired(engine, events, evidence)
    store = engine.shard.store
    assert isinstance(store, MemoryStore)
    # All that has matured is carried in one row; at most the last days wait in small.
    assert len(list(store.scan(*keys.prefix_range(b"c")))) == 1
    assert len(list(store.scan(*keys.prefix_range(b"e")))) <= 1
    again, clock = start(configure(tmp_path, DROPS), lines_of(events), store.copy())
    _check_expired(again, events, finish(again, clock))


def test_panes_that_expire_before_they_have_entered_still_enter(tmp_path: Path) -> None:
    events = made(6, range(0, 40 * 24, 2), {"v": lambda c, hour: c - 0.1}, per_hour=6, unlabelled=0)
    engine, clock = start(configure(tmp_path, DROPS), lines_of(events))
    while engine.runner.step(500):
        pass
    store = engine.shard.store
    assert isinstance(store, MemoryStore)
    assert len(list(store.scan(*keys.prefix_range(b"e")))) > 10
    _check_expired(engine, events, finish(engine, clock))
    again, clock = start(configure(tmp_path, DROPS), lines_of(events), store.copy())
    _check_expired(again, events, finish(again, clock))


def _check_expired(engine: Engine, events: Sequence[Event], evidence: Evidence) -> None:
    check(engine, events)
    assert not standing(evidence, "v").restated
    assert standing(evidence, "v").predictions == len(events)


def test_evidence_goes_on_when_the_layout_changes(tmp_path: Path) -> None:
    events = made(7, range(96), {"v": lambda c, hour: c - 0.1}, per_hour=10)
    lines = lines_of(events)
    store = MemoryStore()
    for share, text in ((len(lines) // 2, "defaults: {bins: 10}\n"), (len(lines), "defaults: {edges: [0.5, 0.8, 0.93, 1.0]}\n")):
        engine, clock = start(configure(tmp_path, KEEPS + text), lines, store)
        while engine.runner.step(100) and sum(int(position["records"]) for position in engine.shard.positions.values()) < share:
            clock.set(engine.shard.newest_event_ms)
            engine.evaluator.tick()
        store = store.copy()
    finish(engine, clock)
    assert len(engine.shard.layouts) == 2
    check(engine, events)


def test_half_a_pane_never_enters(tmp_path: Path) -> None:
    events = made(8, range(100), {"v": lambda c, hour: c}, per_hour=5, unlabelled=0)
    fast = [("predictions", line) for _, line in records([replace(event, correct=None) for event in events])]
    slow = [("labels", encode(label(event.one, event.labelled_ms, "yes"))) for event in events]
    clock = ManualClock(START_MS + 300 * DAY_MS)
    engine = Engine(configure(tmp_path), clock, source=ListSource(fast + slow, follow=True), store=MemoryStore())
    engine.runner.start()
    engine.runner.step(len(fast))
    engine.evaluator.tick()
    assert book(engine).courses == {}
    engine.runner.step(len(slow) // 2)
    engine.evaluator.tick()
    # The newest label read so far decides, though predictions are there of much later hours.
    newest_ms = max(event.labelled_ms for event in events[: len(slow) // 2])
    assert book(engine).next_pane == (newest_ms - MATURITY_MS) // HOUR_MS
    while engine.runner.step():
        pass
    engine.evaluator.tick()
    last_ms = min(events[-1].at_ms, max(event.labelled_ms for event in events))
    assert book(engine).next_pane == (last_ms - MATURITY_MS) // HOUR_MS


def test_panes_wait_for_the_clock_too(tmp_path: Path) -> None:
    events = made(9, range(10), {"v": lambda c, hour: c}, per_hour=5)
    engine, clock = start(configure(tmp_path), lines_of(events))
    while engine.runner.step():
        pass
    for hours in (0, 48):
        clock.set(START_MS + hours * HOUR_MS + HOUR_MS - 1)
        assert engine.evaluator.tick().evidence == Evidence(selected={alarm: [] for alarm in E_ALARMS})
    clock.set(START_MS + 49 * HOUR_MS)
    evidence = engine.evaluator.tick().evidence
    assert standing(evidence, "v").predictions == 5
    assert evidence.matured_until_ms == START_MS + HOUR_MS
    # A clock that jumps ahead and back lets nothing be left out.
    clock.set(START_MS + 900 * DAY_MS)
    engine.evaluator.tick()
    clock.set(START_MS)
    engine.evaluator.tick()
    assert book(engine).next_pane == START_MS // HOUR_MS + 10


def test_a_version_without_predictions_is_retired(tmp_path: Path) -> None:
    events = made(10, range(48), {"old": lambda c, hour: c}, per_hour=3) + made(11, range(200), {"new": lambda c, hour: c}, per_hour=3)
    engine, clock = start(configure(tmp_path, DROPS), lines_of(events))
    while engine.runner.step():
        pass
    # The longest window could show its last prediction for three days.
    for hours, expected in ((46 + 72, ["new", "old"]), (47 + 72, ["new", "old"]), (48 + 72, ["new"])):
        clock.set(START_MS + hours * HOUR_MS + MATURITY_MS)
        while (before := book(engine).next_pane) < hours + START_MS // HOUR_MS:
            engine.evaluator.tick()
            if book(engine).next_pane == before:
                break
        evidence = engine.evaluator.tick().evidence
        assert [one.version for one in evidence.standings] == expected
        assert {len(chosen) for chosen in evidence.selected.values()} == {len(expected)}


def test_e_bh_selects_the_bad_one_of_many(tmp_path: Path) -> None:
    versions: Mapping[str, Callable[[float, int], float]] = {f"v{number}": lambda c, hour: c for number in range(8)}
    events = made(12, range(40), versions, per_hour=4) + made(13, range(40), {"bad": lambda c, hour: c - 0.35}, per_hour=30)
    engine, clock = start(configure(tmp_path), lines_of(events))
    while engine.runner.step():
        pass
    evidence = finish(engine, clock)
    chosen = [one.version for one, picked in zip(evidence.standings, evidence.selected[PAGES], strict=True) if picked]
    assert chosen == ["bad"]


def test_another_level_is_another_journal(tmp_path: Path) -> None:
    events = made(14, range(60), {"v": lambda c, hour: c - 0.3}, per_hour=10)
    lines = lines_of(events)
    engine, clock = start(configure(tmp_path), lines)
    read(engine, clock, 200)
    found = standing(finish(engine, clock), "v").crossings[PAGES]
    store = engine.shard.store
    assert isinstance(store, MemoryStore)
    stricter = configure(tmp_path, KEEPS + "evidence: {alpha: 0.0001}\n")
    again, clock = start(stricter, lines, store.copy())
    assert standing(finish(again, clock), "v").crossings == {}
    # At the next pane's close it shows that the largest value of before was above the new threshold as well.
    more = [encode(prediction("later", events[-1].at_ms + HOUR_MS, 0.9, version="v"))]
    again, clock = start(stricter, [*lines, *more], store.copy())
    read(again, clock, 10)
    entry = standing(finish(again, clock), "v").crossings[PAGES]
    assert entry.threshold > found.threshold
    assert entry.pane_end_ms == (events[-1].at_ms // HOUR_MS + 2) * HOUR_MS
    assert [one for one in journal(again) if one.alpha == 0.05] == journal(engine)


def test_evidence_that_fails_blanks_no_page_and_goes_on_later(
    undisturbed: list[Crossing], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    engine, clock = start(configure(tmp_path), lines_of(EVENTS))
    failures: list[int] = []

    def failing(*arguments: object) -> object:
        if len(failures) < 5:
            failures.append(1)
            raise ValueError("planted")
        return judge(*arguments)  # type: ignore[arg-type] # they are passed on

    monkeypatch.setattr(tracker_module, "judge", failing)
    engine.runner.step(5000)
    clock.set(max(engine.shard.newest_ms.values()))
    snapshot = engine.evaluator.tick()
    assert (snapshot.evidence, snapshot.errors) == (Evidence(), 1)
    assert b'calmon_predictions{model="m"' in render_snapshot(snapshot).metrics
    assert b"calmon_evidence" not in render_snapshot(snapshot).metrics
    assert "planted" in caplog.text
    read(engine, clock, 100)
    evidence = finish(engine, clock)
    check(engine, EVENTS)
    assert journal(engine) == undisturbed
    assert not any(one.restated for one in evidence.standings)


@pytest.mark.parametrize("key", [keys.EVIDENCE, keys.course(0), keys.crossing(0), keys.carried(0), keys.expired(0)])
@pytest.mark.parametrize("damage", [b"\x00", b"\xc1rubbish", b"{}", b"\x93\xa1m\xa1v\xc4\x08\x00\x00\x00\x00\x00\x00\x00\x00"])
def test_a_damaged_book_is_an_error_of_the_state(key: bytes, damage: bytes, tmp_path: Path) -> None:
    events = made(15, range(4), {"v": lambda c, hour: c}, per_hour=3)
    engine, clock = start(configure(tmp_path), lines_of(events))
    read(engine, clock, 10)
    finish(engine, clock)
    store = engine.shard.store
    store.commit(Changes(puts=[(key, damage)]))
    with pytest.raises(StateError, match="damaged"):
        start(configure(tmp_path), [], _memory(store))


def test_a_book_of_another_format_is_refused() -> None:
    store = MemoryStore()
    Book(store).commit(5, {}, [])
    assert Book(store).next_pane == 5
    store.commit(Changes(puts=[(keys.EVIDENCE, b"\x92\x02\x05")]))
    with pytest.raises(StateError, match="format 2"):
        Book(store)


def _memory(store: object) -> MemoryStore:
    assert isinstance(store, MemoryStore)
    return store.copy()
