"""Refuses records into a quarantine topic in a process of its own that is killed: at a point, or at any moment.

Run as `python -m tests.kafka_quarantine.victim PLAN.json`. Each attempt is a forked child, killed by SIGKILL, so that the
next one finds only what is on disk and at the broker; the last attempt of a plan reads to the end.
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

from monitor.clock import ManualClock
from monitor.events.decode import Decoder
from monitor.events.record import HeadTable
from monitor.export.quarantine_topic import TopicSink
from monitor.join.horizon import Horizon
from monitor.pipeline.processor import Processor
from monitor.pipeline.quarantine import Outbox
from monitor.pipeline.runner import Runner
from monitor.pipeline.shard import Shard
from monitor.pipeline.upkeep import Upkeep
from monitor.pipeline.worker import Worker
from monitor.sources.protocol import WHOLE, Position, Slice, SourceStatus, never
from monitor.state.rocks import RocksStore
from tests.recovery.attempts import LateKill, make_attempts

PARTITION = "labels-0"
RECORDS = 1_200
BATCH = 20
TIME_MS = 1_780_272_000_000
Reached = Callable[[str], None]


def events(offset: int) -> list[bytes]:
    """Events of a Kafka record: most are refused, some records have several."""
    if offset % 5 == 0:
        return [b'{"prediction_id":"p%d","label":"yes","labelled_at":%d}' % (offset, TIME_MS)]
    return [b"broken %d" % (offset // 7)] * (1 + 2 * (offset % 11 == 0))


def key(offset: int) -> bytes | None:
    """A Kafka record's key."""
    return None if offset % 3 == 0 else b"p%d" % offset


class RecordSource:
    """Delivers what a Kafka source would, without a broker of its own."""

    def __init__(self) -> None:
        self._next = 0

    def start(self, positions: Mapping[str, Position], given_up: Callable[[], bool] = never) -> None:
        """Go to the stored offset."""
        del given_up
        self._next = int(positions.get(PARTITION, {"offset": 0})["offset"])

    def poll(self, max_records: int, timeout_s: float) -> Sequence[Slice]:
        """The events of the next records."""
        del timeout_s
        rows = [(offset, event) for offset in range(self._next, min(self._next + max_records, RECORDS)) for event in events(offset)]
        if not rows:
            return []
        offsets = [offset for offset, _ in rows]
        self._next = offsets[-1] + 1
        values = [event for _, event in rows]
        keys = [key(offset) for offset in offsets]
        return [Slice(PARTITION, "label", values, offsets, {"offset": self._next}, [TIME_MS] * len(rows), WHOLE, keys)]

    def committed(self, positions: Mapping[str, Position]) -> None:
        """Nothing to do."""

    def status(self) -> SourceStatus:
        """Nothing to tell."""
        return SourceStatus()

    def live_partitions(self, shard: str = WHOLE) -> frozenset[str]:
        """The only one."""
        del shard
        return frozenset((PARTITION,))

    @property
    def exhausted(self) -> bool:
        """Whether all is delivered."""
        return self._next == RECORDS

    def close(self) -> None:
        """Nothing to release."""


def producer_with(reached: Reached) -> type[Any]:
    """A producer that tells when a record of an open transaction is at the broker, and before."""

    class TellingProducer(KafkaProducer):  # type: ignore[misc]
        def send(self, *args: Any, **options: Any) -> Any:
            sent = super().send(*args, **options)
            reached("sent")
            if options["value"] == b"broken 30":
                sent.get(10)
                reached("acknowledged")
            return sent

    return TellingProducer


def make_runner(plan: Mapping[str, Any], reached: Reached) -> Runner:
    """The pipeline, with a topic as its quarantine."""
    source, clock = RecordSource(), ManualClock(TIME_MS)

    def new_worker(name: str) -> Worker:
        shard = Shard(RocksStore(Path(plan["state"])), None, ())
        heads, horizon = HeadTable(), Horizon(None)
        outbox = Outbox(shard, TopicSink({"bootstrap_servers": plan["bootstrap"]}, plan["topic"]))
        processor = Processor(shard, Decoder(lambda model: None, heads), heads, horizon, outbox, reached)
        return Worker(shard, processor, Upkeep(shard, heads, horizon, None, clock, lambda: source.live_partitions(name), reached), outbox)

    runner = Runner(source, new_worker, clock)
    runner.worker(WHOLE)
    return runner


def attempt(plan: Mapping[str, Any], kill: Mapping[str, Any] | None) -> None:
    """Read to the end, or be killed."""
    log = os.open(plan["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    counts: dict[str, int] = {}

    def reached(point: str) -> None:
        counts[point] = counts.get(point, 0) + 1
        os.write(log, point.encode() + b"\n")
        if kill is not None and (point, counts[point]) == (kill.get("point"), kill.get("nth")):
            os.write(log, b"killed\n")
            os.kill(os.getpid(), signal.SIGKILL)

    setattr(sys.modules[TopicSink.__module__], "KafkaProducer", producer_with(reached))  # noqa: B010 - no name that is exported
    runner = make_runner(plan, reached)
    reached("start")
    runner.start()
    while runner.step(BATCH):
        pass
    outbox = runner.workers[WHOLE].outbox
    while outbox.waiting:
        runner.step(BATCH)
    runner.close()
    os.write(log, b"done\n")


def main(plan_path: str) -> int:
    """Make every attempt of a plan; 0 if each ended as planned."""
    plan = json.loads(Path(plan_path).read_bytes())
    log = Path(plan["log"])
    log.touch()
    return make_attempts(plan["kills"], log, lambda kill: attempt(plan, kill), LateKill("drained", b"drained"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
