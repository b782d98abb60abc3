"""Records that were fetched and not yet delivered, shared out fairly between partitions."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from kafka import TopicPartition

from monitor.sources.kafka_event import split_events
from monitor.sources.kafka_layout import Part, to_position
from monitor.sources.protocol import Slice

_NO_TIME_MS = -1
"""Kafka's own mark of a record without a timestamp."""


class Delivery(NamedTuple):
    """A record on its way: its events, all of which go into one slice."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    events: Sequence[bytes]


class Backlog:
    """Queues of records, one a partition.

    Attributes:
        until: Offsets from which on a partition's records are not wanted.
        delivered: Offset after the last record delivered.
        fetched: Offset after the last record fetched.
        newest_ms: Time of the last record delivered.
        passed: Partitions of which a record that is not wanted any more was fetched.
    """

    def __init__(self) -> None:
        self._queues: dict[TopicPartition, deque[Delivery]] = {}
        self.until: Mapping[TopicPartition, int] = {}
        self._turn = 0
        self.delivered: dict[TopicPartition, int] = {}
        self.fetched: dict[TopicPartition, int] = {}
        self.newest_ms: dict[TopicPartition, int] = {}
        self.passed: set[TopicPartition] = set()

    def __bool__(self) -> bool:
        return any(self._queues.values())

    def begin(self, partition: TopicPartition, offset: int) -> None:
        """Go on at an offset with nothing fetched."""
        self._queues.pop(partition, None)
        self.passed.discard(partition)
        self.delivered[partition] = self.fetched[partition] = offset

    def drop(self, partition: TopicPartition) -> None:
        """Forget what was fetched and not delivered."""
        self._queues.pop(partition, None)
        if partition in self.delivered:
            self.fetched[partition] = self.delivered[partition]

    def add(self, partition: TopicPartition, records: Iterable[Any]) -> None:
        """Queue fetched records; those before the offset that is next have been delivered before a rebalance."""
        queue = self._queues.setdefault(partition, deque())
        offset = self.fetched[partition]
        until = self.until.get(partition)
        for record in records:
            if until is not None and record.offset >= until:
                self.passed.add(partition)
                break
            if record.offset >= offset:
                offset = record.offset + 1
                queue.append(Delivery(record.offset, record.timestamp, record.key, split_events(record.value)))
        self.fetched[partition] = offset

    def is_through(self, partition: TopicPartition) -> bool:
        """Whether all that is wanted of a partition has been delivered, for what follows was seen."""
        return partition in self.passed and not self._queues.get(partition)

    def add_unreadable(self, partition: TopicPartition, first: int, end: int, value: bytes) -> None:
        """Queue a stand-in for each of the offsets [first, end)."""
        queue = self._queues.setdefault(partition, deque())
        delivered = range(first, min(end, self.until.get(partition, end)))
        queue.extend(Delivery(offset, _NO_TIME_MS, None, [value]) for offset in delivered)
        self.fetched[partition] = end

    def take(self, max_events: int, parts: Mapping[TopicPartition, Part]) -> list[Slice]:
        """Up to `max_events` events, more only if the first record alone has more; a fair share of each partition."""
        waiting = [partition for partition, queue in self._queues.items() if queue]
        if not waiting:
            return []
        self._turn += 1
        first = self._turn % len(waiting)
        slices: list[Slice] = []
        left = max_events
        for index, partition in enumerate(waiting[first:] + waiting[:first]):
            part = self._slice(partition, parts[partition], -(-left // (len(waiting) - index)), force=not slices)
            if part is not None:
                slices.append(part)
                left -= len(part.values)
            if left <= 0:
                break
        return slices

    def _slice(self, partition: TopicPartition, part: Part, share: int, force: bool) -> Slice | None:
        queue = self._queues[partition]
        values: list[bytes] = []
        offsets: list[int] = []
        times_ms: list[int] = []
        keys: list[bytes | None] = []
        while queue and (len(values) + len(queue[0].events) <= share or (force and not values)):
            delivery = queue.popleft()
            events = len(delivery.events)
            values += delivery.events
            offsets += [delivery.offset] * events
            times_ms += [delivery.timestamp_ms] * events
            keys += [delivery.key] * events
        if not values:
            return None
        self.delivered[partition] = offsets[-1] + 1
        self.newest_ms[partition] = times_ms[-1]
        return Slice(part.name, part.kind, values, offsets, to_position(part, offsets[-1] + 1), times_ms, part.shard, keys)
