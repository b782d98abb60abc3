"""Following files that grow, rotate, are truncated or do not exist yet, within a run and across restarts."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest

from monitor.errors import SourceError
from monitor.sources.ndjson import NdjsonSource
from monitor.sources.protocol import Position


class Follower:
    """A followed file whose reader can be restarted from the last position, as a checkpoint would."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.positions: dict[str, Position] = {}
        self.offsets: list[int] = []
        self._source = self._started({})

    def read(self, max_records: int = 100) -> list[bytes]:
        """All records that are there now."""
        found: list[bytes] = []
        while slices := self._source.poll(max_records, 0):
            for part in slices:
                found += part.values
                self.offsets += part.offsets
                self.positions[part.partition] = part.next_position
        return found

    def stop(self) -> None:
        self._source.close()

    def restart(self) -> None:
        self.stop()
        self._source = self._started(self.positions)

    def _started(self, positions: Mapping[str, Position]) -> NdjsonSource:
        source = NdjsonSource([str(self.path)], follow=True)
        source.start(positions)
        return source


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "events.ndjson"


@pytest.fixture
def follower(log: Path) -> Iterator[Follower]:
    follower = Follower(log)
    yield follower
    follower.stop()


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def copy_and_truncate(path: Path, copy: Path | None) -> None:
    if copy:
        shutil.copyfile(path, copy)
    with path.open("r+") as file:
        file.truncate(0)


def test_waits_for_a_file_to_appear(log: Path, follower: Follower) -> None:
    assert follower.read() == []
    append(log, "1\n")
    assert follower.read() == [b"1"]


def test_a_last_line_comes_when_it_is_complete(log: Path, follower: Follower) -> None:
    append(log, "1\n2")
    assert follower.read() == [b"1"]
    assert follower.read() == []
    append(log, "2\n")
    assert follower.read() == [b"22"]
    assert follower.offsets == [1, 2]


@pytest.mark.parametrize("restart", [False, True])
def test_rotation_by_rename_finishes_the_old_file_first(log: Path, follower: Follower, restart: bool) -> None:
    append(log, "1\n2\n")
    assert follower.read() == [b"1", b"2"]
    append(log, "3\n4")
    log.rename(f"{log}.1")
    if restart:
        follower.restart()
    assert follower.read() == [b"3"]
    append(Path(f"{log}.1"), "4\n5")
    log.touch()
    assert follower.read() == [b"44"]
    append(log, "6\n7\n")
    assert follower.read() == [b"5", b"6", b"7"]
    if restart:
        follower.restart()
    append(log, "8\n")
    assert follower.read() == [b"8"]
    assert follower.offsets == [1, 2, 3, 4, 5, 1, 2, 3]


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("names", [["{}.1", "{}.2", "{}.3"], ["{}-20260103", "{}-20260102", "{}-20260101"]])
def test_files_that_came_and_went_unseen_are_read_in_order(log: Path, follower: Follower, restart: bool, names: list[str]) -> None:
    append(log, "1\n2\n")
    assert follower.read(max_records=1) == [b"1", b"2"]
    append(log, "3\n")
    if restart:
        follower.stop()
    newest, middle, oldest = (Path(name.format(log)) for name in names)
    log.rename(oldest)
    for path, text in ((middle, "4\n5\n"), (newest, "6\n"), (log, "7\n")):
        append(path, text)
    append(Path(f"{log}.bak"), "not ours\n")
    append(log.with_name("events-eu.ndjson"), "not ours\n")
    if restart:
        follower.restart()
    assert follower.read() == [b"3", b"4", b"5", b"6", b"7"]


def test_a_restart_between_two_rotated_files_goes_on_there(log: Path, follower: Follower) -> None:
    append(log, "1\n")
    assert follower.read() == [b"1"]
    for number in (2, 3):
        Path(f"{log}.1").rename(f"{log}.2") if number == 3 else None
        log.rename(f"{log}.1")
        append(log, f"{number}\n")
    source = NdjsonSource([str(log)], follow=True)
    source.start(follower.positions)
    position = source.poll(1, 5)[0].next_position
    source.close()
    follower.positions[str(log)] = position
    follower.restart()
    assert follower.read() == [b"3"]


def test_a_rotated_file_under_any_name_in_the_folder_is_found(log: Path, follower: Follower) -> None:
    append(log, "1\n")
    follower.read()
    append(log, "2\n")
    log.rename(log.with_name("archived"))
    append(log, "3\n")
    follower.restart()
    assert follower.read() == [b"2", b"3"]


