"""Kafka as a source: both topics through kafka-python's consumer, read on from the stored offsets."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from kafka import TopicPartition
from kafka.errors import KafkaError

from monitor.errors import SourceError, StoppedError
from monitor.sources.kafka_client import Causes, Connection, connect, explain
from monitor.sources.kafka_commit import MirrorCommit
from monitor.sources.kafka_layout import Span
from monitor.sources.kafka_reader import Reader, fenced
from monitor.sources.kafka_settings import KafkaSettings
from monitor.sources.kafka_watchdog import Watchdog, fail_process
from monitor.sources.protocol import WHOLE, Position, Slice, SourceStatus, never


@dataclass(frozen=True, slots=True)
class Lag:
    """How far behind the log a partition is.

    Attributes:
        records: Offsets from the last record delivered to the end of the log as last heard of.
        newest_ms: The log's time of the newest record delivered; None before the first, -1 where it has none.
    """

    records: int
    newest_ms: int | None


@dataclass(frozen=True, slots=True)
class _Running:
    """What there is between `start` and `close`."""

    connection: Connection
    reader: Reader
    mirror: MirrorCommit
    watchdog: Watchdog


class KafkaSource:
    """Reads the predictions' and the labels' topic, as a member of a consumer group or without one.

    A shard whose log no longer goes on where the checkpoint ends stops and is in `failures`; the others go on. While
    the broker is away polls are empty, and `trouble` says why. `start`, `poll`, `committed` and `close` belong to one
    thread; the properties and `lags` may be read from any.

    Args:
        settings: Where and what to read.
        span: What to read, to be exhausted at its ends; None reads on for ever.
        on_stuck: Called from another thread when a poll does not return; ends the process by default.
    """

    def __init__(self, settings: KafkaSettings, *, span: Span | None = None, on_stuck: Callable[[str], None] = fail_process) -> None:
        self._settings = settings
        self._span = span
        self._on_stuck = on_stuck
        self._causes = Causes()
        self._running: _Running | None = None
        self._closed = False

    def start(self, positions: Mapping[str, Position], given_up: Callable[[], bool] = never) -> None:
        """Connect, check topics and stored positions, and join the group; a stored position that cannot be kept stops its shard only.

        Raises:
            SourceError: No broker within `start_timeout_s`, a refused login, a missing topic, or topics that are not
                co-partitioned.
            StoppedError: It was given up, within seconds.
        """
        self._closed, self._running = False, None
        self._causes.__enter__()
        try:
            self._running = self._begin(positions, given_up)
        except BaseException as error:
            self.close()
            if given_up():
                raise StoppedError(f"stopped before anything was read; {self.trouble}") from error
            raise
        self._running.watchdog.start()

    def _begin(self, positions: Mapping[str, Position], given_up: Callable[[], bool]) -> _Running:
        connection = connect(self._settings, self._causes, given_up)
        self._causes.forget()
        try:
            reader = Reader(connection, self._settings, self._span)
            reader.begin(positions, given_up)
        except BaseException as error:
            connection.close()
            if isinstance(error, KafkaError):
                raise SourceError(explain(self._settings, self._causes.last or error)) from error
            raise
        watchdog = Watchdog(self._settings.poll_watchdog_s, self._on_stuck)
        return _Running(connection, reader, MirrorCommit(connection.consumer), watchdog)

    def poll(self, max_records: int, timeout_s: float) -> Sequence[Slice]:
        """Return up to `max_records` events, waiting at most `timeout_s` for the first; empty if there are none now.

        Raises:
            SourceError: Another process took this one's membership, or the client fails in a way not known.
        """
        running = self._run()
        reader = running.reader
        deadline = time.monotonic() + timeout_s
        with running.watchdog.watching(timeout_s):
            while True:
                reader.settle()
                running.mirror.send(reader.assignment.owned)
                if running.mirror.fenced:
                    raise fenced(self._settings)
                if not reader.backlog:
                    reader.fetch(max(0.0, deadline - time.monotonic()))
                slices = reader.take_unstored() + reader.backlog.take(max_records, reader.parts)
                if slices or self.exhausted or time.monotonic() >= deadline:
                    return slices

    def committed(self, positions: Mapping[str, Position]) -> None:
        """Mirror a checkpoint's positions to the group's offsets; does not wait, and only logs failures."""
        running = self._run()
        if self._settings.group_id is None:
            return
        by_name = {part.name: partition for partition, part in running.reader.parts.items()}
        running.mirror.note({by_name[name]: int(at["offset"]) for name, at in positions.items() if name in by_name and "offset" in at})
        running.mirror.send(running.reader.assignment.owned)

    def live_partitions(self, shard: str = WHOLE) -> frozenset[str]:
        """A shard's partitions of both topics, stopped ones too.

        With a span also those that are read to its end: only this reading ends there, the log goes on. Rows that
        expired because nothing seemed to come any more would be missed by the next reading.
        """
        if self._running is None:
            return frozenset()
        return frozenset(part.name for part in list(self._running.reader.parts.values()) if shard in {WHOLE, part.shard})

    def status(self) -> SourceStatus:
        """How reading is going."""
        lags, assigned, trouble = self.lags(), self.assigned, self.trouble
        return SourceStatus(
            trouble,
            {name: lag.records for name, lag in lags.items()},
            {name: lag.newest_ms for name, lag in lags.items() if lag.newest_ms is not None and lag.newest_ms >= 0},
            self.lost_records,
            self.counts,
            {name: name in assigned for name in lags},
            frozenset() if trouble else frozenset(name for name, lag in lags.items() if not lag.records),
        )

    @property
    def exhausted(self) -> bool:
        """True, with a span, once all shards that have not stopped are read to its ends."""
        if self._span is None or self._running is None:
            return False
        reader = self._running.reader
        return all(self._finished(partition) or part.shard in reader.failures for partition, part in reader.parts.items())

    @property
    def failures(self) -> Mapping[str, SourceError]:
        """Why shards have stopped, by shard."""
        return {} if self._running is None else dict(self._running.reader.failures)

    @property
    def lost_records(self) -> Mapping[str, int]:
        """Records known to be lost that `accept_loss` went on without, by partition."""
        return {} if self._running is None else dict(self._running.reader.lost)

    @property
    def connected(self) -> bool:
        """Whether a connection to a broker stands; a frozen broker's does until a request times out."""
        return self._running is not None and not self._closed and self._running.connection.connected

    @property
    def assigned(self) -> frozenset[str]:
        """Partitions that are being read."""
        if self._running is None:
            return frozenset()
        reader = self._running.reader
        ready = reader.assignment.ready
        return frozenset(part.name for partition, part in list(reader.parts.items()) if partition in ready)

    @property
    def trouble(self) -> str | None:
        """Why not everything is being read; None if it is."""
        if self._running is None or not self.connected:
            cause = self._causes.last
            return f"kafka: no connection to {self._settings.servers}" + (f": {cause}" if cause else "")
        reader = self._running.reader
        if reader.failures:
            return "; ".join(sorted({str(error) for error in reader.failures.values()}))
        if missing := reader.missing_topics():
            return f"kafka: topic {', '.join(missing)} is not there any more"
        wanted, reading = len(reader.parts), len(self.assigned)
        group = self._settings.group_id
        if reading < wanted and group is None:
            return f"kafka: {reading} of {wanted} partitions are being read"
        if reading < wanted:
            return f"kafka: {reading} of {wanted} partitions assigned: group {group} is being joined, or has other members"
        return None

    def lags(self) -> Mapping[str, Lag]:
        """How far behind each partition is, by what the last fetches said; asks no broker."""
        if self._running is None:
            return {}
        reader = self._running.reader
        return {
            part.name: Lag(
                max(0, reader.ends.get(partition, 0) - reader.reached_offset(partition)), reader.backlog.newest_ms.get(partition)
            )
            for partition, part in list(reader.parts.items())
        }

    @property
    def counts(self) -> Mapping[str, int]:
        """Totals since the start."""
        if self._running is None:
            return {}
        reader, mirror = self._running.reader, self._running.mirror
        return {
            "polls": reader.polls,
            "commits": mirror.commits,
            "commit_failures": mirror.failures,
            "assignments": reader.assignment.changes,
            "unreadable_records": reader.unreadable,
        }

    def close(self) -> None:
        """Mirror the last checkpoint and leave the broker, within seconds; safe to call twice."""
        if self._closed:
            return
        self._closed = True
        self._causes.__exit__()
        if self._running is not None:
            self._running.watchdog.close()
            if self._running.connection.connected:
                self._running.mirror.finish(self._running.reader.assignment.owned)
            self._running.connection.close()

    def _run(self) -> _Running:
        if self._running is None or self._closed:
            raise SourceError("kafka: the source is not started")
        return self._running

    def _finished(self, partition: TopicPartition) -> bool:
        if self._running is None:
            return False
        reader = self._running.reader
        return reader.backlog.is_through(partition) or reader.reached_offset(partition) >= reader.backlog.until[partition]
