"""Logs that no longer go on where the checkpoint ends: the shard stops with numbers, or goes on and counts."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from monitor.errors import SourceError
from monitor.sources.kafka import KafkaSource
from monitor.sources.protocol import Position
from tests.kafka.topics import Topics, poll_until, positions_after, read, rows
from tests.services.kafka import Kafka


@pytest.fixture
def topics(kafka: Kafka) -> Topics:
    """Ten records in each partition."""
    made = Topics(kafka)
    for topic in (made.predictions, made.labels):
        for number in (0, 1):
            made.append(topic, number, [b"%d" % index for index in range(10)])
    return made


def read_some(topics: Topics) -> dict[str, Position]:
    """Positions at offset 10 of all partitions."""
    with topics.started() as source:
        return positions_after(read(source, 40))


def only_shard_0_stopped(topics: Topics, source: KafkaSource) -> str:
    """Why; after the other shard has gone on."""
    topics.append(topics.predictions, 1, [b"goes on"])
    assert rows(read(source, 1), f"{topics.predictions}-1")[-1] == (10, b"goes on")
    assert set(source.failures) == {"0"}
    assert source.assigned == {f"{topics.predictions}-1", f"{topics.labels}-1"}
    assert len(source.live_partitions()) == 4
    assert str(source.failures["0"]) in str(source.trouble)
    return str(source.failures["0"])


def at(positions: Mapping[str, Position], name: str, offset: int) -> dict[str, Position]:
    return {**positions, name: {**positions[name], "offset": offset}}


def test_records_deleted_before_they_were_read(topics: Topics) -> None:
    name = f"{topics.predictions}-0"
    positions = at(read_some(topics), name, 3)
    topics.kafka.delete_records(topics.predictions, 0, before_offset=7)
    with topics.started(positions) as source:
        reason = only_shard_0_stopped(topics, source)
        assert "stored offset 3" in reason
        assert f"topic {topics.predictions}, partition 0, holds offsets 7 to 10: 4 records were deleted before they were read" in reason
        assert "--accept-loss" in reason
        assert source.lags()[name].records == 7
    with topics.started(positions, accept_loss=True) as source:
        slices = read(source, 3)
        assert [offset for offset, _ in rows(slices, name)] == [7, 8, 9]
        assert source.lost_records == {name: 4}
        assert [(part.partition, part.next_position["offset"]) for part in slices if not part.values] == [(name, 7)]
        assert not source.failures


def test_records_deleted_under_a_running_reader(topics: Topics) -> None:
    name = f"{topics.predictions}-0"
    positions = at(read_some(topics), name, 3)
    with topics.started(positions) as source:
        topics.kafka.delete_records(topics.predictions, 0, before_offset=7)
        poll_until(source, lambda: bool(source.failures), "stops")
        assert "holds offsets 7 to 10: 4 records were deleted" in only_shard_0_stopped(topics, source)
    with topics.started(at(positions, name, 8), accept_loss=True) as source:
        topics.kafka.delete_records(topics.predictions, 0, before_offset=9)
        assert rows(read(source, 2), name) == [(9, b"9")]
        assert source.lost_records == {name: 1}


def test_offset_beyond_the_end(topics: Topics) -> None:
    name = f"{topics.labels}-0"
    positions = at(read_some(topics), name, 25)
    with topics.started(positions) as source:
        reason = only_shard_0_stopped(topics, source)
        assert f"topic {topics.labels}, partition 0, holds offsets 0 to 10: the log was cut off" in reason
    with topics.started(positions, accept_loss=True) as source:
        assert len(rows(read(source, 10), name)) == 10
        assert source.lost_records == {name: 0}


def test_topic_made_anew_before_the_start(topics: Topics) -> None:
    positions = read_some(topics)
    old = positions[f"{topics.predictions}-0"]["topic_id"]
    topics.kafka.delete_topic(topics.predictions)
    topics.kafka.create_topic(topics.predictions, 2)
    topics.append(topics.predictions, 0, [b"new"] * 12)  # the stored offset lies inside
    positions.pop(f"{topics.predictions}-1")
    with topics.started(positions) as source:
        assert set(source.failures) == {"0"}
        assert f"deleted and made anew (its id was {old} and is" in str(source.failures["0"])
    with topics.started(positions, accept_loss=True) as source:
        assert rows(read(source, 12), f"{topics.predictions}-0") == [(offset, b"new") for offset in range(12)]
    topics.kafka.delete_topic(topics.predictions)


@pytest.mark.parametrize("accept_loss", [False, True])
def test_topic_made_anew_while_running(topics: Topics, accept_loss: bool) -> None:
    positions = read_some(topics)
    name = f"{topics.predictions}-0"
    with topics.started(positions, accept_loss=accept_loss) as source:
        poll_until(source, lambda: len(source.assigned) == 4, "assigned")
        topics.kafka.delete_topic(topics.predictions)
        topics.kafka.create_topic(topics.predictions, 2)
        topics.append(topics.predictions, 0, [b"new"] * 12)
        if accept_loss:
            slices = read(source, 12)
            assert rows(slices, name) == [(offset, b"new") for offset in range(12)]
            assert slices[-1].next_position["topic_id"] != positions[name]["topic_id"]
        else:
            slices = poll_until(source, lambda: len(source.failures) == 2, "stops")
            assert not slices
            assert "made anew" in str(source.failures["0"])
    topics.kafka.delete_topic(topics.predictions)


def test_counts_that_differ(kafka: Kafka) -> None:
    topics = Topics(kafka, predictions=3, labels=2)
    with pytest.raises(SourceError, match=rf"{topics.predictions} has 3 partitions and topic {topics.labels} has 2") as raised:
        topics.source().start({})
    assert "set source.kafka.shards to one" in str(raised.value)


def test_missing_topic(topics: Topics) -> None:
    with pytest.raises(SourceError, match="topic nowhere does not exist at"):
        topics.source(labels="nowhere").start({})


def test_a_count_that_has_changed_before_the_start(topics: Topics) -> None:
    positions = read_some(topics)
    for topic in (topics.predictions, topics.labels):
        topics.kafka.add_partitions(topic, 3)
    with topics.started(positions) as source:
        assert set(source.failures) == {"0", "1", "2"}
        assert "had 2 partitions and has 3" in str(source.failures["2"])
    with topics.started(positions, accept_loss=True) as source:
        topics.append(topics.labels, 2, [b"new"])
        assert rows(read(source, 1), f"{topics.labels}-2") == [(0, b"new")]
        assert not source.failures


def test_a_count_that_changes_while_running(topics: Topics) -> None:
    with topics.started(read_some(topics)) as source:
        poll_until(source, lambda: len(source.assigned) == 4, "assigned")
        topics.kafka.add_partitions(topics.labels, 3)
        poll_until(source, lambda: bool(source.failures), "stops")
        assert set(source.failures) == {"0", "1"}
        assert f"topic {topics.labels} had 2 partitions and has 3" in str(source.failures["1"])
        assert not source.assigned


def test_a_stored_partition_that_is_no_more(topics: Topics) -> None:
    gone: dict[str, Position] = {f"{topics.predictions}-5": {"offset": 4, "topic_id": "x", "partitions": 6}}
    with topics.started(gone) as source:
        assert "had 6 partitions and has 2" in str(source.failures["0"])


def test_a_position_of_another_source_stops_its_shard(topics: Topics) -> None:
    with topics.started({f"{topics.predictions}-0": {"byte": 3}}) as source:
        assert "is none of a Kafka partition" in str(source.failures["0"])