def test_a_rotated_file_that_is_gone_is_an_error_that_says_what_to_do(log: Path, follower: Follower) -> None:
    append(log, "1\n2\n")
    follower.read()
    append(log, "3\n")
    log.rename(f"{log}.1")
    append(log, "4\n")
    Path(f"{log}.1").rename(log.parent.parent / f"{log.parent.name}-moved")
    with pytest.raises(SourceError, match=r"byte 4, line 2.*put the old file back uncompressed as .*\.1, or start again"):
        follower.restart()


def test_without_follow_a_rotated_file_is_finished_too(log: Path, follower: Follower) -> None:
    append(log, "1\n")
    follower.read()
    append(log, "2\n3")
    log.rename(f"{log}.1")
    append(log, "4\n5")
    source = NdjsonSource([str(log)])
    source.start(follower.positions)
    found: list[bytes] = []
    while not source.exhausted:
        found += [value for part in source.poll(10, 5) for value in part.values]
    source.close()
    assert found == [b"2", b"3", b"4", b"5"]


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("regrown", ["4\n", "44444\n55555\n66666\n"])
def test_copytruncate_reads_the_rest_of_the_copy_and_then_the_new_content(
    log: Path, follower: Follower, restart: bool, regrown: str
) -> None:
    append(log, "1\n2\n")
    assert follower.read() == [b"1", b"2"]
    append(log, "3\n")
    copy_and_truncate(log, Path(f"{log}.1"))
    append(log, regrown)
    if restart:
        follower.restart()
    assert follower.read() == [b"3", *regrown.encode().split()]
    follower.restart()
    append(log, "9\n")
    assert follower.read() == [b"9"]


@pytest.mark.parametrize("restart", [False, True])
def test_truncation_without_a_copy_starts_anew_and_warns(
    log: Path, follower: Follower, restart: bool, caplog: pytest.LogCaptureFixture
) -> None:
    append(log, "1\n2\n3")
    assert follower.read() == [b"1", b"2"]
    copy_and_truncate(log, None)
    if restart:
        follower.restart()
    assert follower.read() == []
    append(log, "4\n")
    assert follower.read() == [b"4"]
    assert "was truncated" in caplog.text
    assert follower.offsets == [1, 2, 1]


def test_without_follow_a_file_replaced_while_it_is_read_is_an_error(log: Path) -> None:
    append(log, "1\n" * 1000)
    source = NdjsonSource([str(log)], block_bytes=64)
    source.start({})
    assert len(source.poll(32, 5)[0].values) == 32
    copy_and_truncate(log, None)
    append(log, "2\n" * 1000)
    with pytest.raises(SourceError, match="truncated or replaced while it was read"):
        source.poll(100, 5)
    source.close()


def test_what_another_process_appends_and_rotates_comes_whole(log: Path, follower: Follower) -> None:
    program = (
        "import os, sys, time\n"
        "path = sys.argv[1]\n"
        "number = 0\n"
        "for turn in range(6):\n"
        "    with open(path, 'ab', buffering=0) as file:\n"
        "        for _ in range(300):\n"
        "            line = b'{\"n\":%d}\\n' % number\n"
        "            file.write(line[:4]); file.write(line[4:])\n"
        "            number += 1\n"
        "    time.sleep(0.03)\n"
        "    for old in range(turn, 0, -1):\n"
        "        os.rename(f'{path}.{old}', f'{path}.{old + 1}')\n"
        "    os.rename(path, path + '.1')\n"
        "open(path, 'ab').write(b'end\\n')\n"
    )
    found: list[bytes] = []
    deadline = time.monotonic() + 30
    with subprocess.Popen([sys.executable, "-c", program, str(log)]):
        while b"end" not in found and time.monotonic() < deadline:
            found += follower.read(max_records=50)
            if len(found) % 3 == 0 and follower.positions:
                follower.restart()
    assert found == [b'{"n":%d}' % number for number in range(1800)] + [b"end"]


def test_what_is_written_just_before_the_writer_switches_files_is_read(
    log: Path, follower: Follower, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(log, "1\n")
    assert follower.read() == [b"1"]
    real_stat = os.stat

    def switch_then_stat(path: str) -> os.stat_result:
        if not Path(f"{log}.1").exists():
            append(log, "2\n")
            log.rename(f"{log}.1")
            append(log, "3\n")
        return real_stat(path)

    with monkeypatch.context() as patched:
        patched.setattr("monitor.sources.file_partition.os", SimpleNamespace(stat=switch_then_stat))
        assert follower.read() == [b"2", b"3"]


def test_an_unreadable_replacement_is_an_error(log: Path, follower: Follower) -> None:
    append(log, "1\n")
    follower.read()
    log.rename(f"{log}.1")
    log.mkdir()
    (log / "entry").touch()
    with pytest.raises(SourceError, match="is a directory"):
        follower.read()
