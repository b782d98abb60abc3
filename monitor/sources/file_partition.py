"""A configured file as a partition: found again after a restart, followed through rotation and truncation."""

from __future__ import annotations

import logging
import os
from collections import deque

from monitor.errors import SourceError
from monitor.sources.file_position import FilePosition, OpenedFile, missing, open_regular, parse_position, unreadable
from monitor.sources.file_reader import FileReader, ReadLimits
from monitor.sources.line_splitter import gather_records
from monitor.sources.protocol import Position, Slice
from monitor.sources.rotation import find_rotated, holds_position, open_newer

_LOG = logging.getLogger(__name__)


class FilePartition:
    """Reads the file at one path, and with `follow` all that later stand at that path.

    Args:
        path: The file as configured; also the partition's name.
        follow: Whether to wait for more at its end.
        limits: How much is read at once.
    """

    def __init__(self, path: str, follow: bool, limits: ReadLimits) -> None:
        self.name = path
        self.finished = False
        self.idle = False
        self.read_bytes = 0
        self._follow = follow
        self._limits = limits
        self._compressed = path.endswith(".gz")
        self._stored: FilePosition | None = None
        self._reader: FileReader | None = None
        self._newer: deque[FileReader] = deque()

    def start(self, position: Position | None) -> None:
        """See that the file is there and holds the position.

        Raises:
            SourceError: It does not.
        """
        self._stored = parse_position(self.name, position)
        self._open()
        if not self._follow:
            # Opened again when its turn comes, so that a long list of files needs few descriptors.
            self.close()

    def read(self, max_records: int) -> Slice | None:
        """Return the next records, or None if there are none now; `idle` says whether the end was reached.

        Raises:
            SourceError: The file cannot be read, or its content was replaced without `follow`.
        """
        self.idle = False
        while not self.finished:
            if self._reader is None and not self._open():
                break
            reader = self._reader
            if reader is None:
                break
            values, numbers = gather_records(reader.lines, reader.fill, max_records)
            self.read_bytes = reader.read_bytes
            if values:
                return Slice(self.name, "any", values, numbers, reader.position().to_position())
            if not reader.at_end:
                return None
            if not self._move_on(reader):
                break
        self.idle = True
        return None

    def close(self) -> None:
        """Close what is open; safe to call twice."""
        for reader in (self._reader, *self._newer):
            if reader is not None:
                reader.close()
        self._reader = None
        self._newer.clear()

    def _open(self) -> bool:
        """Open the file that holds the stored position; False if there is no file yet."""
        try:
            current = OpenedFile(self.name, open_regular(self.name))
        except FileNotFoundError:
            if not self._follow:
                raise missing(self.name) from None
            current = None
        if self._stored is None:
            self._reader = self._reader_of(current) if current else None
        else:
            self._reader = self._resume(current, self._stored)
        if self._reader is not None and self._follow:
            self._stored = None
        return self._reader is not None

    def _resume(self, current: OpenedFile | None, position: FilePosition) -> FileReader | None:
        same_inode = current is not None and position.is_inode_of(os.fstat(current.fd))
        holds = current is not None and holds_position(current.fd, position, self._compressed)
        if current is not None and holds and same_inode:
            return self._reader_of(current, position)
        rotated = find_rotated(self.name, position, copies=False)
        if rotated is None and current is not None and holds:
            return self._reader_of(current, position)  # copied here, or the device has another number since a reboot
        rotated = rotated or find_rotated(self.name, position, copies=True)
        if rotated is not None:
            if current is not None:
                os.close(current.fd)
            _LOG.info("%s: reading on in %s, which now holds the stored position", self.name, rotated.path)
            return self._reader_of(rotated, position)
        if current is None:
            return None
        if same_inode and self._follow:
            self._warn_of_truncation(position)
            return self._reader_of(current)
        size = os.fstat(current.fd).st_size
        os.close(current.fd)
        raise self._lost(position, size)

    def _reader_of(self, file: OpenedFile, position: FilePosition | None = None) -> FileReader:
        return FileReader(file, self._compressed, self._limits, position)

    def _lost(self, position: FilePosition, size: int) -> SourceError:
        short = f"is shorter ({size} bytes)" if size < position.byte and not self._compressed else "is another file"
        return SourceError(
            f"{self.name}: {short} than the one the stored position speaks of (byte {position.byte}, line {position.line}, "
            f"inode {position.inode}), and no file beside it continues that one; put the old file back uncompressed "
            f"as {self.name}.1, or start again with an empty state directory"
        )

    def _move_on(self, reader: FileReader) -> bool:
        """At the end of `reader`: go to what follows it; False if that is nothing for now."""
        if reader.truncated:
            self._begin_truncated(reader)
            return True
        if not self._newer:
            replaced = self._is_replaced(reader)
            if self._follow and not replaced:
                return False
            # The writer has gone on to the new file: what it wrote to this one before can be seen by now.
            if reader.fill() or reader.truncated:
                return True
            if replaced:
                opened = open_newer(self.name, reader.fd)
                if not opened:
                    return False
                self._newer.extend(map(self._reader_of, opened))
        if reader.lines.finish():
            return True
        reader.close()
        self._reader = self._newer.popleft() if self._newer else None
        self.finished = self._reader is None
        return True

    def _is_replaced(self, reader: FileReader) -> bool:
        """Whether the path holds another file that is in use; while it is empty the writer may still have the old one."""
        try:
            status = os.stat(self.name)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise unreadable(self.name, error) from error
        return not reader.is_at(status) and (status.st_size > 0 or not self._follow)

    def _begin_truncated(self, reader: FileReader) -> None:
        """Read the rest of the old content from a copy if there is one, then the new content from its start."""
        if not self._follow:
            raise SourceError(f"{self.name}: was truncated or replaced while it was read; start again when it no longer changes")
        position = reader.position()
        copy = find_rotated(self.name, position, copies=True) if position.head_length else None
        if copy is None:
            self._warn_of_truncation(position)
            self._reader = self._reader_of(OpenedFile(reader.path, os.dup(reader.fd)))
        else:
            # From here on it is as if the file had been renamed and created anew.
            _LOG.info("%s: was truncated; reading the rest of its old content from %s", self.name, copy.path)
            self._reader = self._reader_of(copy, position)
        reader.close()

    def _warn_of_truncation(self, position: FilePosition) -> None:
        _LOG.warning(
            "%s: was truncated; reading its new content from the start. Lines written to the old content after line %d, if any, are lost",
            self.name,
            position.line,
        )
