"""The quarantine file: every refused record once, wherever a crash came, and whatever a person did to the file meanwhile."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from monitor.errors import StateError
from monitor.events.record import Refusal
from monitor.pipeline.quarantine import KEPT_BYTES, QuarantineFile, outbox_entry
from monitor.pipeline.shard import Shard
from monitor.state import keys
from monitor.state.protocol import Changes
from tests.doubles.memory_store import MemoryStore


def refuse(shard: Shard, quarantine: QuarantineFile, *values: bytes, timestamp_ms: int | None = None) -> None:
    """Do what a checkpoint does with refused records, up to its commit."""
    changes = Changes()
    quarantine.confirm(changes)
    for value in values:
        entry = outbox_entry(Refusal("bad_json", "unknown", "why"), "events", shard.outbox + 1, timestamp_ms, value)
        changes.puts.append((keys.outbox(shard.outbox), entry))
        shard.outbox += 1
    shard.stage(changes, {})
    shard.commit(changes, {}, lambda point: None)


def restart(store: MemoryStore, path: Path) -> tuple[Shard, QuarantineFile]:
    """What a new process makes of what is stored."""
    shard = Shard(store, None, ())
    return shard, QuarantineFile(path, shard)


def records(path: Path) -> list[str]:
    """The original records in a quarantine file."""
    return [json.loads(line)["record"] for line in path.read_bytes().splitlines()]


def waiting(store: MemoryStore) -> int:
    """Records in the outbox."""
    return len(list(store.scan(*keys.prefix_range(b"q"))))


def test_there_is_no_file_before_the_first_refused_record(tmp_path: Path) -> None:
    shard, quarantine = restart(MemoryStore(), tmp_path / "q")
    refuse(shard, quarantine)
    quarantine.drain()
    assert not (tmp_path / "q").exists()


def test_a_line_has_the_reason_the_place_and_the_bytes(tmp_path: Path) -> None:
    shard, quarantine = restart(MemoryStore(), tmp_path / "q")
    refuse(shard, quarantine, b'{"a": "\xc3\xa9\\n"', b"\xff\x00", timestamp_ms=7)
    refuse(shard, quarantine, b"x" * (KEPT_BYTES + 1))
    quarantine.drain()
    text, raw, large = [json.loads(line) for line in (tmp_path / "q").read_bytes().splitlines()]
    common = {"reason": "bad_json", "kind": "unknown", "detail": "why", "partition": "events"}
    assert text == {**common, "offset": 1, "timestamp_ms": 7, "record": '{"a": "\u00e9\\n"'}
    assert raw == {**common, "offset": 2, "timestamp_ms": 7, "record_base64": base64.b64encode(b"\xff\x00").decode()}
    assert large == {**common, "offset": 3, "record": "x" * KEPT_BYTES, "record_bytes": KEPT_BYTES + 1}


def test_a_record_cut_inside_a_character_goes_as_base64(tmp_path: Path) -> None:
    shard, quarantine = restart(MemoryStore(), tmp_path / "q")
    value = b"x" + "\u00e9".encode() * KEPT_BYTES
    refuse(shard, quarantine, value)
    quarantine.drain()
    line = json.loads((tmp_path / "q").read_bytes())
    assert base64.b64decode(line["record_base64"]) == value[:KEPT_BYTES]
    assert line["record_bytes"] == len(value)


def test_the_outbox_is_emptied_by_the_checkpoint_after_the_append(tmp_path: Path) -> None:
    store = MemoryStore()
    shard, quarantine = restart(store, tmp_path / "q")
    refuse(shard, quarantine, b"1", b"2")
    assert waiting(store) == 2
    quarantine.drain()
    assert waiting(store) == 2
    refuse(shard, quarantine, b"3")
    assert waiting(store) == 1
    quarantine.drain()
    refuse(shard, quarantine)
    assert waiting(store) == 0
    assert records(tmp_path / "q") == ["1", "2", "3"]


def test_a_crash_at_any_byte_of_the_append_leaves_every_record_once(tmp_path: Path) -> None:
    path = tmp_path / "q"
    store = MemoryStore()
    shard, quarantine = restart(store, path)
    refuse(shard, quarantine, b"1")
    quarantine.drain()
    refuse(shard, quarantine, b"2", b'{"3', b"4\xff")
    before = path.stat().st_size
    quarantine.drain()
    whole = path.read_bytes()
    for size in range(before, len(whole) + 1):
        path.write_bytes(whole[:size])
        crashed = store.copy()
        shard, quarantine = restart(crashed, path)
        assert path.read_bytes() == whole, size
        refuse(shard, quarantine, b"5")
        assert waiting(crashed) == 1
        quarantine.drain()
        assert path.read_bytes().startswith(whole)
        assert path.read_bytes().count(b"\n") == 5


def test_a_crash_after_the_restart_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "q"
    store = MemoryStore()
    shard, quarantine = restart(store, path)
    refuse(shard, quarantine, b"1", b"2")
    quarantine.drain()
    for _ in range(3):
        restart(store, path)
        assert records(path) == ["1", "2"]


@pytest.mark.parametrize("new_content", [None, b"", b'{"note": "rotated by hand"}\n' * 20])
@pytest.mark.parametrize("appended", [False, True])
def test_a_file_that_was_rotated_before_the_crash_loses_nothing(tmp_path: Path, appended: bool, new_content: bytes | None) -> None:
    path = tmp_path / "q"
    store = MemoryStore()
    shard, quarantine = restart(store, path)
    refuse(shard, quarantine, b"1")
    quarantine.drain()
    refuse(shard, quarantine, b"2", b"3")
    path.rename(tmp_path / "q.1")
    if new_content is not None:
        path.write_bytes(new_content)
    if appended:
        quarantine.drain()
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
    shard, quarantine = restart(store, path)
    refuse(shard, quarantine, b"1")
    quarantine.drain()
    restart(store, path)
    assert path.read_bytes().startswith(older)
    assert path.read_bytes().count(b"\n") == 101


def test_a_file_cut_inside_a_line_by_hand_gets_a_line_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "q"
    store = MemoryStore()
    shard, quarantine = restart(store, path)
    refuse(shard, quarantine, b"1")
    path.write_bytes(b'{"somebody": "else')
    restart(store, path)
    foreign, own = path.read_bytes().splitlines()
    assert foreign == b'{"somebody": "else'
    assert json.loads(own)["record"] == "1"


def test_lines_that_somebody_added_after_ours_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "q"
    store = MemoryStore()
    shard, quarantine = restart(store, path)
    refuse(shard, quarantine, b"1", b"2")
    quarantine.drain()
    with path.open("ab") as file:
        file.write(b'{"note": 1}\n')
    restart(store, path)
    assert b'{"note": 1}\n' in path.read_bytes()
    assert {json.loads(line).get("record") for line in path.read_bytes().splitlines()} == {"1", "2", None}


def test_a_file_that_cannot_be_written_keeps_the_records_waiting(tmp_path: Path) -> None:
    path = tmp_path / "q"
    store = MemoryStore()
    shard, quarantine = restart(store, path)
    refuse(shard, quarantine, b"1")
    path.mkdir()
    with pytest.raises(StateError, match=r"cannot write the quarantine .*the refused records wait in the state"):
        quarantine.drain()
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
