"""The quarantine as a Kafka topic: a refused record's key and value as they were, its reason and place in headers.

Each delivery is a transaction of a producer that has its id from the state. Whatever left the outcome of one open (a
crash, a lost connection, a broker that stood still), the next producer of that id makes the broker settle it first:
committed or never, and nothing of it can come any more. Then the end of the topic says what is there. To readers that
are `read_committed` each refused record is there once; others see also what was aborted.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaError, KafkaTimeoutError, UnknownTopicOrPartitionError
from kafka.net.compat import KafkaNetClient

from monitor.export.quarantine_sink import Entry, RefusedRecord, SinkAwayError

_DELIVERY_S = 20.0
_READ_S = 20.0
_STILL_S = 2.0
"""How long nothing may come: an open transaction hides what follows it, until its shard, which comes after this one, ends it."""
_CLOSE_S = 2.0
_PATIENCE: dict[str, object] = {
    "bootstrap_timeout_ms": 3_000,
    "request_timeout_ms": 5_000,
    "max_block_ms": 5_000,
    "delivery_timeout_ms": 15_000,
    "transaction_timeout_ms": 30_000,
    "retry_backoff_ms": 20,  # a transaction that follows another one closely is asked to come back
    "reconnect_backoff_max_ms": 1_000,
    "metrics_enabled": False,
}
"""Preferences: whoever reads the source waits meanwhile."""
_FAILURES = (KafkaError, OSError, ValueError, AssertionError)
"""What kafka-python raises: the last two for options that cannot be used."""


class _Mark(msgspec.Struct, array_like=True):
    """Whose the records are, and up to where the topic has nothing that is in doubt."""

    state_id: str
    ends: dict[int, int]


class TopicSink:
    """Produces refused records to a topic.

    Args:
        producer_options: kafka-python's: where the broker is, security, `compression_type`; they cannot change what
            exactly-once relies on.
        topic: Has to exist.
    """

    def __init__(self, producer_options: Mapping[str, object], topic: str) -> None:
        self._options = dict(producer_options)
        self._topic = topic
        self._producer: Any = None
        self._doubt = False

    def mark(self) -> bytes:
        """A new id for the state's records, and where the topic ends.

        Raises:
            SinkAwayError: The broker cannot be asked.
        """
        try:
            return msgspec.msgpack.encode(_Mark(secrets.token_hex(8), self._ends()))
        except _FAILURES as error:
            raise self._away(error) from error

    def deliver(self, entries: Sequence[Entry], mark: bytes, after_crash: bool) -> bytes:
        """Produce what is not yet in the topic; all replicas in sync have it when this returns.

        Raises:
            SinkAwayError: The broker or the topic cannot be had, or does not take the records.
        """
        origin = msgspec.msgpack.decode(mark, type=_Mark)
        self._doubt = self._doubt or after_crash
        try:
            if self._producer is None:
                self._producer = self._open(origin.state_id)
            there = self._there(origin) if self._doubt else frozenset()
            self._doubt = True
            ends = self._produce([entry for entry in entries if place(entry.record) not in there], origin)
        except _FAILURES as error:
            self.close()
            raise self._away(error) from error
        self._doubt = False
        return msgspec.msgpack.encode(_Mark(origin.state_id, ends))

    def close(self) -> None:
        """Leave the broker, within seconds; safe to call twice."""
        producer, self._producer = self._producer, None
        if producer is not None:
            # close() alone would wait for the broker first, and leave its thread behind when that takes too long.
            producer._sender.force_close()  # noqa: SLF001 - there is no public way
            producer._sender.join(_CLOSE_S)  # noqa: SLF001 - there is no public way
            try:
                producer.close(timeout=0)
            except KafkaError:
                return  # its thread is still in a request; it ends with it

    def _open(self, state_id: str) -> Any:
        options = _PATIENCE | self._options
        options |= {
            "transactional_id": f"calmon-quarantine-{state_id}",
            "acks": "all",
            "enable_idempotence": True,
            "allow_auto_create_topics": False,
            "key_serializer": None,
            "value_serializer": None,
        }
        producer = _connect(KafkaProducer, options)
        try:
            producer.init_transactions()
        except BaseException:
            self._producer = producer
            self.close()
            raise
        return producer

    def _produce(self, entries: Sequence[Entry], origin: _Mark) -> dict[int, int]:
        """Produce records in a transaction; where the topic then ends as far as we know."""
        ends = dict(origin.ends)
        if not entries:
            return ends
        deadline = time.monotonic() + _DELIVERY_S
        producer = self._producer
        producer.begin_transaction()
        sent = [
            producer.send(self._topic, value=record.value, key=record.key, headers=headers(record, origin.state_id, sequence))
            for sequence, record in entries
        ]
        for future in sent:
            there = future.get(max(0.0, deadline - time.monotonic()))
            ends[there.partition] = max(ends.get(there.partition, 0), there.offset + 1)
        # commit_transaction() of kafka-python 3.0 waits without end.
        result = producer._transaction_manager.begin_commit()  # noqa: SLF001 - there is no public way
        producer._sender.wakeup()  # noqa: SLF001 - there is no public way
        if not result.wait(timeout_ms=max(0.0, deadline - time.monotonic()) * 1000):
            raise KafkaTimeoutError(f"the commit of {len(entries)} records was not answered in {_DELIVERY_S:g} s")
        return ends

    def _there(self, origin: _Mark) -> frozenset[tuple[bytes, ...]]:
        """Places of the state's records that the topic has got since a mark."""
        ends = self._ends()  # not what is committed at the moment: others' open transactions would hide what is ours
        found: set[tuple[bytes, ...]] = set()
        deadline = time.monotonic() + _READ_S
        still_until = time.monotonic() + _STILL_S
        with self._consumer("read_committed") as consumer:
            wanted = {TopicPartition(self._topic, number): end for number, end in ends.items()}
            consumer.assign(list(wanted))
            for partition, start in consumer.beginning_offsets(list(wanted)).items():
                known = origin.ends.get(partition.partition, 0)
                consumer.seek(partition, max(start, known) if known <= wanted[partition] else start)
            while any(consumer.position(partition, timeout_ms=0) < end for partition, end in wanted.items()):
                if time.monotonic() > min(deadline, still_until):
                    raise KafkaTimeoutError("the end of the topic could not be read: a transaction may be open")
                fetched = consumer.poll(timeout_ms=200)
                if fetched:
                    still_until = time.monotonic() + _STILL_S
                for records in fetched.values():
                    for record in records:
                        fields = dict(record.headers)
                        if fields.get("state") == origin.state_id.encode():
                            found.add(tuple(fields[name] for name in _PLACE))
        return frozenset(found)

    def _ends(self) -> dict[int, int]:
        """Offset after the last record of each partition, committed or not."""
        with self._consumer("read_uncommitted") as consumer:
            numbers = consumer.partitions_for_topic(self._topic)
            if not numbers:
                raise UnknownTopicOrPartitionError("there is no such topic: create it")
            ends = consumer.end_offsets([TopicPartition(self._topic, number) for number in numbers])
            return {partition.partition: end for partition, end in ends.items()}

    @contextmanager
    def _consumer(self, isolation_level: str) -> Iterator[Any]:
        options = {name: value for name, value in (_PATIENCE | self._options).items() if name in KafkaConsumer.DEFAULT_CONFIG}
        options |= {
            "isolation_level": isolation_level,
            "auto_offset_reset": "none",
            "enable_auto_commit": False,
            "allow_auto_create_topics": False,
        }
        consumer = _connect(KafkaConsumer, options)
        try:
            yield consumer
        finally:
            consumer.close(autocommit=False, timeout_ms=int(_CLOSE_S * 1000))

    def _away(self, error: Exception) -> SinkAwayError:
        servers = self._options.get("bootstrap_servers")
        where = servers if isinstance(servers, str) else ",".join(map(str, servers)) if isinstance(servers, Sequence) else "the broker"
        reason = f"{type(error).__name__}: {error}"
        return SinkAwayError(f"cannot write the quarantine topic {self._topic} at {where}: {reason}; the refused records wait in the state")


