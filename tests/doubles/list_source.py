"""A source over records in a list."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby

from monitor.errors import SourceError
from monitor.events.contract import RecordKind
from monitor.sources.protocol import WHOLE, Position, Slice, SourceStatus, never


class ListSource:
    """Delivers records of any number of partitions in the order of one list, which is how they are interleaved.

    Args:
        records: (partition, bytes) in the order of delivery.
        kinds: What a partition carries; `any` where it is not named.
        follow: Whether every partition may always deliver more; else one is done when its last record was delivered.
    """

    def __init__(self, records: Sequence[tuple[str, bytes]], kinds: Mapping[str, RecordKind] | None = None, follow: bool = False) -> None:
        self._kinds = dict(kinds or {})
        self._follow = follow
        self._partitions = frozenset(partition for partition, _ in records)
        totals = dict.fromkeys(self._partitions, 0)
        self._records: list[tuple[str, int, bytes]] = []
        for partition, value in records:
            self._records.append((partition, totals[partition], value))
            totals[partition] += 1
        self._totals = totals
        self._left: list[tuple[str, int, bytes]] | None = None

    def start(self, positions: Mapping[str, Position], given_up: Callable[[], bool] = never) -> None:
        """Go to the stored positions.

        Raises:
            SourceError: A partition does not hold its position.
        """
        del given_up
        done = {partition: int(position["records"]) for partition, position in positions.items()}
        for partition, count in done.items():
            if count > self._totals.get(partition, 0):
                raise SourceError(f"{partition} has no record {count}")
        self._left = [record for record in self._records if record[1] >= done.get(record[0], 0)]

    def poll(self, max_records: int, timeout_s: float) -> Sequence[Slice]:
        """The next records, at most `max_records`; one slice for each run of one partition."""
        del timeout_s
        batch, self._left = self._started()[:max_records], self._started()[max_records:]
        slices = []
        for partition, run in groupby(batch, key=lambda record: record[0]):
            records = list(run)
            kind = self._kinds.get(partition, "any")
            numbers = [number + 1 for _, number, _ in records]
            slices.append(Slice(partition, kind, [value for _, _, value in records], numbers, {"records": numbers[-1]}))
        return slices

    def status(self) -> SourceStatus:
        """Nothing to tell: what cannot be read ends the run."""
        return SourceStatus()

    def committed(self, positions: Mapping[str, Position]) -> None:
        """Nothing to do: no log keeps positions beside the checkpoint's."""

    def live_partitions(self, shard: str = WHOLE) -> frozenset[str]:
        """Partitions that may still deliver records."""
        return self._partitions if self._follow or self._left is None else frozenset(record[0] for record in self._left)

    @property
    def exhausted(self) -> bool:
        """Whether no further record can ever come."""
        return not self._follow and self._left is not None and not self._left

    def close(self) -> None:
        """Forget what is left."""
        self._left = []

    def _started(self) -> list[tuple[str, int, bytes]]:
        if self._left is None:
            raise SourceError("not started")
        return self._left
