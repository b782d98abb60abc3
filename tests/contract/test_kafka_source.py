"""The Kafka source against the contract of every source, on a real broker."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest

from monitor.sources.kafka_layout import Span
from monitor.sources.protocol import Source
from tests.kafka.topics import Topics
from tests.services.kafka import Kafka

from .source_contract import LogUnderTest, SourceContract


class TopicLog:
    """Two partitions of each topic."""

    ends = True
    goes_on = True

    def __init__(self, topics: Topics) -> None:
        self._topics = topics

    @property
    def partitions(self) -> Sequence[str]:
        return [f"{topic}-{number}" for topic in (self._topics.predictions, self._topics.labels) for number in (0, 1)]

    def append(self, partition: str, records: Iterable[bytes]) -> None:
        topic, _, number = partition.rpartition("-")
        self._topics.append(topic, int(number), records)

    def source(self, *, live: bool) -> Source:
        return self._topics.source(None if live else Span())


class TestKafka(SourceContract):
    @pytest.fixture
    def log(self, kafka: Kafka) -> LogUnderTest:
        return TopicLog(Topics(kafka))
