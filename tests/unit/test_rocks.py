"""RocksStore with directories that it must not use, and a database that is damaged or cannot grow: one clear error, nothing deleted."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from monitor.errors import StateError
from monitor.state.protocol import Changes
from monitor.state.rocks import FORMAT, RocksStore

ROWS = [b"r%06d" % number for number in range(20_000)]


def fill(directory: Path) -> None:
    """Make a store whose rows are in a table file, not only in the log."""
    chance = random.Random(1)  # noqa: S311 - the same bytes every time
    store = RocksStore(directory)
    for begin in range(0, len(ROWS), 1000):
        store.commit(Changes(puts=[(key, chance.randbytes(200)) for key in ROWS[begin : begin + 1000]]))
    store.close()
    RocksStore(directory).close()


def snapshot(directory: Path) -> dict[str, bytes]:
    """Every file below a directory, but for the log that RocksDB writes for people."""
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file() and not path.name.startswith("LOG")
    }


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A closed store that holds one row."""
    store = RocksStore(tmp_path / "state")
    store.commit(Changes(puts=[(b"r1", b"one")]))
    store.close()
    return tmp_path / "state"


def refusal(directory: Path) -> str:
    """The message with which a directory is refused; nothing in it may change."""
    before = snapshot(directory)
    with pytest.raises(StateError) as refused:
        RocksStore(directory)
    assert snapshot(directory) == before
    message = str(refused.value)
    assert str(directory) in message
    return message


def test_missing_parents_are_made(tmp_path: Path) -> None:
    RocksStore(tmp_path / "a" / "b" / "state").close()
    assert (tmp_path / "a" / "b" / "state" / "CALMON").read_text() == f"calmon-state {FORMAT}\n"


def test_a_foreign_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    assert "not calmon's state: move it away (mv" in refusal(tmp_path)


def test_a_newer_format_is_refused(state: Path) -> None:
    (state / "CALMON").write_text(f"calmon-state {FORMAT + 1}\n")
    assert f"has state format {FORMAT + 1}, this calmon reads format {FORMAT}" in refusal(state)


@pytest.mark.parametrize("marker", [b"", b"calmon-state", b"calmon-state one\n", b"other 1\n", b"calmon-state 1 2\n", b"\xff\xfe\x00"])
def test_a_damaged_marker_is_refused(state: Path, marker: bytes) -> None:
    (state / "CALMON").write_bytes(marker)
    assert "CALMON" in refusal(state) or marker == b"\xff\xfe\x00"


@pytest.mark.parametrize("lost", ["db", "content"])
def test_a_lost_database_is_refused_and_not_begun_anew(state: Path, lost: str) -> None:
    for path in (state / "db").iterdir():
        path.unlink()
    if lost == "db":
        (state / "db").rmdir()
    assert "has lost its database: restore it from a backup" in refusal(state)


