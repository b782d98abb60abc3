"""Runs `calmon backfill replay` in a process that is killed: at the n-th time it reaches a point, or at any moment.

Run as `python -m tests.replay.victim PLAN.json`; see `tests.recovery.victim`. The log has a line for each attempt and batch.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from monitor.backfill.replay.command import run
from monitor.sources.protocol import never
from tests.recovery.attempts import LateKill, make_attempts
from tests.recovery.victim import Log


def attempt(options: argparse.Namespace, batch: int, log: Log, kill: Mapping[str, Any] | None) -> None:
    """Replay to the end, or be killed."""
    counts: dict[str, int] = {}

    def reached(point: str) -> None:
        counts[point] = counts.get(point, 0) + 1
        if point == "joined":
            log.note("batch")
        if kill is not None and (point, counts[point]) == (kill.get("point"), kill.get("nth")):
            log.note("killed", point=point)
            os.kill(os.getpid(), signal.SIGKILL)

    log.note("start")
    text, code = run(options, never, reached, batch)
    log.note("done", text=text, code=code)


def main(plan_path: str) -> int:
    """Make every attempt of a plan; 0 if each ended as planned."""
    plan = json.loads(Path(plan_path).read_bytes())
    options = argparse.Namespace(**{"since": [], "until": [], "accept_loss": False, "files": [], **plan["options"]})
    path = Path(plan["log"])
    log = Log(path)
    return make_attempts(plan["kills"], path, lambda kill: attempt(options, plan["batch"], log, kill), LateKill("batches", b'"batch"'))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
