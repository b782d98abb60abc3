"""Fetching from the partitions that are ours, and what to do with every way in which that can fail."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from kafka import TopicPartition
from kafka.errors import (
    FencedInstanceIdError,
    KafkaError,
    KafkaTimeoutError,
    LogTruncationError,
    NoOffsetForPartitionError,
    OffsetOutOfRangeError,
)

from monitor.errors import SourceError
from monitor.sources.kafka_assignment import Assignment
from monitor.sources.kafka_backlog import Backlog
from monitor.sources.kafka_client import Connection
from monitor.sources.kafka_layout import (
    LogRange,
    Part,
    Span,
    Topic,
    count_failure,
    find_count_failure,
    find_gone,
    judge,
    lay_out,
    to_position,
)
from monitor.sources.kafka_settings import KafkaSettings
from monitor.sources.kafka_topics import TopicWatch
from monitor.sources.kafka_unreadable import Unreadable, placeholder, unreadable
from monitor.sources.protocol import Position, Slice

_FETCH_RECORDS = 20_000
"""Most records taken from kafka-python at once: it hands out one partition after the other, the backlog all in turn."""
_LOOK_S = 0.1
"""How long the client may wait for records while partitions are still to be assigned, and the pause after its errors."""
_ASK_TIMEOUT_S = 1.0
_COMPLAIN_S = 60.0
_ASK_AGAIN_S = (1.0, 60.0)
"""How long partitions may be missing before the group is joined anew, the first time and at most; doubled in between."""
_STRANGE_ERRORS = 3
"""Unknown errors in a row that are taken for an accident."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Doubt:
    """A partition of which the broker has to say what it holds before it is read on.

    Attributes:
        position: Where it would be read on.
        unread: Records known to follow.
        truncated: Whether the broker lost what had been read.
    """

    position: Position | None
    unread: int
    truncated: bool


