"""Reads topics to their ends in a process that is killed: at the n-th time it reaches a point, or at any moment.

Run as `python -m tests.kafka_service.victim PLAN.json`. Each attempt is a child, forked before there is any Kafka client and
killed by SIGKILL; the last attempt of a plan reads to the end. The log has one JSON object a line. Beside the points of a
checkpoint there are: `mirror`, the checkpoint is stored and the group's offsets are not yet committed; `acknowledged`, the
broker has a refused record in an open transaction; `delivered`, the quarantine has them for good, which is not yet stored.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from kafka import KafkaProducer

from monitor import app, kafka_wiring
from monitor.clock import ManualClock
from monitor.config import Config
from monitor.config_file import load_config
from monitor.export import quarantine_topic
from monitor.export.quarantine_sink import Entry
from monitor.export.quarantine_topic import TopicSink
from monitor.sources.kafka import KafkaSource
from monitor.sources.kafka_settings import KafkaSettings
from monitor.sources.protocol import Position, Slice, never
from tests.recovery.attempts import LateKill, make_attempts
from tests.recovery.victim import AFTER_EVERYTHING_MS, Log


class WatchedSource(KafkaSource):
    """Notes where reading begins, what is read, and what a checkpoint has stored."""

    def __init__(self, config: Config, log: Log, reached: Callable[[str], None]) -> None:
        kafka = config.source.kafka
        assert kafka is not None
        settings = KafkaSettings(
            kafka.bootstrap_servers, kafka.group_id, kafka.predictions, kafka.labels, kafka.shards == "one", client_id=kafka.group_id
        )
        super().__init__(settings)
        self._log = log
        self._reached = reached
        self.left = 1 << 60

    @property
    def behind(self) -> bool:
        """Whether there is something left of what the topics held at the start; they go on, as far as the pipeline knows."""
        return any(self.status().lag_records.values())

    def start(self, positions: Mapping[str, Position], given_up: Callable[[], bool] = never) -> None:
        """Note the stored positions, then start."""
        self._log.note("start", offsets={name: position["offset"] for name, position in positions.items()})
        super().start(positions, given_up)

    def poll(self, max_records: int, timeout_s: float) -> Sequence[Slice]:
        """Poll, and note what came and how much the shard with the least has left."""
        slices = super().poll(max_records, timeout_s)
        if slices:
            left: dict[str, int] = {}
            for name, lag in self.lags().items():
                shard = name.rpartition("-")[2]
                left[shard] = left.get(shard, 0) + lag.records
            self.left = min(left.values())
            read = {part.partition: [part.offsets[0], part.offsets[-1] + 1, len(part.values)] for part in slices}
            self._log.note("polled", read=read, left=self.left)
        return slices

    def committed(self, positions: Mapping[str, Position]) -> None:
        """Note what is stored, then tell the group."""
        self._log.note("stored", offsets={name: position["offset"] for name, position in positions.items()})
        self._reached("mirror")
        super().committed(positions)


def watch_quarantine(reached: Callable[[str], None], due: Callable[[str], bool]) -> None:
    """Tell when the broker has refused records, in every sink that is made from now on."""

    class WatchedSink(TopicSink):
        def deliver(self, entries: Sequence[Entry], mark: bytes, after_crash: bool) -> bytes:
            mark = super().deliver(entries, mark, after_crash)
            reached("delivered")
            return mark

    class WatchedProducer(KafkaProducer):  # type: ignore[misc] # kafka-python ships no types
        def send(self, *args: Any, **options: Any) -> Any:
            sent = super().send(*args, **options)
            if due("acknowledged"):
                sent.get(10)
            reached("acknowledged")
            return sent

    setattr(kafka_wiring, "TopicSink", WatchedSink)  # noqa: B010 - no name that is exported
    setattr(quarantine_topic, "KafkaProducer", WatchedProducer)  # noqa: B010


def attempt(config: Config, log: Log, batch: int, kill: Mapping[str, Any] | None, spared: int) -> None:
    """Read to the end, or be killed.

    Args:
        config: What to read and where the state is.
        log: Takes what happens.
        batch: Events in a batch.
        kill: `point` and `nth`, or None.
        spared: No kill once a shard has no more than so many records left: its last batches end with the upkeep that an
            account depends on.
    """
    counts: dict[str, int] = {}

    def due(point: str, more: int = 1) -> bool:
        wanted = kill is not None and (point, counts.get(point, 0) + more) == (kill.get("point"), kill.get("nth"))
        return wanted and source.left > spared

    def reached(point: str) -> None:
        counts[point] = counts.get(point, 0) + 1
        if due(point, 0):
            log.note("killed", point=point)
            os.kill(os.getpid(), signal.SIGKILL)

    source = WatchedSource(config, log, reached)
    watch_quarantine(reached, due)
    engine = app.Engine(config, ManualClock(AFTER_EVERYTHING_MS), source=source, reached=reached)
    reached("start")
    engine.runner.start()
    while source.behind:
        engine.runner.step(batch)
    while any(worker.outbox.waiting for worker in engine.runner.workers.values()):
        engine.runner.step(batch)
    engine.close()
    log.note("done")


def main(plan_path: str) -> int:
    """Make every attempt of a plan; 0 if each ended as planned."""
    plan = json.loads(Path(plan_path).read_bytes())
    config = load_config(plan["config"], {})
    log = Log(Path(plan["log"]))

    def spares(polled: Sequence[bytes]) -> bool:
        return bool(polled) and bool(json.loads(polled[-1])["left"] <= plan["spared"])

    return make_attempts(
        plan["kills"],
        Path(plan["log"]),
        lambda kill: attempt(config, log, plan["batch"], kill, plan["spared"]),
        LateKill("batches", b"polled", spares),
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
