"""Reads a stream in a process of its own that is killed: at the n-th time it reaches a point, or at any moment.

Run as `python -m tests.recovery.victim PLAN.json`. Each attempt is a forked child, killed by SIGKILL, so that the next one
finds only what is on disk; the last attempt of a plan reads to the end. The log has one JSON object a line.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from monitor.app import Engine
from monitor.clock import ManualClock
from monitor.config import Config
from monitor.config_file import load_config
from monitor.sources.ndjson import NdjsonSource
from monitor.sources.protocol import Position, Slice, never
from tests.recovery.attempts import LateKill, make_attempts

AFTER_EVERYTHING_MS = 1_800_000_000_000
"""Later than any event of the stream, so that upkeep goes by event times alone."""


class Log:
    """Appends what happens, whole lines, each with one write."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def note(self, event: str, **fields: object) -> None:
        """Write one line."""
        os.write(self._fd, json.dumps({"event": event, **fields}).encode() + b"\n")


class WatchedSource(NdjsonSource):
    """Notes where reading begins and which lines are read."""

    def __init__(self, files: Sequence[str], log: Log) -> None:
        super().__init__(files)
        self._log = log
        self.last_line = 0

    def start(self, positions: Mapping[str, Position], given_up: Callable[[], bool] = never) -> None:
        """Note the stored position, then start."""
        self._log.note("start", line=max((int(position["line"]) for position in positions.values()), default=0))
        super().start(positions, given_up)

    def poll(self, max_records: int, timeout_s: float) -> Sequence[Slice]:
        """Poll, and note what came."""
        slices = super().poll(max_records, timeout_s)
        if slices:
            self.last_line = slices[-1].offsets[-1]
            self._log.note("polled", first=slices[0].offsets[0], last=self.last_line)
        return slices


def attempt(config: Config, log: Log, batch: int, kill: Mapping[str, Any] | None, spared_from: int) -> None:
    """Read to the end, or be killed.

    Args:
        config: What to read and where the state is.
        log: Takes what happens.
        batch: Records in a batch.
        kill: `point` and `nth`, or None.
        spared_from: No kill once so many lines are read: the last batches end with the upkeep that an account depends on.
    """
    counts: dict[str, int] = {}

    def reached(point: str) -> None:
        counts[point] = counts.get(point, 0) + 1
        if point == "committed":
            log.note("committed")
        due = kill is not None and (point, counts[point]) == (kill.get("point"), kill.get("nth"))
        if due and source.last_line < spared_from:
            log.note("killed", point=point)
            os.kill(os.getpid(), signal.SIGKILL)

    source = WatchedSource(config.source.files, log)
    engine = Engine(config, ManualClock(AFTER_EVERYTHING_MS), source=source, reached=reached)
    reached("start")
    engine.runner.start()
    while not engine.source.exhausted:
        engine.runner.step(batch)
    engine.close()
    log.note("done")


def main(plan_path: str) -> int:
    """Make every attempt of a plan; 0 if each ended as planned."""
    plan = json.loads(Path(plan_path).read_bytes())
    config = load_config(plan["config"], {})
    log = Log(Path(plan["log"]))

    def spares(polled: Sequence[bytes]) -> bool:
        return bool(json.loads(polled[-1])["last"] >= plan["spared_from"])

    return make_attempts(
        plan["kills"],
        Path(plan["log"]),
        lambda kill: attempt(config, log, plan["batch"], kill, plan["spared_from"]),
        LateKill("batches", b"polled", spares),
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
