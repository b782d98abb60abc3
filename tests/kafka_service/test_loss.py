"""Logs that no longer go on where the state ends, as the command shows them: the shard stops with its reason until `--accept-loss`."""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.integration.running import wait_until
from tests.kafka_service.test_stream import by_partition
from tests.kafka_service.topics import KEPT, Topics
from tests.kafka_service.watched import ACCEPTING, RUN, WatchedCalmon
from tests.recovery.stream import START_MS, encode, prediction
from tests.services.kafka import Kafka


def of_partition(number: int, name: str, count: int = 10, partitions: int = 2) -> list[bytes]:
    """Predictions whose ids go to one partition."""
    ids = (f"{name}-{index}" for index in range(1 << 20))
    mine = [one for _, one in zip(range(count * partitions * 8), ids, strict=False) if zlib.crc32(one.encode()) % partitions == number]
    return [encode(prediction(one, START_MS + index, 0.9)) for index, one in enumerate(mine[:count])]


def send(topics: Topics, lines: Sequence[bytes]) -> None:
    """Append to the topics, a record each."""
    topics.send(lines, random.Random(1), several=False)  # noqa: S311 - any


@contextmanager
def running(config: Path, command: Sequence[str] = RUN) -> Iterator[WatchedCalmon]:
    """A run that must end well, scraped throughout."""
    with WatchedCalmon(config, command) as service:
        yield service
        service.stop_well()


def lost(service: WatchedCalmon) -> dict[str, float]:
    """Records counted as lost, by partition."""
    return by_partition(service.samples(), "calmon_source_lost_records_total")


@pytest.fixture
def topics(kafka: Kafka) -> Topics:
    """Ten predictions in each of two partitions."""
    made = Topics(kafka, 2)
    send(made, of_partition(0, "first") + of_partition(1, "first"))
    return made


@pytest.fixture
def config(topics: Topics, tmp_path: Path) -> Path:
    """A run of them, with the first ten read and stopped."""
    path = topics.config(tmp_path)
    with running(path) as service:
        service.wait_for("calmon_records_consumed_total", 20)
        service.until_ready()
        assert service.value("calmon_source_ok") == 1
        assert lost(service) == {}
    return path


def check_stopped(service: WatchedCalmon, *words: str) -> None:
    """Check that readiness and gauge say so, with these words, and the process lives on."""
    service.until_not_ready(*words, "--accept-loss")
    service.wait_for("calmon_source_ok", 0)
    assert service.get("/-/healthy")[0] == 200
    wait_until(lambda: words[0] in service.get("/")[1], "the status page says so")


def check_goes_on_without(config: Path, consumed: int) -> None:
    """Check that an accepted loss is over: a run without the option has nothing to stop for, though nothing has come since."""
    with running(config) as service:
        service.until_ready()
        assert service.value("calmon_records_consumed_total") == consumed
        assert lost(service) == {}


def test_a_log_that_was_truncated_below_the_stored_offset(topics: Topics, config: Path) -> None:
    send(topics, of_partition(0, "unread"))
    topics.kafka.delete_records(topics.predictions, 0, 17)
    with running(config) as service:
        check_stopped(
            service, "shard 0 stops", "stored offset 10", f"{topics.predictions}, partition 0", "17 to 20", "7 records were deleted"
        )
        send(topics, of_partition(1, "goes on"))
        service.wait_for("calmon_records_consumed_total", 30)
        reading = by_partition(service.samples(), "calmon_source_reading")
        assert {name: value for name, value in reading.items() if value} == {f"{topics.predictions}-1": 1, f"{topics.labels}-1": 1}
        assert len(reading) == 4
    with running(config, ACCEPTING) as service:
        service.wait_for("calmon_records_consumed_total", 33)
        service.until_ready()
        service.wait_for("calmon_source_ok", 1)
        assert lost(service) == {f"{topics.predictions}-0": 7}
    check_goes_on_without(config, 33)


def test_an_accepted_loss_of_everything_is_stored_though_nothing_follows(topics: Topics, config: Path) -> None:
    send(topics, of_partition(0, "unread"))
    topics.kafka.delete_records(topics.predictions, 0, 20)
    with running(config, ACCEPTING) as service:
        service.until_ready()
        wait_until(lambda: lost(service) == {f"{topics.predictions}-0": 10}, "counted")
    check_goes_on_without(config, 20)


@pytest.mark.parametrize("while_running", [True, pytest.param(False, marks=pytest.mark.soak)])
def test_a_topic_that_was_made_anew(topics: Topics, config: Path, while_running: bool) -> None:
    def make_anew() -> None:
        topics.kafka.delete_topic(topics.predictions)
        topics.kafka.create_topic(topics.predictions, 2, KEPT)

    if not while_running:
        make_anew()
    with running(config) as service:
        if while_running:
            service.until_ready()
            make_anew()
        send(topics, of_partition(0, "new", 12) + of_partition(1, "new", 12))
        check_stopped(service, "shard 0 stops", "shard 1 stops", "deleted and made anew (its id was")
        assert service.value("calmon_records_consumed_total") == 20
    with running(config, ACCEPTING) as service:
        service.wait_for("calmon_records_consumed_total", 44)
        service.until_ready()
        assert lost(service) == {f"{topics.predictions}-{number}": 0 for number in (0, 1)}
    check_goes_on_without(config, 44)


def test_a_count_of_partitions_that_grew(topics: Topics, config: Path) -> None:
    with running(config) as service:
        service.until_ready()
        for topic in (topics.predictions, topics.labels):
            topics.kafka.add_partitions(topic, 3)
            topics.partitions[topic] = 3
        check_stopped(service, "all shards stop", "had 2 partitions and has 3")
        send(topics, of_partition(2, "new", partitions=3))
        assert service.value("calmon_records_consumed_total") == 20
    with running(config) as service:
        check_stopped(service, "all shards stop", "had 2 partitions and has 3")
    with running(config, ACCEPTING) as service:
        service.wait_for("calmon_records_consumed_total", 30)
        service.until_ready()
    check_goes_on_without(config, 30)


def test_a_topic_made_anew_with_fewer_partitions(topics: Topics, config: Path) -> None:
    for topic in (topics.predictions, topics.labels):
        topics.kafka.delete_topic(topic)
        topics.kafka.create_topic(topic, 1, KEPT)
        topics.partitions[topic] = 1
    with running(config) as service:
        check_stopped(service, "all shards stop", "had 2 partitions and has 1")
    with running(config, ACCEPTING) as service:
        send(topics, of_partition(0, "new", partitions=1))
        service.wait_for("calmon_records_consumed_total", 30)
        service.until_ready()
    check_goes_on_without(config, 30)
