"""Durations as people write them: a whole number and a unit, ``30d``, ``1h``, ``90m``, ``15s``, ``500ms``."""

from __future__ import annotations

import re
from typing import Final

SECOND_MS: Final = 1000
MINUTE_MS: Final = 60 * SECOND_MS
HOUR_MS: Final = 60 * MINUTE_MS
DAY_MS: Final = 24 * HOUR_MS
LONGEST_MS: Final = 36_500 * DAY_MS
"""A century: anything longer is a typing error, and every sum of a few such durations fits an int64."""

_UNIT_MS: Final = {"d": DAY_MS, "h": HOUR_MS, "m": MINUTE_MS, "s": SECOND_MS, "ms": 1}
_DURATION: Final = re.compile(r"([0-9]{1,15})(ms|s|m|h|d)")
_BARE_NUMBER: Final = re.compile(r"[0-9]{1,15}")


def parse_duration(text: str) -> int:
    """Read a duration.

    Args:
        text: A whole number directly followed by ``ms``, ``s``, ``m`` (minutes), ``h`` or ``d``; a bare ``0`` needs no unit.

    Returns:
        Milliseconds, >= 0.

    Raises:
        ValueError: Anything else; the message reads after the name of what was set ("... must have a unit").

    >>> parse_duration("90m")
    5400000
    """
    if text == "0":
        return 0
    if _BARE_NUMBER.fullmatch(text):
        raise ValueError(missing_unit(text))
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError("must be a whole number with a unit (ms, s, m, h or d), such as 30d, 1h or 15s")
    duration_ms = int(match[1]) * _UNIT_MS[match[2]]
    if duration_ms > LONGEST_MS:
        raise ValueError(f"must be at most {format_duration(LONGEST_MS)}")
    return duration_ms


def missing_unit(number: int | str) -> str:
    """Say that a duration lacks its unit, with the spellings that could have been meant."""
    return f"must have a unit: {number}s, {number}m, {number}h or {number}d"


def format_duration(duration_ms: int) -> str:
    """Write a duration in the largest unit that leaves a whole number.

    >>> format_duration(5_400_000), format_duration(172_800_000)
    ('90m', '2d')
    """
    if duration_ms == 0:
        return "0s"
    unit, size_ms = next((unit, size_ms) for unit, size_ms in _UNIT_MS.items() if duration_ms % size_ms == 0)
    return f"{duration_ms // size_ms}{unit}"
