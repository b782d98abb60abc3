"""How the two topics' partitions make up shards, and where a partition may be read on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kafka import TopicPartition

from monitor.errors import SourceError
from monitor.events.contract import RecordKind
from monitor.sources.kafka_settings import KafkaSettings
from monitor.sources.protocol import WHOLE, Position


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic as the cluster has it: made anew under its name it has another id."""

    name: str
    topic_id: str
    partitions: int


@dataclass(frozen=True, slots=True)
class Part:
    """A partition as the pipeline knows it."""

    name: str
    kind: RecordKind
    shard: str
    topic: Topic


@dataclass(frozen=True, slots=True)
class LogRange:
    """Offsets [start, end) that the log of a partition holds."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Span:
    """What part of the logs is read, by partition name.

    Attributes:
        first: Offset at which a partition without a stored position begins; where there is none, the log's start.
        end: Offset before which it ends; where there is none, the end that its log has at the start.
    """

    first: Mapping[str, int] = field(default_factory=dict)
    end: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Beginning:
    """Where to read on, and how many records are known to be lost before it."""

    offset: int
    lost: int


def lay_out(settings: KafkaSettings, found: Mapping[str, Topic]) -> dict[TopicPartition, Part]:
    """Name all partitions of both topics and give each to its shard.

    Raises:
        SourceError: A topic is missing, or the topics are not co-partitioned.
    """
    topics: list[tuple[Topic, RecordKind]] = []
    wanted: tuple[tuple[str, RecordKind], ...] = ((settings.predictions, "prediction"), (settings.labels, "label"))
    for name, kind in wanted:
        topic = found.get(name)
        if topic is None:
            raise SourceError(f"kafka: topic {name} does not exist at {settings.servers}: create it, or correct source.kafka")
        topics.append((topic, kind))
    (first, _), (second, _) = topics
    if first.partitions != second.partitions and not settings.single_shard:
        raise SourceError(
            f"kafka: topic {first.name} has {first.partitions} partitions and topic {second.name} has {second.partitions}: a label would"
            " not meet its prediction; give both the same count and partitioner, or set source.kafka.shards to one"
        )
    return {
        TopicPartition(topic.name, number): Part(f"{topic.name}-{number}", kind, WHOLE if settings.single_shard else str(number), topic)
        for topic, kind in topics
        for number in range(topic.partitions)
    }


def to_position(part: Part, offset: int) -> Position:
    """What a checkpoint stores: the offset, and what it is an offset of."""
    return {"offset": offset, "topic_id": part.topic.topic_id, "partitions": part.topic.partitions}


def judge(
    part: Part, stored: Position | None, log: LogRange, settings: KafkaSettings, unread: int = 0, truncated: bool = False
) -> Beginning:
    """Decide where a partition is read on.

    Args:
        part: The partition.
        stored: Its position in the last checkpoint; None if nothing of it has been read.
        log: What the broker holds.
        settings: Whether a loss is accepted, and whether a topic may have grown.
        unread: Records that were still to come when a topic was deleted, as far as known.
        truncated: Whether the broker says that it no longer has what we have read.

    Raises:
        SourceError: The log no longer goes on where the checkpoint ends, and a loss is not accepted.
    """
    if stored is None:
        return Beginning(log.start, 0)
    try:
        offset, topic_id = int(stored["offset"]), stored["topic_id"]
    except (KeyError, ValueError) as error:
        raise SourceError(f"kafka: the stored position of {part.name} is none of a Kafka partition: {dict(stored)}") from error
    holds = f"the log of topic {part.topic.name}, partition {part.name.rpartition('-')[2]}, holds offsets {log.start} to {log.end}"
    lost = 0
    if topic_id and part.topic.topic_id and topic_id != part.topic.topic_id:
        reason = f"the topic was deleted and made anew (its id was {topic_id} and is {part.topic.topic_id})"
        lost = unread + log.start
    elif offset < log.start:
        reason = f"{log.start - offset} records were deleted before they were read"
        lost = log.start - offset
    elif offset > log.end:
        reason = "the log was cut off below what has been read"
    elif truncated:
        reason = "the broker has lost records that had been read"
    else:
        return Beginning(offset, 0)
    if settings.accept_loss:
        return Beginning(log.start, lost)
    raise SourceError(
        f"kafka: shard {part.shard} stops: stored offset {offset}, but {holds}: {reason};"
        " to go on at its start and count what is lost, run again with --accept-loss"
    )


def count_failure(topic: Topic, partitions: int, settings: KafkaSettings) -> SourceError:
    """The failure of all shards when a topic has another count of partitions than it had."""
    return SourceError(
        f"kafka: all shards stop: topic {topic.name} had {partitions} partitions and has {topic.partitions} at {settings.servers}, so that"
        " ids have moved between shards; start with a new state, or go on without the labels of moved ids with --accept-loss"
    )


def find_count_failure(
    parts: Mapping[TopicPartition, Part], positions: Mapping[str, Position], settings: KafkaSettings
) -> SourceError | None:
    """The failure of all shards if the positions were stored when a topic had another count of partitions."""
    topics = {part.topic.name: part.topic for part in parts.values()}
    for name, position in positions.items():
        topic = topics.get(name.rpartition("-")[0])
        partitions = position.get("partitions")
        if topic is None or not isinstance(partitions, int) or settings.accept_loss:
            continue
        if partitions > topic.partitions or (partitions != topic.partitions and not settings.single_shard):
            return count_failure(topic, partitions, settings)
    return None


def find_gone(topics: Mapping[str, Topic], positions: Mapping[str, Position], settings: KafkaSettings) -> list[tuple[Part, Position]]:
    """Partitions of the stored positions that a topic no longer has, with the positions that make them no reason to stop any more."""
    found: list[tuple[Part, Position]] = []
    for name, position in positions.items():
        topic_name, _, number = name.rpartition("-")
        topic = topics.get(topic_name)
        if topic is not None and number.isdecimal() and int(number) >= topic.partitions != position.get("partitions"):
            kind: RecordKind = "prediction" if topic_name == settings.predictions else "label"
            part = Part(name, kind, WHOLE if settings.single_shard else number, topic)
            found.append((part, {**position, "partitions": topic.partitions}))
    return found
