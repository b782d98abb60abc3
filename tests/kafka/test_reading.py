"""What is read: from where, in which form, and what the group's offsets show."""

from __future__ import annotations

import time
from contextlib import closing
from typing import Any

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from monitor.sources.kafka_layout import Span
from monitor.sources.kafka_settings import KafkaSettings
from monitor.sources.protocol import Slice
from tests.kafka.topics import TIME_MS, Topics, poll_until, positions_after, read, rows
from tests.services.kafka import Kafka, open_client


@pytest.fixture
def topics(kafka: Kafka) -> Topics:
    return Topics(kafka)


def committed_offset(topics: Topics, topic: str, number: int) -> Any:
    with closing(open_client(KafkaConsumer, bootstrap_servers=topics.kafka.bootstrap, group_id=topics.group)) as consumer:
        return consumer.committed(TopicPartition(topic, number), timeout_ms=10_000)


def test_slices_say_partition_kind_shard_and_time(topics: Topics) -> None:
    topics.append(topics.predictions, 0, [b"{}"])
    topics.append(topics.labels, 1, [b"{}", b"{}"])
    with topics.started() as source:
        slices = sorted(read(source, 3), key=lambda part: part.partition)
    assert [(part.partition, part.kind, part.shard) for part in slices] == [
        (f"{topics.labels}-1", "label", "1"),
        (f"{topics.predictions}-0", "prediction", "0"),
    ]
    assert slices[0].timestamps_ms == [TIME_MS, TIME_MS]
    assert slices[0].keys == [b"key", b"key"]
    assert slices[0].next_position["offset"] == 2


def test_goes_on_at_the_stored_offsets_not_at_the_committed_ones(topics: Topics) -> None:
    name = f"{topics.predictions}-0"
    topics.append(topics.predictions, 0, [b"%d" % number for number in range(10)])
    with topics.started() as source:
        positions = positions_after(read(source, 4, max_records=4))
    for wrong in (8, 1):
        with topics.started(positions) as source:
            assert rows(read(source, 6), name) == [(number, b"%d" % number) for number in range(4, 10)]
            source.committed({name: {"offset": wrong}})
        assert committed_offset(topics, topics.predictions, 0) == wrong
    with topics.started(positions) as source:
        assert rows(read(source, 6), name) == [(number, b"%d" % number) for number in range(4, 10)]


def test_checkpoints_are_mirrored_to_the_groups_offsets(topics: Topics) -> None:
    topics.append(topics.predictions, 0, [b"{}"] * 5)
    with topics.started() as source:
        source.committed(positions_after(read(source, 5)))
        poll_until(source, lambda: source.counts["commits"] > 0, "commit")
        assert committed_offset(topics, topics.predictions, 0) == 5
        topics.append(topics.predictions, 0, [b"{}"])
        source.committed(positions_after(read(source, 1)))
        source.close()
    assert committed_offset(topics, topics.predictions, 0) == 6


def test_a_record_with_several_events_stays_whole(topics: Topics) -> None:
    array = b'[{"a":1}, {"a":2},{"a":3}]'
    lines = b'{"b":1}\nbroken\n\n{"b":2}\n'
    topics.append(topics.predictions, 0, [b'{"c":1}', array, lines, b'{"c":2}'])
    with topics.started() as source:
        slices = read(source, 8, max_records=2)
    assert rows(slices, f"{topics.predictions}-0") == [
        (0, b'{"c":1}'),
        *((1, value) for value in (b'{"a":1}', b'{"a":2}', b'{"a":3}')),
        *((2, value) for value in (b'{"b":1}', b"broken", b'{"b":2}')),
        (3, b'{"c":2}'),
    ]
    assert [part.next_position["offset"] for part in slices] == [1, 2, 3, 4]


@pytest.mark.parametrize("value", [b"[]", b'[{"a":1}', b'{"a":\n{"b":1}\n', b"", b"\n", b'\n{"a":1}\n', b"[1,\n", b"[" * 100_000])
def test_a_record_that_is_no_list_of_events_comes_whole(topics: Topics, value: bytes) -> None:
    topics.append(topics.labels, 0, [value])
    with topics.started() as source:
        assert rows(read(source, 1), f"{topics.labels}-0") == [(0, value)]


