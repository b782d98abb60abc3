"""Reads a stream with a tick after each batch, in a process that is killed; what is left on disk is what the evidence goes on from.

Run as `python -m tests.recovery.evidence_victim PLAN.json`; see `victim`. Clock and ticks depend on what was read alone, so
that a tick after a restart sees what the one before it would have seen.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from monitor.app import Engine
from monitor.clock import ManualClock
from monitor.config import Config
from monitor.config_file import load_config
from monitor.duration import DAY_MS
from tests.recovery.attempts import LateKill, make_attempts
from tests.recovery.victim import Log

BATCH = 40


def begin(config: Config, reached: Callable[[str], None]) -> tuple[Engine, ManualClock]:
    """An engine that has read nothing yet, and its clock."""
    clock = ManualClock(0)
    engine = Engine(config, clock, reached=reached)
    engine.runner.start()
    return engine, clock


def read(engine: Engine, clock: ManualClock, polled: Callable[[], None]) -> None:
    """Read to the end and let everything mature."""
    more = 1
    while more:
        clock.set(max(engine.shard.newest_ms.values(), default=0))
        engine.evaluator.tick()
        more = engine.runner.step(BATCH)
        polled()
    clock.set(clock.now_ms() + 3 * DAY_MS)
    engine.evaluator.tick()


def attempt(config: Config, log: Log, kill: Mapping[str, Any] | None) -> None:
    """Read to the end, or be killed."""
    counts: dict[str, int] = {}

    def reached(point: str) -> None:
        counts[point] = counts.get(point, 0) + 1
        if kill is not None and (point, counts[point]) == (kill.get("point"), kill.get("nth")):
            log.note("killed", point=point)
            os.kill(os.getpid(), signal.SIGKILL)

    log.note("start")
    engine, clock = begin(config, reached)
    read(engine, clock, lambda: log.note("polled"))
    engine.close()
    log.note("done")


def main(plan_path: str) -> int:
    """Make every attempt of a plan; 0 if each ended as planned."""
    plan = json.loads(Path(plan_path).read_bytes())
    config = load_config(plan["config"], {})
    log = Log(Path(plan["log"]))
    return make_attempts(plan["kills"], Path(plan["log"]), lambda kill: attempt(config, log, kill), LateKill("batches", b"polled"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
