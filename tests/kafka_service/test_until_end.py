"""Reading to the ends that the logs have at the start, and going on later: as if it had been one reading."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from monitor.app import Engine
from monitor.clock import ManualClock
from monitor.config_file import load_config
from monitor.pipeline.account import Account, merge_accounts
from monitor.pipeline.digest import digest, dump
from monitor.sources.kafka import KafkaSource
from monitor.sources.kafka_layout import Span
from monitor.sources.kafka_settings import KafkaSettings
from monitor.state import keys
from tests.kafka_service.topics import Topics
from tests.recovery.stream import DAY_MS, START_MS, encode, label, prediction
from tests.recovery.victim import AFTER_EVERYTHING_MS
from tests.services.kafka import Kafka

FIRST = [prediction(f"p{day}", START_MS + day * DAY_MS, 0.9) for day in range(30)] + [label("p1", START_MS + 3 * DAY_MS // 2, "yes")]
"""The predictions run far ahead of the labels, as on a day when those are late."""
LATER = [label(f"p{day}", START_MS + day * DAY_MS + DAY_MS // 2, "no") for day in range(2, 30)]


class Outcome(NamedTuple):
    """What is left of a reading."""

    rows: list[str]
    account: Account
    digest: str


def read(topics: Topics, folder: Path, *, until_end: bool) -> Outcome:
    """Read to the end of what is there, in one batch if it comes in one."""
    config = load_config(folder / "calmon.yaml", {})
    kafka = config.source.kafka
    assert kafka is not None
    settings = KafkaSettings(kafka.bootstrap_servers, kafka.group_id, kafka.predictions, kafka.labels, client_id=kafka.group_id)
    source = KafkaSource(settings, span=Span() if until_end else None)
    engine = Engine(config, ManualClock(AFTER_EVERYTHING_MS), source=source)
    engine.runner.start()
    while not source.exhausted if until_end else any(source.status().lag_records.values()):
        engine.runner.step()
    found = [key[1:].decode() for shard in engine.shards for key, _ in shard.store.scan(*keys.prefix_range(keys.ROW))]
    outcome = Outcome(sorted(found), merge_accounts([shard.account for shard in engine.shards]), digest(dump(engine.shards)))
    engine.close()
    return outcome


def send(topics: Topics, events: Sequence[object]) -> None:
    topics.send([encode(event) for event in events], random.Random(0), several=False)  # noqa: S311 - any


def test_two_readings_are_one(kafka: Kafka, tmp_path: Path) -> None:
    topics = Topics(kafka, 1)
    state = {"horizon": "2d", "history": "90d"}
    folders = [tmp_path / name for name in ("apart", "live")]
    for folder in folders:
        folder.mkdir()
        topics.config(folder, state={"directory": str(folder / "state"), **state})
    apart, live = folders
    send(topics, FIRST)
    first = read(topics, apart, until_end=True)
    assert first.rows == sorted(f"p{day}" for day in range(30))  # none may go: the labels' log goes on
    assert first == read(topics, live, until_end=False)
    send(topics, LATER)
    second = read(topics, apart, until_end=True)
    assert second.account.outcomes[("label", "applied")] == len(LATER) + 1
    assert second.account.pending < first.account.pending
    assert 0 < len(second.rows) < 30  # the last batch was followed by its upkeep
    assert second == read(topics, live, until_end=False)
