"""The quarantine: every refused record once, wherever a crash came, whatever a person did to the file, and however long a sink is away."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from monitor.errors import StateError
from monitor.events.record import Refusal
from monitor.export.quarantine_file import FileSink
from monitor.export.quarantine_sink import KEPT_BYTES, Entry, RefusedRecord, SinkAwayError
from monitor.pipeline.quarantine import Outbox, outbox_entry
from monitor.pipeline.shard import Shard
from monitor.state import keys
from monitor.state.protocol import Changes
from tests.doubles.memory_store import MemoryStore


def refuse(shard: Shard, outbox: Outbox, *values: bytes, timestamp_ms: int | None = None) -> None:
    """Do what a checkpoint does with refused records, up to its commit."""
    changes = Changes()
    outbox.confirm(changes)
    for value in values:
        entry = outbox_entry(Refusal("bad_json", "unknown", "why"), "events", shard.outbox + 1, timestamp_ms, value)
        changes.puts.append((keys.outbox(shard.outbox), entry))
        shard.outbox += 1
    shard.stage(changes, {})
    shard.commit(changes, {}, lambda point: None)


def restart(store: MemoryStore, path: Path) -> tuple[Shard, Outbox]:
    """What a new process makes of what is stored."""
    shard = Shard(store, None, ())
    outbox = Outbox(shard, FileSink(path))
    outbox.drain()
    return shard, outbox


def records(path: Path) -> list[str]:
    """The original records in a quarantine file."""
    return [json.loads(line)["record"] for line in path.read_bytes().splitlines()]


def waiting(store: MemoryStore) -> int:
    """Records in the outbox."""
    return len(list(store.scan(*keys.prefix_range(b"q"))))


def test_there_is_no_file_before_the_first_refused_record(tmp_path: Path) -> None:
    shard, outbox = restart(MemoryStore(), tmp_path / "q")
    refuse(shard, outbox)
    outbox.drain()
    assert not (tmp_path / "q").exists()


def test_a_line_has_the_reason_the_place_and_the_bytes(tmp_path: Path) -> None:
    shard, outbox = restart(MemoryStore(), tmp_path / "q")
    refuse(shard, outbox, b'{"a": "\xc3\xa9\\n"', b"\xff\x00", timestamp_ms=7)
    refuse(shard, outbox, b"x" * (KEPT_BYTES + 1))
    outbox.drain()
    text, raw, large = [json.loads(line) for line in (tmp_path / "q").read_bytes().splitlines()]
    common = {"reason": "bad_json", "kind": "unknown", "detail": "why", "partition": "events"}
    assert text == {**common, "offset": 1, "timestamp_ms": 7, "record": '{"a": "\u00e9\\n"'}
    assert raw == {**common, "offset": 2, "timestamp_ms": 7, "record_base64": base64.b64encode(b"\xff\x00").decode()}
    assert large == {**common, "offset": 3, "record": "x" * KEPT_BYTES, "record_bytes": KEPT_BYTES + 1}


def test_a_record_cut_inside_a_character_goes_as_base64(tmp_path: Path) -> None:
    shard, outbox = restart(MemoryStore(), tmp_path / "q")
    value = b"x" + "\u00e9".encode() * KEPT_BYTES
    refuse(shard, outbox, value)
    outbox.drain()
    line = json.loads((tmp_path / "q").read_bytes())
    assert base64.b64decode(line["record_base64"]) == value[:KEPT_BYTES]
    assert line["record_bytes"] == len(value)


def test_the_outbox_is_emptied_by_the_checkpoint_after_the_append(tmp_path: Path) -> None:
    store = MemoryStore()
    shard, outbox = restart(store, tmp_path / "q")
    refuse(shard, outbox, b"1", b"2")
    assert waiting(store) == 2
    outbox.drain()
    assert waiting(store) == 2
    refuse(shard, outbox, b"3")
    assert waiting(store) == 1
    outbox.drain()
    refuse(shard, outbox)
    assert waiting(store) == 0
    assert records(tmp_path / "q") == ["1", "2", "3"]


def test_a_crash_at_any_byte_of_the_append_leaves_every_record_once(tmp_path: Path) -> None:
    path = tmp_path / "q"
    store = MemoryStore()
    shard, outbox = restart(store, path)
    refuse(shard, outbox, b"1")
    outbox.drain()
    refuse(shard, outbox, b"2", b'{"3', b"4\xff")
    before = path.stat().st_size
    outbox.drain()
    whole = path.read_bytes()
    for size in range(before, len(whole) + 1):
        path.write_bytes(whole[:size])
        crashed = store.copy()
        shard, outbox = restart(crashed, path)
        assert path.read_bytes() == whole, size
        refuse(shard, outbox, b"5")
        assert waiting(crashed) == 1
        outbox.drain()
        assert path.read_bytes().startswith(whole)
        assert path.read_bytes().count(b"\n") == 5


def test_a_crash_after_the_restart_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "q"
    store = MemoryStore()
    shard, outbox = restart(store, path)
    refuse(shard, outbox, b"1", b"2")
    outbox.drain()
    for _ in range(3):
        restart(store, path)
        assert records(path) == ["1", "2"]


@pytest.mark.parametrize("new_content", [None, b"", b'{"note": "rotated by hand"}\n' * 20])
@pytest.mark.parametrize("appended", [False, True])
def test_a_file_that_was_rotated_before_the_crash_loses_nothing(tmp_path: Path, appended: bool, new_content: bytes | None) -> None:
    path = tmp_path / "q"
    store = MemoryStore()
    shard, outbox = restart(store, path)
    refuse(shard, outbox, b"1")
    outbox.drain()
    refuse(shard, outbox, b"2", b"3")
    path.rename(tmp_path / "q.1")
    if new_content is not None:
        path.write_bytes(new_content)
    if appended:
        outbox.drain()
    restart(store, path)
    content = path.read_bytes()
    kept = new_content or b""
    assert content.startswith(kept)
    assert [json.loads(line)["record"] for line in content[len(kept) :].splitlines()] == ["2", "3"]
    assert records(tmp_path / "q.1") == ["1"]


def test_a_new_state_keeps_what_an_older_one_wrote(tmp_path: Path) -> None:
    path = tmp_path / "q"
    older = b'{"record": "of an older state"}\n' * 100
    path.write_bytes(older)
    store = MemoryStore()
    shard, outbox = restart(store, path)
    refuse(shard, outbox, b"1")
    outbox.drain()
    restart(store, path)
    assert path.read_bytes().startswith(older)
    assert path.read_bytes().count(b"\n") == 101


def test_a_file_cut_inside_a_line_by_hand_gets_a_line_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "q"
    store = MemoryStore()
    shard, outbox = restart(store, path)
    refuse(shard, outbox, b"1")
    path.write_bytes(b'{"somebody": "else')
    restart(store, path)
    foreign, own = path.read_bytes().splitlines()
    assert foreign == b'{"somebody": "else'
    assert json.loads(own)["record"] == "1"


def test_lines_that_somebody_added_after_ours_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "q"
    store = MemoryStore()
    shard, outbox = restart(store, path)
    refuse(shard, outbox, b"1", b"2")
    outbox.drain()
    with path.open("ab") as file:
        file.write(b'{"note": 1}\n')
    restart(store, path)
    assert b'{"note": 1}\n' in path.read_bytes()
    assert {json.loads(line).get("record") for line in path.read_bytes().splitlines()} == {"1", "2", None}


def test_a_file_that_cannot_be_written_keeps_the_records_waiting(tmp_path: Path) -> None:
    path = tmp_path / "q"
    store = MemoryStore()
    shard, outbox = restart(store, path)
    refuse(shard, outbox, b"1")
    path.mkdir()
    with pytest.raises(StateError, match=r"cannot write the quarantine .*the refused records wait in the state"):
        outbox.drain()
    assert waiting(store) == 1
    path.rmdir()
    restart(store, path)
    assert records(path) == ["1"]


@pytest.mark.parametrize("where", ["missing/q", "file/q", "folder"])
def test_a_place_that_cannot_be_written_is_refused_at_the_start(tmp_path: Path, where: str) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    with pytest.raises(StateError, match=r"cannot write the quarantine .*: set quarantine.file to a file in a folder that exists"):
        restart(MemoryStore(), tmp_path / where)


class ListSink:
    """Takes records into a list, and is away or fails midway when told to.

    Attributes:
        calls: Numbers and `after_crash` of each delivery, and the mark that it came with.
        away: Whether every call fails.
    """

    def __init__(self) -> None:
        self.calls: list[tuple[list[int], bool, bytes]] = []
        self.records: list[bytes] = []
        self.away = False
        self.closed = False

    def mark(self) -> bytes:
        self._check()
        return b"first"

    def deliver(self, entries: Sequence[Entry], mark: bytes, after_crash: bool) -> bytes:
        self._check()
        self.calls.append(([entry.sequence for entry in entries], after_crash, mark))
        self.records += [entry.record.value for entry in entries]
        return b"after %d" % entries[-1].sequence

    def close(self) -> None:
        self.closed = True

    def _check(self) -> None:
        if self.away:
            raise SinkAwayError("away")


def test_a_first_mark_is_stored_before_the_first_delivery_and_each_later_one_with_its_confirmation() -> None:
    store, sink = MemoryStore(), ListSink()
    shard = Shard(store, None, ())
    outbox = Outbox(shard, sink)
    refuse(shard, outbox, b"1")
    assert store.get(keys.QUARANTINE) is None
    outbox.drain()
    assert store.get(keys.QUARANTINE) == b"first"
    refuse(shard, outbox, b"2")
    assert store.get(keys.QUARANTINE) == b"after 0"
    outbox.drain()
    assert sink.calls == [([0], False, b"first"), ([1], False, b"after 0")]
    after = ListSink()
    Outbox(Shard(store.copy(), None, ()), after).drain()
    assert after.calls == [([1], True, b"after 0")]


def test_records_wait_while_the_sink_is_away_and_are_all_delivered_in_order_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("monitor.pipeline.quarantine._FIRST_PAUSE_S", 0.0)
    store, sink = MemoryStore(), ListSink()
    shard = Shard(store, None, ())
    outbox = Outbox(shard, sink)
    assert (outbox.waiting, outbox.trouble) == (0, None)
    sink.away = True
    for number in range(3):
        refuse(shard, outbox, b"%d" % number)
        outbox.drain()
        assert (outbox.waiting, outbox.trouble) == (number + 1, "away")
    sink.away = False
    outbox.drain()
    assert (outbox.waiting, outbox.trouble) == (0, None)
    assert sink.calls == [([0, 1, 2], False, b"first")]
    refuse(shard, outbox)
    assert waiting(store) == 0
    outbox.close()
    assert sink.closed


def test_a_sink_that_is_away_is_tried_again_after_growing_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 100.0
    monkeypatch.setattr("monitor.pipeline.quarantine.time.monotonic", lambda: now_s)
    tries: list[float] = []

    class AwaySink(ListSink):
        def mark(self) -> bytes:
            tries.append(now_s)
            raise SinkAwayError("away")

    shard = Shard(MemoryStore(), None, ())
    outbox = Outbox(shard, AwaySink())
    refuse(shard, outbox, b"1")
    while now_s < 200:
        outbox.drain()
        now_s += 0.5
    assert [second - first for first, second in pairwise(tries)] == [1, 2, 4, 8, 16, 30, 30]


def test_an_outbox_that_starts_without_its_sink_still_asks_it_for_what_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("monitor.pipeline.quarantine._FIRST_PAUSE_S", 0.0)
    store, sink = MemoryStore(), ListSink()
    shard = Shard(store, None, ())
    outbox = Outbox(shard, sink)
    refuse(shard, outbox, b"1")
    outbox.drain()
    sink.away = True
    shard = Shard(store, None, ())
    outbox = Outbox(shard, sink)
    assert outbox.waiting == 1
    sink.away = False
    refuse(shard, outbox, b"2")
    outbox.drain()
    refuse(shard, outbox, b"3")
    outbox.drain()
    assert sink.calls[1:] == [([0, 1], True, b"first"), ([2], False, b"after 1")]


def test_one_delivery_at_most_is_in_doubt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("monitor.pipeline.quarantine._DELIVERY_RECORDS", 2)
    store, sink = MemoryStore(), ListSink()
    shard = Shard(store, None, ())
    outbox = Outbox(shard, sink)
    refuse(shard, outbox, b"1", b"2", b"3", b"4", b"5")
    outbox.drain()
    assert [numbers for numbers, _, _ in sink.calls] == [[0, 1], [2, 3], [4]]
    assert waiting(store) == 1
    after = ListSink()
    Outbox(Shard(store, None, ()), after).drain()
    assert after.calls == [([4], True, b"after 3")]


def test_what_a_crash_left_is_not_asked_for_before_anybody_drains() -> None:
    store, sink = MemoryStore(), ListSink()
    shard = Shard(store, None, ())
    refuse(shard, Outbox(shard, sink), b"1")
    sink.away = True
    outbox = Outbox(Shard(store, None, ()), sink)
    assert (outbox.waiting, outbox.trouble) == (1, None)
    outbox.drain()
    assert (outbox.waiting, outbox.trouble) == (1, "away")


def test_an_outbox_of_an_older_calmon_is_read() -> None:
    older = msgspec.msgpack.encode([Refusal("bad_json"), "events", 7, None, b"{", 1])
    expected = RefusedRecord(Refusal("bad_json"), "events", 7, None, b"{", 1, None, 0, 0)
    assert msgspec.msgpack.decode(older, type=RefusedRecord) == expected


def test_a_line_has_the_key_and_which_event_of_its_record_it_is(tmp_path: Path) -> None:
    store = MemoryStore()
    shard = Shard(store, None, ())
    changes = Changes()
    keyed: list[tuple[bytes | None, int]] = [(b"id", 0), (b"\xff" * (KEPT_BYTES + 1), 1), (None, 2)]
    for key, index in keyed:
        changes.puts.append((keys.outbox(shard.outbox), outbox_entry(Refusal("bad_json"), "labels-0", 5, 7, b"x", key, index)))
        shard.outbox += 1
    shard.stage(changes, {})
    shard.commit(changes, {}, lambda point: None)
    restart(store, tmp_path / "q")
    first, second, third = [json.loads(line) for line in (tmp_path / "q").read_bytes().splitlines()]
    assert (first["key"], first.get("index")) == ("id", None)
    assert (base64.b64decode(second["key_base64"]), second["key_bytes"], second["index"]) == (b"\xff" * KEPT_BYTES, KEPT_BYTES + 1, 1)
    assert ("key" in third, third["index"]) == (False, 2)
