"""The demo's streams at full speed through the real service, with all families of the dashboards, scraped by a real Prometheus."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
import yaml

from grafana.generate.query import EXTRA_FAMILIES
from monitor import cli
from monitor.app import Engine
from monitor.clock import ScaledClock, SystemClock
from monitor.config_file import load_config
from monitor.demo.replay import HoldingClock, Recording, ReplaySource, read_recording
from monitor.demo.show import CONFIG
from monitor.duration import DAY_MS
from monitor.export.backfill_series import Scope
from monitor.export.publisher import Publisher
from monitor.metrics.catalogue import CATALOGUE
from monitor.pipeline.sweep import Moment
from monitor.prometheus_address import parse_address
from monitor.service import Service
from monitor.sources.protocol import SourceStatus
from tests.services.prometheus import PrometheusServer

FIRING = {"alert": "CalmonExample", "expr": 'calmon_predictions{window="100d",segment="all"} > 0', "labels": {"severity": "page"}}
"""An alert that fires, for what shows alerts."""

DAYS_A_SECOND = 12
PATIENCE_S = 90.0


class KafkaLike(ReplaySource):
    """A replay that tells what a Kafka source tells of itself; what that is worth, tests of the Kafka source show."""

    def status(self) -> SourceStatus:
        """As of a source that is behind and has given something up."""
        at_ms = self._clock.now_ms()
        return SourceStatus(None, {"predictions-0": 3}, {"predictions-0": at_ms}, {"predictions-0": 1}, {"polls": 7})


@contextmanager
def scraped(folder: Path) -> Iterator[PrometheusServer]:
    """A Prometheus that has scraped the whole replay, and was told the end of it a second time, as a backfill."""
    config = load_config(str(_write_config(folder)))
    recordings = [read_recording(CONFIG.parent / name) for name in config.source.files]
    first_ms = min(int(one.arrival_ms[0]) for one in recordings)
    last_ms = max(int(one.arrival_ms[-1]) for one in recordings)
    recordings.append(Recording("broken", [b"no JSON"], np.array([first_ms], dtype=np.int64)))
    clock = HoldingClock(ScaledClock(first_ms, DAYS_A_SECOND * DAY_MS / 1000), last_ms)
    service = Service(config, Engine(config, clock, KafkaLike(recordings, clock)))
    rules = folder / "rules.yml"
    rules.write_text(yaml.safe_dump({"groups": [{"name": "test", "rules": [FIRING]}]}))
    service.start()
    try:
        with PrometheusServer([service.address], [rules], options=["--web.enable-remote-write-receiver"]) as prometheus:
            records = sum(len(one.lines) for one in recordings)
            prometheus.wait_for(f"calmon_records_consumed_total == {records} and calmon_clock_seconds * 1000 == {last_ms}", PATIENCE_S)
            # Two scrapes of the end, for what looks back.
            prometheus.wait_for(f"count_over_time((calmon_clock_seconds * 1000 == {last_ms})[5s:1s]) > 3")
            _write_back(service, prometheus)
            yield prometheus
    finally:
        service.close()


def _write_back(service: Service, prometheus: PrometheusServer) -> None:
    """What the longest window shows, once more as what is known now: of this moment by the clock that queries go by."""
    (window,) = (one for one in service.snapshot.windows if one.name == "100d")
    moment = Moment(SystemClock().now_ms(), window.start_ms, window.end_ms, window.blocks)
    with closing(Publisher(parse_address(prometheus.url))) as publisher:
        assert publisher.publish(Scope("flights", "raw", window.name, CATALOGUE), [moment]).written > 0


def _write_config(folder: Path) -> Path:
    """The demo's configuration with all that the dashboards show, and the reference that it names."""
    told = yaml.safe_load(CONFIG.read_text())
    # A horizon, so that some labels are too late to be joined.
    told["state"] = {"directory": str(folder / "state"), "horizon": "30d", "history": "110d"}
    told["evaluation"] = {"tick": "500ms", "families": list(EXTRA_FAMILIES)}
    told["http"] = {"address": "127.0.0.1", "port": 0}
    told["models"]["flights"]["reference"] = "beginning"
    path = folder / "calmon.yaml"
    path.write_text(yaml.safe_dump(told))
    beginning = folder / "beginning.ndjson"
    beginning.write_bytes(b"\n".join(gzip.decompress((CONFIG.parent / "flights.ndjson.gz").read_bytes()).splitlines()[:3000]) + b"\n")
    words = ["reference", "set", "beginning", "--model", "flights", "--version", "raw", "-c", str(path), "--from", str(beginning)]
    assert cli.main(words) == 0
    return path
