"""Revisions: what late records did to windows that had matured, against the windows themselves before and after."""

from __future__ import annotations

import json
import math
import random
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.app import Engine
from monitor.cli import main
from monitor.clock import ManualClock
from monitor.config_file import load_config, parse_config
from monitor.duration import DAY_MS, HOUR_MS
from monitor.history.revisions import as_text
from monitor.pipeline.configured import settings_of
from monitor.pipeline.pages import render_snapshot
from monitor.pipeline.revisions.cause import merge_causes
from monitor.pipeline.revisions.journal import Move, Revision
from monitor.pipeline.revisions.moves import WATCHED, moments_of, moves_between
from monitor.pipeline.revisions.page import revisions_section
from monitor.pipeline.revisions.pending import pending
from monitor.pipeline.revisions.reviser import _touched
from monitor.pipeline.sweep import Moment, Question, sweep
from monitor.statistics.fixed_point import I64
from monitor.windows.running import WindowSpec
from tests.doubles.list_source import ListSource
from tests.doubles.memory_store import MemoryStore
from tests.doubles.sharded_source import ShardedSource
from tests.recovery.stream import START_MS, encode, label, prediction, write_lines

WATCHES = (
    "windows: [{name: 1h, length: 1h}, {name: 24h, length: 24h, lag: 48h}, {name: 6h, length: 6h, lag: 72h}]\n"
    "revisions: {threshold: 0.02}\nquarantine: {file: /dev/null}\n"
)
CONFIG = parse_config(f"state: {{directory: unused, horizon: none}}\n{WATCHES}", "test", {})
WINDOWS = [WindowSpec("24h", 24 * HOUR_MS, 48 * HOUR_MS, by_hours=True), WindowSpec("6h", 6 * HOUR_MS, 72 * HOUR_MS, by_hours=True)]
Known = Mapping[tuple[str, str, str, int, str], float]
"""Values by model, version, window, moment and metric."""

VERSIONS = (("m", "v1"), ("m", "v2"))
DAYS = 7
END_MS = START_MS + DAYS * DAY_MS


@dataclass(frozen=True, slots=True)
class Late:
    """A record that comes late.

    Attributes:
        value: Its bytes.
        version: Of the prediction.
        predicted_at: Event time of the prediction.
        kind: How it changes sums; None if it says what was known.
    """

    value: bytes
    version: str
    predicted_at: int
    kind: str | None


@dataclass(frozen=True, slots=True)
class Stream:
    """Predictions with labels that came in time, and records that come after most hours have matured."""

    early: Sequence[bytes]
    late: Sequence[Late]

    @property
    def lines(self) -> list[bytes]:
        """All of it, in the order of arrival."""
        return [*self.early, *(one.value for one in self.late)]


def make_stream(seed: int) -> Stream:
    chance = random.Random(seed)  # noqa: S311 - must be the same every time
    early: list[tuple[int, bytes]] = []
    late: list[Late] = []
    for number in range(DAYS * 24 * 3):
        at = START_MS + number * HOUR_MS // 3 + chance.randrange(HOUR_MS // 3)
        one, version, value = f"id-{number}", chance.choice(("v1", "v2")), chance.choice(("yes", "yes", "no"))
        draw = chance.random()
        if draw < 0.98:
            early.append((at, encode(prediction(one, at, chance.choice((0.6, 0.8, 0.97)), version))))
        else:
            late.append(Late(encode(prediction(one, at, 0.8, version)), version, at, "prediction"))
        if draw < 0.7:
            early.append((at + HOUR_MS, encode(label(one, at + HOUR_MS, value))))
        elif draw < 0.98:
            late.append(Late(encode(label(one, END_MS, value)), version, at, "first_label"))
        if 0.6 < draw < 0.7:
            late.append(Late(encode(label(one, END_MS, "no", revision=1)), version, at, "correction" if value == "yes" else None))
        elif 0.57 < draw < 0.6:
            late.append(Late(encode(label(one, END_MS, None, revision=1)), version, at, "withdrawal"))
    chance.shuffle(late)
    return Stream([value for _, value in sorted(early)], late)


