"""Playing a history through the product: an engine in memory that can be fed, restarted and looked at."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from monitor.app import Engine
from monitor.clock import ManualClock
from monitor.config import Config, QuarantineConfig, StateConfig, WindowConfig
from monitor.config_model import ModelConfig
from monitor.events.contract import RecordKind
from monitor.pipeline.digest import dump
from monitor.pipeline.pages import render_snapshot
from tests.doubles.list_source import ListSource
from tests.doubles.memory_store import MemoryStore
from tests.oracle import metrics as oracle

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS

Records = Sequence[tuple[str, bytes]]
"""(partition, bytes) in the order of delivery."""

WINDOWS = (
    WindowConfig(name="1h", length_ms=HOUR_MS),
    WindowConfig(name="6h", length_ms=6 * HOUR_MS, lag_ms=DAY_MS),
    WindowConfig(name="24h", length_ms=DAY_MS, lag_ms=2 * DAY_MS),
    WindowConfig(name="72h", length_ms=3 * DAY_MS),
)
"""Two that move by the minute and two that move by the hour; the first and the last do not wait for labels."""


WATCHED: Mapping[str, Mapping[str, Any]] = {
    "m": {"positive_class": "b", "positive_edges": (0.0, 0.2, 0.5, 0.9), "classwise": True, "temperature": True},
    "n": {"positive_class": "a", "temperature": True},
    "o": {"classwise": True},
}
"""Keys, by model, that turn on the sums that only the integers are compared of: the oracle has no gauges of them."""


def model_config(config: oracle.ModelConfig, watched: Mapping[str, Any] | None = None) -> ModelConfig:
    """What the oracle is told about a model, as the product is told it; every key is set, so nothing is inherited."""
    bins = {"bins": config.bins, "scheme": config.scheme} if config.edges is None else {"edges": config.edges}
    return ModelConfig.model_validate(
        bins
        | {
            "classes": config.classes or None,
            "ood_threshold": config.ood_threshold,
            "ood_high_is": config.ood_high_is,
            "confidence_threshold": config.confidence_threshold,
            "groups": config.groups,
            "max_group_values": config.max_group_values,
            "min_group_count": config.min_group_count,
            "selective_risk_budget": config.selective_risk_budget,
        }
        | dict(watched or {})
    )


def make_config(
    defaults: oracle.ModelConfig,
    models: Mapping[str, oracle.ModelConfig],
    horizon_ms: int | None,
    windows: Sequence[WindowConfig] = WINDOWS,
    history_ms: int | None = None,
    watched: Mapping[str, Mapping[str, Any]] | None = None,
) -> Config:
    """A configuration for an engine in memory; without `history_ms` panes are kept longer than any history here lasts."""
    extra = watched or {}
    return Config(
        state=StateConfig(directory="/nowhere", horizon_ms=horizon_ms, history_ms=history_ms or 90 * DAY_MS),
        windows=tuple(windows),
        defaults=model_config(defaults),
        models={name: model_config(models.get(name, defaults), extra.get(name)) for name in sorted({*models, *extra})},
    )


class Play:
    """One engine, and those that take over after each restart.

    Args:
        config: Of the first engine.
        records: What the source holds.
        quarantine: File for the refused records.
        now_ms: What the clock shows at first.
        kinds: What the partitions carry; `any` by default.
        follow: Whether the source's partitions never end.
    """

    def __init__(
        self,
        config: Config,
        records: Records,
        quarantine: Path,
        now_ms: int,
        kinds: Mapping[str, RecordKind] | None = None,
        follow: bool = False,
    ) -> None:
        self.clock = ManualClock(now_ms)
        self.store = MemoryStore()
        self.fed = 0
        self._records = records
        self._kinds = kinds
        self._follow = follow
        self._quarantine = quarantine
        self.engine = self._engine(config)

    def _engine(self, config: Config) -> Engine:
        self._config = config.model_copy(update={"quarantine": QuarantineConfig(file=str(self._quarantine))})
        source = ListSource(self._records, self._kinds, self._follow)
        engine = Engine(self._config, self.clock, source, self.store)
        engine.runner.start()
        return engine

    def feed(self, records: int) -> int:
        """One batch; how many records it had."""
        count = self.engine.runner.step(records, 0.0)
        self.fed += count
        return count

    def feed_all(self, batch: int = 5_000) -> None:
        """Batches to the end."""
        while self.feed(batch):
            pass

    def restart(self, config: Config | None = None) -> None:
        """Go on with a new engine on what the store holds; the old one is dropped as in a crash."""
        self.engine = self._engine(config or self._config)

    def twin(self, quarantine: Path) -> Engine:
        """A new engine on a copy of the store, which has made nothing of what it shows step by step."""
        config = self._config.model_copy(update={"quarantine": QuarantineConfig(file=str(quarantine))})
        return Engine(config, self.clock, ListSource([]), self.store.copy())

    def dump(self, start_ms: int | None = None, end_ms: int | None = None) -> list[bytes]:
        """The canonical dump."""
        return list(dump([self.engine.shard], start_ms, end_ms))

    def tick(self, now_ms: int) -> list[tuple[str, dict[str, str], float]]:
        """Set the clock, tick, and read back every sample of `/metrics`."""
        self.clock.set(now_ms)
        page = render_snapshot(self.engine.evaluator.tick()).metrics.decode()
        return [
            (sample.name, dict(sample.labels), sample.value) for family in text_string_to_metric_families(page) for sample in family.samples
        ]


@contextmanager
def quarantine_file() -> Iterator[Path]:
    """A path for a quarantine, gone afterwards."""
    with tempfile.TemporaryDirectory() as directory:
        yield Path(directory) / "quarantine.ndjson"
