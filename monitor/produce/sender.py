"""Sends lines through kafka-python's producer and keeps account of what the broker has acknowledged."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kafka.errors import KafkaError, KafkaTimeoutError, MessageSizeTooLargeError

from monitor.errors import CalmonError
from monitor.events.contract import FUTURE_SLACK_MS
from monitor.produce.address import Role
from monitor.produce.lines import LONGEST_LINE_BYTES, Line

MAX_WAITING_RECORDS = 20_000
MAX_WAITING_BYTES = 32 << 20
"""How much may wait for its acknowledgement: kafka-python's own buffer has no bound."""

DELIVERY_TIMEOUT_S = 30.0
REQUEST_TIMEOUT_S = 10.0
_LOOK_S = 0.2
_SETTLE_EVERY = 500
_BATCH_BYTES = 1 << 17


def producer_options(compression: str | None, max_record_bytes: int) -> dict[str, object]:
    """Options of kafka-python's producer, beside brokers and security: all replicas acknowledge, retries make no duplicates.

    Args:
        compression: Of the batches; None for none.
        max_record_bytes: Largest record that the broker takes. A larger one must not reach it: kafka-python 3.0.12 fails every
            record after one that a broker refused for its size.
    """
    return {
        "acks": "all",
        "enable_idempotence": True,
        "compression_type": compression,
        "linger_ms": 10,
        "batch_size": min(_BATCH_BYTES, max_record_bytes),
        "max_request_size": min(LONGEST_LINE_BYTES, max_record_bytes),
        "request_timeout_ms": int(REQUEST_TIMEOUT_S * 1000),
        "delivery_timeout_ms": int(DELIVERY_TIMEOUT_S * 1000),
        "max_block_ms": int(DELIVERY_TIMEOUT_S * 1000),
        "allow_auto_create_topics": False,
        "metrics_enabled": False,
    }


@dataclass(slots=True)
class Account:
    """What has become of the lines.

    Attributes:
        sent: Acknowledged records by topic.
        unreadable: Those among them without a key, for the consumer to refuse.
        too_large: Lines that the broker does not take, as ``file:line``.
    """

    sent: Counter[str] = field(default_factory=Counter)
    unreadable: int = 0
    too_large: list[str] = field(default_factory=list)


class Sender:
    """Sends lines, in their order within a partition.

    Args:
        producer: kafka-python's producer.
        topics: Which topic is which.
        servers: The brokers, for messages.
        stopped: Whether to wait no longer.
    """

    def __init__(self, producer: Any, topics: Mapping[Role, str], servers: str, stopped: Callable[[], bool]) -> None:
        self.account = Account()
        self._producer = producer
        self._topics = topics
        self._servers = servers
        self._stopped = stopped
        self._waiting: deque[tuple[Any, Line]] = deque()
        self._waiting_bytes = 0

    def send(self, line: Line) -> None:
        """Send a line; waits while too much is on its way.

        Raises:
            CalmonError: The broker no longer answers, or refuses a record.
        """
        now_ms = time.time_ns() // 1_000_000
        at_ms = line.address.event_ms
        if at_ms is None or at_ms > now_ms + FUTURE_SLACK_MS:
            # A broker refuses a whole batch for one record of the future; stamped with now it is calmon that refuses it, alone.
            at_ms = now_ms
        topic = self._topics[line.address.role]
        try:
            future = self._producer.send(
                topic, value=line.value, key=line.address.key, partition=line.address.partition, timestamp_ms=at_ms
            )
        except MessageSizeTooLargeError:
            self.account.too_large.append(f"{line.path}:{line.number}")
            return
        except KafkaError as error:
            raise self._failure(error, line) from error
        self._waiting.append((future, line))
        self._waiting_bytes += len(line.value)
        if len(self._waiting) % _SETTLE_EVERY == 0:
            self._settle()
        while (len(self._waiting) > MAX_WAITING_RECORDS or self._waiting_bytes > MAX_WAITING_BYTES) and not self._stopped():
            self._wait_for_first(time.monotonic() + _LOOK_S)
            self._settle()

    def finish(self) -> None:
        """Wait until everything sent is acknowledged or refused.

        Raises:
            CalmonError: The broker no longer answers, or refuses a record.
        """
        deadline = time.monotonic() + DELIVERY_TIMEOUT_S * 1.5  # the producer itself gives up a record before that
        while self._waiting:
            self._wait_for_first(deadline)
            if not self._waiting[0][0].is_done:
                raise self._failure(KafkaTimeoutError("no answer"))
            self._settle()

    def _wait_for_first(self, deadline: float) -> None:
        future, _ = self._waiting[0]
        while not future.is_done and time.monotonic() < deadline:
            try:
                future.get(timeout=_LOOK_S)
            except KafkaError:  # not yet, or failed: `_settle` looks
                continue

    def _settle(self) -> None:
        """Take what is done off the front."""
        while self._waiting and self._waiting[0][0].is_done:
            future, line = self._waiting.popleft()
            self._waiting_bytes -= len(line.value)
            if future.succeeded():
                self._sent(line)
            else:
                raise self._failure(future.exception, line)

    def _sent(self, line: Line) -> None:
        self.account.sent[self._topics[line.address.role]] += 1
        self.account.unreadable += line.address.key is None

    def _failure(self, error: BaseException, line: Line | None = None) -> CalmonError:
        """What ended the sending; what was acknowledged in any order until now is counted for it."""
        for future, waiting in self._waiting:
            if future.is_done and future.succeeded():
                self._sent(waiting)
        self._waiting.clear()
        number = self.account.sent.total()
        place = "" if line is None or isinstance(error, KafkaTimeoutError) else f" at {line.path}:{line.number}"
        what = "no longer answers" if isinstance(error, KafkaTimeoutError) else "refuses a record"
        return CalmonError(f"kafka: {self._servers} {what}{place}: {error!r}; {number} records were sent and acknowledged")
