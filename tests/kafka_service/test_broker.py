"""A broker that stands still, dies, comes back, or comes late: `calmon run` goes on by itself, and is scraped throughout."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from monitor.events.record import Refusal
from monitor.pipeline.quarantine import outbox_entry
from monitor.pipeline.shard import Shard
from monitor.state import keys
from monitor.state.protocol import Changes
from monitor.state.rocks import RocksStore
from tests.integration.running import wait_until
from tests.kafka_quarantine.topic import read
from tests.kafka_service.test_stream import check_account, quarantine_of, refused_of
from tests.kafka_service.topics import Topics, check_quarantine, evaluate, state_digest
from tests.kafka_service.watched import IMPATIENT, RUN, WatchedCalmon
from tests.recovery.stream import START_MS, make_stream, write_lines
from tests.services.kafka import KafkaBroker
from tests.services.kafka_settings import pick_ports

LINES = [line.value for line in make_stream(dense=4000, sparse=1000)]


@pytest.fixture(scope="module")
def broker() -> Iterator[KafkaBroker]:
    """One that these tests may break, if they mend it."""
    with KafkaBroker() as running:
        yield running


KAFKA_LINES = 60
"""More than the different things that kafka-python says of an outage; without a filter it says some of them hundreds of times."""


def check(running: WatchedCalmon, topics: Topics, config: Path) -> None:
    """Read to the end, stop, and compare everything with the file."""
    folder = config.parent
    file = write_lines(folder / "events.ndjson", LINES)
    wanted = evaluate(file, config)
    running.wait_for("calmon_records_consumed_total", len(LINES))
    running.until_ready()
    check_account(running.samples(), LINES, wanted.account)
    running.wait_for("calmon_source_ok", 1)
    running.stop_well()
    assert state_digest(folder) == wanted.digest
    check_quarantine(topics, quarantine_of(config), refused_of(file, folder / "files"))


def survive(
    broker: KafkaBroker, folder: Path, command: Sequence[str], away_s: float, leave: Callable[[], None], come_back: Callable[[], None]
) -> None:
    """Take the broker away in the middle of a stream for a while, and let it come back."""
    topics = Topics(broker, 4)
    chance = random.Random(7)  # noqa: S311 - the same batches every time
    half = len(LINES) // 2
    config = topics.config(folder)
    with WatchedCalmon(config, command) as running:
        topics.send(LINES[:half], chance)
        wait_until(lambda: running.value("calmon_records_consumed_total"), "something is read")
        leave()
        gone_s = time.monotonic()
        try:
            running.until_not_ready(f"kafka: no connection to {broker.bootstrap}")
            running.wait_for("calmon_source_ok", 0)
            time.sleep(max(0.0, away_s - (time.monotonic() - gone_s)))
            assert running.get("/-/healthy")[0] == 200
        finally:
            come_back()
        topics.send(LINES[half:], chance)
        check(running, topics, config)
    assert {status for status, _ in running.readiness} == {200, 503}
    said = [line for line in running.log.splitlines() if " kafka." in line]
    assert 0 < len(said) < KAFKA_LINES, running.log
    assert len(running.answers) > away_s


def test_frozen_and_thawed(broker: KafkaBroker, tmp_path: Path) -> None:
    survive(broker, tmp_path, IMPATIENT, 8, broker.freeze, broker.thaw)


def test_killed_and_restarted(broker: KafkaBroker, tmp_path: Path) -> None:
    survive(broker, tmp_path, RUN, 4, broker.kill, broker.restart)


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("way", ["frozen", "killed"])
def test_away_for_a_minute(broker: KafkaBroker, tmp_path: Path, way: str) -> None:
    leave, come_back = (broker.freeze, broker.thaw) if way == "frozen" else (broker.kill, broker.restart)
    survive(broker, tmp_path, RUN, 60, leave, come_back)


def test_not_yet_there_at_the_start(broker: KafkaBroker, tmp_path: Path) -> None:
    topics = Topics(broker, 4)
    topics.send(LINES, random.Random(8))  # noqa: S311 - the same batches every time
    port = pick_ports(("calmon",))["calmon"]
    config = topics.config(tmp_path, http={"port": port})
    broker.stop()
    try:
        with WatchedCalmon(config, port=port) as running:
            running.until_not_ready(f"kafka: no connection to {broker.bootstrap}")
            time.sleep(3)
            assert not running.said_to_run
            broker.restart()
            check(running, topics, config)
            assert running.said_to_run
    finally:
        if not broker._answers():  # noqa: SLF001 - the test may have failed before
            broker.restart()


def test_refused_records_that_a_crash_has_left_do_not_hold_up_the_start(broker: KafkaBroker, tmp_path: Path) -> None:
    """The quarantine of each shard takes seconds to find that its broker is away: longer than a scrape waits."""
    topics = Topics(broker, 4)
    port = pick_ports(("calmon",))["calmon"]
    config = topics.config(tmp_path, http={"port": port})
    for number in range(4):
        leave_refused(tmp_path / "state" / f"shard-{number}", f"{topics.labels}-{number}", b"broken %d" % number)
    broker.stop()
    try:
        began_s = time.monotonic()
        with WatchedCalmon(config, port=port) as running:
            assert time.monotonic() - began_s < 6
            running.until_not_ready(f"kafka: no connection to {broker.bootstrap}")
            running.wait_for("calmon_quarantine_waiting_records", 4)
            broker.restart()
            running.wait_for("calmon_quarantine_waiting_records", 0)
            running.until_ready()
            running.stop_well()
    finally:
        if not broker._answers():  # noqa: SLF001 - the test may have failed before
            broker.restart()
    assert sorted(record.value for record in read(broker, quarantine_of(config))) == [b"broken %d" % number for number in range(4)]


def leave_refused(folder: Path, partition: str, value: bytes) -> None:
    """Make the state of a shard that was killed between a checkpoint with a refused record and its delivery."""
    shard = Shard(RocksStore(folder), None, ())
    shard.outbox = 1
    changes = Changes(puts=[(keys.outbox(0), outbox_entry(Refusal("bad_json", "label"), partition, 0, START_MS, value))])
    shard.stage(changes, {})
    shard.store.commit(changes)
    shard.store.close()


def test_a_start_that_nobody_answers_ends_with_the_reason(broker: KafkaBroker, tmp_path: Path) -> None:
    topics = Topics(broker, 1)
    port = pick_ports(("nobody",))["nobody"]
    config = topics.config(tmp_path, kafka={"bootstrap_servers": [f"127.0.0.1:{port}"], "start_timeout": "2s"}, quarantine="refused")
    with pytest.raises(AssertionError, match=rf"calmon: kafka: cannot reach 127.0.0.1:{port} within 2 s: connection refused"):
        WatchedCalmon(config).__enter__()
