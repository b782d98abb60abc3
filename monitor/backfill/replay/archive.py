"""What a replay reads: archived event files, or the topics of a configuration."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from monitor.backfill.replay.bound import EARLIEST, Bound
from monitor.backfill.replay.stretch import describe, find_stretches, span_of
from monitor.config_kafka import KafkaConfig
from monitor.errors import CalmonError, ConfigError, SourceError, StateError
from monitor.kafka_wiring import kafka_settings
from monitor.request.moment import COMMAND_LINE
from monitor.sources.file_position import missing, unreadable
from monitor.sources.kafka import KafkaSource
from monitor.sources.ndjson import NdjsonSource
from monitor.sources.protocol import Position, Source
from monitor.sources.stdin_partition import STDIN_NAME
from monitor.state.origin import OfFiles, OfTopics, Origin

Positions = Mapping[str, Position]
_SHOWN = 3
_OF_LABELS = (".csv", ".parquet")


@dataclass(frozen=True, slots=True)
class Archive:
    """Something that is read to its end, once.

    Attributes:
        source: Not yet started.
        reads: What tells it from another one.
        total: How much there is to read, in bytes or offsets.
        done: How much of it has been read, from the stored positions.
        says: What a person should know before it is read.
        patience_s: How long to wait for a source in trouble.
        failure: Why a part of it is read no further, though the rest is; None if all is well.
    """

    source: Source
    reads: OfFiles | OfTopics
    total: int
    done: Callable[[Positions], int]
    says: Sequence[str]
    patience_s: float
    failure: Callable[[], str | None]


def archive_of_files(paths: Sequence[str], origin: Origin | None) -> Archive:
    """Event files in the order given; a replay that goes on may have more of them at the end.

    Raises:
        ConfigError: Standard input, which cannot be read again, or a file of another format.
        CalmonError: A file is missing or named twice, or all are empty.
        StateError: The state is a replay of something else.
    """
    if STDIN_NAME in paths:
        raise ConfigError(["FILE -: standard input cannot be read again after a stop: write it to a file"], COMMAND_LINE)
    for path in paths:
        if path.lower().removesuffix(".gz").endswith(_OF_LABELS):
            fault = f"FILE {path}: events are read from NDJSON; labels from CSV or Parquet are taken in by `calmon backfill labels`"
            raise ConfigError([fault], COMMAND_LINE)
    files = [os.path.abspath(path) for path in paths]  # the names of partitions, wherever the next start is made
    if origin is not None and not (isinstance(origin.reads, OfFiles) and files[: len(origin.reads.files)] == origin.reads.files):
        raise _another(origin)
    total = sum(map(_size, files))
    if not total:
        raise CalmonError(f"nothing to replay: {', '.join(paths)}: no bytes in {'it' if len(paths) == 1 else 'them'}")
    source = NdjsonSource(files)

    def done(positions: Positions) -> int:
        unnamed = sorted(positions.keys() - set(files))
        if unnamed:
            raise StateError(f"the state already holds records of {unnamed[0]}: name it too, in its old place")
        return source.read_bytes

    return Archive(source, OfFiles(files), total, done, [f"{len(files)} files, {total:,} bytes"], 0.0, lambda: None)


def archive_of_topics(
    kafka: KafkaConfig, since: Bound, until: Bound, accept_loss: bool, origin: Origin | None, given_up: Callable[[], bool]
) -> Archive:
    """The topics of a configuration, read without its consumer group.

    Raises:
        ConfigError: A bound that does not fit the topics.
        CalmonError: The broker cannot be reached, a topic is missing, or there is nothing to read.
        StateError: The state is a replay of something else.
    """
    reads = OfTopics([kafka.predictions, kafka.labels], kafka.shards, since.time_ms, dict(since.offsets), {})
    begun = None
    if origin is not None:
        if not isinstance(origin.reads, OfTopics) or msgspec.structs.replace(origin.reads, begun={}) != reads:
            raise _another(origin)
        begun = origin.reads.begun
    settings = replace(kafka_settings(kafka, accept_loss), group_id=None, client_id="calmon-replay")
    stretches = find_stretches(settings, since, until, begun, given_up)
    first = {one.name: one.first for one in stretches}
    end = {one.name: one.end for one in stretches}

    def done(positions: Positions) -> int:
        return sum(min(int(at.get("offset", 0)), end[name]) - first[name] for name, at in positions.items() if name in first)

    source = KafkaSource(settings, span=span_of(stretches))

    def failure() -> str | None:
        return "; ".join(sorted({str(error) for error in source.failures.values()})) or None

    reads = msgspec.structs.replace(reads, begun=first)
    total = sum(end.values()) - sum(first.values())
    return Archive(source, reads, total, done, describe(stretches), settings.start_timeout_s, failure)


def _another(origin: Origin) -> StateError:
    reads = origin.reads
    if isinstance(reads, OfFiles):
        text = f"the files {', '.join(reads.files[:_SHOWN])}{', ...' if reads.files[_SHOWN:] else ''}"
    else:
        begin = reads.since_ms or reads.since_offsets or EARLIEST
        text = f"the topics {' and '.join(reads.topics)} since {begin} (source.kafka.shards: {reads.shards})"
    return StateError(f"--into holds a replay of {text}: give the same again to go on with it, or name another directory")


def _size(path: str) -> int:
    try:
        size = Path(path).stat().st_size
    except FileNotFoundError:
        raise missing(path) from None
    except OSError as error:
        raise unreadable(path, error) from error
    if Path(path).is_dir():
        raise SourceError(f"{path}: is a directory; name the files in it")
    return size
