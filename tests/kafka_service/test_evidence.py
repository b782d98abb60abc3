"""Evidence over four shards of real topics: nothing enters before every partition is read, and then all of it does."""

from __future__ import annotations

import random
import time
from pathlib import Path

from monitor.app import Engine
from monitor.clock import ManualClock
from monitor.config_file import load_config
from monitor.duration import DAY_MS
from tests.doubles.evidence_stream import course, made, records, same
from tests.integration.running import PATIENCE_S
from tests.kafka_service.topics import Topics
from tests.recovery.stream import START_MS
from tests.services.kafka import Kafka

EVENTS = made(31, range(60), {"good": lambda c, hour: c, "bad": lambda c, hour: c - 0.3}, per_hour=10)


def test_evidence_of_four_shards_is_that_of_the_events(kafka: Kafka, tmp_path: Path) -> None:
    lines = [line for _, line in records(EVENTS)]
    topics = Topics(kafka, 4)
    topics.send(lines, random.Random(5), several=False)  # noqa: S311 - the same batches every time
    config = load_config(topics.config(tmp_path), {})
    clock = ManualClock(START_MS + 5 * DAY_MS)
    engine = Engine(config, clock)
    try:
        engine.runner.start()
        assert engine.tracker is not None
        engine.evaluator.tick()
        assert engine.tracker.book.courses == {}
        deadline = time.monotonic() + PATIENCE_S
        while not engine.tracker.book.courses and time.monotonic() < deadline:
            engine.runner.step(50)
            engine.evaluator.tick()
        while engine.evaluator.tick().evidence.matured_until_ms != START_MS + 3 * DAY_MS and time.monotonic() < deadline:
            engine.runner.step()
        book = engine.tracker.book
        assert {len(shard.newest_ms) for shard in engine.shards} == {2}
        assert book.courses.keys() == {("m", "good"), ("m", "bad")}
        assert all(same(one, course(EVENTS, version)) for (_, version), one in book.courses.items())
        assert {entry.version for entry in book.journal} == {"bad"}
        standings = engine.evaluator.snapshot.evidence.standings
        assert [one.restated for one in standings] == [False, False]
        journal = book.journal
    finally:
        engine.close()
    again = Engine(config, clock)
    try:
        assert again.tracker is not None
        assert again.tracker.book.journal == journal
        # Nothing has been read yet, and what entered before is there.
        assert again.evaluator.tick().evidence.standings == standings
    finally:
        again.close()