def begin(lines: Sequence[bytes], store: MemoryStore) -> tuple[Engine, ManualClock]:
    clock = ManualClock(START_MS)
    engine = Engine(CONFIG, clock, source=ListSource([("events", line) for line in lines]), store=store)
    engine.runner.start()
    return engine, clock


def read(engine: Engine, clock: ManualClock, until: int, batch: int = 50) -> None:
    """Read so many records in all, and let mature what has."""
    while engine.shard.account.consumed < until:
        engine.runner.step(min(batch, until - engine.shard.account.consumed))
    clock.set(max(engine.shard.newest_ms.values()))
    before = -1
    while before != engine.shard.judged_pane:
        before = engine.shard.judged_pane
        engine.evaluator.tick()


def having_read(stream: Stream) -> Engine:
    """An engine that has read a stream, the late records after the others have matured."""
    engine, clock = begin(stream.lines, MemoryStore())
    read(engine, clock, len(stream.early))
    read(engine, clock, len(stream.lines))
    return engine


def known(engine: Engine, last_ms: int) -> Known:
    """Every watched metric of every version and window at every hour, as known now."""
    found = {}
    for window in WINDOWS:
        moments = range(START_MS + HOUR_MS + window.lag_ms, last_ms + 1, HOUR_MS)
        for model, version in VERSIONS:
            question = Question(model, version, window, WATCHED, settings_of(CONFIG), {})
            for moment in sweep([engine.shard], question, moments):
                for block in moment.blocks:
                    for row in [row for row, key in enumerate(block.keys) if key.segment == "all"]:
                        for metric, values in block.values.items():
                            if not math.isnan(values[row]):
                                found[model, version, window.name, moment.at_ms, metric.name] = float(values[row])
    return found


def revise(engine: Engine, now_ms: int) -> list[Revision]:
    assert engine.reviser is not None
    return engine.reviser.run(now_ms)


def distance(pair: tuple[float | None, float | None]) -> float:
    return math.inf if pair[0] is None or pair[1] is None else abs(pair[1] - pair[0])


def differences(before: Known, after: Known, version: str) -> dict[tuple[str, int, str], tuple[float | None, float | None]]:
    """Watched metrics that differ, by window, moment and name."""
    found = {}
    for key in before.keys() | after.keys():
        pair = before.get(key), after.get(key)
        if key[1] == version and pair[0] != pair[1]:
            found[key[2], key[3], key[4]] = pair
    return found


def causes_of(late: Sequence[tuple[int, Late]], version: str, judged_ms: int) -> dict[str, tuple[int, int, int]]:
    """Records by kind that changed what had matured: how many, the first line and the last one."""
    lines: dict[str, list[int]] = {}
    for number, one in late:
        if one.kind is not None and one.version == version and one.predicted_at < judged_ms:
            lines.setdefault(one.kind, []).append(number)
    return {kind: (len(found), found[0], found[-1]) for kind, found in lines.items()}


def told_causes(entry: Revision) -> dict[str, tuple[int, int, int]]:
    assert {cause.partition for cause in entry.causes} == {"events"}
    return {cause.kind: (cause.records, cause.first_offset, cause.last_offset) for cause in entry.causes}


