"""Batches that cannot be read: their neighbours are, every one of their offsets is counted, and no poll hangs.

kafka-python 3.0.12 by itself would spin for ever at the poll after the exception.
"""

from __future__ import annotations

import json
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import crc32c
import pytest

from monitor.app import Engine
from monitor.clock import ManualClock
from monitor.config_file import parse_config
from monitor.pipeline.account import merge_accounts
from monitor.sources.kafka_layout import Span
from monitor.sources.protocol import Slice
from tests.kafka.topics import TIME_MS, Topics, positions_after, read, rows
from tests.services.kafka import KafkaBroker

_CRC_AT, _CRC_FROM = 17, 21  # in a batch of format 2


@pytest.fixture(scope="module")
def broker() -> Iterator[KafkaBroker]:
    """A local one, not a container: its log is changed on the disk."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tests.services.kafka.docker_answers", lambda: False)
        with KafkaBroker() as running:
            yield running


def damage(log: Path, batch: int, mend_crc: bool) -> None:
    """Overwrite the end of a batch; perhaps so that its CRC is right all the same."""
    data = bytearray(log.read_bytes())
    start = 0
    for _ in range(batch):
        start += 12 + struct.unpack_from(">i", data, start + 8)[0]
    end = start + 12 + struct.unpack_from(">i", data, start + 8)[0]
    data[end - 40 : end] = b"\xff" * 40
    if mend_crc:
        struct.pack_into(">I", data, start + _CRC_AT, crc32c.crc32c(bytes(data[start + _CRC_FROM : end])))
    log.write_bytes(data)


CASES = [(None, False), ("gzip", False), (None, True), ("gzip", True), ("zstd", True), ("lz4", True), ("snappy", True)]
VALUES = [b'{"number":%d,"pad":"%s"}' % (number, b"abcdefghij" * 5) for number in range(30)]


@pytest.fixture(scope="module")
def damaged(broker: KafkaBroker) -> dict[tuple[str | None, bool], Topics]:
    """For each case topics with three batches of ten records in partition 0, the second damaged; partition 1 is whole."""
    made = {case: Topics(broker) for case in CASES}
    for (codec, _), topics in made.items():
        for first in (0, 10, 20):  # a producer each, so a batch each
            topics.append(topics.predictions, 0, VALUES[first : first + 10], compression_type=codec, linger_ms=100)
        topics.append(topics.predictions, 1, VALUES)
    broker.stop()
    for (_, mend_crc), topics in made.items():
        (log,) = broker.ca_file.parent.rglob(f"{topics.predictions}-0/*0.log")
        damage(log, 1, mend_crc)
    broker.restart()
    return made


@pytest.mark.parametrize(("codec", "mend_crc"), CASES)
def test_neighbours_of_an_unreadable_batch(damaged: dict[tuple[str | None, bool], Topics], codec: str | None, mend_crc: bool) -> None:
    topics, values = damaged[codec, mend_crc], VALUES
    name = f"{topics.predictions}-0"
    with topics.started() as source:
        slices: list[Slice] = []
        longest_s = 0.0
        deadline = time.monotonic() + 30
        while sum(len(part.values) for part in slices) < 60 and time.monotonic() < deadline:
            began = time.monotonic()
            slices += source.poll(7, 0.2)
            longest_s = max(longest_s, time.monotonic() - began)
        assert longest_s < 2
        assert not source.poll(7, 0.2)
        assert 1 <= source.counts["unreadable_records"] <= 10
    assert [offset for offset, _ in rows(slices, name)] == list(range(30))
    assert rows(slices, f"{topics.predictions}-1") == list(enumerate(values))
    got = [value for _, value in rows(slices, name)]
    assert got[:10] == values[:10]
    assert got[20:] == values[20:]
    replaced = [value for value, sent in zip(got, values, strict=True) if value != sent]
    assert replaced
    assert all(value.startswith(b"calmon: unreadable: offsets 1") for value in replaced)
    cut = positions_after(slices[: len(slices) // 2])
    with topics.started(cut) as source:
        later = rows(read(source, 60 - sum(int(at["offset"]) for at in cut.values())), name)
    assert [offset for offset, _ in later] == list(range(int(cut[name]["offset"]), 30))


def test_each_unreadable_record_has_its_outcome_and_its_place_in_the_quarantine(
    damaged: dict[tuple[str | None, bool], Topics], tmp_path: Path
) -> None:
    topics = damaged[None, False]
    source = topics.source(Span())
    config = parse_config(f"state: {{directory: {tmp_path}, horizon: none}}\nquarantine: {{file: {tmp_path / 'refused'}}}", "test", {})
    engine = Engine(config, ManualClock(TIME_MS), source=source)
    engine.runner.start()
    while not source.exhausted:
        engine.runner.step()
    account = merge_accounts([shard.account for shard in engine.shards])
    engine.close()
    assert account.consumed == sum(account.outcomes.values()) == 60
    entries = [json.loads(line) for path in tmp_path.glob("refused*") for line in path.read_bytes().splitlines()]
    assert sorted((entry["partition"], entry["offset"]) for entry in entries) == [
        (f"{topics.predictions}-{number}", offset) for number in (0, 1) for offset in range(30)
    ]
    unreadable = [entry for entry in entries if entry["record"].startswith("calmon: unreadable: offsets 1")]
    assert unreadable
    assert {entry["reason"] for entry in unreadable} == {"bad_json"}
    assert all(entry["partition"] == f"{topics.predictions}-0" and 10 <= entry["offset"] < 20 for entry in unreadable)
