"""`calmon run` with one planted fault: `python -m tests.integration.faulty FAULT CONFIG`."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from monitor import cli
from monitor.app import Engine
from monitor.clock import SystemClock
from monitor.config_file import load_config
from monitor.pipeline.tick import Snapshot
from monitor.service import Service


class PlantedError(Exception):
    """Stands for a bug: nothing that calmon knows."""


class PlantedPanic(BaseException):
    """Stands for a panic in a native library, which is no `Exception`."""


def hang_at(point: str) -> Callable[[str], None]:
    """Hang for ever once a point is reached."""

    def reached(now: str) -> None:
        if now == point:
            sys.stderr.write(f"hanging at {point}\n")
            time.sleep(3600)

    return reached


def raise_at(point: str, error: BaseException) -> Callable[[str], None]:
    """Raise once a point is reached."""

    def reached(now: str) -> None:
        if now == point:
            raise error

    return reached


def break_tick(engine: Engine) -> None:
    """Let every tick after the third one fail."""
    tick = engine.evaluator.tick
    ticks: list[Snapshot] = []

    def broken() -> Snapshot:
        if len(ticks) == 3:
            raise PlantedError("in the tick")
        ticks.append(tick())
        return ticks[-1]

    engine.evaluator.tick = broken  # type: ignore[method-assign] # this is the fault


FAULTS: dict[str, Callable[[str], None]] = {
    "hang-joined": hang_at("joined"),
    "hang-committed": hang_at("committed"),
    "consumer": raise_at("joined", PlantedError("in the consumer")),
    "panic": raise_at("applied", PlantedPanic("in native code")),
    "tick": lambda point: None,
}


def main(fault: str, config_path: str) -> int:
    """Run with a fault; the exit code of the command."""
    config = load_config(config_path, {})
    engine = Engine(config, SystemClock(), reached=FAULTS[fault])
    if fault == "tick":
        break_tick(engine)
    return cli.serve(Service(config, engine))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