def test_an_entry_says_what_windows_were_what_they_are_and_by_which_records() -> None:
    stream = make_stream(1)
    engine, clock = begin(stream.lines, MemoryStore())
    read(engine, clock, len(stream.early))
    judged_ms = engine.shard.judged_pane * HOUR_MS
    assert judged_ms > START_MS + 4 * DAY_MS
    now_ms = judged_ms + 48 * HOUR_MS
    assert revise(engine, now_ms) == []
    before = known(engine, now_ms)
    read(engine, clock, len(stream.lines))
    after = known(engine, now_ms)
    entries = revise(engine, now_ms)
    assert [(entry.model, entry.version) for entry in entries] == list(VERSIONS)
    for entry in entries:
        late = list(enumerate(stream.late, len(stream.early) + 1))
        assert told_causes(entry) == causes_of(late, entry.version, judged_ms)
        hours = {one.predicted_at // HOUR_MS for one in stream.late if one.kind and one.version == entry.version}
        assert (entry.start_ms, entry.end_ms) == (min(hours) * HOUR_MS, (max(h for h in hours if h * HOUR_MS < judged_ms) + 1) * HOUR_MS)

        moved = differences(before, after, entry.version)
        for move in entry.moves:
            assert (move.old, move.new) == moved[move.window, move.at_ms, move.metric]
        largest: dict[str, float] = {}
        for (_, _, name), pair in moved.items():
            size = -1.0 if None in pair else distance(pair)
            largest[name] = max(size, largest.get(name, -1.0))
        told = {move.metric: -1.0 if None in (move.old, move.new) else distance((move.old, move.new)) for move in entry.moves}
        assert told == largest
        assert {"completeness", "accuracy", "overconfidence", "ece", "brier", "nll", "csr"} <= set(told)
        far = {(window, at_ms) for (window, at_ms, _), pair in moved.items() if distance(pair) > 0.02}
        assert {(window, at_ms) for window, found in entry.moved.items() for at_ms in moments_of(found)} == far
        assert {window for window, _ in far} == {"24h", "6h"}
    assert {kind for entry in entries for kind in told_causes(entry)} == {"first_label", "correction", "withdrawal", "prediction"}
    assert revise(engine, now_ms) == []
    engine.close()


@given(seed=st.integers(0, 1000), cuts=st.lists(st.integers(0, 60), max_size=3), batch=st.integers(1, 40), restart=st.booleans())
@settings(max_examples=5, deadline=None)
def test_entries_follow_on_each_other_however_often_it_is_looked(seed: int, cuts: list[int], batch: int, restart: bool) -> None:
    stream = make_stream(seed)
    store = MemoryStore()
    engine, clock = begin(stream.lines, store)
    read(engine, clock, len(stream.early))
    judged_ms = engine.shard.judged_pane * HOUR_MS
    now_ms = judged_ms + 48 * HOUR_MS
    before = known(engine, now_ms)
    told: dict[str, dict[str, int]] = {}
    for cut in [*sorted(min(len(stream.early) + cut, len(stream.lines)) for cut in cuts), len(stream.lines)]:
        if restart:
            engine.close()
            engine, clock = begin(stream.lines, store)
        while engine.shard.account.consumed < cut:
            engine.runner.step(min(batch, cut - engine.shard.account.consumed))
        after = known(engine, now_ms)
        for entry in revise(engine, now_ms):
            moved = differences(before, after, entry.version)
            assert all((move.old, move.new) == moved[move.window, move.at_ms, move.metric] for move in entry.moves)
            for cause in entry.causes:
                kinds = told.setdefault(entry.version, {})
                kinds[cause.kind] = kinds.get(cause.kind, 0) + cause.records
        before = after
    late = list(enumerate(stream.late))
    for _, version in VERSIONS:
        assert told.get(version, {}) == {kind: count for kind, (count, _, _) in causes_of(late, version, judged_ms).items()}
    engine.close()


def test_shards_make_no_difference(tmp_path: Path) -> None:
    stream = make_stream(4)
    text = f"state: {{directory: {tmp_path / 'state'}, horizon: none}}\nsource: {{kafka: {{bootstrap_servers: [a:1]}}}}\n{WATCHES}"
    told = []
    for shards in (1, 3):
        clock = ManualClock(START_MS)
        config = parse_config(text.replace("/state", f"/state-{shards}"), "test", {})
        engine = Engine(config, clock, source=ShardedSource(stream.lines, shards))
        engine.runner.start()
        try:
            engine.runner.step(len(stream.early))
            clock.set(END_MS - 3 * HOUR_MS)  # well before what the slowest partition has delivered
            engine.evaluator.tick()
            while engine.shards[0].judged_pane * HOUR_MS < END_MS - 51 * HOUR_MS:
                engine.evaluator.tick()
            engine.runner.step(len(stream.late))
            assert len(engine.shards) == shards
            entries = revise(engine, END_MS - 3 * HOUR_MS)
            assert all({cause.partition for cause in entry.causes} == {f"part-{n}" for n in range(shards)} for entry in entries)
            told.append([(entry.moves, entry.moved, entry.start_ms, entry.end_ms, _records(entry)) for entry in entries])
        finally:
            engine.close()
    assert told[0] == told[1]
    assert len(told[0]) == len(VERSIONS)


@pytest.mark.parametrize("shards", [1, 3])
def test_the_command_tells_the_journal_beside_the_service(shards: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stream = make_stream(5)
    source = f"source: {{kafka: {{bootstrap_servers: [a:1], shards: {'one' if shards == 1 else 'partitions'}}}}}\n"
    text = f"state: {{directory: {tmp_path / 'state'}, horizon: none}}\n{source}{WATCHES}"
    clock = ManualClock(START_MS)
    records = ListSource([("events", line) for line in stream.lines]) if shards == 1 else ShardedSource(stream.lines, shards)
    engine = Engine(parse_config(text, "test", {}), clock, source=records)
    engine.runner.start()
    try:
        engine.runner.step(len(stream.early))
        clock.set(END_MS - 3 * HOUR_MS)
        engine.evaluator.tick()
        words = ["history", "m", "v1", "--revisions", "--state", str(tmp_path / "state")]
        assert main(words) == 0
        assert capsys.readouterr().out.startswith("no revision is noted")
        engine.runner.step(len(stream.late))
        entries = revise(engine, END_MS)
        assert main([*words, "--format", "json"]) == 0
        (told,) = json.loads(capsys.readouterr().out)
        assert msgspec.convert(told, Revision) == entries[0]
        assert told["start"] == "2026-06-01T00:00:00Z"
        assert main(words) == 0
        lines = capsys.readouterr().out.splitlines()
        assert lines[0].startswith("revision 0, noted 2026-06-08T00:00:00Z: hours 2026-06-01T00:00Z to ")
        assert len(lines) == 2 + len(entries[0].causes) + len(entries[0].moves)
        assert lines[-1] == "  in Prometheus: 24h: not written; 6h: not written"
        for place, said in ((1, "no prediction of model x"), (2, "no prediction of version x of model m in the state; there are v1, v2")):
            assert main([*words[:place], "x", *words[place + 1 :]]) == 1
            assert said in capsys.readouterr().err
        for word, value in (("--window", "24h"), ("--segment", "region=eu")):
            assert main([*words, word, value]) == 2
            assert f"{word}: --revisions tells every entry" in capsys.readouterr().err
    finally:
        engine.close()


def test_labels_put_straight_into_a_stopped_state_are_revisions(tmp_path: Path) -> None:
    stream = make_stream(6)
    events = write_lines(tmp_path / "events.ndjson", stream.early)
    labels = [one for one in stream.late if one.kind in ("first_label", "correction", "withdrawal")]
    late = write_lines(tmp_path / "late.ndjson", [one.value for one in labels])
    config_path = tmp_path / "calmon.yaml"
    state = f"state: {{directory: {tmp_path / 'state'}, horizon: none}}\nsource: {{files: [{events}]}}\n"
    config_path.write_text(state + WATCHES.replace("/dev/null", str(tmp_path / "quarantine")))
    config = load_config(str(config_path))
    engine = Engine(config, ManualClock(END_MS))
    engine.runner.start()
    while engine.runner.step(500):
        pass
    engine.evaluator.tick()
    judged_ms = engine.shard.judged_pane * HOUR_MS
    engine.close()
    assert judged_ms > START_MS + 4 * DAY_MS
    assert main(["backfill", "labels", str(late), "-c", str(config_path)]) == 0
    engine = Engine(config, ManualClock(END_MS))
    try:
        entries = revise(engine, END_MS)
        assert [(entry.model, entry.version) for entry in entries] == list(VERSIONS)
        for entry in entries:
            assert {cause.partition.split("@")[0].rpartition("/")[2] for cause in entry.causes} == {"late.ndjson"}
            told = {cause.kind: (cause.records, cause.first_offset, cause.last_offset) for cause in entry.causes}
            assert told == causes_of(list(enumerate(labels, 1)), entry.version, judged_ms)
            assert entry.moved.keys() == {"24h", "6h"}
    finally:
        engine.close()


def test_changes_that_cancel_out_have_causes_but_no_hours() -> None:
    events = [prediction("id", START_MS, 0.8), label("id", START_MS + HOUR_MS, "yes"), prediction("last", END_MS, 0.8)]
    back_and_forth = [label("id", END_MS, "no", revision=1), label("id", END_MS, "yes", revision=2)]
    engine, clock = begin([encode(event) for event in (*events, *back_and_forth)], MemoryStore())
    read(engine, clock, len(events))
    read(engine, clock, len(events) + len(back_and_forth))
    (entry,) = revise(engine, END_MS)
    assert [(cause.kind, cause.records) for cause in entry.causes] == [("correction", 2)]
    assert (entry.start_ms, entry.end_ms, entry.moves, entry.moved) == (None, None, [], {})
    engine.close()
    page = revisions_section([entry])
    assert "1970" not in page + "".join(as_text([entry]))
    assert "<td>none, the changes cancelled out</td>" in page
    assert next(as_text([entry])).endswith(": hours none, the changes cancelled out")


def _records(entry: Revision) -> dict[str, int]:
    return {kind: sum(cause.records for cause in entry.causes if cause.kind == kind) for kind in {cause.kind for cause in entry.causes}}


class KilledError(Exception):
    """Ends what it is raised in, as a kill does."""


@pytest.mark.parametrize("point", ["revised", "noted"])
def test_a_kill_neither_loses_an_entry_nor_notes_it_twice(point: str) -> None:
    stream = make_stream(2)
    store, undisturbed = MemoryStore(), MemoryStore()
    for one in (store, undisturbed):
        engine, clock = begin(stream.lines, one)
        read(engine, clock, len(stream.early))
        read(engine, clock, len(stream.lines))
        engine.close()
    engine, _ = begin(stream.lines, undisturbed)
    expected = revise(engine, END_MS)
    assert expected

    def reached(name: str) -> None:
        if name == point:
            raise KilledError

    engine = Engine(CONFIG, ManualClock(END_MS), source=ListSource([]), store=store, reached=reached)
    with pytest.raises(KilledError):
        revise(engine, END_MS)
    engine = Engine(CONFIG, ManualClock(END_MS), source=ListSource([]), store=store)
    revise(engine, END_MS)
    assert engine.reviser is not None
    assert engine.reviser.journal.entries == expected
    assert revise(engine, END_MS) == []


def test_while_it_looks_records_are_read_and_ticks_go_on() -> None:
    stream = make_stream(7)
    looking, go_on = threading.Event(), threading.Event()

    def reached(name: str) -> None:
        if name == "revised":
            looking.set()
            go_on.wait(30)

    source = ListSource([("events", line) for line in stream.lines])
    engine = Engine(CONFIG, clock := ManualClock(START_MS), source=source, store=MemoryStore(), reached=reached)
    engine.runner.start()
    read(engine, clock, len(stream.early))
    judged_ms = engine.shard.judged_pane * HOUR_MS
    read(engine, clock, half := len(stream.early) + len(stream.late) // 2)
    entries: list[Revision] = []
    look = threading.Thread(target=lambda: entries.extend(revise(engine, END_MS)))
    others = threading.Thread(target=lambda: read(engine, clock, len(stream.lines)))
    look.start()
    try:
        assert looking.wait(30)
        others.start()
        others.join(30)
        assert not others.is_alive()
        assert look.is_alive()
    finally:
        go_on.set()
        look.join(30)
    entries += revise(engine, END_MS)
    numbered = list(enumerate(stream.late, len(stream.early) + 1))
    for _, version in VERSIONS:
        parts = numbered[: half - len(stream.early)], numbered[half - len(stream.early) :]
        found = [told_causes(entry) for entry in entries if entry.version == version]
        assert found == [causes_of(part, version, judged_ms) for part in parts]
    engine.close()


@pytest.mark.parametrize("point", ["judged", "joined"])
def test_what_is_committed_while_panes_enter_is_noted(point: str) -> None:
    """`judged`: a batch between the reading of panes and their entry; `joined`: panes that would enter while a batch is in work."""
    stream = make_stream(8)
    other: list[threading.Thread] = []

    def reached(name: str) -> None:
        if name == point and armed and not other:
            work = (lambda: step_all(engine)) if point == "judged" else engine.evaluator.tick
            other.append(threading.Thread(target=work))
            other[0].start()
            # A batch goes on while the panes are judged; a tick lets no pane enter before the batch is committed.
            other[0].join(30 if point == "judged" else 0.3)
            assert other[0].is_alive() == (point == "joined")

    source = ListSource([("events", line) for line in stream.lines], follow=True)
    engine = Engine(CONFIG, clock := ManualClock(START_MS), source=source, store=MemoryStore(), reached=reached)
    engine.runner.start()
    armed = False
    while engine.shard.account.consumed < len(stream.early):
        engine.runner.step(min(50, len(stream.early) - engine.shard.account.consumed))
    clock.set(max(engine.shard.newest_ms.values()))
    armed = True
    if point == "judged":
        engine.evaluator.tick()
    else:
        step_all(engine)
    other[0].join(30)
    judged_ms = engine.shard.judged_pane * HOUR_MS
    assert judged_ms > START_MS
    noted = pending(engine.shard)
    late = list(enumerate(stream.late, len(stream.early) + 1))
    # What a tick let enter after the batch saw all of it.
    wanted = causes_of(late, "v1", judged_ms), causes_of(late, "v2", judged_ms)
    found = [{cause.kind: cause.records for cause in noted.causes if cause.version == version} for version in ("v1", "v2")]
    assert found == [{kind: count for kind, (count, _, _) in one.items()} if point == "judged" else {} for one in wanted]
    engine.close()


def step_all(engine: Engine) -> None:
    while engine.runner.step(50_000):
        pass


def test_what_one_look_says_is_new_is_old_to_the_next_while_batches_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: dict[tuple[str, str, int, str], list[Move]] = {}

    def noted(window: str, before: Iterable[Moment], after: Iterable[Moment]) -> Iterator[Move]:
        for move in moves_between(window, before, after):
            steps.setdefault((versions[-1], window, move.at_ms, move.metric), []).append(move)
            yield move

    versions: list[str] = []

    def touched(version: tuple[str, str], taken: Sequence[object]) -> I64:
        versions.append(version[1])
        return _touched(version, taken)  # type: ignore[arg-type]

    monkeypatch.setattr("monitor.pipeline.revisions.reviser.moves_between", noted)
    monkeypatch.setattr("monitor.pipeline.revisions.reviser._touched", touched)
    stream = make_stream(9)
    config = parse_config(f"state: {{directory: {tmp_path / 'state'}, horizon: none}}\n{WATCHES}", "test", {})
    engine = Engine(config, clock := ManualClock(START_MS), source=ListSource([("events", line) for line in stream.lines]))
    engine.runner.start()
    read(engine, clock, len(stream.early))
    now_ms = engine.shard.judged_pane * HOUR_MS + 48 * HOUR_MS
    before = known(engine, now_ms)
    batches = threading.Thread(target=lambda: [engine.runner.step(1) for _ in stream.late])
    batches.start()
    looks = 0
    while batches.is_alive():
        looks += bool(revise(engine, now_ms))
    batches.join()
    looks += bool(revise(engine, now_ms))
    after = known(engine, now_ms)
    engine.close()
    assert looks > 1
    for _, version in VERSIONS:
        moved = differences(before, after, version)
        found = {key[1:]: moves for key, moves in steps.items() if key[0] == version}
        assert moved.keys() <= found.keys()
        for key, moves in found.items():
            name = ("m", version, *key)
            assert [move.old for move in moves] == [before.get(name), *(move.new for move in moves[:-1])]
            assert moves[-1].new == after.get(name)


def test_no_shard_is_held_up_while_it_looks() -> None:
    stream = make_stream(7)
    engine = having_read(stream)
    entries: list[Revision] = []
    look = threading.Thread(target=lambda: entries.extend(revise(engine, END_MS)), daemon=True)
    with engine.shard.lock:  # as a batch or a tick does
        look.start()
        look.join(30)
    assert [(entry.model, entry.version) for entry in entries] == list(VERSIONS)
    engine.close()


def test_a_look_that_nobody_waits_for_notes_nothing_and_loses_nothing() -> None:
    stream = make_stream(8)
    engine = having_read(stream)
    assert engine.reviser is not None
    answers = iter([False, True])
    assert engine.reviser.run(END_MS, lambda: next(answers)) == []
    assert engine.reviser.journal.entries == []
    assert [(entry.model, entry.version) for entry in revise(engine, END_MS)] == list(VERSIONS)
    engine.close()


@pytest.mark.parametrize("again", [False, True], ids=["found anew", "found anew, read on and found again"])
def test_a_shard_that_was_begun_anew_loses_nothing(again: bool, tmp_path: Path) -> None:
    stream = make_stream(4)
    text = f"state: {{directory: {tmp_path / 'state'}, horizon: none}}\nsource: {{kafka: {{bootstrap_servers: [a:1]}}}}\n{WATCHES}"
    config = parse_config(text, "test", {})

    def opened() -> Engine:
        engine = Engine(config, ManualClock(END_MS - 3 * HOUR_MS), source=ShardedSource(stream.lines, 2))
        engine.runner.start()
        return engine

    engine = opened()
    while sum(shard.account.consumed for shard in engine.shards) < len(stream.early):
        engine.runner.step(50)
    for _ in range(9):
        engine.evaluator.tick()
    while engine.runner.step(5):
        pass
    assert revise(engine, END_MS)
    engine.close()
    (tmp_path / "state" / "shard-0").rename(tmp_path / "lost")
    engine = opened()
    while engine.runner.step(5):  # as many checkpoints as before
        pass
    causes = [cause for shard in engine.shards for cause in pending(shard).causes]
    if again:
        engine.close()
        engine = opened()
    found = revise(engine, END_MS)
    assert merge_causes(cause for entry in found for cause in entry.causes) == merge_causes(causes) != []
    engine.close()


def test_nothing_is_a_revision_before_anything_has_matured() -> None:
    stream = make_stream(3)
    engine, _ = begin(stream.lines, MemoryStore())
    while engine.runner.step(50):
        pass
    assert revise(engine, END_MS) == []
    engine.close()


def test_the_page_and_the_counter_tell_of_entries() -> None:
    stream = make_stream(1)
    engine = having_read(stream)
    entries = revise(engine, END_MS)
    assert engine.reviser is not None
    rendered = render_snapshot(engine.evaluator.snapshot, journal=engine.reviser.journal)
    assert f"calmon_revisions_total {float(len(entries))}" in rendered.metrics.decode()
    page = rendered.status.decode()
    assert "<h2>Revisions</h2>" in page
    for entry in entries:
        for cause in entry.causes:
            assert f"{cause.records} {cause.kind} of events {cause.first_offset} to {cause.last_offset}" in page
