"""Whatever a writer, a rotation and restarts do between two polls, each line comes once and in order."""

from __future__ import annotations

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.sources.ndjson import NdjsonSource
from monitor.sources.protocol import Position

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 40)),
        st.tuples(st.just("rotate"), st.just(0)),
        st.tuples(st.just("poll"), st.integers(1, 50)),
        st.tuples(st.just("restart"), st.sampled_from([7, 64, 1 << 20])),
    ),
    max_size=40,
)


def shift_numbers(path: Path) -> None:
    """Make room for a new ``.1``, as logrotate does."""
    count = len(list(path.parent.glob(f"{path.name}.*")))
    for number in range(count, 0, -1):
        Path(f"{path}.{number}").rename(f"{path}.{number + 1}")


def rotate(path: Path, style: str, turn: int) -> None:
    if style == "downwards":
        shift_numbers(path)
        path.rename(f"{path}.1")
    elif style == "upwards":
        path.rename(f"{path}.{turn}")
    elif style == "dated":
        path.rename(path.with_name(f"log-2026-{turn:04}.ndjson"))
    else:
        shift_numbers(path)
        shutil.copyfile(path, f"{path}.1")
        with path.open("r+b") as file:
            file.truncate(0)


class Run:
    """One writer and one reader of one path; the reader's positions are what it returned last."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.written: list[bytes] = []
        self.found: list[bytes] = []
        self.positions: dict[str, Position] = {}
        self.restart(64)

    def append(self, count: int) -> None:
        lines = [b"%d %s" % (len(self.written) + index, b"x" * (index % 60)) for index in range(count)]
        with self.path.open("ab") as file:
            file.write(b"".join(line + b"\n" for line in lines))
        self.written += lines

    def poll(self, max_records: int) -> None:
        for part in self.source.poll(max_records, 0):
            self.found += part.values
            self.positions[part.partition] = part.next_position

    def restart(self, block_bytes: int) -> None:
        self.source = NdjsonSource([str(self.path)], follow=True, block_bytes=block_bytes)
        self.source.start(self.positions)


@pytest.mark.parametrize("style", ["downwards", "upwards", "dated", "copytruncate"])
@given(steps=STEPS)
def test_each_line_comes_once_and_in_order(style: str, steps: list[tuple[str, int]]) -> None:
    with TemporaryDirectory() as folder:
        run = Run(Path(folder, "log.ndjson"))
        run.append(3)
        run.poll(1)  # from the first record on there is a position to come back to
        turn = 0
        for step, number in steps:
            if step == "append":
                run.append(number)
            elif step == "poll":
                run.poll(number)
            elif step == "restart":
                run.source.close()
                run.restart(number)
            elif run.path.exists() and run.path.stat().st_size:
                turn += 1
                rotate(run.path, style, turn)
        run.append(1)
        for _ in range(5000):
            if len(run.found) >= len(run.written):
                break
            run.poll(50)
        run.source.close()
        assert run.found == run.written
