"""Which offsets of each partition a replay reads: asked of the broker before anything is read or written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kafka import TopicPartition
from kafka.errors import KafkaError

from monitor.backfill.replay.bound import Bound
from monitor.broker.open import quiet
from monitor.errors import CalmonError, ConfigError, SourceError
from monitor.request.moment import COMMAND_LINE
from monitor.sources.kafka_client import connect, explain
from monitor.sources.kafka_layout import LogRange, Part, Span, lay_out
from monitor.sources.kafka_settings import KafkaSettings

_ANSWER_S = 10.0
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Stretch:
    """Offsets [first, end) of a partition.

    Attributes:
        topic: Its topic.
        name: Of the partition.
        first: Where this replay begins it, now or when it was started for the first time.
        end: Where it ends.
        log: What its log holds.
        gone: Offsets that would have been read and are no longer in the log.
    """

    topic: str
    name: str
    first: int
    end: int
    log: LogRange
    gone: int


def find_stretches(
    settings: KafkaSettings, since: Bound, until: Bound, begun: Mapping[str, int] | None, given_up: Callable[[], bool]
) -> list[Stretch]:
    """Ask the broker what there is to read.

    Args:
        settings: Where the topics are.
        since: From where on.
        until: Up to where.
        begun: Where an earlier start of the same replay began each partition; None for a new replay.
        given_up: Whether nobody waits any more.

    Raises:
        SourceError: The broker cannot be reached, or a topic is missing.
        CalmonError: Nothing lies between the two.
        ConfigError: A partition or an offset that there is not.
    """
    with quiet() as causes:
        connection = connect(settings, causes, given_up)
        try:
            found = connection.ask_topics([settings.predictions, settings.labels]).wait(_ANSWER_S, given_up)
            if found is None:
                raise SourceError(f"kafka: {settings.servers} does not say which topics it has")
            parts = lay_out(settings, found)
            _check_places(parts.values(), since, until)
            logs = _logs(connection.consumer, parts)
            at = _offsets_at(connection.consumer, parts, since.time_ms) if begun is None else {}
            to = _offsets_at(connection.consumer, parts, until.time_ms)
        except KafkaError as error:
            raise SourceError(explain(settings, causes.last or error)) from error
        finally:
            connection.close()
    stretches = []
    for partition, part in parts.items():
        log = logs[partition]
        wanted = _at(since, part.name, at.get(partition), log.end, 0)
        # Where an earlier start began stands fast: what has gone since then is a loss, which the source sees.
        first = max(wanted, log.start) if begun is None else begun.get(part.name, log.start)
        # A log of which the first record is late enough may have had others before it.
        gone = log.start if since.time_ms is not None and first == log.start else max(0, log.start - wanted)
        end = max(first, _at(until, part.name, to.get(partition), log.end, log.end))
        stretches.append(Stretch(part.topic.name, part.name, first, end, log, gone if begun is None else 0))
    _check(stretches, since, until, new=begun is None)
    return stretches


def span_of(stretches: Sequence[Stretch]) -> Span:
    """The same for a source."""
    return Span({one.name: one.first for one in stretches}, {one.name: one.end for one in stretches})


def describe(stretches: Sequence[Stretch]) -> list[str]:
    """What is read of each topic, what is left out, and what is no longer there."""
    lines = []
    for topic in dict.fromkeys(one.topic for one in stretches):
        own = [one for one in stretches if one.topic == topic]
        lines.append(f"{topic}: {len(own)} partitions, {sum(one.end - one.first for one in own):,} offsets")
        before, after = sum(max(0, one.first - one.log.start) for one in own), sum(max(0, one.log.end - one.end) for one in own)
        if before:
            lines.append(f"{topic}: {before:,} offsets before --since are not read")
        if after:
            lines.append(f"{topic}: {after:,} offsets from --until on are not read")
        gone = [one for one in own if one.gone]
        if gone:
            where = ", ".join(f"{one.name} begins at {one.log.start:,}" for one in gone[:_SHOWN]) + (", ..." if gone[_SHOWN:] else "")
            lines.append(f"{topic}: {sum(one.gone for one in gone):,} offsets are no longer in the log: {where}")
    return lines


def _at(bound: Bound, name: str, found: int | None, log_end: int, otherwise: int) -> int:
    if name in bound.offsets:
        return bound.offsets[name]
    if bound.time_ms is not None:
        return log_end if found is None else found
    return otherwise


def _logs(consumer: Any, parts: Mapping[TopicPartition, Part]) -> dict[TopicPartition, LogRange]:
    starts = consumer.beginning_offsets(list(parts))
    ends = consumer.end_offsets(list(parts))
    return {partition: LogRange(starts[partition], ends[partition]) for partition in parts}


def _offsets_at(consumer: Any, parts: Mapping[TopicPartition, Part], time_ms: int | None) -> dict[TopicPartition, int]:
    """The first offset of each partition whose record is not before a time; partitions without one are left out."""
    if time_ms is None:
        return {}
    found = consumer.offsets_for_times(dict.fromkeys(parts, time_ms))
    return {partition: there.offset for partition, there in found.items() if there is not None and there.offset >= 0}


def _check_places(parts: Any, since: Bound, until: Bound) -> None:
    names = {part.name for part in parts}
    faults = [
        f"{option}: there is no partition {name}: there are {', '.join(sorted(names)[:_SHOWN])}{', ...' if len(names) > _SHOWN else ''}"
        for option, bound in (("--since", since), ("--until", until))
        for name in bound.offsets
        if name not in names
    ]
    if faults:
        raise ConfigError(faults, COMMAND_LINE)


def _check(stretches: Sequence[Stretch], since: Bound, until: Bound, new: bool) -> None:
    """Whether the words fit the logs, and there is anything to read."""
    faults = [
        f"{option} {one.name}: offset {bound.offsets[one.name]:,} lies after the end of the log, {one.log.end:,}"
        for option, bound in (("--since", since), ("--until", until))
        for one in stretches
        if bound.offsets.get(one.name, 0) > one.log.end
    ]
    if faults:
        raise ConfigError(faults, COMMAND_LINE)
    if not new or any(one.first < one.end for one in stretches):
        return
    logs = ", ".join(f"{one.name} holds {one.log.start:,} to {one.log.end:,}" for one in stretches[:_SHOWN])
    logs += ", ..." if len(stretches) > _SHOWN else ""
    if since.time_ms is not None and all(one.first == one.log.end for one in stretches):
        raise CalmonError(f"nothing to replay: --since lies after the newest record of every partition ({logs})")
    raise CalmonError(f"nothing to replay: no record lies between --since and --until ({logs})")
