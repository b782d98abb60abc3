"""Lines of event files, one file after the other, with where they were and how much has been read."""

from __future__ import annotations

import gzip
import heapq
import os
import select
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO, NamedTuple

from monitor.errors import SourceError
from monitor.produce.address import Address, address
from monitor.sources.line_splitter import LineSplitter

STDIN = "-"
LONGEST_LINE_BYTES = 16 << 20
"""Longer lines are cut to one byte more: no broker takes that, so none is sent that was cut."""

_BLOCK_BYTES = 1 << 18
_LOOK_S = 0.2


class Line(NamedTuple):
    """A line of a file.

    Attributes:
        path: The file's name as given.
        number: The line's number there.
        value: Its bytes without the line end.
        address: Where it goes.
    """

    path: str
    number: int
    value: bytes
    address: Address


class Files:
    """Files to be read once, in their order.

    Args:
        paths: NDJSON files, plain or ``.gz``; ``-`` is standard input.
        stopped: Whether to end early; asked while standard input is waited for.

    Raises:
        SourceError: A file is missing.
    """

    def __init__(self, paths: Iterable[str], stopped: Callable[[], bool]) -> None:
        self._paths = list(paths)
        self._stopped = stopped
        self.read_bytes = 0
        self.total_bytes: int | None = 0
        for path in self._paths:
            size = _size(path)
            self.total_bytes = None if size is None or self.total_bytes is None else self.total_bytes + size

    def in_order(self) -> Iterator[Line]:
        """Read the files one after the other.

        Raises:
            SourceError: A file cannot be read.
        """
        for path in self._paths:
            yield from self._lines(path)

    def by_event_time(self) -> Iterator[Line]:
        """Read all files side by side: of their next lines first that with the earliest event time; each keeps its order.

        Raises:
            SourceError: A file cannot be read.
        """
        timed = (_timed(self._lines(path)) for path in self._paths)
        return (line for _, line in heapq.merge(*timed, key=lambda item: item[0]))

    def _lines(self, path: str) -> Iterator[Line]:
        splitter = LineSplitter(LONGEST_LINE_BYTES)
        try:
            for block in self._blocks(path):
                splitter.feed(block)
                yield from _taken(splitter, path)
        except (OSError, EOFError, zlib.error) as error:
            raise SourceError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
        if splitter.finish():
            yield from _taken(splitter, path)

    def _blocks(self, path: str) -> Iterator[bytes]:
        if path == STDIN:
            yield from self._stdin_blocks()
            return
        with ExitStack() as stack:
            raw = stack.enter_context(Path(path).open("rb"))
            stream: BinaryIO | gzip.GzipFile = raw
            if path.endswith(".gz"):
                stream = stack.enter_context(gzip.GzipFile(fileobj=raw))
            before = 0
            while block := stream.read(_BLOCK_BYTES):
                self.read_bytes += raw.tell() - before
                before = raw.tell()
                yield block

    def _stdin_blocks(self) -> Iterator[bytes]:
        fd = sys.stdin.fileno()
        while not self._stopped():
            if select.select([fd], [], [], _LOOK_S)[0]:
                block = os.read(fd, _BLOCK_BYTES)
                if not block:
                    return
                yield block


def _taken(splitter: LineSplitter, path: str) -> Iterator[Line]:
    while splitter.ready:
        values, numbers = splitter.take(1000)
        for value, number in zip(values, numbers, strict=True):
            yield Line(path, number, value, address(value))


def _timed(lines: Iterator[Line]) -> Iterator[tuple[int, Line]]:
    newest = 0
    for line in lines:
        newest = max(newest, line.address.event_ms or 0)
        yield newest, line


def _size(path: str) -> int | None:
    if path == STDIN:
        return None
    try:
        if Path(path).is_dir():
            raise SourceError(f"{path}: is a directory: name the files in it")
        return Path(path).stat().st_size
    except FileNotFoundError:
        raise SourceError(f"{path}: no such file") from None
    except (OSError, ValueError) as error:
        raise SourceError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
