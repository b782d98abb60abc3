"""Shards in memory that have read records, and a question about them whose answers can be compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from monitor.app import Engine
from monitor.clock import ManualClock
from monitor.config import Config
from monitor.config_file import parse_config
from monitor.metrics.catalogue import CATALOGUE
from monitor.pipeline.configured import settings_of
from monitor.pipeline.report import models_report
from monitor.pipeline.shard import Shard
from monitor.pipeline.sweep import Moment, Question, sweep
from monitor.sources.protocol import Position, never
from monitor.windows.running import WindowSpec
from tests.doubles.list_source import ListSource
from tests.doubles.memory_store import MemoryStore

DEFAULTS = "groups: [region, shop], ood_threshold: 0.0, confidence_threshold: 0.7, positive_class: 'yes', min_group_count: 5"


def config(folder: Path, bins: int = 15) -> Config:
    """A configuration with groups, thresholds and a window of minutes."""
    head = f"state: {{directory: unused, horizon: none}}\nquarantine: {{file: {folder / 'quarantine.ndjson'}}}\n"
    return parse_config(f"{head}windows: [{{name: 6h, length: 6h}}]\ndefaults: {{{DEFAULTS}, bins: {bins}}}\n", "test", {})


def shard_of(values: Sequence[bytes], configured: Config, store: MemoryStore | None = None) -> Shard:
    """A shard that has read some records, after those that its store holds already; all its panes are kept by the minute."""
    store = MemoryStore() if store is None else store
    source = _NewPartition([(f"life-{store.commits}", value) for value in values])
    engine = Engine(configured, ManualClock(0), source=source, store=store)
    engine.runner.start()
    while engine.runner.step(500):
        pass
    return engine.shard


class _NewPartition(ListSource):
    """Each life of a service reads a partition of its own; those of earlier lives are gone."""

    def start(self, positions: Mapping[str, Position], given_up: Callable[[], bool] = never) -> None:
        """Begin at the beginning."""
        super().start({}, given_up)


def answers(
    shards: Sequence[Shard], configured: Config, version: str, window: WindowSpec, moments: Sequence[int]
) -> list[tuple[int, int, int, dict[str, Any]]]:
    """Every metric of a version at moments, in their order; an undefined one is None."""
    question = Question("m", version, window, CATALOGUE, settings_of(configured), {})
    return [_answer(moment) for moment in sweep(shards, question, moments)]


def _answer(moment: Moment) -> tuple[int, int, int, dict[str, Any]]:
    return moment.at_ms, moment.start_ms, moment.end_ms, models_report(moment.blocks)
