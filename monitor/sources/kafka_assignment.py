"""Which partitions the group has given us, and that each is read from our own position and no other."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from kafka import ConsumerRebalanceListener, TopicPartition


class Assignment(ConsumerRebalanceListener):  # type: ignore[misc] # kafka-python ships no types
    """Partitions from their assignment until their loss.

    The group's callbacks come on kafka-python's own thread, perhaps in the middle of a poll, and the poll may then take
    the group's committed offsets. So a new partition is held (paused) until the polling thread has sent it to our
    position, and only records of partitions that are `ready` count.

    Args:
        consumer: To seek and pause with.
        offset_of: Where a partition is to be read on.
    """

    def __init__(self, consumer: Any, offset_of: Callable[[TopicPartition], int]) -> None:
        self._consumer = consumer
        self._offset_of = offset_of
        self._lock = threading.Lock()
        self._new: set[TopicPartition] = set()
        self._ready: set[TopicPartition] = set()
        self.changes = 0

    @property
    def ready(self) -> frozenset[TopicPartition]:
        """Partitions that are read."""
        with self._lock:
            return frozenset(self._ready)

    @property
    def owned(self) -> frozenset[TopicPartition]:
        """Partitions that are read or held."""
        return frozenset(self._consumer.assignment() or ())

    def ask_again(self) -> None:
        """Join the group anew.

        A static member that comes back gets the partitions it had: the group does not look whether a topic has grown.
        And kafka-python does not let it watch the topics then. Only a second join makes it assign them.
        """
        self._consumer._coordinator.request_rejoin()  # noqa: SLF001 - there is no public way

    def take_all(self, partitions: Iterable[TopicPartition]) -> None:
        """Have partitions without a group: from now on, and nobody loses them."""
        wanted = list(partitions)
        self._consumer.assign(wanted)
        self.on_partitions_assigned(wanted)

    def take_new(self) -> frozenset[TopicPartition]:
        """Partitions assigned since the last call; all are held."""
        with self._lock:
            new = frozenset(self._new)
            self._new.clear()
        return new

    def read(self, partition: TopicPartition, offset: int) -> None:
        """Read a partition from an offset on."""
        with suppress(KeyError, ValueError), self._lock:  # not ours any more: it comes again with its next assignment
            self._consumer.seek(partition, offset)
            self._consumer.resume(partition)
            self._ready.add(partition)

    def hold(self, partition: TopicPartition) -> None:
        """Read a partition no further."""
        with suppress(KeyError, ValueError), self._lock:
            self._ready.discard(partition)
            self._consumer.pause(partition)

    def rest(self, partition: TopicPartition) -> None:
        """Fetch no more of a partition that is read as far as it is wanted; it stays ready."""
        with suppress(KeyError, ValueError):
            self._consumer.pause(partition)

    def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        """Hold new partitions."""
        with self._lock:
            self.changes += 1
            for partition in assigned:
                self._consumer.seek(partition, self._offset_of(partition))
                self._consumer.pause(partition)
                self._ready.discard(partition)
                self._new.add(partition)

    def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        """Forget partitions."""
        with self._lock:
            self._ready.difference_update(revoked)
            self._new.difference_update(revoked)

    def on_partitions_lost(self, lost: Iterable[TopicPartition]) -> None:
        """Forget partitions."""
        self.on_partitions_revoked(lost)
