"""Writes events as scaled time passes: versions that come and go, one that turns over-confident, labels that stop."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.alerts_live.victim import START_MS, SharedClock
from tests.recovery.stream import HOUR_MS, MINUTE_MS, encode, label, prediction

STEP_S = 0.1
PER_HOUR = 90
"""Predictions of each version."""
DELAY_MS = 40 * MINUTE_MS
"""Longest delay of a label."""


@dataclass
class Producer:
    """Appends to a file from a thread of its own; a context manager.

    Attributes:
        path: The file.
        clock: Says which hour it is.
        gap: How much more a version claims than its accuracy, by version and hour.
        live: Whether a version makes predictions, by version and hour.
        labels_flow: Whether labels are sent now; those held back are sent later.
    """

    path: Path
    clock: SharedClock
    gap: Callable[[str, float], float]
    live: Callable[[str, float], bool]
    labels_flow: Callable[[float], bool]
    _stop: threading.Event = field(default_factory=threading.Event)
    _labels: list[tuple[int, bytes]] = field(default_factory=list)

    def __enter__(self) -> Producer:
        self.path.touch()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        chance = random.Random(20_260_601)  # noqa: S311 - must be the same every time
        number, done_ms = 0, START_MS
        with self.path.open("ab", buffering=0) as file:
            while not self._stop.wait(STEP_S):
                now_ms = self.clock.now_ms()
                lines = []
                while done_ms < now_ms:
                    done_ms += HOUR_MS // PER_HOUR
                    hour = (done_ms - START_MS) / HOUR_MS
                    for version in (one for one in ("v1", "v2", "v3") if self.live(one, hour)):
                        number += 1
                        lines.append(self._event(chance, f"{number:08d}", version, hour, done_ms))
                if self.labels_flow((now_ms - START_MS) / HOUR_MS):
                    due = [line for at_ms, line in self._labels if at_ms <= now_ms]
                    self._labels = [one for one in self._labels if one[0] > now_ms]
                    lines += due
                file.write(b"".join(line + b"\n" for line in lines))

    def _event(self, chance: random.Random, one: str, version: str, hour: float, at_ms: int) -> bytes:
        confidence = round(chance.uniform(0.55, 0.99), 6)
        right = chance.random() < confidence - self.gap(version, hour)
        labelled_ms = at_ms + chance.randrange(DELAY_MS)
        self._labels.append((labelled_ms, encode(label(one, labelled_ms, "yes" if right else "no"))))
        return encode(prediction(one, at_ms, confidence, version))
