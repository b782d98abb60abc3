"""SIGKILL between produce and confirmation, and anywhere else: each refused record is in the topic exactly once."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from monitor.state import keys
from monitor.state.rocks import RocksStore
from tests.kafka_quarantine.topic import fields, read
from tests.kafka_quarantine.victim import RECORDS, events, key
from tests.services.kafka import Kafka

ROOT = Path(__file__).parents[2]


def run_victim(kafka: Kafka, folder: Path, topic: str, kills: Sequence[Mapping[str, object]]) -> list[str]:
    """Carry out a plan; its log."""
    log = folder / "log"
    plan = {"state": str(folder / "state"), "bootstrap": kafka.bootstrap, "topic": topic, "log": str(log), "kills": kills}
    (folder / "plan.json").write_text(json.dumps(plan))
    command = [sys.executable, "-m", "tests.kafka_quarantine.victim", str(folder / "plan.json")]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=200, check=False)
    assert result.returncode == 0, result.stderr
    return log.read_text().splitlines()


def described(record: Any) -> tuple[int, int, bytes | None, bytes]:
    """What makes a quarantine record: offset, index, key, value."""
    found = fields(record)
    assert (found["topic"], found["partition"], found["reason"], found["kind"]) == ("labels", "0", "bad_json", "unknown")
    return int(found["offset"]), int(found["index"]), record.key, record.value


def check(kafka: Kafka, folder: Path, topic: str) -> None:
    """Compare the topic with what had to be refused; nothing waits any more."""
    expected = [
        (offset, index, key(offset), event)
        for offset in range(RECORDS)
        for index, event in enumerate(events(offset))
        if event.startswith(b"broken")
    ]
    records = read(kafka, topic)
    assert sorted((described(record) for record in records), key=lambda row: row[:2]) == expected
    assert sorted(int(fields(record)["sequence"]) for record in records) == list(range(len(expected)))
    assert len({fields(record)["state"] for record in records}) == 1
    store = RocksStore(folder / "state")
    assert list(store.scan(*keys.prefix_range(b"q"))) == []
    store.close()


@pytest.mark.parametrize("point", ["start", "joined", "committed", "applied", "sent", "acknowledged", "drained"])
def test_killed_at_a_point(kafka: Kafka, tmp_path: Path, point: str) -> None:
    topic = kafka.new_topic("quarantine", 3)
    times = {"start": (1, 1), "sent": (1, 70, 25), "acknowledged": (1, 2, 3)}.get(point, (1, 4, 3))
    log = run_victim(kafka, tmp_path, topic, [{"point": point, "nth": nth} for nth in times])
    assert log.count("killed") == len(times)
    if point == "acknowledged":
        assert len(read(kafka, topic, "read_uncommitted")) > len(read(kafka, topic))
    check(kafka, tmp_path, topic)


def test_killed_at_any_moment(kafka: Kafka, tmp_path: Path) -> None:
    topic = kafka.new_topic("quarantine", 3)
    chance = random.Random(3)  # noqa: S311 - the same moments every time, as far as the machine allows
    kills = [{"drained": chance.randint(1, 2), "then_s": chance.uniform(0, 0.06)} for _ in range(8)]
    log = run_victim(kafka, tmp_path, topic, kills)
    assert log.count("start") == 9
    assert log.count("done") < 8  # most attempts did not get to the end
    check(kafka, tmp_path, topic)


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("number", range(15))
def test_killed_at_moments_that_nobody_chose(kafka: Kafka, tmp_path: Path, number: int) -> None:
    del number
    topic = kafka.new_topic("quarantine", 3)
    chance = random.Random()  # noqa: S311 - other moments every time
    run_victim(kafka, tmp_path, topic, [{"drained": chance.randint(1, 2), "then_s": chance.uniform(0, 0.08)} for _ in range(8)])
    check(kafka, tmp_path, topic)
