"""Clocks: the only place where calmon asks what time it is."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Tells the time that windows are advanced to."""

    def now_ms(self) -> int:
        """Milliseconds since the Unix epoch."""
        ...


class SystemClock:
    """The machine's wall clock."""

    def now_ms(self) -> int:
        """Milliseconds since the Unix epoch."""
        return time.time_ns() // 1_000_000


class ScaledClock:
    """A clock that starts at a given moment and runs faster than the wall: the demo's.

    Args:
        start_ms: What the clock shows when it is made.
        rate: Milliseconds shown for each real millisecond, > 0.
    """

    def __init__(self, start_ms: int, rate: float) -> None:
        self._start_ms = start_ms
        self._rate = rate
        self._origin_ns = time.monotonic_ns()

    def now_ms(self) -> int:
        """Milliseconds since the Unix epoch, scaled."""
        return self._start_ms + int((time.monotonic_ns() - self._origin_ns) * self._rate) // 1_000_000


class ManualClock:
    """A clock that stands still until it is set: `evaluate --at` and tests."""

    def __init__(self, now_ms: int) -> None:
        self._now_ms = now_ms

    def now_ms(self) -> int:
        """Milliseconds since the Unix epoch, as last set."""
        return self._now_ms

    def set(self, now_ms: int) -> None:
        """Show another time from now on; it may lie before the present one."""
        self._now_ms = now_ms
