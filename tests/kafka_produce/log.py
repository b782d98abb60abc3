"""Topics that tests send to, and what is in them afterwards."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from kafka import KafkaConsumer, TopicPartition

from tests.services.kafka import Kafka, open_client

PATIENCE_S = 20.0


def new_name(prefix: str) -> str:
    """A name that no topic has."""
    return f"{prefix}-{uuid.uuid4().hex[:12]}"


def read(kafka: Kafka, topic: str) -> list[Any]:
    """Every record of a topic, partition by partition."""
    with closing(open_client(KafkaConsumer, bootstrap_servers=kafka.bootstrap.split(","), auto_offset_reset="none")) as consumer:
        partitions = [TopicPartition(topic, number) for number in sorted(consumer.partitions_for_topic(topic))]
        consumer.assign(partitions)
        consumer.seek_to_beginning(*partitions)
        wanted = sum(consumer.end_offsets(partitions).values())
        records: dict[TopicPartition, list[Any]] = {partition: [] for partition in partitions}
        deadline_s = time.monotonic() + PATIENCE_S
        while sum(map(len, records.values())) < wanted:
            assert time.monotonic() < deadline_s, f"{topic}: {wanted} records not within {PATIENCE_S:g} s"
            for partition, found in consumer.poll(timeout_ms=500).items():
                records[partition] += found
        return [record for partition in partitions for record in records[partition]]


def words(kafka: Kafka, topics: Sequence[str], *files: Path) -> list[str]:
    """The command that sends files to a pair of topics."""
    predictions, labels = topics
    return ["produce", *map(str, files), "--bootstrap", kafka.bootstrap, "--predictions", predictions, "--labels", labels]
