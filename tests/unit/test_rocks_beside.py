"""A store opened read only beside the process that writes it: as of one commit, without a lock, and without a trace."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from monitor.errors import StateError
from monitor.state.protocol import Changes
from monitor.state.rocks import FORMAT, MARKER, RocksStore

COUNTER = b"!counter"
KEYS = 50
KEPT = 20
CHURN_S = 4.0

# Small write buffers make the database do in a second what it does in an hour of a service: leave logs, write tables, merge them. Each
# commit rewrites some keys, adds others and deletes old ones, so that any part of it that is missing or too many shows.
WRITER = f"""
import os, sys, time
from rocksdict import Options, Rdict, WriteBatch
options = Options(raw_mode=True)
options.set_write_buffer_size(200_000)
database = Rdict(sys.argv[1], options)
number = 0
while True:
    number += 1
    if number == 2:
        print("begun", flush=True)
    word = number.to_bytes(8, "big")
    batch = WriteBatch(raw_mode=True)
    batch.delete_range(b"a", b"a" + max(0, number - {KEPT} + 1).to_bytes(8, "big"))
    batch.put({COUNTER!r}, word)
    for key in range({KEYS}):
        batch.put(b"p%d" % key, word + os.urandom(1000))
        batch.put(b"a" + word + b"%d" % key, os.urandom(100))
    database.write(batch)
    time.sleep(0.02)
"""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RocksStore]:
    """An open store with one key."""
    store = RocksStore(tmp_path / "state")
    store.commit(Changes(puts=[(b"a", b"1")]))
    yield store
    store.close()


def trace(directory: Path) -> dict[str, tuple[bytes, int]]:
    """Content and time of every file below a directory."""
    return {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in directory.rglob("*") if path.is_file()}


def test_it_is_as_of_its_opening_and_leaves_no_trace(store: RocksStore, tmp_path: Path) -> None:
    before = trace(tmp_path)
    beside = RocksStore(tmp_path / "state", read_only=True)
    assert beside.get(b"a") == b"1"
    with pytest.raises(StateError, match="cannot write the state"):
        beside.commit(Changes(puts=[(b"a", b"2")]))
    assert trace(tmp_path) == before
    store.commit(Changes(deletes=[b"a"], puts=[(b"b", b"2")]))
    assert list(beside.scan(b"a", b"z")) == [(b"a", b"1")]
    assert (store.get(b"a"), store.get(b"b")) == (None, b"2")
    after = trace(tmp_path)
    beside.close()
    beside.close()
    assert trace(tmp_path) == after


def test_what_is_not_there_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="cannot use the state directory"):
        RocksStore(tmp_path / "none", read_only=True)
    assert not (tmp_path / "none").exists()


def test_a_newer_format_is_refused(store: RocksStore, tmp_path: Path) -> None:
    (tmp_path / "state" / MARKER).write_text(f"calmon-state {FORMAT + 1}\n")
    with pytest.raises(StateError, match=f"this calmon reads format {FORMAT}"):
        RocksStore(tmp_path / "state", read_only=True)


def test_an_error_names_the_database_and_not_the_links(store: RocksStore, tmp_path: Path) -> None:
    store.close()
    RocksStore(tmp_path / "state").close()
    (table,) = (tmp_path / "state" / "db").glob("*.sst")
    table.unlink()
    with pytest.raises(StateError) as refused:
        RocksStore(tmp_path / "state", read_only=True)
    assert str(table) in str(refused.value)


def test_beside_a_writer_that_leaves_logs_and_merges_tables_each_view_is_one_commit(tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir()
    (state / MARKER).write_text(f"calmon-state {FORMAT}\n")
    views, last = 0, 0
    with subprocess.Popen([sys.executable, "-c", WRITER, str(state / "db")], stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "begun\n"
        first_log = newest_file(state)
        try:
            until_s = time.monotonic() + CHURN_S
            while time.monotonic() < until_s:
                beside = RocksStore(state, read_only=True)
                time.sleep(0.02 * (views % 4))  # what it has open may be deleted meanwhile
                last = check_one_commit(beside, last)
                beside.close()
                views += 1
            assert writer.poll() is None
        finally:
            writer.kill()
    assert views > 10
    assert newest_file(state) > first_log + 20  # files did come and go under the views
    after = RocksStore(state, read_only=True)
    assert check_one_commit(after, last) >= last
    after.close()


def newest_file(state: Path) -> int:
    """RocksDB numbers its files."""
    return max(int(path.stem) for path in (state / "db").iterdir() if path.stem.isdecimal())


def check_one_commit(store: RocksStore, last: int) -> int:
    """See that all of a commit is there and nothing else; its number, which is not below `last`."""
    word = store.get(COUNTER)
    assert word is not None
    number = int.from_bytes(word, "big")
    assert number >= last
    rewritten = [value[:8] for _, value in store.scan(b"p", b"q")]
    assert rewritten == [word] * KEYS
    added = [int.from_bytes(key[1:9], "big") for key, _ in store.scan(b"a", b"b")]
    assert added == [one for one in range(max(1, number - KEPT + 1), number + 1) for _ in range(KEYS)]
    return number
