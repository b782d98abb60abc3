"""What a source of records must offer: batches of undecoded bytes with positions that a checkpoint can store."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from monitor.events.contract import RecordKind

Position: TypeAlias = Mapping[str, int | str]
"""Where to go on reading a partition; opaque to everyone but its source, small, stored as JSON."""


WHOLE = "all"
"""The one shard of a source that is not split into shards."""


@dataclass(frozen=True, slots=True)
class Slice:
    """Consecutive records of one partition, in its order; none where only a new position is to be stored.

    Attributes:
        partition: Name of the partition, stable across restarts (a file's path as configured, ``predictions-3``).
        kind: What the partition carries.
        values: The records' bytes as they were, without the line end.
        offsets: One number a record for people who look for it: line number in a file (from 1), offset in Kafka. Ascending;
            several events of one Kafka record have its offset, and come in one slice.
        next_position: Position after the last record of this slice.
        timestamps_ms: The log's own time of each record; empty where the log keeps none (files).
        shard: Whose state the records belong to: same-numbered partitions of both topics, or `all`.
        keys: The records' keys as they were; empty where the log has none (files).
    """

    partition: str
    kind: RecordKind
    values: Sequence[bytes]
    offsets: Sequence[int]
    next_position: Position
    timestamps_ms: Sequence[int] = field(default=())
    shard: str = WHOLE
    keys: Sequence[bytes | None] = field(default=())


@dataclass(frozen=True, slots=True)
class SourceStatus:
    """How reading is going, for the status page and the gauges.

    Attributes:
        trouble: Why not everything is being read; None if it is.
        lag_records: Records that each partition's log holds beyond what was read, where that is known.
        read_until_ms: The log's own time of the last record read of each partition, where it keeps one.
        lost_records: Records that were given up on purpose, by partition.
        counts: Totals since the start, by name.
        reading: Whether each partition is being read now: it is assigned to us, and its shard has not stopped.
        caught_up: Live partitions that the last poll left nothing in to be read, as far as is known.
    """

    trouble: str | None = None
    lag_records: Mapping[str, int] = field(default_factory=dict)
    read_until_ms: Mapping[str, int] = field(default_factory=dict)
    lost_records: Mapping[str, int] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    reading: Mapping[str, bool] = field(default_factory=dict)
    caught_up: frozenset[str] = frozenset()


def never() -> bool:
    """What a start is given where nobody can give it up."""
    return False


class Source(Protocol):
    """A log of records in partitions, read forward from stored positions."""

    def start(self, positions: Mapping[str, Position], given_up: Callable[[], bool] = never) -> None:
        """Open the input and go to the stored positions; a partition without one starts at its beginning.

        Args:
            positions: What the last checkpoint stored.
            given_up: Whether nobody waits for the start any more; asked again and again by one that waits for somebody else.

        Raises:
            SourceError: An input is missing or unreadable, or no longer holds the stored position.
            StoppedError: The start was given up.
        """
        ...

    def poll(self, max_records: int, timeout_s: float) -> Sequence[Slice]:
        """Return up to `max_records` records, waiting at most `timeout_s` for the first; empty if there are none now.

        Raises:
            SourceError: An input can no longer be read.
        """
        ...

    def live_partitions(self, shard: str = WHOLE) -> frozenset[str]:
        """Partitions of a shard that may still deliver; its rows wait for the slowest of these before they expire.

        A log that goes on after this reading of it has ended is still one of them.

        Args:
            shard: One shard, or all of them.
        """
        ...

    def committed(self, positions: Mapping[str, Position]) -> None:
        """Be told what a checkpoint has just stored; only for whoever looks at the log's own commits, never needed again."""
        ...

    def status(self) -> SourceStatus:
        """How reading is going; may be asked from any thread, and asks no one itself."""
        ...

    @property
    def exhausted(self) -> bool:
        """True once no further record can ever come (all files read to their end, without `follow`)."""
        ...

    def close(self) -> None:
        """Release what `start` opened; safe to call twice."""
        ...