def test_a_tombstone_comes_as_empty_bytes(topics: Topics) -> None:
    topics.append(topics.labels, 0, [b"{}", None, b"{}"])
    with topics.started() as source:
        assert rows(read(source, 3), f"{topics.labels}-0") == [(0, b"{}"), (1, b""), (2, b"{}")]


def test_every_compression(topics: Topics) -> None:
    codecs = (None, "gzip", "snappy", "lz4", "zstd")
    for codec in codecs:
        topics.append(topics.predictions, 1, [str(codec).encode() * 50] * 40, compression_type=codec, linger_ms=20)
    name = f"{topics.predictions}-1"
    expected = list(enumerate(str(codec).encode() * 50 for codec in codecs for _ in range(40)))
    with topics.started() as source:
        slices = read(source, 103, max_records=103)
        assert rows(slices, name) == expected[:103]
    with topics.started(positions_after(slices)) as source:  # in the middle of a batch
        assert rows(read(source, 97), name) == expected[103:]


def test_aborted_transactions_are_not_seen(topics: Topics) -> None:
    options = {"bootstrap_servers": topics.kafka.bootstrap, "transactional_id": topics.group, "acks": "all"}
    with closing(open_client(KafkaProducer, **options)) as producer:
        producer.init_transactions()
        for value, keep in ((b"first", True), (b"aborted", False), (b"second", True), (b"aborted too", False)):
            producer.begin_transaction()
            producer.send(topics.predictions, value=value, partition=0).get(timeout=20)
            (producer.commit_transaction if keep else producer.abort_transaction)()
    with topics.started(span=Span()) as source:
        slices = poll_until(source, lambda: source.exhausted, "the end behind the last abort marker")
        assert [value for _, value in rows(slices, f"{topics.predictions}-0")] == [b"first", b"second"]
        assert source.lags()[f"{topics.predictions}-0"].records == 0


@pytest.mark.parametrize("max_records", [1, 3, 100])
def test_a_span_is_read_and_nothing_beside_it_without_a_group(topics: Topics, max_records: int) -> None:
    name = f"{topics.predictions}-0"
    topics.append(topics.predictions, 0, [b"%d" % number for number in range(10)])
    topics.append(topics.labels, 1, [b"{}"] * 4)
    span = Span({name: 3, f"{topics.labels}-0": 0}, {name: 7})
    slices: list[Slice] = []
    with topics.started(span=span, group_id=None) as source:
        while not source.exhausted:
            slices += source.poll(max_records, 0.2)
            source.committed(positions_after(slices))
        assert source.poll(100, 0.2) == []
        assert source.trouble is None
        assert source.live_partitions() == source.assigned
    assert rows(slices, name) == [(number, b"%d" % number) for number in range(3, 7)]
    assert [offset for offset, _ in rows(slices, f"{topics.labels}-1")] == [0, 1, 2, 3]
    assert committed_offset(topics, topics.predictions, 0) is None
    with topics.kafka.admin() as admin:
        assert topics.group not in str(admin.list_groups())
    with topics.started(positions_after(slices), span=Span(span.first), group_id=None) as source:
        assert rows(read(source, 3), name) == [(number, b"%d" % number) for number in (7, 8, 9)]


def test_a_span_that_ends_behind_an_aborted_record_ends_though_the_log_goes_on(topics: Topics) -> None:
    name = f"{topics.predictions}-0"
    options = {"bootstrap_servers": topics.kafka.bootstrap, "transactional_id": topics.group, "acks": "all"}
    with closing(open_client(KafkaProducer, **options)) as producer:
        producer.init_transactions()
        for value, keep in ((b"first", True), (b"aborted", False), (b"second", True)):
            producer.begin_transaction()
            producer.send(topics.predictions, value=value, partition=0).get(timeout=20)
            (producer.commit_transaction if keep else producer.abort_transaction)()
    with topics.started(span=Span(end={name: 4}), group_id=None) as source:
        slices = poll_until(source, lambda: source.exhausted, "the end of the span")
    assert rows(slices, name) == [(0, b"first")]


