"""What a bulk backfill through Kafka does to a running service: scrape times and live lag beside those of the same run without it."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from kafka import KafkaProducer

from tests.integration.running import CALMON, ROOT, RunningCalmon, calmon, wait_until
from tests.kafka_service.topics import Topics
from tests.recovery.stream import DAY_MS, encode, label, prediction, write_lines
from tests.services.kafka import Kafka, open_client

OLD = 300_000
LIVE_A_SECOND = 200
IDLE_S = 20.0
LEAST_BUSY_S = 10.0
EVERY_S = 0.1
MOST = 2.0
"""What a backfill may do to the half of all scrapes, and to nine in ten lags; the rest is printed."""

OLD_MS = 1_780_272_000_000


class Sample(NamedTuple):
    """One scrape: how long it took, and how long ago the last live prediction that was read had been sent."""

    took_s: float
    live_lag_s: float


class LiveFeed(threading.Thread):
    """Sends predictions and their labels, as many a second, with the time that it is."""

    def __init__(self, topics: Topics) -> None:
        super().__init__()
        self._topics = topics
        self.enough = threading.Event()

    def run(self) -> None:
        """Send until it is enough."""
        with closing(open_client(KafkaProducer, bootstrap_servers=self._topics.kafka.bootstrap, linger_ms=0)) as producer:
            number = 0
            began_s = time.monotonic()
            while not self.enough.wait(max(0.0, began_s + number / LIVE_A_SECOND - time.monotonic())):
                now_ms, one = time.time_ns() // 1_000_000, f"live-{number}"
                producer.send(self._topics.predictions, encode(prediction(one, now_ms, 0.8)), key=one.encode(), timestamp_ms=now_ms)
                producer.send(self._topics.labels, encode(label(one, now_ms, "yes")), key=one.encode(), timestamp_ms=now_ms)
                number += 1


def watch(running: RunningCalmon, topics: Topics, until: float | subprocess.Popen[bytes]) -> list[Sample]:
    """Scrape until a time or the end of a process."""
    samples = []
    while time.monotonic() < until if isinstance(until, float) else until.poll() is None:
        began_s = time.monotonic()
        text = running.metrics()
        took_s = time.monotonic() - began_s
        prefix = f'calmon_source_read_until_timestamp_seconds{{partition="{topics.predictions}-'
        read_until_s = [float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith(prefix)]
        samples.append(Sample(took_s, time.time() - min(read_until_s)))
        time.sleep(max(0.0, began_s + EVERY_S - time.monotonic()))
    return samples


def describe(name: str, idle: Sequence[float], busy: Sequence[float]) -> dict[int, float]:
    """Print percentiles side by side; their ratios."""
    ratios = {}
    for percent in (50, 90, 99):
        before, during = float(np.percentile(idle, percent)), float(np.percentile(busy, percent))
        ratios[percent] = during / before
        print(f"{name:12} p{percent}: idle {1000 * before:7.1f} ms, during the backfill {1000 * during:7.1f} ms, x{ratios[percent]:.2f}")
    return ratios


@pytest.mark.bench
@pytest.mark.timeout(900)
@pytest.mark.parametrize("rate", [None, 1_000_000])
def test_scrapes_and_live_lag_beside_a_bulk_backfill(kafka: Kafka, tmp_path: Path, rate: int | None) -> None:
    topics = Topics(kafka, 2)
    config = topics.config(tmp_path)
    old = [encode(prediction(f"old-{number:07d}", OLD_MS + number * DAY_MS // OLD, 0.8)) for number in range(OLD)]
    assert calmon("produce", write_lines(tmp_path / "old.ndjson", old), "-c", config).returncode == 0
    labels = write_lines(
        tmp_path / "late.ndjson", [encode(label(f"old-{number:07d}", OLD_MS + DAY_MS + number, "yes")) for number in range(OLD)]
    )
    with RunningCalmon(config) as running:
        wait_until(lambda: running.value("calmon_records_consumed_total") == OLD, "the old predictions are read", 120)
        feed = LiveFeed(topics)
        feed.start()
        time.sleep(3)
        idle = watch(running, topics, time.monotonic() + IDLE_S)
        words = [] if rate is None else ["--rate", str(rate)]
        began_s = time.monotonic()
        process = subprocess.Popen(
            [*CALMON, "backfill", "labels", str(labels), "-c", str(config), *words], cwd=ROOT, stdout=subprocess.DEVNULL
        )
        busy = watch(running, topics, process)
        took_s = time.monotonic() - began_s
        feed.enough.set()
        feed.join()
        assert process.returncode == 0
        assert running.stop() == 0
    assert took_s > LEAST_BUSY_S
    print(f"\n{OLD:,} labels in {took_s:.1f} s ({OLD / took_s:,.0f}/s), {LIVE_A_SECOND} live predictions and labels a second")
    scrapes = describe("scrape", [one.took_s for one in idle], [one.took_s for one in busy])
    lags = describe("live lag", [one.live_lag_s for one in idle], [one.live_lag_s for one in busy])
    assert scrapes[50] < MOST
    assert scrapes[90] < MOST or rate is not None
    assert lags[50] < MOST
    assert lags[90] < MOST
