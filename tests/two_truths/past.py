"""Two days of two versions, whose labels come late and are corrected: what calmon showed then, and what it knows now."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from monitor.app import Engine
from monitor.clock import ManualClock
from monitor.config_file import load_config
from monitor.export.backfill_series import Scope
from monitor.metrics.catalogue import CATALOGUE
from monitor.pipeline.configured import exported_metrics, settings_of
from monitor.pipeline.pages import render_snapshot
from monitor.pipeline.sweep import Moment, Question, sweep
from monitor.windows.running import WindowSpec
from tests.alerts_month.blocks import scraped
from tests.doubles.list_source import ListSource
from tests.recovery.stream import HOUR_MS, MINUTE_MS, encode, label, prediction

HOURS = 48
BEGINS = {"v1": 0, "v2": 9}
"""Hour of each version's first prediction."""

MODEL, VERSION, WINDOW = "m", "v2", "day"
BEGIN_MS = (time.time_ns() // 1_000_000 // HOUR_MS - 72) * HOUR_MS
"""Some days ago by the wall clock, which a real Prometheus goes by."""

MOMENTS = range(BEGIN_MS + 4 * HOUR_MS, BEGIN_MS + 66 * HOUR_MS, HOUR_MS)
"""From before the version's first prediction until after the last one has left the window."""

_SHOWN_UNTIL_MS = BEGIN_MS + 50 * HOUR_MS
_CONFIG = """
state: {{directory: {folder}/state, horizon: none}}
windows: [{{name: day, length: 12h, lag: 2h}}]
defaults: {{bins: 4, groups: [region], min_group_count: 5, confidence_threshold: 0.7}}
evaluation: {{families: [classes, reliability, comparison]}}
"""
_BATCH = 5_000

Page = dict[tuple[tuple[str, str], ...], float]
"""Values by name (as `__name__`) and labels, sorted."""


class Past:
    """A state on disk that a service has left, and the page that it showed every hour.

    Args:
        folder: Where configuration and state are made.

    Attributes:
        config: Path of the configuration.
        shown: The pages as OpenMetrics text, as scraped every hour.
    """

    def __init__(self, folder: Path) -> None:
        self.config = folder / "calmon.yaml"
        self.config.write_text(_CONFIG.format(folder=folder))
        self._records = in_time()
        self.shown = folder / "shown.txt"
        clock = ManualClock(BEGIN_MS)
        engine = self._engine(clock)
        try:
            engine.runner.start()
            arrived = [at_ms for at_ms, _ in self._records]
            done = 0
            with self.shown.open("w") as file:
                for now_ms in range(BEGIN_MS, _SHOWN_UNTIL_MS, HOUR_MS):
                    clock.set(now_ms)
                    count = bisect_right(arrived, now_ms) - done
                    if count:
                        done += engine.runner.step(count, 0)
                    file.writelines(scraped(_page(engine), now_ms))
                file.write("# EOF\n")
        finally:
            engine.close()

    def read(self, records: Sequence[bytes]) -> None:
        """Let further records arrive after everything else."""
        self._records = [*self._records, *((0, record) for record in records)]
        engine = self._engine(ManualClock(_SHOWN_UNTIL_MS))
        try:
            engine.runner.start()
            while engine.runner.step(_BATCH, 0):
                pass
        finally:
            engine.close()

    def known_now(self, moments: Sequence[int] = MOMENTS, version: str = VERSION) -> dict[int, Page]:
        """What a service would show now if its clock were put back: of one version, renamed to what is backfilled."""
        clock = ManualClock(0)
        engine = self._engine(clock)
        try:
            found = {}
            for at_ms in moments:
                clock.set(at_ms)
                found[at_ms] = _of_version(_page(engine), version)
            return found
        finally:
            engine.close()

    def moments(self, stamps: Sequence[int] = MOMENTS) -> list[Moment]:
        """Windows at moments, as known now."""
        config = load_config(str(self.config))
        engine = self._engine(ManualClock(0))
        try:
            question = Question(MODEL, VERSION, WindowSpec(WINDOW, 12 * HOUR_MS, 2 * HOUR_MS), self.scope.metrics, settings_of(config), {})
            return list(sweep(engine.shards, question, stamps))
        finally:
            engine.close()

    @property
    def scope(self) -> Scope:
        """Every series that the service exports of the version."""
        return Scope(MODEL, VERSION, WINDOW, exported_metrics(load_config(str(self.config))))

    def _engine(self, clock: ManualClock) -> Engine:
        source = ListSource([("events", record) for _, record in self._records])
        return Engine(load_config(str(self.config)), clock, source, weigh=False)


def in_time() -> list[tuple[int, bytes]]:
    """Predictions, and the labels that came within ten minutes, by the time at which they came."""
    records = []
    for hour in range(HOURS):
        for number in range(8):
            for version in (name for name, first in BEGINS.items() if hour >= first):
                at_ms = BEGIN_MS + hour * HOUR_MS + number * 7 * MINUTE_MS
                one = _id(hour, number, version)
                confidence = 0.52 + (hour * 5 + number * 7) % 12 * 0.04
                more = {"groups": {"region": ("eu", "us")[number % 2]}}
                records.append((at_ms, encode(prediction(one, at_ms, confidence, version, MODEL, **more))))
                if (hour + number) % 3:
                    records.append((at_ms + 10 * MINUTE_MS, encode(label(one, at_ms + 10 * MINUTE_MS, ("yes", "no")[number % 4 == 0]))))
    return sorted(records)


def late_labels() -> list[bytes]:
    """The labels that did not come in time: more of them are wrong."""
    last_ms = BEGIN_MS + HOURS * HOUR_MS
    held = [(hour, number) for hour in range(HOURS) for number in range(8) if (hour + number) % 3 == 0]
    return [
        encode(label(_id(hour, number, version), last_ms, ("yes", "no")[number % 2]))
        for hour, number in held
        for version, first in BEGINS.items()
        if hour >= first
    ]


def corrections() -> list[bytes]:
    """Labels of some hours changed once more."""
    last_ms = BEGIN_MS + HOURS * HOUR_MS
    return [encode(label(_id(hour, 3, VERSION), last_ms + 1, "no", revision=1)) for hour in range(20, 26)]


def _id(hour: int, number: int, version: str) -> str:
    return f"{version}-{hour:02}-{number}"


def _page(engine: Engine) -> str:
    return render_snapshot(engine.evaluator.tick()).metrics.decode()


def _of_version(page: str, version: str) -> Page:
    gauges = {"calmon_" + metric.gauge: "calmon_backfill_" + metric.gauge for metric in CATALOGUE}
    found: Page = {}
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            if sample.name in gauges and sample.labels["model_version"] == version:
                found[tuple(sorted({"__name__": gauges[sample.name], **sample.labels}.items()))] = sample.value
    return found
