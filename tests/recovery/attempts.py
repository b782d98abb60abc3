"""A plan of attempts: each a forked child that is killed, at a point it reaches or a moment later; the last one is not.

A child is killed by SIGKILL, so that the next one finds only what is on disk, and at the broker.
"""

from __future__ import annotations

import os
import signal
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Kill = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class LateKill:
    """How a child is killed from outside, at no point of its own choosing.

    Attributes:
        key: A kill that has this key is one; its value says after how many lines, `then_s` how much later.
        word: What is in each line that counts.
        spares: Whether a child whose log this is is so nearly done that it must not be killed any more.
    """

    key: str
    word: bytes
    spares: Callable[[Sequence[bytes]], bool] = lambda lines: False


def make_attempts(kills: Sequence[Kill], log: Path, attempt: Callable[[Kill | None], None], late: LateKill) -> int:
    """Make every attempt, and one more without a kill; 0 if each ended as planned.

    Args:
        kills: What is done to each attempt.
        log: What the children write, whole lines.
        attempt: Runs in the child; kills itself if it is told a point.
        late: For the kills that are done from outside.
    """
    for kill in [*kills, None]:
        begun = log.stat().st_size
        pid = os.fork()
        if pid == 0:
            try:
                attempt(kill)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        if kill is not None and late.key in kill:
            _kill_later(pid, log, begun, kill, late)
        _, status = os.waitpid(pid, 0)
        if status not in (0, signal.SIGKILL):
            return 1
    return 0


def _kill_later(pid: int, log: Path, begun: int, kill: Kill, late: LateKill) -> None:
    """Kill a child, not yet waited for, a moment after it has written its lines; unless it has ended or is spared."""
    while log.read_bytes()[begun:].count(late.word) < kill[late.key]:
        if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            return
        time.sleep(0.0005)
    time.sleep(kill["then_s"])
    if not late.spares([line for line in log.read_bytes().splitlines() if late.word in line]):
        os.kill(pid, signal.SIGKILL)
