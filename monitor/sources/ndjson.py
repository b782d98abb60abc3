"""Files of one JSON object a line as a source: plain, compressed, growing, or standard input."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from monitor.errors import SourceError
from monitor.sources.file_partition import FilePartition
from monitor.sources.file_reader import ReadLimits
from monitor.sources.protocol import WHOLE, Position, Slice, SourceStatus, never
from monitor.sources.stdin_partition import STDIN_NAME, StdinPartition

DEFAULT_MAX_RECORD_BYTES = (1 << 20) + 1024
DEFAULT_BLOCK_BYTES = 1 << 20
FOLLOW_INTERVAL_S = 0.05
"""How often files that are followed are looked at while nothing comes."""


class NdjsonSource:
    """Reads files in the order given, each a partition named by its path as configured.

    Without `follow` one file is read after the other and the source is exhausted after the last one. With it all files
    are read in turn for ever: a file may grow, be renamed and created anew, be copied and truncated, or not exist yet.

    Args:
        files: Paths; ``-`` is standard input, a path that ends in ``.gz`` is decompressed.
        follow: Whether to wait for more at the end of the files.
        max_record_bytes: Longest line that is delivered whole; of a longer one come the first `max_record_bytes` + 1
            bytes, so that the decoder refuses it.
        block_bytes: Bytes read at once.
        stdin_fd: Descriptor of standard input.

    Raises:
        SourceError: A file is named twice, none is named, or a ``.gz`` is to be followed.
    """

    def __init__(
        self,
        files: Sequence[str],
        *,
        follow: bool = False,
        max_record_bytes: int = DEFAULT_MAX_RECORD_BYTES,
        block_bytes: int = DEFAULT_BLOCK_BYTES,
        stdin_fd: int = 0,
    ) -> None:
        _check_names(files, follow)
        limits = ReadLimits(max_record_bytes, block_bytes)
        self._follow = follow
        self._stdin = StdinPartition(stdin_fd, limits)
        self._partitions: list[_Partition] = [self._stdin if path == STDIN_NAME else FilePartition(path, follow, limits) for path in files]
        self._turn = 0
        self._failure: SourceError | None = None

    def start(self, positions: Mapping[str, Position], given_up: Callable[[], bool] = never) -> None:
        """Open the files and go to the stored positions; positions of files not named any more are left alone.

        Raises:
            SourceError: A file is missing (without `follow`), unreadable, or no longer holds the stored position.
        """
        del given_up
        for partition in self._partitions:
            partition.start(positions.get(partition.name))

    def poll(self, max_records: int, timeout_s: float) -> Sequence[Slice]:
        """Return up to `max_records` records, waiting at most `timeout_s` for the first; empty if there are none now.

        Raises:
            SourceError: A file can no longer be read; what was read before it has been returned by then.
        """
        deadline = time.monotonic() + timeout_s
        while True:
            slices = self._read_once(max_records)
            if slices or self.exhausted:
                return slices
            remaining_s = deadline - time.monotonic()
            if remaining_s <= 0:
                return slices
            self._wait(remaining_s)

    def status(self) -> SourceStatus:
        """Which files were read to their end for now; what cannot be read ends the run."""
        return SourceStatus(caught_up=frozenset(one.name for one in self._partitions if one.idle and not one.finished))

    def committed(self, positions: Mapping[str, Position]) -> None:
        """Nothing to do: no log keeps positions beside the checkpoint's."""

    def live_partitions(self, shard: str = WHOLE) -> frozenset[str]:
        """Files not read to their end yet; with `follow` all of them, but standard input only until it ends."""
        return frozenset(partition.name for partition in self._partitions if not partition.finished)

    @property
    def exhausted(self) -> bool:
        """True once every file was read to its end; with `follow` only if standard input is all there is."""
        return self._failure is None and all(partition.finished for partition in self._partitions)

    @property
    def read_bytes(self) -> int:
        """How much has been read of the files as they are on disk; nothing of standard input."""
        return sum(partition.read_bytes for partition in self._partitions)

    def close(self) -> None:
        """Close all files; safe to call twice."""
        for partition in self._partitions:
            partition.close()

    def _read_once(self, max_records: int) -> list[Slice]:
        if self._failure is not None:
            raise self._failure
        slices: list[Slice] = []
        wanted = max_records
        reading = self._next_to_read()
        for index, partition in enumerate(reading):
            share = -(-wanted // (len(reading) - index)) if self._follow else wanted
            if share == 0 or (slices and not self._follow):
                break
            try:
                part = partition.read(share)
            except SourceError as error:
                if not slices:
                    raise
                self._failure = error
                break
            if part is not None:
                slices.append(part)
                wanted -= len(part.values)
            elif not self._follow and not partition.finished:
                break
        return slices

    def _next_to_read(self) -> list[_Partition]:
        """Partitions that may have records, in the order to ask them: fair with `follow`, else as configured."""
        live = [partition for partition in self._partitions if not partition.finished]
        if not self._follow or not live:
            return live
        self._turn += 1
        first = self._turn % len(live)
        return live[first:] + live[:first]

    def _wait(self, remaining_s: float) -> None:
        """Wait until it is worth reading again, but not longer than `remaining_s`."""
        asked = [partition for partition in self._partitions if not partition.finished]
        if not self._follow:
            asked = asked[:1]
        if not all(partition.idle for partition in asked):
            return
        interval_s = min(remaining_s, FOLLOW_INTERVAL_S) if self._follow else remaining_s
        if self._stdin in asked:
            self._stdin.wait(interval_s)
        else:
            time.sleep(interval_s)


class _Partition(Protocol):
    """One input of the source."""

    name: str
    finished: bool
    idle: bool
    read_bytes: int

    def start(self, position: Position | None) -> None: ...

    def read(self, max_records: int) -> Slice | None: ...

    def close(self) -> None: ...


def _check_names(files: Sequence[str], follow: bool) -> None:
    if not files:
        raise SourceError("no input files are named")
    for path in files:
        if files.count(path) > 1:
            raise SourceError(f"{path}: is named more than once among the input files")
        if follow and path.endswith(".gz"):
            raise SourceError(f"{path}: a .gz file cannot be followed; name it without follow, or follow the file it is made from")
