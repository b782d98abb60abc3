"""Lines, offsets and positions do not depend on blocks, polls or restarts."""

from __future__ import annotations

import gzip
import tracemalloc
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import example, given
from hypothesis import strategies as st

from monitor.sources.ndjson import NdjsonSource
from monitor.sources.protocol import Position, Slice

LIMIT = 12
MARK = b"\xef\xbb\xbf"

line_bodies = st.one_of(
    st.binary(max_size=2 * LIMIT).map(lambda body: body.replace(b"\n", b"")),
    st.sampled_from([b"", b" ", b"\t \r", b"{}", b"x" * LIMIT, b"x" * (LIMIT + 1), b" " * 40, MARK, MARK + b"{}", b"x" * LIMIT + b"\r"]),
)
contents = st.builds(
    lambda mark, lines, end: mark + b"\n".join(lines) + end,
    st.sampled_from([b"", MARK]),
    st.lists(line_bodies, max_size=12),
    st.sampled_from([b"", b"\n", b"\r\n"]),
)


def expected_lines(content: bytes) -> list[tuple[int, bytes]]:
    """The rules of a line, one after the other, on the whole content."""
    lines = content.removeprefix(MARK).split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    bare = [(number, line.removesuffix(b"\r")) for number, line in enumerate(lines, 1)]
    return [(number, line[: LIMIT + 1]) for number, line in bare if len(line) > LIMIT or line.strip()]


def rows(slices: Iterable[Slice]) -> list[tuple[int, bytes]]:
    return [row for part in slices for row in zip(part.offsets, part.values, strict=True)]


def read_on(path: Path, position: Position | None, max_records: int, block_bytes: int) -> list[Slice]:
    source = NdjsonSource([str(path)], max_record_bytes=LIMIT, block_bytes=block_bytes)
    source.start({str(path): position} if position else {})
    slices: list[Slice] = []
    while not source.exhausted:
        slices += source.poll(max_records, 5)
    source.close()
    return slices


@given(contents, st.integers(1, 9), st.integers(1, 70), st.booleans())
@example(b"x" * 12 + b"\r\n" + b"x" * 12 + b"\r", 1, 1, False)
@example(b"{}\r\n{}\n", 9, 3, False)
@example(MARK + b"x" * 13, 1, 4, False)
def test_any_blocks_polls_and_restarts_give_the_same_lines(content: bytes, max_records: int, block_bytes: int, packed: bool) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, "a.ndjson.gz" if packed else "a.ndjson")
        half = len(content) // 2
        path.write_bytes(gzip.compress(content[:half]) + gzip.compress(content[half:]) if packed else content)
        slices = read_on(path, None, max_records, block_bytes)
        assert rows(slices) == expected_lines(content)
        assert all(len(part.values) <= max_records for part in slices)
        for index, part in enumerate(slices):
            position = part.next_position
            assert rows(read_on(path, position, max_records + 1, block_bytes + 3)) == rows(slices[index + 1 :])


@given(contents, st.integers(1, 9))
def test_the_byte_of_a_position_is_the_start_of_the_next_line(content: bytes, max_records: int) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, "a.ndjson")
        path.write_bytes(content)
        for part in read_on(path, None, max_records, 16):
            byte, line = part.next_position["byte"], part.next_position["line"]
            assert isinstance(byte, int)
            assert content[:byte].endswith(b"\n") or byte == len(content)
            assert content[:byte].count(b"\n") + (not content[:byte].endswith(b"\n")) == line


def test_a_line_that_was_read_without_its_end_keeps_its_number_when_the_file_grows(tmp_path: Path) -> None:
    path = tmp_path / "a.ndjson"
    path.write_bytes(b"1\n2")
    position = read_on(path, None, 9, 64)[-1].next_position
    path.write_bytes(b"1\n2\n3\n")
    assert rows(read_on(path, position, 9, 64)) == [(3, b"3")]


def test_a_huge_line_is_cut_without_filling_the_memory(tmp_path: Path) -> None:
    path = tmp_path / "a.ndjson"
    with path.open("wb") as file:
        file.write(b"first\n")
        for _ in range(64):
            file.write(b"x" * (1 << 20))
        file.write(b"\nlast\n")
    source = NdjsonSource([str(path)], max_record_bytes=1000, block_bytes=1 << 18)
    source.start({})
    tracemalloc.start()
    found: list[tuple[int, bytes]] = []
    while not source.exhausted:
        found += rows(source.poll(10, 5))
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    source.close()
    assert found == [(1, b"first"), (2, b"x" * 1001), (3, b"last")]
    assert peak_bytes < 2 << 20


def test_many_large_lines_do_not_make_one_huge_slice(tmp_path: Path) -> None:
    path = tmp_path / "a.ndjson"
    with path.open("wb") as file:
        for _ in range(40):
            file.write(b"x" * (1 << 20) + b"\n")
    source = NdjsonSource([str(path)])
    source.start({})
    sizes: list[int] = []
    while not source.exhausted:
        sizes += [len(part.values) for part in source.poll(1000, 5)]
    source.close()
    assert sum(sizes) == 40
    assert max(sizes) <= 9
