"""What users may choose when rules are rendered: severities, bounds, waiting times, addresses."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from monitor.alerts.alert import Form, Severity
from monitor.alerts.bound import BOUNDS, Bound
from monitor.alerts.table import ALERTS
from monitor.duration import format_duration, parse_duration
from monitor.errors import CalmonError

OFF = "off"

RUNBOOKS, DASHBOARDS, JOB = "url.runbooks", "url.dashboards", "job"

_TEXTS = {
    RUNBOOKS: "https://runbooks.example/calmon",
    DASHBOARDS: "http://localhost:3000",
    JOB: "calmon",
}
_BOUNDS = {bound.name: bound for bound in BOUNDS}
_ALERTS = {alert.name: alert for alert in ALERTS}


class ChoiceError(CalmonError):
    """A choice that cannot be made."""

    exit_code = 2


@dataclass(frozen=True, slots=True)
class Choice:
    """What was chosen; the rest is as in the table.

    Attributes:
        severities: By alert; None for one that is left out.
        bounds: By name, in seconds where they are durations.
        waits: `for` by alert.
        holds: `keep_firing_for` by alert.
        texts: Addresses and the name of the scrape job.
    """

    severities: Mapping[str, Severity | None] = field(default_factory=dict)
    bounds: Mapping[str, float] = field(default_factory=dict)
    waits: Mapping[str, str] = field(default_factory=dict)
    holds: Mapping[str, str] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)

    def severity(self, alert: str) -> Severity | None:
        """Severity of an alert, None where it is left out."""
        return self.severities.get(alert, _ALERTS[alert].severity)

    def wait(self, alert: str) -> str:
        """`for` of an alert."""
        return self.waits.get(alert, _ALERTS[alert].wait)

    def hold(self, alert: str) -> str:
        """`keep_firing_for` of an alert."""
        return self.holds.get(alert, _ALERTS[alert].hold)

    def text(self, name: str) -> str:
        """An address, or the job."""
        return self.texts.get(name, _TEXTS[name])

    def numbers(self) -> dict[str, str]:
        """Bounds, and the job, as they stand in expressions."""
        return {bound.name: f"{self._bound(bound):.10g}" for bound in BOUNDS} | {JOB: self.text(JOB)}

    def told(self) -> dict[str, str]:
        """Bounds, and the job, as people read them."""
        return {bound.name: _told(bound, self._bound(bound)) for bound in BOUNDS} | {JOB: self.text(JOB)}

    def _bound(self, bound: Bound) -> float:
        return self.bounds.get(bound.name, bound.default)


def chosen(words: Iterable[str]) -> Choice:
    """Read `NAME=VALUE` words.

    Args:
        words: `severity.ALERT=page|ticket|info|off`, `bound.NAME=NUMBER` (or a duration), `for.ALERT=DURATION`,
            `keep_firing_for.ALERT=DURATION`, `job=NAME`, `url.runbooks=URL`, `url.dashboards=URL`.

    Raises:
        ChoiceError: Something that cannot be set, or not to that.
    """
    severities: dict[str, Severity | None] = {}
    bounds: dict[str, float] = {}
    waits: dict[str, str] = {}
    holds: dict[str, str] = {}
    texts: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        kind, _, key = name.partition(".")
        if not equals or not value:
            raise ChoiceError(f"{word}: write NAME=VALUE")
        if name in _TEXTS:
            texts[name] = value.rstrip("/") if kind == "url" else value
        elif kind == "severity" and key in _ALERTS:
            severities[key] = _severity(word, value)
        elif kind == "for" and key in _ALERTS:
            waits[key] = format_duration(_duration_ms(word, value))
        elif kind == "keep_firing_for" and key in _ALERTS:
            holds[key] = format_duration(_duration_ms(word, value))
        elif kind == "bound" and key in _BOUNDS:
            bounds[key] = _number(word, _BOUNDS[key], value)
        else:
            raise ChoiceError(f"{name}: cannot be set{_meant(name)}")
    return Choice(severities, bounds, waits, holds, texts)


def settable() -> list[str]:
    """Everything that can be set."""
    alerts = [f"{kind}.{name}" for kind in ("severity", "for", "keep_firing_for") for name in _ALERTS]
    return [*alerts, *(f"bound.{name}" for name in _BOUNDS), *_TEXTS]


def _meant(name: str) -> str:
    close = difflib.get_close_matches(name, settable(), n=1)
    return f"; did you mean {close[0]}?" if close else ""


def _severity(word: str, value: str) -> Severity | None:
    if value == OFF:
        return None
    try:
        return Severity(value)
    except ValueError:
        raise ChoiceError(f"{word}: must be one of {', '.join(Severity)}, {OFF}") from None


def _number(word: str, bound: Bound, value: str) -> float:
    if bound.form is Form.DURATION:
        return _duration_ms(word, value) / 1000
    try:
        number = float(value)
    except ValueError:
        raise ChoiceError(f"{word}: must be a number") from None
    if not math.isfinite(number) or number < 0:
        raise ChoiceError(f"{word}: must be a number of at least 0")
    return number


def _duration_ms(word: str, value: str) -> int:
    try:
        return parse_duration(value)
    except ValueError as error:
        raise ChoiceError(f"{word}: {error}") from None


def _told(bound: Bound, value: float) -> str:
    if bound.form is Form.DURATION:
        return format_duration(int(value * 1000))
    return f"{100 * value:.4g}%" if bound.form is Form.RATIO else f"{value:.4g}"
