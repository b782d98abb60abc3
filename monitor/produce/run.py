"""`calmon produce`: files, pace, topics and sender put together, with a progress bar and a summary."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from kafka import KafkaProducer
from kafka.errors import KafkaError
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from monitor.broker.open import open_client, quiet
from monitor.broker.topics import open_topics
from monitor.errors import CalmonError
from monitor.produce.address import Role
from monitor.produce.lines import Files, Line
from monitor.produce.pace import Pace, TimeScale
from monitor.produce.sender import Account, Sender, producer_options

KEPT_FOR_EVER: Mapping[str, str] = {"retention.ms": "-1"}
"""A broker deletes records by their timestamps, which are event times here: old ones would be gone at once."""

KAFKAS_MAX_MESSAGE_BYTES = 1_048_588
"""A broker's own default, for where it may not be asked."""

CONNECT_TIMEOUT_S = 10.0
_LOOK_S = 0.1
_SHOWN_TOO_LARGE = 5
_SHOW_EVERY = 200


@dataclass(frozen=True, slots=True)
class Target:
    """Where lines go.

    Attributes:
        servers: ``host:port`` of some brokers.
        topics: Which topic is which.
        security: Security options of kafka-python.
        compression: Of the batches; None for none.
        create: Partitions of topics that are to be made if they are missing; None to make none.
    """

    servers: tuple[str, ...]
    topics: Mapping[Role, str]
    security: Mapping[str, object]
    compression: str | None = None
    create: int | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a whole run did."""

    account: Account
    seconds: float
    stopped: bool

    def summary(self, topics: Mapping[Role, str]) -> str:
        """Say what has been sent."""
        account = self.account
        lines = [f"{topic}: {account.sent[topic]:,} records" for topic in topics.values()]
        if account.unreadable:
            lines.append(f"unreadable: {account.unreadable:,} of them, sent without a key for calmon to refuse")
        if account.too_large:
            shown = ", ".join(account.too_large[:_SHOWN_TOO_LARGE]) + (", ..." if len(account.too_large) > _SHOWN_TOO_LARGE else "")
            lines.append(f"not sent: {len(account.too_large):,} lines are larger than the broker takes: {shown}")
        lines.append(f"{'stopped after' if self.stopped else 'in'} {self.seconds:.1f} s")
        return "\n".join(lines)


def produce(files: Files, target: Target, pace: Pace, stopped: Callable[[], bool]) -> Outcome:
    """Send the lines of files until they end or `stopped` says so; what was sent is acknowledged when this returns.

    Returns:
        What was done.

    Raises:
        CalmonError: A file, the broker or a topic stands in the way; it says how many records were acknowledged.
    """
    max_record_bytes = prepare_topics(target)
    started = time.monotonic()
    options = producer_options(target.compression, max_record_bytes) | dict(target.security)
    producer = open_client(KafkaProducer, target.servers, options, CONNECT_TIMEOUT_S)
    lines = files.by_event_time() if isinstance(pace, TimeScale) else files.in_order()
    with quiet():
        try:
            sender = Sender(producer, target.topics, ",".join(target.servers), stopped)
            with _progress(files) as show:
                _send_all(lines, sender, pace, stopped, show)
            sender.finish()
        finally:
            with suppress(KafkaError):  # what could not be sent has been said
                producer.close(timeout=2)
    return Outcome(sender.account, time.monotonic() - started, stopped())


def prepare_topics(target: Target) -> int:
    """See to it that the topics are there; the size of the largest record that all of them take.

    Raises:
        CalmonError: The broker cannot be reached, or a topic is missing or of another count of partitions than is wanted.
    """
    names = list(target.topics.values())
    servers = ",".join(target.servers)
    with open_topics(target.servers, target.security, CONNECT_TIMEOUT_S) as topics:
        found = topics.partitions(names)
        missing = [name for name in names if name not in found]
        for name, partitions in found.items():
            if target.create is not None and partitions != target.create:
                advice = "leave --create out to use it as it is"
                raise CalmonError(f"kafka: topic {name} exists at {servers} with {partitions} partitions, not {target.create}: {advice}")
        if missing and target.create is None:
            advice = "create it, or let --create PARTITIONS do so"
            raise CalmonError(f"kafka: topic {missing[0]} does not exist at {servers}: {advice}")
        if missing and target.create is not None:
            topics.create(missing, target.create, KEPT_FOR_EVER)
        settings = topics.settings(names)
    return min(int(settings[name].get("max.message.bytes", KAFKAS_MAX_MESSAGE_BYTES)) for name in names)


def _send_all(lines: Iterator[Line], sender: Sender, pace: Pace, stopped: Callable[[], bool], show: Callable[[int], None]) -> None:
    started = time.monotonic()
    for number, line in enumerate(lines):
        due = started + pace.due_s(line.address.event_ms)
        while not stopped() and (remaining := due - time.monotonic()) > 0:
            show(number)
            time.sleep(min(remaining, _LOOK_S))
        if stopped():
            return
        sender.send(line)
        if number % _SHOW_EVERY == 0:
            show(number)


@contextmanager
def _progress(files: Files) -> Iterator[Callable[[int], None]]:
    started = time.monotonic()
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task("sending", total=files.total_bytes)

        def show(number: int) -> None:
            rate = number / max(time.monotonic() - started, 0.001)
            progress.update(task, completed=files.read_bytes, description=f"{number:,} records, {rate:,.0f}/s")

        yield show