def test_lag_assignment_and_trouble(topics: Topics) -> None:
    name = f"{topics.predictions}-0"
    topics.append(topics.predictions, 0, [b"{}"] * 30)
    with topics.started() as source:
        assert "0 of 4 partitions" in str(source.trouble)
        assert source.lags()[name].records == 30
        read(source, 10, max_records=10)
        assert (source.lags()[name].records, source.lags()[name].newest_ms) == (20, TIME_MS)
        read(source, 20)
        assert source.lags()[name].records == 0
        assert source.assigned == source.live_partitions()
        assert source.connected
        assert source.trouble is None


def test_one_shard_of_topics_that_are_not_co_partitioned(kafka: Kafka) -> None:
    topics = Topics(kafka, predictions=1, labels=2)
    topics.append(topics.predictions, 0, [b"p"])
    topics.append(topics.labels, 1, [b"l"])
    with topics.started(single_shard=True) as source:
        slices = read(source, 2)
        assert {part.shard for part in slices} == {"all"}
        kafka.add_partitions(topics.predictions, 2)
        topics.append(topics.predictions, 1, [b"new"])
        assert rows(read(source, 1), f"{topics.predictions}-1") == [(0, b"new")]
        assert not source.failures


def test_a_second_process_with_our_name_stops_the_first(topics: Topics) -> None:
    topics.append(topics.predictions, 0, [b"{}"] * 5)
    with topics.started() as first:
        positions = positions_after(read(first, 5))
        with topics.started(positions) as second:
            poll_until(second, lambda: len(second.assigned) == 4, "takes over")
            first.committed(positions)
            with pytest.raises(Exception, match="another process joined group"):
                poll_until(first, lambda: False, "is fenced")


def test_members_come_and_go_without_a_record_lost_or_doubled(topics: Topics) -> None:
    """The group takes partitions away and gives them back, as after a session that was lost."""
    values = [b"%d" % number for number in range(200)]
    topics.append(topics.predictions, 0, values[:100])
    name = f"{topics.predictions}-0"
    with topics.started() as source:
        slices = read(source, 60, max_records=60)
        options = {"bootstrap_servers": topics.kafka.bootstrap, "group_id": topics.group, "enable_auto_commit": False}
        options["partition_assignment_strategy"] = topics.settings().consumer_options()["partition_assignment_strategy"]
        with closing(open_client(KafkaConsumer, **options)) as other:
            other.subscribe([topics.predictions, topics.labels])
            deadline = time.monotonic() + 20
            while len(source.assigned) == 4 and time.monotonic() < deadline:
                other.poll(timeout_ms=100)
                slices += source.poll(10, 0.1)
            assert len(source.assigned) < 4
        topics.append(topics.predictions, 0, values[100:])
        slices += poll_until(source, lambda: len(source.assigned) == 4, "all partitions back")
        slices += read(source, 200 - len(rows(slices, name)))
    assert rows(slices, name) == list(enumerate(values))


def test_the_group_sees_a_static_member_that_gives_partitions_up_one_by_one(topics: Topics) -> None:
    members = []
    for _ in range(2):
        with topics.started(client_id="worker") as source:
            poll_until(source, lambda: len(source.assigned) == 4, "assigned")
            with topics.kafka.admin() as admin:
                (group,) = admin.describe_groups([topics.group]).values()
        assert group["protocol_data"] == "cooperative-sticky"
        members += [(member["group_instance_id"], member["client_id"]) for member in group["members"]]
    assert members == [("worker", "worker")] * 2  # the second one took the first one's place


def test_what_the_source_relies_on_cannot_be_changed() -> None:
    changed = {"group_instance_id": None, "isolation_level": "read_uncommitted", "enable_auto_commit": True, "check_crcs": False}
    options = KafkaSettings(("a:1",), client_id="worker", options=changed).consumer_options()
    assert {name: options[name] for name in changed} == {
        "group_instance_id": "worker",
        "isolation_level": "read_committed",
        "enable_auto_commit": False,
        "check_crcs": True,
    }
    assert not {"key_deserializer", "value_deserializer"} & options.keys()
