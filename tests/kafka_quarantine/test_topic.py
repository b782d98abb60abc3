"""Refused records in a topic: as they were, with their reason and place, each once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from kafka import KafkaConsumer, KafkaProducer

from monitor.events.record import Refusal
from monitor.export.quarantine_sink import KEPT_BYTES, Entry, RefusedRecord, SinkAwayError
from monitor.export.quarantine_topic import TopicSink
from tests.kafka_quarantine.topic import IMPATIENT, Refuser, fields, read
from tests.services.kafka import Kafka, open_client
from tests.services.kafka_settings import pick_ports


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pause after a failure."""
    monkeypatch.setattr("monitor.pipeline.quarantine._FIRST_PAUSE_S", 0.0)


@pytest.fixture
def topic(kafka: Kafka) -> str:
    """A quarantine."""
    return kafka.new_topic("quarantine", partitions=3)


@pytest.fixture
def refuser(kafka: Kafka, topic: str) -> Iterator[Refuser]:
    """Refuses into it."""
    made = Refuser(kafka, topic)
    yield made
    made.outbox.close()


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if "kafka" in thread.name.lower()]


def values(kafka: Kafka, topic: str) -> list[bytes]:
    return sorted(record.value for record in read(kafka, topic))


def test_key_and_value_are_as_they_were_and_the_headers_say_the_rest(kafka: Kafka, topic: str) -> None:
    sink = TopicSink({"bootstrap_servers": [kafka.bootstrap], "compression_type": "zstd"}, topic)
    why = Refusal("bad_json", "label", "not UTF-8 \u00e9")
    whole = RefusedRecord(why, "labels-of-may-3", 5, 7, b"\xff\x00", 2, b"\xfe", 1, 2)
    bare = RefusedRecord(why, "some file", 6, None, b"", 0)
    cut = RefusedRecord(why, "labels-0", 7, 8, b"v" * KEPT_BYTES, KEPT_BYTES + 1, b"k" * KEPT_BYTES, KEPT_BYTES + 2)
    sink.deliver([Entry(10, whole), Entry(11, bare), Entry(12, cut)], sink.mark(), after_crash=False)
    sink.close()
    first, second, third = sorted(read(kafka, topic), key=lambda record: fields(record)["sequence"])
    assert (first.key, first.value) == (b"\xfe", b"\xff\x00")
    state = fields(first).pop("state")
    common = {"reason": "bad_json", "kind": "label", "detail": "not UTF-8 \u00e9", "state": state}
    place = {"topic": "labels-of-may", "partition": "3", "offset": "5", "index": "2"}
    assert fields(first) == {**common, **place, "timestamp_ms": "7", "sequence": "10"}
    assert (second.key, second.value) == (None, b"")
    place = {"topic": "some file", "partition": "-1", "offset": "6", "index": "0"}
    assert fields(second) == {**common, **place, "sequence": "11"}
    assert (third.key, third.value) == (b"k" * KEPT_BYTES, b"v" * KEPT_BYTES)
    assert (fields(third)["length"], fields(third)["key_length"]) == (str(KEPT_BYTES + 1), str(KEPT_BYTES + 2))


def test_the_outbox_is_emptied_into_the_topic(kafka: Kafka, topic: str, refuser: Refuser) -> None:
    refuser.refuse(b"1", b"2")
    assert (refuser.outbox.waiting, refuser.waiting()) == (0, 2)
    refuser.refuse(b"3", key=None)
    refuser.refuse()
    assert refuser.waiting() == 0
    assert values(kafka, topic) == [b"1", b"2", b"3"]


def test_a_crash_before_the_confirmation_doubles_nothing(kafka: Kafka, topic: str, refuser: Refuser) -> None:
    refuser.refuse(b"1")
    refuser.refuse(b"2", b"3")
    for _ in range(3):
        refuser.crash()
        assert refuser.waiting() == 2
    refuser.refuse(b"4")
    assert refuser.waiting() == 1
    assert values(kafka, topic) == [b"1", b"2", b"3", b"4"]


def test_what_others_put_into_the_topic_is_not_taken_for_ours(kafka: Kafka, topic: str, refuser: Refuser) -> None:
    other = Refuser(kafka, topic)
    other.refuse(b"a", b"b")  # the same places, of another state
    other.outbox.close()
    with closing(open_client(KafkaProducer, bootstrap_servers=kafka.bootstrap)) as producer:
        producer.send(topic, b"no headers").get(10)
    refuser.outbox.close()
    refuser.refuse(b"c", b"d")
    refuser.crash()
    assert values(kafka, topic) == [b"a", b"b", b"c", b"d", b"no headers"]


