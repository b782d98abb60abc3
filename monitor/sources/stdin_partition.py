"""Standard input as a partition: a stream that cannot be read twice."""

from __future__ import annotations

import os
import select

from monitor.errors import SourceError
from monitor.sources.file_position import unreadable
from monitor.sources.file_reader import ReadLimits
from monitor.sources.line_splitter import LineSplitter, gather_records
from monitor.sources.protocol import Position, Slice

STDIN_NAME = "-"


class StdinPartition:
    """Reads lines from standard input without ever blocking in a read.

    Args:
        fd: The descriptor to read; stays the caller's to close.
        limits: How much is read at once.
    """

    def __init__(self, fd: int, limits: ReadLimits) -> None:
        self.name = STDIN_NAME
        self.finished = False
        self.idle = False
        self.read_bytes = 0
        self._fd = fd
        self._limits = limits
        self._lines = LineSplitter(limits.max_record_bytes)
        self._ended = False

    def start(self, position: Position | None) -> None:
        """Begin with whatever comes next.

        Raises:
            SourceError: There is a stored position to go on from.
        """
        if position and position.get("byte", 0) != 0:
            raise SourceError(
                f"standard input cannot be resumed: the state already holds line {position.get('line', '?')} of it; "
                "name files instead of '-', or start with an empty state directory"
            )

    def read(self, max_records: int) -> Slice | None:
        """Return the next records, or None if there are none now; `idle` says whether nothing is waiting.

        Raises:
            SourceError: Standard input cannot be read.
        """
        self.idle = False
        values, numbers = gather_records(self._lines, self._fill, max_records)
        if values:
            position = {"byte": self._lines.byte, "line": self._lines.line}
            return Slice(self.name, "any", values, numbers, position)
        if self._ended and not self._lines.ready:
            self.finished = True
        self.idle = self.finished or not self.wait(0)
        return None

    def wait(self, timeout_s: float) -> bool:
        """Wait until something can be read (or the input has ended), but not longer than `timeout_s`."""
        waiter = select.poll()
        waiter.register(self._fd, select.POLLIN)
        return bool(waiter.poll(timeout_s * 1000))

    def close(self) -> None:
        """Nothing to release: the descriptor is not ours."""

    def _fill(self) -> bool:
        if self._ended or not self.wait(0):
            return False
        try:
            block = os.read(self._fd, self._limits.block_bytes)
        except BlockingIOError:
            return False
        except OSError as error:
            raise unreadable("standard input", error) from error
        if block:
            self._lines.feed(block)
            return True
        self._ended = True
        return self._lines.finish()