class Reader:
    """The partitions of both topics, from the stored positions into the backlog.

    Args:
        connection: To a broker.
        settings: Of the source.
        span: What is read of the logs; None reads on for ever.
    """

    def __init__(self, connection: Connection, settings: KafkaSettings, span: Span | None) -> None:
        self._settings = settings
        self._span = span
        self._consumer: Any = connection.consumer
        self._names = [settings.predictions, settings.labels]
        self._watch = TopicWatch(connection.ask_topics, self._names)
        self._doubts: dict[TopicPartition, _Doubt] = {}
        self._asked_at = 0.0
        self._strange = 0
        self._ask_again_s = _ASK_AGAIN_S[0]
        self._missing_since: float | None = None
        self._complained: dict[str, float] = {}
        self._unstored: list[Slice] = []
        self.backlog = Backlog()
        self.assignment = Assignment(self._consumer, lambda partition: self.backlog.delivered.get(partition, 0))
        self.parts: dict[TopicPartition, Part] = {}
        self.ends: dict[TopicPartition, int] = {}
        self.reached: dict[TopicPartition, int] = {}
        self.failures: dict[str, SourceError] = {}
        self.lost: dict[str, int] = {}
        self.polls = self.unreadable = 0

    def begin(self, positions: Mapping[str, Position], given_up: Callable[[], bool]) -> None:
        """Look at topics and logs, and decide where each partition is read on.

        Raises:
            SourceError: A topic is missing, or the topics are not co-partitioned.
            KafkaError: The broker did not answer, or nobody waits for it any more.
        """
        topics = self._watch.begin(given_up)
        self.parts = lay_out(self._settings, topics)
        if self._settings.group_id is None:
            self.assignment.take_all(self.parts)
        else:
            self._consumer.subscribe(self._names, listener=self.assignment)
        logs = self._first_logs(given_up)
        self.ends = {partition: log.end for partition, log in logs.items()}
        if self._span is not None:
            self.backlog.until = {partition: self._span.end.get(part.name, self.ends[partition]) for partition, part in self.parts.items()}
        if failure := find_count_failure(self.parts, positions, self._settings):
            self._fail(self._shards(), failure)
        for partition, part in self.parts.items():
            stored = positions.get(part.name, self._first_position(part))
            offset = None if stored is None else stored.get("offset")
            self.backlog.begin(partition, offset if isinstance(offset, int) else logs[partition].start)
            self._decide(partition, _Doubt(stored, 0, truncated=False), logs[partition])
        if self._settings.accept_loss:
            for part, position in find_gone(topics, positions, self._settings):
                self._replace(part, position, 0)

    def settle(self) -> None:
        """Send newly assigned partitions to their offsets, and read doubtful ones on if that is right."""
        for partition in self.assignment.take_new():
            self._read(partition)
        self._see_to_assignment()
        if self._doubts and time.monotonic() - self._asked_at > _LOOK_S * 10:
            self._asked_at = time.monotonic()
            try:
                logs = self._logs(self._doubts, _ASK_TIMEOUT_S)
            except KafkaError as error:
                self._complain(error)
                return
            for partition, log in logs.items():
                self.ends[partition] = log.end
                self._decide(partition, self._doubts.pop(partition), log)
                self._read(partition)

    def fetch(self, timeout_s: float) -> None:
        """Put what comes within `timeout_s` into the backlog, which has to be empty.

        Raises:
            SourceError: Another process took our membership, or the client fails again and again in a way not known.
        """
        ready = self.assignment.ready
        if len(ready) < len(self.parts):
            timeout_s = min(timeout_s, _LOOK_S)
        self.polls += 1
        try:
            fetched = self._consumer.poll(timeout_ms=int(timeout_s * 1000), max_records=_FETCH_RECORDS)
            if not fetched:
                self._note_idle(ready)
        except Exception as error:
            self._absorb(error)
            return
        self._strange = 0
        if not self._follow_topics(bool(fetched)):
            self._reread()  # who knows of which topic these records are
            return
        ready = self.assignment.ready
        for partition, records in fetched.items():
            if partition in ready:
                self.backlog.add(partition, records)
                if partition in self.backlog.passed:
                    self.assignment.rest(partition)
        self._note_ends(ready)

    def reached_offset(self, partition: TopicPartition) -> int:
        """Offset up to which everything was delivered, or is for nobody, as the records of aborted transactions."""
        return max(self.backlog.delivered[partition], self.reached.get(partition, 0))

    def take_unstored(self) -> list[Slice]:
        """Slices without a record, whose positions replace stored ones; each is taken once."""
        unstored, self._unstored = self._unstored, []
        return unstored

    def missing_topics(self) -> list[str]:
        """Topics that the cluster no longer has."""
        return sorted(self._watch.gone)

    def _see_to_assignment(self) -> None:
        """Join the group anew if partitions are missing for long."""
        owned = self.assignment.owned
        if not owned or owned >= self.parts.keys():
            self._missing_since = None
            if owned:
                self._ask_again_s = _ASK_AGAIN_S[0]
        elif self._missing_since is None:
            self._missing_since = time.monotonic()
        elif time.monotonic() - self._missing_since > self._ask_again_s:
            self._missing_since = None
            self._ask_again_s = min(2 * self._ask_again_s, _ASK_AGAIN_S[1])
            self.assignment.ask_again()

    def _first_logs(self, given_up: Callable[[], bool]) -> dict[TopicPartition, LogRange]:
        """What the broker holds of every partition, asked until it says so: one long question could not be given up."""
        deadline = time.monotonic() + self._settings.start_timeout_s
        while True:
            try:
                return self._logs(self.parts, _ASK_TIMEOUT_S)
            except KafkaTimeoutError:
                if given_up() or time.monotonic() >= deadline:
                    raise

    def _logs(self, partitions: Iterable[TopicPartition], timeout_s: float) -> dict[TopicPartition, LogRange]:
        asked = list(partitions)
        starts = self._consumer.beginning_offsets(asked, timeout_ms=int(timeout_s * 1000))
        ends = self._consumer.end_offsets(asked, timeout_ms=int(timeout_s * 1000))
        return {partition: LogRange(starts[partition], ends[partition]) for partition in asked}

    def _first_position(self, part: Part) -> Position | None:
        """Where a partition without a stored position begins; None for its log's start."""
        first = None if self._span is None else self._span.first.get(part.name)
        return None if first is None else to_position(part, first)

    def _decide(self, partition: TopicPartition, doubt: _Doubt, log: LogRange) -> None:
        part = self.parts[partition]
        if part.shard in self.failures:
            return
        try:
            beginning = judge(part, doubt.position, log, self._settings, doubt.unread, doubt.truncated)
        except SourceError as error:
            self._fail([part.shard], error)
            return
        if doubt.position is not None and to_position(part, beginning.offset) != doubt.position:
            self._replace(part, to_position(part, beginning.offset), beginning.lost)
            _log.warning("kafka: %s goes on at offset %d: %d records known to be lost", part.name, beginning.offset, beginning.lost)
        self.backlog.begin(partition, beginning.offset)
        self.reached.pop(partition, None)

    def _replace(self, part: Part, position: Position, lost: int) -> None:
        """Accept a loss. The new position goes through the pipeline: else it would be stored only when a record follows."""
        self.lost[part.name] = self.lost.get(part.name, 0) + lost
        self._unstored.append(Slice(part.name, part.kind, (), (), position, shard=part.shard))

    def _read(self, partition: TopicPartition) -> None:
        part = self.parts.get(partition)
        if part is not None and part.shard not in self.failures and partition not in self._doubts:
            self.backlog.drop(partition)
            self.assignment.read(partition, self.backlog.delivered[partition])

    def _doubt(self, partition: TopicPartition, truncated: bool = False) -> None:
        """Read a partition no further until the broker has said what it holds."""
        part = self.parts.get(partition)
        if part is None or partition in self._doubts or part.shard in self.failures:
            return
        self.backlog.drop(partition)
        delivered = self.backlog.delivered[partition]
        self._doubts[partition] = _Doubt(to_position(part, delivered), max(0, self.ends.get(partition, 0) - delivered), truncated)
        self.assignment.hold(partition)

    def _absorb(self, error: Exception) -> None:
        """Deal with an error of the client's poll, at once: after some, another poll would never return."""
        batch = unreadable(error)
        if isinstance(error, OffsetOutOfRangeError) and error.args and isinstance(error.args[0], dict):
            for partition in error.args[0]:
                self._doubt(partition)
        elif isinstance(error, LogTruncationError):
            for partition in error.divergent_offsets:
                self._doubt(partition, truncated=True)
        elif batch is not None:
            self._skip(batch, error)
        elif isinstance(error, FencedInstanceIdError):
            raise fenced(self._settings) from error
        elif isinstance(error, NoOffsetForPartitionError):
            self._reread()
        elif isinstance(error, KafkaError):
            self._complain(error)
            time.sleep(_LOOK_S)
        else:
            self._strange += 1
            if self._strange > _STRANGE_ERRORS:
                raise SourceError(f"kafka: the client fails: {type(error).__name__}: {error}") from error
            _log.warning("kafka: the client failed", exc_info=error)
            self._reread()

    def _complain(self, error: KafkaError) -> None:
        """Log an error that may come with every poll until it is mended."""
        text = repr(error)
        if time.monotonic() - self._complained.get(text, -_COMPLAIN_S) >= _COMPLAIN_S:
            self._complained[text] = time.monotonic()
            _log.warning("kafka: %s", text)

    def _reread(self) -> None:
        for partition in self.assignment.owned:
            self._read(partition)

    def _skip(self, batch: Unreadable, error: Exception) -> None:
        """Deliver stand-ins for a batch that cannot be read, so that each of its offsets is counted and refused."""
        partition = batch.partition
        if partition not in self.parts:
            raise SourceError(f"kafka: {partition.topic}-{partition.partition} cannot be read: {error}") from error
        first = max(self.backlog.fetched[partition], batch.first or 0)
        end = first + 1 if batch.end is None else batch.end
        highwater = self._consumer.highwater(partition)
        if highwater is not None:
            end = min(end, highwater)  # the batch's own word may be what is damaged
        end = max(end, first + 1)
        value = placeholder(self.parts[partition].name, first, end, error)
        _log.error("%s", value.decode())
        self.unreadable += end - first
        self.backlog.add_unreadable(partition, first, end, value)
        self.assignment.read(partition, end)

    def _follow_topics(self, fetched: bool) -> bool:
        """Notice that a topic was made anew or has grown; whether what was fetched may be delivered."""
        try:
            changes = self._watch.changes(fetched)
        except KafkaError as error:
            self._complain(error)
            changes = None
        for known, topic in changes or ():
            self._follow(known, topic)
        return changes is not None

    def _follow(self, known: Topic, topic: Topic) -> None:
        grown = topic.partitions > known.partitions and topic.topic_id == known.topic_id and self._settings.single_shard
        if topic.partitions != known.partitions and not grown:
            self._fail(self._shards(), count_failure(topic, known.partitions, self._settings))
            return
        for partition in [partition for partition in self.parts if partition.topic == topic.name]:
            if not grown:
                self._doubt(partition)
            self.parts[partition] = replace(self.parts[partition], topic=topic)
        if grown and self._span is None:  # what is new lies behind every end
            self._add_partitions(topic, known.partitions)

    def _add_partitions(self, topic: Topic, first: int) -> None:
        like = self.parts[TopicPartition(topic.name, 0)]
        for number in range(first, topic.partitions):
            partition = TopicPartition(topic.name, number)
            self.backlog.begin(partition, 0)
            self.parts[partition] = replace(like, name=f"{topic.name}-{number}")
            self._doubts[partition] = _Doubt(None, 0, truncated=False)

    def _shards(self) -> list[str]:
        return sorted({part.shard for part in self.parts.values()})

    def _fail(self, shards: Iterable[str], error: SourceError) -> None:
        """Stop shards: neither of their partitions is read any further."""
        for shard in shards:
            if shard in self.failures:
                continue
            self.failures[shard] = error
            for partition, part in self.parts.items():
                if part.shard == shard:
                    self._doubts.pop(partition, None)
                    self.backlog.drop(partition)
                    self.assignment.hold(partition)
        _log.error("%s", error)

    def _note_ends(self, ready: Iterable[TopicPartition]) -> None:
        for partition in ready:
            try:
                end = self._consumer.highwater(partition)
            except (KafkaError, KeyError):  # not ours any more
                continue
            if end is not None:
                self.ends[partition] = end

    def _note_idle(self, ready: Iterable[TopicPartition]) -> None:
        """Note how far the client is where nothing came: past records that nobody gets, as those of aborted transactions."""
        for partition in ready:
            try:
                reached = self._consumer.position(partition, timeout_ms=0)
            except KeyError:
                continue
            if reached is not None:
                self.reached[partition] = reached


def fenced(settings: KafkaSettings) -> SourceError:
    """The failure when another process is us."""
    return SourceError(
        f"kafka: another process joined group {settings.group_id} with this one's client_id {settings.client_id}: give each process its own"
    )
