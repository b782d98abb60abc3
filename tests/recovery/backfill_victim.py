"""Takes a label file in, in a process of its own that is killed: at the n-th time it reaches a point, or at any moment.

Run as `python -m tests.recovery.backfill_victim PLAN.json`. Beside the points of a checkpoint there are: `quarantined`, the rows that a
batch holds back are in the quarantine and nothing else of it is; `saving`, a batch is delivered and its position is not yet kept.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from monitor.backfill.labels.beside import Folder, Standing
from monitor.backfill.labels.destination import Destination
from monitor.backfill.labels.into_file import IntoFile
from monitor.backfill.labels.into_state import into_state
from monitor.backfill.labels.join_rows import JoinRows, rows_beside
from monitor.backfill.labels.label_file import open_label_file, partition_name
from monitor.backfill.labels.run import Backfill, Input
from monitor.backfill.labels.sieve import Arrival, Held, Sieve
from monitor.backfill.labels.way import Way
from monitor.config_file import load_config
from monitor.sources.protocol import never
from tests.recovery.attempts import LateKill, make_attempts
from tests.recovery.victim import Log


class WatchedFolder(Folder):
    """Tells when it has quarantined, and before it keeps a position."""

    def __init__(self, state_directory: str, reached: Callable[[str], None]) -> None:
        super().__init__(state_directory)
        self._reached = reached

    def append(self, partition: str, held: Sequence[Held]) -> int:
        """Quarantine, then tell."""
        size = super().append(partition, held)
        self._reached("quarantined")
        return size

    def save(self, partition: str, standing: Standing) -> None:
        """Tell, then keep the position."""
        self._reached("saving")
        super().save(partition, standing)
        self._reached("saved")


def attempt(plan: Mapping[str, Any], log: Log, kill: Mapping[str, Any] | None) -> None:
    """Take everything in, or be killed."""
    counts: dict[str, int] = {}

    def reached(point: str) -> None:
        counts[point] = counts.get(point, 0) + 1
        if point in ("applied", "saved"):
            log.note("delivered")
        if kill is not None and (point, counts[point]) == (kill.get("point"), kill.get("nth")):
            log.note("killed", point=point)
            os.kill(os.getpid(), signal.SIGKILL)

    config = load_config(plan["config"], {})
    way = Way.of(config, plan["append_to"])
    folder = WatchedFolder(config.state.directory, reached)
    inputs = [Input(open_label_file(path, {}), partition_name(path, {})) for path in plan["files"]]
    with ExitStack() as stack:
        if plan["append_to"] is None:
            state = stack.enter_context(into_state(config, way.horizon, reached))
            destination: Destination = state
            sieve = Sieve(way.horizon, JoinRows({0: state.shard.store}), Arrival(lambda shard, one: "", lambda shard, name: 0))
        else:
            destination = IntoFile(plan["append_to"], folder)
            sieve = Sieve(way.horizon, stack.enter_context(rows_beside(config.state.directory)), None)
        (outcome,) = Backfill(sieve, destination, folder, None, never, plan["batch"]).run(inputs)
    log.note("done", **outcome.tally.report())


def main(plan_path: str) -> int:
    """Make every attempt of a plan; 0 if each ended as planned."""
    plan = json.loads(Path(plan_path).read_bytes())
    log = Log(Path(plan["log"]))
    return make_attempts(plan["kills"], Path(plan["log"]), lambda kill: attempt(plan, log, kill), LateKill("batches", b"delivered"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