def test_an_open_transaction_of_somebody_else_hides_nothing(
    kafka: Kafka, refuser: Refuser, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("monitor.export.quarantine_topic._READ_S", 1.0)
    with closing(open_client(KafkaProducer, bootstrap_servers=kafka.bootstrap, transactional_id=f"other-{topic}")) as other:
        other.init_transactions()
        other.begin_transaction()
        for partition in range(3):
            other.send(topic, b"other", partition=partition).get(10)
        refuser.refuse(b"1", b"2")
        refuser.crash()
        assert refuser.outbox.waiting == 2
        assert "the end of the topic could not be read" in str(refuser.outbox.trouble)
        other.abort_transaction()
    refuser.refuse(b"3")
    assert (refuser.outbox.waiting, refuser.outbox.trouble) == (0, None)
    assert values(kafka, topic) == [b"1", b"2", b"3"]


def test_only_the_end_of_the_topic_is_read(kafka: Kafka, topic: str, refuser: Refuser, monkeypatch: pytest.MonkeyPatch) -> None:
    polled: list[bytes] = []

    class WatchedConsumer(KafkaConsumer):  # type: ignore[misc]
        """Notes what it reads."""

        def poll(self, *args: Any, **options: Any) -> Any:
            found = super().poll(*args, **options)
            polled.extend(record.value for records in found.values() for record in records)
            return found

    refuser.refuse(*(b"%d" % number for number in range(500)))
    refuser.refuse(b"last")
    monkeypatch.setattr("monitor.export.quarantine_topic.KafkaConsumer", WatchedConsumer)
    refuser.crash()
    assert polled == [b"last"]
    assert len(values(kafka, topic)) == 501


def test_a_topic_made_anew_gets_what_it_no_longer_has(kafka: Kafka, topic: str, refuser: Refuser) -> None:
    refuser.refuse(*(b"%d" % number for number in range(50)))
    refuser.refuse(b"last")
    kafka.delete_topic(topic)
    kafka.create_topic(topic, partitions=1)
    refuser.crash()
    assert values(kafka, topic) == [b"last"]


def test_records_that_retention_has_deleted_are_no_obstacle(kafka: Kafka, topic: str, refuser: Refuser) -> None:
    refuser.refuse(b"1")
    refuser.refuse(b"2")
    for partition in range(3):
        kafka.delete_records(topic, partition, -1)
    refuser.crash()
    assert values(kafka, topic) == [b"2"]


def test_a_topic_that_does_not_exist_lets_records_wait_until_it_does(kafka: Kafka) -> None:
    name = kafka.new_topic("quarantine")
    kafka.delete_topic(name)
    refuser = Refuser(kafka, name)
    refuser.refuse(b"1")
    assert refuser.outbox.waiting == 1
    assert f"cannot write the quarantine topic {name} at {kafka.bootstrap}: " in str(refuser.outbox.trouble)
    assert "there is no such topic: create it" in str(refuser.outbox.trouble)
    kafka.create_topic(name)
    refuser.refuse(b"2")
    refuser.outbox.close()
    assert values(kafka, name) == [b"1", b"2"]


def test_a_record_that_the_topic_does_not_take_waits_with_the_reason(kafka: Kafka) -> None:
    name = kafka.new_topic("quarantine", config={"max.message.bytes": "1000"})
    refuser = Refuser(kafka, name)
    refuser.refuse(b"small", b"x" * 2000)
    assert refuser.outbox.waiting == 2
    assert "MessageSizeTooLarge" in str(refuser.outbox.trouble)
    refuser.outbox.close()
    assert values(kafka, name) == []


def test_without_a_broker_records_wait_and_no_thread_stays_behind() -> None:
    before = threads()
    port = pick_ports(("nobody",))["nobody"]
    sink = TopicSink({"bootstrap_servers": [f"127.0.0.1:{port}", "localhost:1"], **IMPATIENT}, "quarantine")
    for _ in range(2):
        with pytest.raises(SinkAwayError, match=rf"quarantine topic quarantine at 127\.0\.0\.1:{port},localhost:1: .*wait in the state"):
            sink.mark()
    sink.close()
    assert threads() == before


def test_no_thread_stays_behind_after_work(kafka: Kafka, topic: str) -> None:
    before = threads()
    refuser = Refuser(kafka, topic)
    refuser.refuse(b"1")
    refuser.crash()
    assert len(threads()) > len(before)
    refuser.outbox.close()
    refuser.outbox.close()
    assert threads() == before


def test_options_that_cannot_be_used_let_records_wait(kafka: Kafka, topic: str) -> None:
    refuser = Refuser(kafka, topic, compression_type="rar")
    refuser.refuse(b"1")
    assert "ValueError: Not supported codec: rar" in str(refuser.outbox.trouble)
