"""The bytes of an open file plain or decompressed."""

from __future__ import annotations

import os
import zlib
from typing import Protocol

from monitor.errors import SourceError

GZIP_FORMAT = 31
"""zlib's window bits for a gzip header and trailer with the largest window."""


class ByteInput(Protocol):
    """Reads forward through a file."""

    @property
    def byte(self) -> int:
        """Offset in the file as it is on disk up to which it has been read."""
        ...

    def read(self) -> bytes:
        """Return the next block; empty at the end of what is there now."""
        ...


class PlainInput:
    """Reads a file as it is.

    Args:
        fd: The open file; stays the caller's to close.
        block_bytes: Bytes read at once.
        byte: Offset to begin at.
    """

    def __init__(self, fd: int, block_bytes: int, byte: int) -> None:
        self._fd = fd
        self._block_bytes = block_bytes
        self.byte = byte

    def read(self) -> bytes:
        """Return the next block; empty at the end of what is there now."""
        block = os.pread(self._fd, self._block_bytes, self.byte)
        self.byte += len(block)
        return block


class GzipInput:
    """Decompresses a ``.gz`` of one or more members as it goes.

    Args:
        path: Named in errors.
        fd: The open file; stays the caller's to close.
        block_bytes: Bytes returned at once, at most.
    """

    def __init__(self, path: str, fd: int, block_bytes: int) -> None:
        self._path = path
        self._raw = PlainInput(fd, max(block_bytes // 4, 1), 0)
        self._block_bytes = block_bytes
        self._member = zlib.decompressobj(GZIP_FORMAT)
        self._compressed = b""

    @property
    def byte(self) -> int:
        """Offset in the compressed file up to which it has been read."""
        return self._raw.byte

    def read(self) -> bytes:
        """Return the next decompressed block; empty at the end of the last member.

        Raises:
            SourceError: The file ends within a member, or is not gzip.
        """
        while True:
            # A call without input still gives what zlib holds back because of the limit.
            try:
                block = self._member.decompress(self._compressed, self._block_bytes)
            except zlib.error as error:
                raise SourceError(f"{self._path}: is not gzip, or damaged: {error}") from error
            self._compressed = self._member.unconsumed_tail
            if block:
                return block
            if self._member.eof:
                if not self._begin_next_member():
                    return b""
            elif not self._compressed:
                self._compressed = self._raw.read()
                if not self._compressed:
                    raise SourceError(
                        f"{self._path}: the compressed data ends too early (the file is truncated); "
                        "all lines before that point were read. Put the whole file in its place and start again"
                    )

    def _begin_next_member(self) -> bool:
        rest = self._member.unused_data.lstrip(b"\0")  # gzip allows padding with zeros after a member
        while not rest:
            raw = self._raw.read()
            if not raw:
                return False
            rest = raw.lstrip(b"\0")
        self._member = zlib.decompressobj(GZIP_FORMAT)
        self._compressed = rest
        return True
