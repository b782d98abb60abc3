"""What was asked about the past, in numbers."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

from monitor.duration import format_duration, parse_duration
from monitor.errors import ConfigError
from monitor.history.choice import Choice
from monitor.request.moment import COMMAND_LINE, length_and_lag, time_of
from monitor.windows.running import WindowSpec

MOST_MOMENTS = 50_000
"""More than five years of hours."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question about the past.

    Attributes:
        model: Whose predictions.
        version: Of which of its versions.
        length_ms: Of the window.
        lag_ms: Of the window.
        moments: Ascending, at least one.
        choice: What of each.
    """

    model: str
    version: str
    length_ms: int
    lag_ms: int
    moments: Sequence[int]
    choice: Choice

    def window(self, at_ms: int) -> WindowSpec:
        """The window as `calmon evaluate --at` has it at a moment."""
        return WindowSpec.asked(self.length_ms, self.lag_ms, at_ms)


def asked(options: argparse.Namespace, choice: Choice) -> Asked:
    """Read the words that name moments.

    Raises:
        ConfigError: Something in it cannot be understood, or is too much.
    """
    words = (("--window", options.window), ("--step", options.step), ("--from", options.begin), ("--to", options.end))
    missing = [word for word, value in words if value is None]
    if missing:
        raise ConfigError([f"{', '.join(missing)}: needed, to say which window at which moments: see --help"], COMMAND_LINE)
    length_ms, lag_ms = length_and_lag(options.window)
    begin_ms, end_ms = time_of("--from", options.begin), time_of("--to", options.end)
    step_ms = _step_ms(options.step, options.window, WindowSpec("asked", length_ms, lag_ms).level.pane_ms)
    if begin_ms > end_ms:
        raise ConfigError([f"--from {options.begin}: it is after --to {options.end}"], COMMAND_LINE)
    moments = range(begin_ms, end_ms + 1, step_ms)
    if len(moments) > MOST_MOMENTS:
        fault = f"--step {options.step}: that makes {len(moments)} moments, more than {MOST_MOMENTS}: take a longer step or a shorter time"
        raise ConfigError([fault], COMMAND_LINE)
    return Asked(options.model, options.model_version, length_ms, lag_ms, moments, choice)


def _step_ms(step: str, window: str, finest_ms: int) -> int:
    try:
        step_ms = parse_duration(step)
        if step_ms < finest_ms:
            panes = "minutes" if finest_ms < parse_duration("1h") else "hours"
            raise ValueError(f"the window {window} is made of {panes}: the finest step is {format_duration(finest_ms)}")
    except ValueError as error:
        raise ConfigError([f"--step {step}: {error}"], COMMAND_LINE) from error
    return step_ms
