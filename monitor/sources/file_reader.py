"""One open file, read line by line, that notices when its content is replaced."""

from __future__ import annotations

import os
from dataclasses import dataclass

from monitor.errors import SourceError
from monitor.sources.byte_input import ByteInput, GzipInput, PlainInput
from monitor.sources.file_position import HEAD_BYTES, FilePosition, OpenedFile, hash_of_head, unreadable
from monitor.sources.line_splitter import LineSplitter


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """How much is read at once.

    Attributes:
        max_record_bytes: Longest line that is delivered whole.
        block_bytes: Bytes asked of the system at once.
    """

    max_record_bytes: int
    block_bytes: int


class FileReader:
    """Reads one file through its descriptor, wherever it may be renamed to.

    Args:
        file: The open file; owned from now on.
        compressed: Whether it is a ``.gz``.
        limits: How much is read at once.
        begin: Where to begin; None for the start.
    """

    def __init__(self, file: OpenedFile, compressed: bool, limits: ReadLimits, begin: FilePosition | None = None) -> None:
        self.path = file.path
        self.fd = file.fd
        byte, line = (begin.byte, begin.line) if begin else (0, 0)
        self.lines = LineSplitter(limits.max_record_bytes, byte, line)
        self.at_end = False
        self.truncated = False
        self._compressed = compressed
        # The byte before the position is read again: it tells whether a line was complete there.
        self._resuming = byte > 0
        self._to_drop = 0
        self._input: ByteInput
        if compressed:
            self._input = GzipInput(self.path, self.fd, limits.block_bytes)
            self._to_drop = max(byte - 1, 0)
        else:
            self._input = PlainInput(self.fd, limits.block_bytes, max(byte - 1, 0))
        self._head = os.pread(self.fd, HEAD_BYTES, 0)
        self._head_hash = hash_of_head(self._head)
        status = os.fstat(self.fd)
        self.device = status.st_dev
        self.inode = status.st_ino

    def fill(self) -> bool:
        """Feed one more block to `lines`; False, with `at_end` or `truncated` set, if there is none for now.

        Raises:
            SourceError: The file cannot be read, or ends before the position to resume at.
        """
        try:
            block = self._input.read()
            self.truncated = not self._is_intact()
        except OSError as error:
            raise unreadable(self.path, error) from error
        self.at_end = not block
        if self.truncated:
            self.at_end = True
            return False
        if self._resuming:
            block = self._after_position(block)
        if block:
            self.lines.feed(block)
        return not self.at_end

    @property
    def read_bytes(self) -> int:
        """How far the file has been read, in bytes as on disk."""
        return self._input.byte

    def position(self) -> FilePosition:
        """Where reading stands: after the last line taken."""
        return FilePosition(self.lines.byte, self.lines.line, self.device, self.inode, self._head_hash, len(self._head))

    def is_at(self, status: os.stat_result) -> bool:
        """Whether `status` is of this very file."""
        return (self.device, self.inode) == (status.st_dev, status.st_ino)

    def close(self) -> None:
        """Close the file; safe to call twice."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def _is_intact(self) -> bool:
        # After the block was read: if the head is the old one now, the block was not from new content either.
        head = os.pread(self.fd, HEAD_BYTES, 0)
        if not head.startswith(self._head):
            return False
        if len(head) > len(self._head):
            self._head = head
            self._head_hash = hash_of_head(head)
        return self._compressed or os.fstat(self.fd).st_size >= self.lines.fed

    def _after_position(self, block: bytes) -> bytes:
        if not block:
            raise SourceError(
                f"{self.path}: ends before the stored position (byte {self.lines.byte}, line {self.lines.line}); "
                "put the file back as it was, or start again with an empty state directory"
            )
        if self._to_drop >= len(block):
            self._to_drop -= len(block)
            return b""
        if self._to_drop:
            block = block[self._to_drop :]
        self._resuming = False
        if not block.startswith(b"\n"):
            # The line was delivered without its end; what follows belongs to the same line.
            self.lines.line -= 1
        return block[1:]
