"""Moments and windows in the user's words: `--at`, `--window`."""

from __future__ import annotations

from pydantic import ValidationError

from monitor.config import WindowConfig
from monitor.duration import parse_duration
from monitor.errors import ConfigError
from monitor.events.instant import InstantError, epoch_ms
from monitor.windows.running import WindowSpec

COMMAND_LINE = "command line"

BY_HOURS = "a window whose length, lag and moment are whole hours is made of hours, which are kept longer, and so is one longer than 6h"
"""What to do where panes are no longer kept by the minute."""


def moment(at: str | None, window: str | None) -> tuple[WindowSpec | None, int]:
    """The window that `--at` and `--window` ask for, None for everything, and the moment.

    Raises:
        ConfigError: One of the two is missing or cannot be understood.
    """
    if at is None and window is None:
        return None, 0
    if at is None or window is None:
        raise ConfigError(["--at and --window go together: --at 2026-07-01T00:00:00Z --window 24h:48h"], COMMAND_LINE)
    at_ms = time_of("--at", at)
    length_ms, lag_ms = length_and_lag(window)
    return WindowSpec.asked(length_ms, lag_ms, at_ms), at_ms


def time_of(option: str, text: str) -> int:
    """Epoch milliseconds of an option's value.

    Raises:
        ConfigError: It is no time.
    """
    try:
        return epoch_ms(int(text) if text.isdecimal() else text)
    except InstantError as error:
        fault = f"{option} {text}: {error.reason}: RFC 3339 with an offset, or epoch milliseconds from 2000 to 2100"
        raise ConfigError([fault], COMMAND_LINE) from error


def length_and_lag(window: str) -> tuple[int, int]:
    """Length and lag (ms) of `--window LENGTH:LAG`; without `:LAG` the lag is 0.

    Raises:
        ConfigError: They cannot be understood, or are no whole panes.
    """
    length, _, lag = window.partition(":")
    try:
        one = WindowConfig(name="window", length_ms=parse_duration(length), lag_ms=parse_duration(lag) if lag else 0)
    except ValidationError as error:
        faults = [f"--window {window}: {fault['loc'][0]}: {fault['msg']}" for fault in error.errors()]
        raise ConfigError(faults, COMMAND_LINE) from error
    except ValueError as error:
        raise ConfigError([f"--window {window}: {error}"], COMMAND_LINE) from error
    return one.length_ms, one.lag_ms
