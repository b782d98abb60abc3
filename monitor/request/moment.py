"""`--at` and `--window`: one window at one moment, in the user's words."""

from __future__ import annotations

from pydantic import ValidationError

from monitor.config import WindowConfig
from monitor.duration import parse_duration
from monitor.errors import ConfigError
from monitor.events.instant import InstantError, epoch_ms

COMMAND_LINE = "command line"


def moment(at: str | None, window: str | None) -> tuple[WindowConfig | None, int]:
    """The window, None for everything, and the moment; the faults are the user's words.

    Raises:
        ConfigError: One of the two is missing or cannot be understood.
    """
    if at is None and window is None:
        return None, 0
    if at is None or window is None:
        raise ConfigError(["--at and --window go together: --at 2026-07-01T00:00:00Z --window 24h:48h"], COMMAND_LINE)
    try:
        now_ms = epoch_ms(int(at) if at.isdecimal() else at)
    except InstantError as error:
        raise ConfigError(
            [f"--at {at}: {error.reason}: RFC 3339 with an offset, or epoch milliseconds from 2000 to 2100"], COMMAND_LINE
        ) from error
    length, _, lag = window.partition(":")
    try:
        return WindowConfig(name="window", length_ms=parse_duration(length), lag_ms=parse_duration(lag) if lag else 0), now_ms
    except ValidationError as error:
        faults = [f"--window {window}: {fault['loc'][0]}: {fault['msg']}" for fault in error.errors()]
        raise ConfigError(faults, COMMAND_LINE) from error
    except ValueError as error:
        raise ConfigError([f"--window {window}: {error}"], COMMAND_LINE) from error
