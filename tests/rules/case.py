"""What a promtool case says: series, a moment, and the alert as it must then be; the numbers in texts are written by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

CLOCK = 1_780_531_200  # 2026-06-04 00:00:00 UTC
MATURED = 1_780_358_400  # 2026-06-02: 48 hours before
DAY_START = 1_780_272_000  # 2026-06-01: where the mature day begins
LONG = 15 * 60
"""Minutes that a series goes on."""

SCRAPED = {"job": "calmon", "instance": "a:9779"}
VERSION = {**SCRAPED, "model": "credit", "model_version": "7"}
MATURE = {**VERSION, "window": "24h"}
PROVISIONAL = {**VERSION, "window": "1h"}
ALL = {"segment": "all", "value": "all"}

Series = Mapping[str, str]
"""promtool's values by series."""


def series(name: str, labels: Mapping[str, str], value: float, step: float = 0, minutes: int = LONG) -> Series:
    """A series that begins with a value and grows by a step a minute."""
    inside = ",".join(f'{key}="{text}"' for key, text in labels.items())
    return {f"{name}{{{inside}}}": f"{value!r}{step:+}x{minutes}"}


def of_window(labels: Mapping[str, str], **values: float) -> Series:
    """Gauges of a version in a window, without the prefix."""
    return {key: text for name, value in values.items() for key, text in series(f"calmon_{name}", {**labels, **ALL}, value).items()}


def of_version(**values: float) -> Series:
    """Gauges of a version without a window, without the prefix."""
    return {key: text for name, value in values.items() for key, text in series(f"calmon_{name}", VERSION, value).items()}


def of_process(**values: float) -> Series:
    """Gauges of the process, without the prefix; they stand still."""
    return {key: text for name, value in values.items() for key, text in series(f"calmon_{name}", SCRAPED, value).items()}


def windows(matured: bool = True) -> Series:
    """Clock and windows; nothing has matured on a fresh start."""
    found = {
        **series("calmon_clock_seconds", SCRAPED, CLOCK),
        **series("calmon_window_start_timestamp_seconds", {**SCRAPED, "window": "24h"}, DAY_START),
        **series("calmon_window_end_timestamp_seconds", {**SCRAPED, "window": "24h"}, MATURED),
        **series("calmon_window_start_timestamp_seconds", {**SCRAPED, "window": "1h"}, CLOCK - 3600),
        **series("calmon_window_end_timestamp_seconds", {**SCRAPED, "window": "1h"}, CLOCK),
        **series("calmon_window_lag_seconds", {**SCRAPED, "window": "24h"}, 48 * 3600),
        **series("calmon_window_lag_seconds", {**SCRAPED, "window": "1h"}, 0),
        **of_process(evidence_maturity_seconds=48 * 3600),
    }
    return {**found, **of_process(evidence_matured_until_timestamp_seconds=MATURED)} if matured else found


@dataclass(frozen=True, slots=True)
class Firing:
    """An alert that must fire.

    Attributes:
        alert: Its name.
        given: Series.
        at: Moment, as promtool writes it.
        labels: Of the alert, without severity and needs.
        summary: As people read it.
        description: The same.
    """

    alert: str
    given: Series
    at: str
    labels: Mapping[str, str]
    summary: str
    description: str


@dataclass(frozen=True, slots=True)
class Silent:
    """An alert that must not fire.

    Attributes:
        alert: Its name.
        why: For people.
        given: Series.
        at: Moments.
    """

    alert: str
    why: str
    given: Series
    at: Sequence[str] = ("90m",)
