"""Labels to a running service that follows files: whole lines at the end of one of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from monitor.backfill.labels.beside import Folder, Standing
from monitor.backfill.labels.sieve import Kept
from monitor.errors import SourceError
from monitor.export.quarantine_file import missing_bytes


class IntoFile:
    """Appends labels to a followed file.

    Args:
        path: The file.
        folder: Keeps how far label files have come.
    """

    paused_s = 0.0

    def __init__(self, path: str, folder: Folder) -> None:
        self._path = Path(path)
        self._folder = folder
        self._resumed: set[str] = set()

    def standing(self, partition: str) -> Standing:
        """How far a label file has been appended.

        Raises:
            StateError: That cannot be read.
        """
        return self._folder.load(partition)

    def deliver(self, partition: str, kept: Sequence[Kept], standing: Standing, stopped: Callable[[], bool]) -> bool:
        """Append labels, durably, then note how far their file has come.

        Raises:
            CalmonError: One of both cannot be written.
        """
        del stopped
        if kept:
            # A run that was killed may have left some of these lines, or a part of one.
            self._append([one.event + b"\n" for one in kept], partition not in self._resumed)
        self._resumed.add(partition)
        self._folder.save(partition, standing)
        return True

    def _append(self, lines: list[bytes], after_crash: bool) -> None:
        try:
            with self._path.open("ab", buffering=0) as file:
                data = missing_bytes(self._path, lines) if after_crash else b"".join(lines)
                while data:
                    data = data[file.write(data) :]
                os.fsync(file.fileno())
        except OSError as error:
            raise SourceError(f"cannot append to {self._path}: {error.strerror or error}") from error
