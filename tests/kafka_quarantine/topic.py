"""A quarantine topic as its readers see it, and a shard that refuses records into it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafka import KafkaConsumer, TopicPartition

from monitor.events.record import Refusal
from monitor.export.quarantine_topic import TopicSink
from monitor.pipeline.quarantine import Outbox, outbox_entry
from monitor.pipeline.shard import Shard
from monitor.state import keys
from monitor.state.protocol import Changes
from tests.doubles.memory_store import MemoryStore
from tests.services.kafka import Kafka, open_client

IMPATIENT: Mapping[str, object] = {
    "bootstrap_timeout_ms": 1_000,
    "request_timeout_ms": 1_000,
    "max_block_ms": 1_500,
    "delivery_timeout_ms": 2_000,
}


def read(kafka: Kafka, topic: str, isolation_level: str = "read_committed") -> list[Any]:
    """All records of a topic, partition by partition."""
    consumer = open_client(
        KafkaConsumer,
        bootstrap_servers=kafka.bootstrap,
        isolation_level=isolation_level,
        auto_offset_reset="none",
        enable_auto_commit=False,
    )
    try:
        partitions = [TopicPartition(topic, number) for number in consumer.partitions_for_topic(topic)]
        ends = consumer.end_offsets(partitions)
        consumer.assign(partitions)
        for partition, start in consumer.beginning_offsets(partitions).items():
            consumer.seek(partition, start)
        found: dict[TopicPartition, list[Any]] = {partition: [] for partition in partitions}
        while any(consumer.position(partition, timeout_ms=0) < end for partition, end in ends.items()):
            for partition, records in consumer.poll(timeout_ms=200).items():
                found[partition] += records
        return [record for partition in sorted(partitions) for record in found[partition]]
    finally:
        consumer.close(autocommit=False, timeout_ms=1000)


def fields(record: Any) -> dict[str, str]:
    """A record's headers."""
    return {name: value.decode() for name, value in record.headers}


class Refuser:
    """A shard whose every record is refused, and its outbox; makes the outbox again as a new process would.

    Args:
        kafka: Where the topic is.
        topic: The quarantine.
        options: Of the producer, beside the address.
    """

    def __init__(self, kafka: Kafka, topic: str, **options: object) -> None:
        self.store = MemoryStore()
        self._options = {"bootstrap_servers": kafka.bootstrap, **IMPATIENT, **options}
        self._topic = topic
        self.start()

    def start(self) -> None:
        """A new process with what is stored."""
        self.shard = Shard(self.store, None, ())
        self.outbox = Outbox(self.shard, TopicSink(self._options, self._topic))
        self.outbox.drain()

    def crash(self) -> None:
        """End without a last confirmation, and start again."""
        self.outbox.close()
        self.start()

    def refuse(self, *values: bytes, key: bytes | None = b"key") -> None:
        """What a checkpoint does with refused records, and the delivery after it."""
        changes = Changes()
        self.outbox.confirm(changes)
        for value in values:
            entry = outbox_entry(Refusal("bad_json", "label", "why"), "labels-3", self.shard.outbox, 7, value, key)
            changes.puts.append((keys.outbox(self.shard.outbox), entry))
            self.shard.outbox += 1
        self.shard.stage(changes, {})
        self.shard.commit(changes, {}, lambda point: None)
        self.outbox.drain()

    def waiting(self) -> int:
        """Records in the store's outbox."""
        return len(list(self.store.scan(*keys.prefix_range(b"q"))))
