"""A pair of topics for one test: written by producers, read by sources."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any

from kafka import KafkaProducer

from monitor.sources.kafka import KafkaSource
from monitor.sources.kafka_layout import Span
from monitor.sources.kafka_settings import KafkaSettings
from monitor.sources.protocol import Position, Slice
from tests.services.kafka import Kafka, open_client

PATIENCE_S = 30.0
TIME_MS = 1_780_000_000_000


class Topics:
    """Two topics with names of their own.

    Args:
        kafka: Where.
        predictions: Count of partitions.
        labels: Count of partitions; as many as of the predictions if not said.
    """

    def __init__(self, kafka: Kafka, predictions: int = 2, labels: int | None = None) -> None:
        self.kafka = kafka
        self.predictions = kafka.new_topic("predictions", predictions)
        self.labels = kafka.new_topic("labels", predictions if labels is None else labels)
        self.group = f"group-{uuid.uuid4().hex[:12]}"

    def settings(self, **changes: Any) -> KafkaSettings:
        base: dict[str, Any] = {
            "bootstrap_servers": tuple(self.kafka.bootstrap.split(",")),
            "group_id": self.group,
            "predictions": self.predictions,
            "labels": self.labels,
            "start_timeout_s": 20.0,
        }
        return KafkaSettings(**base | changes)

    def source(self, span: Span | None = None, **changes: Any) -> KafkaSource:
        return KafkaSource(self.settings(**changes), span=span, on_stuck=fail)

    @contextmanager
    def started(self, positions: Mapping[str, Position] | None = None, span: Span | None = None, **changes: Any) -> Iterator[KafkaSource]:
        source = self.source(span, **changes)
        try:
            source.start(positions or {})
            yield source
        finally:
            source.close()

    def append(self, topic: str, partition: int, values: Iterable[bytes | None], **options: Any) -> None:
        """Write records; they are in the log when this returns."""
        with closing(open_client(KafkaProducer, bootstrap_servers=self.kafka.bootstrap, acks="all", **options)) as producer:
            sent = [producer.send(topic, key=b"key", value=value, partition=partition, timestamp_ms=TIME_MS) for value in values]
            producer.flush(timeout=30)
            for future in sent:
                future.get(timeout=30)


def fail(message: str) -> None:
    """What the watchdog calls: pytest shows an exception in a thread as a failure."""
    raise AssertionError(message)


def read(source: KafkaSource, wanted: int, max_records: int = 1000) -> list[Slice]:
    """Poll until `wanted` events came, the source is exhausted or patience ends."""
    slices: list[Slice] = []
    deadline = time.monotonic() + PATIENCE_S
    while sum(len(part.values) for part in slices) < wanted and not source.exhausted and time.monotonic() < deadline:
        slices += source.poll(max_records, 0.2)
    return slices


def rows(slices: Sequence[Slice], partition: str) -> list[tuple[int, bytes]]:
    """Offsets and values of one partition."""
    return [row for part in slices if part.partition == partition for row in zip(part.offsets, part.values, strict=True)]


def positions_after(slices: Iterable[Slice]) -> dict[str, Position]:
    """What a checkpoint after these slices stores."""
    return {part.partition: part.next_position for part in slices}


def poll_until(source: KafkaSource, condition: Callable[[], bool], what: str) -> list[Slice]:
    """Poll until something is so."""
    slices: list[Slice] = []
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not within {PATIENCE_S:g} s; trouble: {source.trouble}"
        slices += source.poll(1000, 0.2)
    return slices