_PLACE = ("topic", "partition", "offset", "index")
"""Headers by which a refused record is recognised."""


def place(record: RefusedRecord) -> tuple[bytes, ...]:
    """Values of the headers `_PLACE`; a partition's name is its topic's and its number, anything else has the number -1.

    >>> from monitor.events.record import Refusal
    >>> place(RefusedRecord(Refusal("bad_json"), "labels-3", 7, None, b"", 0))
    (b'labels', b'3', b'7', b'0')
    """
    topic, _, number = record.partition.rpartition("-")
    if not topic or not number.isdecimal():
        topic, number = record.partition, "-1"
    return topic.encode(), number.encode(), b"%d" % record.offset, b"%d" % record.index


def headers(record: RefusedRecord, state_id: str, sequence: int) -> list[tuple[str, bytes]]:
    """A refused record's headers; numbers are decimal."""
    refusal = record.refusal
    found = [("reason", refusal.reason.encode()), ("kind", refusal.kind.encode()), ("detail", refusal.detail.encode())]
    found += zip(_PLACE, place(record), strict=True)
    if record.timestamp_ms is not None:
        found.append(("timestamp_ms", b"%d" % record.timestamp_ms))
    if record.length > len(record.value):
        found.append(("length", b"%d" % record.length))
    if record.key is not None and record.key_length > len(record.key):
        found.append(("key_length", b"%d" % record.key_length))
    return [*found, ("state", state_id.encode()), ("sequence", b"%d" % sequence)]


def _connect(kind: Any, options: Mapping[str, object]) -> Any:
    """Make a client; one that cannot connect leaves nothing behind, as kafka-python's would a thread and sockets."""
    clients: list[Any] = []

    def remembered(**settings: Any) -> Any:
        clients.append(KafkaNetClient(**settings))
        return clients[-1]

    try:
        return kind(**options, kafka_client=remembered)
    except BaseException:
        for client in clients:
            client.close()
        raise