def test_a_first_start_that_was_interrupted_is_gone_on_with(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    begun.mkdir()
    (begun / "CALMON.new").touch()
    (begun / "db").mkdir()
    store = RocksStore(begun)
    store.commit(Changes(puts=[(b"a", b"1")]))
    store.close()
    assert not (begun / "CALMON.new").exists()
    again = RocksStore(begun)
    assert again.get(b"a") == b"1"
    again.close()


def test_an_interrupted_start_with_a_database_is_gone_on_with(state: Path) -> None:
    (state / "CALMON").rename(state / "CALMON.new")
    store = RocksStore(state)
    assert store.get(b"r1") == b"one"
    store.close()


def test_a_state_in_use_by_another_process_is_refused(state: Path) -> None:
    holder = (
        "import sys; from pathlib import Path; from monitor.state.rocks import RocksStore\n"
        f"store = RocksStore(Path({str(state)!r})); print('open', flush=True); sys.stdin.read(); store.close()"
    )
    command = [sys.executable, "-c", holder]
    with subprocess.Popen(command, cwd=Path(__file__).parents[2], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        with pytest.raises(StateError, match="in use by another process: stop it first"):
            RocksStore(state)
        process.communicate(timeout=30)
    store = RocksStore(state)
    assert store.get(b"r1") == b"one"
    store.close()


def test_the_same_process_cannot_open_it_twice(state: Path) -> None:
    store = RocksStore(state)
    with pytest.raises(StateError, match="in use by another process"):
        RocksStore(state)
    store.close()


@pytest.mark.parametrize("below", ["file/state", "file"])
def test_a_directory_that_cannot_be_made_is_refused(tmp_path: Path, below: str) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StateError, match="cannot use the state directory"):
        RocksStore(tmp_path / below)
    assert (tmp_path / "file").read_text() == "in the way"


def test_a_directory_that_cannot_be_written_is_refused() -> None:
    with pytest.raises(StateError, match="cannot use the state directory /proc/calmon"):
        RocksStore(Path("/proc/calmon"))  # not even root may make one there


def flip(path: Path, begin: float, count: int = 64) -> None:
    """Invert bytes of a file from a fraction of its size on."""
    data = bytearray(path.read_bytes())
    first = int(len(data) * begin)
    for place in range(first, min(first + count, len(data))):
        data[place] ^= 0xFF
    path.write_bytes(bytes(data))


def truncate(path: Path) -> None:
    """Cut a file in half."""
    os.truncate(path, path.stat().st_size // 2)


DAMAGES: dict[str, tuple[str, Callable[[Path], None]]] = {
    "block": ("*.sst", lambda path: flip(path, 0.3)),
    "footer": ("*.sst", lambda path: flip(path, 0.9999, 1000)),
    "short table": ("*.sst", truncate),
    "lost table": ("*.sst", Path.unlink),
    "manifest": ("MANIFEST-*", lambda path: flip(path, 0.3)),
    "lost manifest": ("MANIFEST-*", Path.unlink),
    "current": ("CURRENT", truncate),
}


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Files of a store of many rows."""
    directory = tmp_path_factory.mktemp("rocks") / "state"
    fill(directory)
    return snapshot(directory)


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_an_error_at_opening_or_reading_and_never_an_end(
    damage: str, read_only: bool, filled: dict[str, bytes], tmp_path: Path
) -> None:
    for name, data in filled.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(data)
    pattern, harm = DAMAGES[damage]
    for path in list((tmp_path / "db").glob(pattern)):
        harm(path)
    messages = []
    for read in (
        lambda store: store.get_many(ROWS),
        lambda store: [store.get(key) for key in ROWS],
        lambda store: list(store.scan(b"r", b"s")),
    ):
        with pytest.raises(StateError) as refused:
            read(RocksStore(tmp_path, read_only))
        messages.append(str(refused.value))
    for message in messages:
        assert "move it away (mv" in message
        assert "in use" not in message
        assert "\n" not in message
    assert (tmp_path / "db").exists()


def test_a_database_that_cannot_grow_is_an_error_and_keeps_what_was_committed(tmp_path: Path) -> None:
    # Past the limit a write fails with "File too large", as on a full disk with "No space left on device".
    program = f"""
import resource
from pathlib import Path
from monitor.errors import StateError
from monitor.state.protocol import Changes
from monitor.state.rocks import RocksStore
store = RocksStore(Path({str(tmp_path / "state")!r}))
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, resource.RLIM_INFINITY))
for number in range(100):
    try:
        store.commit(Changes(puts=[(b"%d" % number, bytes(100_000))]))
    except StateError as error:
        print(number, error, sep="|")
        break
try:
    store.commit(Changes(puts=[(b"after", b"")]))
except StateError as error:
    print("still")
store.close()
store.close()
"""
    command = [sys.executable, "-c", program]
    result = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 0, result.stderr
    assert "Traceback" not in result.stderr
    first, still = result.stdout.splitlines()
    number, _, message = first.partition("|")
    assert "cannot write the state in" in message
    assert "File too large" in message
    assert "nothing of this batch was stored" in message
    assert still == "still"
    store = RocksStore(tmp_path / "state")
    assert sorted(int(key) for key, _ in store.scan(b"0", b":")) == list(range(int(number)))
    assert store.get(b"after") is None
    store.close()


def test_reading_after_the_close_is_an_error_of_the_state(state: Path) -> None:
    store = RocksStore(state)
    store.close()
    with pytest.raises(StateError, match="cannot read the state"):
        store.get(b"r1")
    with pytest.raises(StateError, match="cannot read the state"):
        list(store.scan(b"a", b"z"))
    with pytest.raises(StateError, match="cannot write the state"):
        store.commit(Changes(puts=[(b"a", b"")]))
