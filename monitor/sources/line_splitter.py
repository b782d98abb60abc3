"""Splits blocks of bytes into records, one a line, and knows the exact byte and line after each record taken."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from monitor.errors import SourceError

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
MAX_SLICE_BYTES = 8 << 20
"""Bytes read for one slice at most, so that a batch of huge lines does not fill the memory."""
MAX_SLICE_BLOCKS = 64
"""Blocks read for one slice at most, so that skipping what is not delivered does not hold up a caller for long."""


class LineSplitter:
    r"""Turns blocks, fed in order, into lines without their end.

    Only ``\n`` ends a line; one ``\r`` before it and a byte order mark at the start of the file are dropped. Lines of
    whitespace are skipped but counted. A line longer than `max_record_bytes` is cut to one byte more than that, whatever
    its length, for the decoder to refuse. None of this depends on where one block ends and the next begins.

    Args:
        max_record_bytes: Longest line that is delivered whole.
        byte: Offset of the first byte that will be fed.
        line: Number of the last line before it (0 at the start of a file).

    >>> splitter = LineSplitter(max_record_bytes=100)
    >>> splitter.feed(b'{"a":1}\n\n{"b"')
    >>> splitter.take(10), splitter.byte, splitter.line
    (([b'{"a":1}'], [1]), 9, 2)
    """

    def __init__(self, max_record_bytes: int, byte: int = 0, line: int = 0) -> None:
        self.byte = byte
        self.line = line
        self.fed = byte
        self._limit = max_record_bytes
        # Enough of a line to see that it is too long once a mark and a carriage return have gone.
        self._keep = max_record_bytes + len(BYTE_ORDER_MARK) + 2
        self._partial = b""
        self._cut_from_partial = 0
        self._lines: list[bytes] = []
        self._next = 0
        self._end = byte
        self._cut_from_first = 0
        self._uneven = False

    @property
    def ready(self) -> bool:
        """Whether lines can be taken without feeding more."""
        return self._next < len(self._lines)

    def feed(self, block: bytes) -> None:
        """Add the next bytes; only when no line is `ready`."""
        lines = block.split(b"\n")
        self.fed += len(block)
        self._extend_partial(lines[0])
        if len(lines) == 1:
            return
        lines[0], cut = self._partial, self._cut_from_partial
        self._partial, self._cut_from_partial = b"", 0
        tail = lines.pop()
        self._extend_partial(tail)
        self._set_lines(lines, cut, self.fed - len(tail), b"\r" in block)

    def finish(self) -> bool:
        """Make what follows the last line end a line of its own: the input has ended; False if there is nothing."""
        if not self._partial:
            return False
        self._set_lines([self._partial], self._cut_from_partial, self.fed, carriage_returns=True)
        self._partial, self._cut_from_partial = b"", 0
        return True

    def take(self, max_lines: int) -> tuple[list[bytes], Sequence[int]]:
        """Return the records of the next `max_lines` lines at most, with their line numbers."""
        start = self._next
        chunk = self._lines[start : start + max_lines]
        self._next += len(chunk)
        if self._next == len(self._lines):
            self.byte = self._end
        else:
            self.byte += sum(map(len, chunk)) + len(chunk) + (0 if start else self._cut_from_first)
        first = self.line + 1
        self.line += len(chunk)
        if self._uneven:
            return self._cleaned(chunk, first)
        return chunk, range(first, self.line + 1)

    def _extend_partial(self, piece: bytes) -> None:
        room = self._keep - len(self._partial)
        if len(piece) > room:
            self._cut_from_partial += len(piece) - room
            piece = piece[:room]
        self._partial += piece

    def _set_lines(self, lines: list[bytes], cut: int, end: int, carriage_returns: bool) -> None:
        if self.byte == 0 and self.line == 0 and lines[0].startswith(BYTE_ORDER_MARK):
            lines[0] = lines[0][len(BYTE_ORDER_MARK) :]
            cut += len(BYTE_ORDER_MARK)
        self._lines, self._next, self._end, self._cut_from_first = lines, 0, end, cut
        # Asked once a block in C loops, so that an ordinary block costs nothing more a line.
        self._uneven = (
            carriage_returns
            or lines[0].endswith(b"\r")
            or b"" in lines
            or any(map(bytes.isspace, lines))
            or (end - self.byte > self._limit and max(map(len, lines)) > self._limit)
        )

    def _cleaned(self, chunk: list[bytes], first: int) -> tuple[list[bytes], list[int]]:
        values: list[bytes] = []
        numbers: list[int] = []
        for number, line in enumerate(chunk, first):
            value = line.removesuffix(b"\r")
            if len(value) > self._limit:
                value = value[: self._limit + 1]
            elif not value or value.isspace():
                continue
            values.append(value)
            numbers.append(number)
        return values, numbers


def gather_records(lines: LineSplitter, fill: Callable[[], bool], max_records: int) -> tuple[list[bytes], Sequence[int]]:
    """Take records, feeding the splitter as needed, until there are enough, too many bytes, or no more for now.

    Args:
        lines: Where records come from.
        fill: Feeds one more block; False if there is none for now.
        max_records: Records wanted at most, >= 1.

    Returns:
        The records and their line numbers.

    Raises:
        SourceError: `fill` failed before there was any record; after one it is left to the next call.
    """
    values: list[bytes] = []
    numbers: Sequence[int] = range(0)
    stop = lines.fed + MAX_SLICE_BYTES
    blocks = 0
    while len(values) < max_records:
        if not lines.ready:
            if lines.fed >= stop or blocks == MAX_SLICE_BLOCKS:
                break
            blocks += 1
            try:
                if fill():
                    continue
            except SourceError:
                if not values:
                    raise
            break
        more, more_numbers = lines.take(max_records - len(values))
        values.extend(more)
        numbers = _joined(numbers, more_numbers)
    return values, numbers


def _joined(first: Sequence[int], second: Sequence[int]) -> Sequence[int]:
    if not first:
        return second
    if isinstance(first, range) and isinstance(second, range) and first.stop == second.start:
        return range(first.start, second.stop)
    if isinstance(first, list):
        first.extend(second)
        return first
    return [*first, *second]
