"""What a dry run keeps in memory: a state may hold more panes than fit."""

from __future__ import annotations

import tracemalloc

from monitor.app import Engine
from monitor.backfill.labels.moves import changes
from monitor.clock import ManualClock
from monitor.config_file import parse_config
from monitor.duration import DAY_MS
from monitor.pipeline.shard import Shard
from monitor.statistics.pane import HOUR
from tests.doubles.list_source import ListSource
from tests.doubles.memory_store import MemoryStore
from tests.recovery.stream import START_MS, encode, label, prediction

DAYS, EACH_DAY = 40, 300
CONFIG = parse_config(
    "state: {directory: unused, horizon: none}\nwindows: [{name: 24h, length: 24h}]\nquarantine: {file: /dev/null}\n", "test", {}
)


def test_panes_of_all_days_are_never_in_memory_together() -> None:
    events = []
    for number in range(DAYS * EACH_DAY):
        at_ms = START_MS + number * DAY_MS // EACH_DAY
        events.append(encode(prediction(f"id-{number}", at_ms, 0.5 + number * 7919 % 4999 / 10_000)))
        events.append(encode(label(f"id-{number}", at_ms, ("yes", "no")[number % 2])))
    store = MemoryStore()
    engine = Engine(CONFIG, ManualClock(START_MS), source=ListSource([("events", event) for event in events]), store=store)
    engine.runner.start()
    while engine.runner.step(5_000):
        pass
    engine.close()
    days = Shard(store, None, ()).days()
    assert len(days) == DAYS
    every = Shard(store, None, ()).read(HOUR, days[0] * HOUR.panes_per_chunk, (days[-1] + 1) * HOUR.panes_per_chunk)
    before, after = Shard(store, None, ()), Shard(store, None, ())
    tracemalloc.start()
    try:
        assert changes(CONFIG, [before], [after]) == {}
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < (every.keys.nbytes + every.values.nbytes) / 4
