"""What a tick costs with 1,000 series keys, beside rendering the same samples with prometheus-client. Run by `make bench`."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Iterable
from pathlib import Path

import msgspec
import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from monitor.app import Engine
from monitor.clock import ManualClock
from monitor.config_file import parse_config
from monitor.pipeline.pages import render_snapshot

VERSIONS = 91
GROUPS = 10
EVENTS = 300
"""Predictions of a version, each with a label."""

ROUNDS = 7
HOUR_MS = 3_600_000
START_MS = 1_780_000_000_000 // HOUR_MS * HOUR_MS


class _Parsed(Collector):
    def __init__(self, families: list[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


def write_events(path: Path, rng: random.Random) -> None:
    with path.open("wb") as out:
        for number in range(VERSIONS * EVENTS):
            at = START_MS + number * 100
            p = round(rng.random(), 6)
            prediction: dict[str, object] = {"type": "prediction", "prediction_id": str(number), "model": "m"}
            prediction |= {"model_version": f"v{number % VERSIONS}"}
            prediction |= {
                "predicted_at": at,
                "probabilities": {"a": p, "b": 1 - p},
                "ood_score": rng.gauss(0, 1),
            }
            prediction["groups"] = {"region": f"r{rng.randrange(GROUPS)}"}
            label = {"type": "label", "prediction_id": str(number), "label": rng.choice("ab"), "labelled_at": at}
            out.writelines(msgspec.json.encode(event) + b"\n" for event in (prediction, label))


@pytest.mark.bench
@pytest.mark.timeout(600)
def test_tick_with_a_thousand_series_keys(tmp_path: Path) -> None:
    events = tmp_path / "events.ndjson"
    write_events(events, random.Random(5))  # noqa: S311 - reproducible, not secret
    content = {
        "source": {"files": [str(events)]},
        "state": {"directory": str(tmp_path / "state")},
        "windows": [{"name": "24h", "length": "24h"}],
        "defaults": {"groups": ["region"], "ood_threshold": 0.0, "confidence_threshold": 0.7},
    }
    clock = ManualClock(START_MS + 2 * HOUR_MS)
    engine = Engine(parse_config(msgspec.json.encode(content).decode(), "bench", {}), clock)
    engine.runner.start()
    while not engine.source.exhausted:
        engine.runner.step()
    ticks, renders = [], []
    for number in range(ROUNDS):
        clock.set(START_MS + (2 + number) * HOUR_MS)
        began = time.process_time()
        page = render_snapshot(engine.evaluator.tick()).metrics
        ticks.append(time.process_time() - began)
        registry = CollectorRegistry(auto_describe=False)
        registry.register(_Parsed(list(text_string_to_metric_families(page.decode()))))
        began = time.process_time()
        generate_latest(registry)
        renders.append(time.process_time() - began)
    keys = sum(1 for key in engine.shard.series if not key.segment.startswith("__"))
    samples = sum(1 for line in page.splitlines() if not line.startswith(b"#"))
    engine.close()
    ratio = statistics.median(tick / render for tick, render in zip(ticks, renders, strict=True))
    print(
        f"\ntick with {keys} series keys and {samples} samples: {ratio:.2f}x rendering the same samples with prometheus-client "
        f"({statistics.median(ticks) * 1e3:.0f} ms beside {statistics.median(renders) * 1e3:.0f} ms of CPU, median of {ROUNDS})"
    )
