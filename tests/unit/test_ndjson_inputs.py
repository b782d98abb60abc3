"""What may be named as an input, and what each unusable one is refused with."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from monitor.errors import SourceError
from monitor.sources.ndjson import NdjsonSource
from monitor.sources.protocol import Position, Slice


def read_all(files: Sequence[str | Path], positions: dict[str, Position] | None = None, stdin_fd: int = 0) -> list[Slice]:
    source = NdjsonSource([str(path) for path in files], stdin_fd=stdin_fd)
    source.start(positions or {})
    slices: list[Slice] = []
    deadline = time.monotonic() + 20
    while not source.exhausted and time.monotonic() < deadline:
        slices += source.poll(100, 1)
    source.close()
    return slices


def values(slices: Sequence[Slice]) -> list[bytes]:
    return [value for part in slices for value in part.values]


def refusal(files: Sequence[str | Path], positions: dict[str, Position] | None = None) -> str:
    with pytest.raises(SourceError) as caught:
        read_all(files, positions)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reader, writer = os.pipe()
    yield reader, writer
    for fd in (reader, writer):
        try:
            os.close(fd)
        except OSError:
            continue


def test_files_come_one_after_the_other_in_the_order_given(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("b", "a", "c")]
    for path in paths:
        path.write_text(f"{path.name}1\n{path.name}2\n")
    slices = read_all(paths)
    assert values(slices) == [b"b1", b"b2", b"a1", b"a2", b"c1", b"c2"]
    assert [part.partition for part in slices] == [str(path) for path in paths]
    assert {part.kind for part in slices} == {"any"}


def test_more_files_than_descriptors_are_no_problem(tmp_path: Path) -> None:
    paths = [tmp_path / f"{index:04}" for index in range(1500)]
    for path in paths:
        path.write_text(f"{path.name}\n")
    assert values(read_all(paths)) == [path.name.encode() for path in paths]


def test_a_missing_file_is_named_before_anything_is_read(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("1\n")
    source = NdjsonSource([str(tmp_path / "there"), str(tmp_path / "gone")])
    with pytest.raises(SourceError, match="gone: no such file"):
        source.start({})
    source.close()


def test_a_directory_is_refused(tmp_path: Path) -> None:
    assert "is a directory" in refusal([tmp_path])


def test_a_file_that_the_system_cannot_open_is_refused(tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    assert f"{loop}: cannot be read: " in refusal([loop])


def test_a_named_pipe_is_refused_instead_of_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    assert "pipe it to standard input" in refusal([tmp_path / "fifo"])


@pytest.mark.parametrize(("files", "message"), [([], "no input files"), (["a", "b", "a"], "more than once")])
def test_unusable_lists_of_files_are_refused(files: list[str], message: str) -> None:
    with pytest.raises(SourceError, match=message):
        NdjsonSource(files)


def test_a_compressed_file_cannot_be_followed() -> None:
    with pytest.raises(SourceError, match="cannot be followed"):
        NdjsonSource(["a.ndjson.gz"], follow=True)


def test_a_shorter_file_than_the_position_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("1\n2\n3\n")
    position = read_all([path])[-1].next_position
    path.write_text("1\n")
    assert "is shorter (2 bytes)" in refusal([path], {str(path): position})


def test_other_content_than_the_positions_is_refused_saying_how_to_go_on(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("1\n2\n")
    position = read_all([path])[-1].next_position
    path.write_text("9\n2\n3\n")
    message = refusal([path], {str(path): position})
    assert "is another file" in message
    assert f"{path}.1" in message
    assert "empty state directory" in message


def test_a_copy_with_the_same_content_is_read_on(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("1\n2\n")
    position = read_all([path])[-1].next_position
    (tmp_path / "new").write_text("1\n2\n3\n")
    (tmp_path / "new").replace(path)
    assert values(read_all([path], {str(path): position})) == [b"3"]


@pytest.mark.parametrize("position", [{"byte": "x"}, {"byte": 3, "line": -1}, {"byte": 1, "head": 5}])
def test_a_position_of_another_kind_of_source_is_refused(tmp_path: Path, position: Position) -> None:
    (tmp_path / "a").write_text("1\n2\n")
    assert "not one of a file" in refusal([tmp_path / "a"], {str(tmp_path / "a"): position})


def test_gzip_members_follow_each_other_with_padding(tmp_path: Path) -> None:
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(b"1\n2") + gzip.compress(b"") + b"\0" * 7 + gzip.compress(b"2\n3") + b"\0" * 512)
    slices = read_all([path])
    assert values(slices) == [b"1", b"22", b"3"]
    assert slices[-1].next_position["byte"] == 6


@pytest.mark.parametrize("max_records", [10, 100_000])
def test_a_truncated_gzip_gives_its_whole_lines_and_then_an_error(tmp_path: Path, max_records: int) -> None:
    lines = [b"%d" % (number * 7919) for number in range(20_000)]
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(b"\n".join(lines))[:-2000])
    source = NdjsonSource([str(path)])
    source.start({})
    found: list[bytes] = []

    def read_to_the_error() -> None:
        while True:
            found.extend(values(source.poll(max_records, 5)))

    with pytest.raises(SourceError, match="truncated"):
        read_to_the_error()
    source.close()
    assert 10_000 < len(found) < 20_000
    assert found == lines[: len(found)]


def test_an_error_in_one_file_comes_after_what_was_read_before_it(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1\n")
    (tmp_path / "b.gz").write_bytes(b"not gzip at all")
    source = NdjsonSource([str(tmp_path / "a"), str(tmp_path / "b.gz")])
    source.start({})
    assert values(source.poll(10, 5)) == [b"1"]
    for _ in range(2):
        with pytest.raises(SourceError, match="is not gzip, or damaged"):
            source.poll(10, 5)
    assert not source.exhausted
    source.close()


def test_an_empty_gzip_file_is_truncated(tmp_path: Path) -> None:
    (tmp_path / "a.gz").touch()
    assert "truncated" in refusal([tmp_path / "a.gz"])


def test_a_shorter_gzip_than_the_position_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(b"1\n2\n"))
    position = dict(read_all([path])[-1].next_position)
    assert "ends before the stored position" in refusal([path], {str(path): position | {"byte": 50}})


def test_standard_input_is_read_from_a_real_pipe() -> None:
    program = (
        "from monitor.sources.ndjson import NdjsonSource\n"
        "source = NdjsonSource(['-'])\n"
        "source.start({})\n"
        "while not source.exhausted:\n"
        "    for part in source.poll(1000, 10):\n"
        "        for offset, value in zip(part.offsets, part.values):\n"
        "            print(offset, value.decode(), flush=True)\n"
    )
    root = Path(__file__).parents[2]
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=root) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write(b"one\n\ntw")
        process.stdin.flush()
        assert process.stdout.readline() == b"1 one\n"
        process.stdin.write(b"o\nthree")
        process.stdin.flush()
        assert process.stdout.readline() == b"3 two\n"
        process.stdin.close()
        assert process.stdout.read() == b"4 three\n"
        assert process.wait(20) == 0


def test_waiting_for_standard_input_ends_with_the_timeout(pipe: tuple[int, int]) -> None:
    source = NdjsonSource(["-"], stdin_fd=pipe[0])
    source.start({})
    os.write(pipe[1], b"a line that is not complete")
    began = time.monotonic()
    assert not source.poll(10, 0.1)
    assert 0.09 < time.monotonic() - began < 1
    assert not source.exhausted
    source.close()


def test_standard_input_wakes_a_poll_at_once(pipe: tuple[int, int]) -> None:
    source = NdjsonSource(["-"], stdin_fd=pipe[0])
    source.start({})
    program = f"import os, time; time.sleep(0.1); os.write({pipe[1]}, b'1\\n')"
    began = time.monotonic()
    with subprocess.Popen([sys.executable, "-c", program], pass_fds=[pipe[1]]):
        assert values(source.poll(10, 20)) == [b"1"]
    assert time.monotonic() - began < 10
    source.close()


def test_followed_standard_input_ends_when_its_writer_does(tmp_path: Path, pipe: tuple[int, int]) -> None:
    (tmp_path / "a").write_text("1\n")
    source = NdjsonSource([str(tmp_path / "a"), "-"], follow=True, stdin_fd=pipe[0])
    source.start({})
    os.write(pipe[1], b"2\n3")
    os.close(pipe[1])
    found = [value for _ in range(4) for value in values(source.poll(10, 0.05))]
    assert sorted(found) == [b"1", b"2", b"3"]
    assert source.live_partitions() == {str(tmp_path / "a")}
    source.close()


def test_standard_input_cannot_be_resumed(pipe: tuple[int, int]) -> None:
    source = NdjsonSource(["-"], stdin_fd=pipe[0])
    source.start({"-": {"byte": 0, "line": 0}})
    os.write(pipe[1], b"1\n")
    position = source.poll(10, 5)[0].next_position
    assert position == {"byte": 2, "line": 1}
    with pytest.raises(SourceError, match="cannot be resumed"):
        NdjsonSource(["-"], stdin_fd=pipe[0]).start({"-": position})
    source.close()


def test_a_closed_standard_input_is_an_error() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    os.close(writer)
    source = NdjsonSource(["-"], stdin_fd=reader)
    source.start({})
    with pytest.raises(SourceError, match="standard input: cannot be read"):
        source.poll(10, 5)
