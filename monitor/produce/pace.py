"""How fast lines are sent: as fast as it goes, so many a second, or as fast as event time passes on a scaled clock."""

from __future__ import annotations

from typing import Protocol


class Pace(Protocol):
    """Says when the next line is due."""

    def due_s(self, event_ms: int | None) -> float:
        """Seconds after the start at which a line is due, called once a line in their order."""
        ...


class FullSpeed:
    """Every line is due at once."""

    def due_s(self, event_ms: int | None) -> float:
        """Seconds after the start at which a line is due."""
        del event_ms
        return 0.0


class Rate:
    """So many lines a second.

    Args:
        per_s: How many, > 0.
    """

    def __init__(self, per_s: float) -> None:
        self._per_s = per_s
        self._lines = 0

    def due_s(self, event_ms: int | None) -> float:
        """Seconds after the start at which a line is due."""
        del event_ms
        self._lines += 1
        return (self._lines - 1) / self._per_s


class TimeScale:
    """Event time passes faster than real time; a line whose time is past, or cannot be read, is due at once.

    Args:
        factor: Seconds of event time in a real second, > 0.
    """

    def __init__(self, factor: float) -> None:
        self._factor = factor
        self._first_ms: int | None = None

    def due_s(self, event_ms: int | None) -> float:
        """Seconds after the start at which a line is due."""
        if event_ms is None:
            return 0.0
        if self._first_ms is None:
            self._first_ms = event_ms
        return (event_ms - self._first_ms) / 1000 / self._factor
