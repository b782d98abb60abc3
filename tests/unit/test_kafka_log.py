"""kafka-python's log: each thing is said once, then counted; nothing of anybody else's is held back."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator

import pytest

from monitor.sources.kafka_client import Causes
from monitor.sources.kafka_log import RepeatFilter

REPEATS_S = 0.3
LOST = "<Transport [127.0.0.1:9092<-%d]>: lost: %s"


class Shown(logging.Handler):
    """What a handler with the filter shows."""

    def __init__(self) -> None:
        super().__init__()
        self.addFilter(RepeatFilter(REPEATS_S))
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(f"{record.levelname} {record.name}: {record.getMessage()}")

    def wait_for(self, lines: int) -> None:
        """Wait until there are so many."""
        deadline_s = time.monotonic() + 10
        while len(self.lines) < lines:
            assert time.monotonic() < deadline_s, self.lines
            time.sleep(0.02)


@pytest.fixture
def shown() -> Iterator[Shown]:
    """At the root, as the command has it."""
    handler = Shown()
    logging.getLogger().addHandler(handler)
    yield handler
    logging.getLogger().removeHandler(handler)


def test_repeats_are_counted_and_told(shown: Shown) -> None:
    net, other = logging.getLogger("kafka.net.transport"), logging.getLogger("kafka.cluster")
    for port in range(50_000, 50_100):
        net.error(LOST, port, OSError("refused"))
        other.warning("Retrying in %.2f secs", port / 1000)
    assert shown.lines == ["ERROR kafka.net.transport: " + LOST % (50_000, "refused"), "WARNING kafka.cluster: Retrying in 50.00 secs"]
    shown.wait_for(4)
    name = RepeatFilter.__module__
    assert shown.lines[2:] == [
        f"ERROR {name}: 99 more in 0.3 s: kafka.net.transport: {LOST.replace('%d', '...') % 'refused'}",
        f"WARNING {name}: 99 more in 0.3 s: kafka.cluster: Retrying in ... secs",
    ]


def test_what_has_not_come_again_is_new(shown: Shown) -> None:
    log = logging.getLogger("kafka")
    log.error("gone")
    log.error("gone")
    shown.wait_for(2)
    time.sleep(3 * REPEATS_S)
    log.error("gone")
    assert [line.rpartition(": ")[2] for line in shown.lines] == ["gone"] * 3


def test_different_things_and_other_loggers_are_shown(shown: Shown) -> None:
    for broker in (1, 2):
        logging.getLogger("kafka.net").error("node %d: lost", broker)
    for _ in range(2):
        logging.getLogger("kafkaesque").error("mine")
        logging.getLogger("monitor.sources.kafka_reader").warning("mine")
    assert len(shown.lines) == 6


def test_causes_hear_what_is_not_shown(shown: Shown) -> None:
    with Causes() as causes:
        for number in range(3):
            logging.getLogger("kafka.net").error("Connection failed: %s", OSError("refused"))
            causes.last = None if number < 2 else causes.last
    assert len(shown.lines) == 1
    assert str(causes.last) == "refused"


def test_arguments_that_do_not_fit_hit_nobody() -> None:
    record = logging.LogRecord("kafka", logging.ERROR, __file__, 1, "node %d", ("no number",), None)
    assert RepeatFilter(REPEATS_S).filter(record)
