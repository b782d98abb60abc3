"""Labels to the topic that a service reads, with the producer of `calmon produce`; no faster than the service keeps up."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from kafka import KafkaProducer
from kafka.errors import KafkaError

from monitor.backfill.labels.beside import Folder, Standing
from monitor.backfill.labels.group_lag import GroupLag, open_group_lag
from monitor.backfill.labels.sieve import Kept
from monitor.broker.open import open_client, quiet
from monitor.config_kafka import KafkaConfig
from monitor.errors import CalmonError
from monitor.kafka_options import client_options
from monitor.produce.address import Address
from monitor.produce.lines import Line
from monitor.produce.run import CONNECT_TIMEOUT_S, Target, prepare_topics
from monitor.produce.sender import Sender, producer_options

MOST_BEHIND = 2_000
"""Labels that may wait in the topic for the service: what comes live waits behind them."""

CHUNK_RECORDS = 500
_LOOK_S = 0.05
_GIVE_UP_S = 60.0


class IntoTopic:
    """Sends labels, and waits while the service is behind.

    Args:
        producer: kafka-python's.
        kafka: The configuration.
        lag: How far the service is behind.
        folder: Keeps how far label files have come.
        by_shard: Whether an id's shard says its partition, else its key does.

    Attributes:
        paused_s: How long the service was waited for.
    """

    def __init__(self, producer: Any, kafka: KafkaConfig, lag: GroupLag, folder: Folder, by_shard: bool) -> None:
        self._producer = producer
        self._kafka = kafka
        self._lag = lag
        self._folder = folder
        self._by_shard = by_shard
        self.paused_s = 0.0

    def standing(self, partition: str) -> Standing:
        """How far a label file has been sent.

        Raises:
            StateError: That cannot be read.
        """
        return self._folder.load(partition)

    def deliver(self, partition: str, kept: Sequence[Kept], standing: Standing, stopped: Callable[[], bool]) -> bool:
        """Send labels, wait until they are acknowledged, then note how far their file has come.

        Raises:
            CalmonError: The broker no longer answers, or the service no longer reads.
        """
        sender = Sender(self._producer, {"label": self._kafka.labels}, ",".join(self._kafka.bootstrap_servers), lambda: False)
        with quiet():
            for start in range(0, len(kept), CHUNK_RECORDS):
                if not self._wait(stopped):
                    return False
                for one in kept[start : start + CHUNK_RECORDS]:
                    # Whoever produced the predictions may hash their keys otherwise: a label must come where its prediction is.
                    number = one.shard if self._by_shard else None
                    address = Address("label", one.label.prediction_id.encode(), one.label.labelled_at, number)
                    sender.send(Line(partition, one.number, one.event, address))
                sender.finish()
        self._folder.save(partition, standing)
        return True

    def _wait(self, stopped: Callable[[], bool]) -> bool:
        """Wait while the service is too far behind; False if somebody asked for the end meanwhile."""
        began = moved = time.monotonic()
        before: int | None = None
        while (behind := self._lag.records()) is not None and behind > MOST_BEHIND:
            now = time.monotonic()
            if before is None or behind < before:
                before, moved = behind, now
            if now - moved > _GIVE_UP_S:
                raise CalmonError(
                    f"kafka: group {self._kafka.group_id} is {behind} labels behind and has not moved for {_GIVE_UP_S:.0f} s: "
                    "see that the service runs, then run this again; it goes on from here"
                )
            if stopped():
                return False
            time.sleep(_LOOK_S)
        self.paused_s += time.monotonic() - began
        return True


@contextmanager
def into_topic(kafka: KafkaConfig, folder: Folder, by_shard: bool) -> Iterator[IntoTopic]:
    """Connect, for as long as the block lasts.

    Args:
        kafka: The configuration.
        folder: Keeps how far label files have come.
        by_shard: As for `IntoTopic`.

    Raises:
        CalmonError: The broker cannot be reached, or there is no such topic.
    """
    security = client_options(kafka)
    target = Target(kafka.bootstrap_servers, {"label": kafka.labels}, security)
    options = producer_options(None, prepare_topics(target)) | dict(security)
    with open_group_lag(kafka, security) as lag:
        producer = open_client(KafkaProducer, kafka.bootstrap_servers, options, CONNECT_TIMEOUT_S)
        try:
            yield IntoTopic(producer, kafka, lag, folder, by_shard)
        finally:
            with quiet(), suppress(KafkaError):  # what could not be sent has been said
                producer.close(timeout=2)
