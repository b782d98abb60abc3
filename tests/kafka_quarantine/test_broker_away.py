"""A broker that stands still, dies or does not answer a commit: the consumer goes on, and each record is there once."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from kafka import KafkaProducer

from tests.kafka_quarantine.topic import Refuser, read
from tests.services.kafka import KafkaBroker
from tests.services.left_sockets import LEAVES_SOCKETS

pytestmark = LEAVES_SOCKETS


@pytest.fixture(scope="module")
def broker() -> Iterator[KafkaBroker]:
    """One that these tests may break, if they mend it."""
    with KafkaBroker() as running:
        yield running


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short waits and no pause after a failure."""
    monkeypatch.setattr("monitor.pipeline.quarantine._FIRST_PAUSE_S", 0.0)
    monkeypatch.setattr("monitor.export.quarantine_topic._DELIVERY_S", 2.0)


def settle(refuser: Refuser) -> None:
    """Drain until nothing waits."""
    deadline = time.monotonic() + 30
    while refuser.outbox.waiting:
        assert time.monotonic() < deadline, refuser.outbox.trouble
        refuser.outbox.drain()
    refuser.refuse()
    assert (refuser.waiting(), refuser.outbox.trouble) == (0, None)
    refuser.outbox.close()


def values(broker: KafkaBroker, topic: str) -> list[bytes]:
    return sorted(record.value for record in read(broker, topic))


def test_a_broker_that_dies_and_comes_back(broker: KafkaBroker) -> None:
    topic = broker.new_topic("quarantine", 2)
    refuser = Refuser(broker, topic)
    refuser.refuse(b"1")
    broker.kill()
    for value in (b"2", b"3"):
        refuser.refuse(value)
    assert refuser.outbox.waiting == 2
    refuser.crash()
    assert refuser.outbox.waiting >= 2
    broker.restart()
    settle(refuser)
    assert values(broker, topic) == [b"1", b"2", b"3"]


@pytest.mark.parametrize("crash", [False, True])
def test_records_sent_to_a_broker_that_stands_still_are_not_doubled_when_it_goes_on(broker: KafkaBroker, crash: bool) -> None:
    topic = broker.new_topic("quarantine", 2)
    refuser = Refuser(broker, topic)
    refuser.refuse(b"1")
    broker.freeze()
    refuser.refuse(b"2", b"3")
    refuser.refuse(b"4")
    assert refuser.outbox.waiting == 3
    broker.thaw()
    if crash:
        refuser.crash()
    settle(refuser)
    assert values(broker, topic) == [b"1", b"2", b"3", b"4"]


@pytest.mark.parametrize("crash", [False, True])
@pytest.mark.parametrize(("request_timeout_ms", "trouble"), [(1_000, "RequestTimedOut"), (10_000, "was not answered in 2 s")])
def test_a_commit_that_is_not_answered_is_settled(
    broker: KafkaBroker, crash: bool, request_timeout_ms: int, trouble: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class FreezingProducer(KafkaProducer):  # type: ignore[misc]
        """Lets the broker stand still once it has all records of a transaction."""

        def send(self, *args: Any, **options: Any) -> Any:
            sent = super().send(*args, **options)
            if options["value"] == b"last":
                sent.get(10)
                broker.freeze()
            return sent

    topic = broker.new_topic("quarantine", 2)
    refuser = Refuser(broker, topic, request_timeout_ms=request_timeout_ms, delivery_timeout_ms=20_000)
    refuser.refuse(b"1")
    with monkeypatch.context() as patch:
        patch.setattr("monitor.export.quarantine_topic.KafkaProducer", FreezingProducer)
        refuser.crash()
        refuser.refuse(b"2", b"3", b"last")
    broker.thaw()
    assert refuser.outbox.waiting == 3
    assert trouble in str(refuser.outbox.trouble)
    if crash:
        refuser.crash()
    settle(refuser)
    assert values(broker, topic) == [b"1", b"2", b"3", b"last"]
