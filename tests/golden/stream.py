"""A real stream with known answers: the whole of it, and windows at moments of it."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import monitor
from tests.golden.comparison import APPROXIMATE, Tolerance, Wanted
from tests.golden.product import flat_account, flat_metrics

EXPECT = ".expect.json"
WINDOWS = ".windows.json"
EVENTS = ".ndjson.gz"
TOLERANCE = Tolerance(1e-6, (), APPROXIMATE)
HOUR_MS = 3_600_000

PACKAGED = Path(monitor.__file__).parent / "demo" / "data"
"""Streams that come with calmon are kept once, where the demo finds them."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """Values of a whole stream.

    Attributes:
        config: In the golden cases' words.
        events: Lines of the file.
        rejected: Counts by reason.
        models: Every `model@version`.
        want: Expected values.
        tolerance: How far values may be off.
    """

    config: Mapping[str, Any]
    events: int
    rejected: Mapping[str, int]
    models: frozenset[str]
    want: Wanted
    tolerance: Tolerance


@dataclass(frozen=True, slots=True)
class Check:
    """Values of one window at one moment.

    Attributes:
        name: Tells the checks of a stream apart.
        window: Name of its window.
        lines: How many lines have been read by then.
        now_ms: What the clock shows.
        length_hours: Length of the window.
        lag_hours: Its lag.
        models: Expected values by `model@version`; a version without predictions there is absent.
    """

    name: str
    window: str
    lines: int
    now_ms: int
    length_hours: int
    lag_hours: int
    models: Mapping[str, Mapping[str, Any]]

    @property
    def want(self) -> Wanted:
        """Expected values by key."""
        return {f"{model}.{name}": value for model, metrics in self.models.items() for name, value in metrics.items()}


@dataclass(frozen=True, slots=True)
class Moments:
    """Every check of a stream.

    Attributes:
        config: In the golden cases' words.
        checks: In the order of their lines.
    """

    config: Mapping[str, Any]
    checks: list[Check]

    def windows(self) -> dict[str, Check]:
        """One check of each window, by the window's name."""
        return {check.window: check for check in self.checks}


def load_expectation(path: Path) -> Expectation:
    """Read NAME.expect.json."""
    content = json.loads(path.read_text("utf-8"))
    account = content["account"]
    want = flat_account({**account, "rejected_total": sum(account["rejected"].values())})
    for model, metrics in content["models"].items():
        want |= {f"{model}.{name}": value for name, value in flat_metrics(metrics).items()}
    given = content.get("tolerance")
    patterns = tuple((substring, float(value)) for substring, value in given.get("patterns", ())) if given else ()
    tolerance = Tolerance(float(given["default"]), patterns, APPROXIMATE) if given else TOLERANCE
    return Expectation(content["config"], content["events"], account["rejected"], frozenset(content["models"]), want, tolerance)


def load_moments(path: Path) -> Moments:
    """Read NAME.windows.json."""
    content = json.loads(path.read_text("utf-8"))
    checks = []
    for one in content["checks"]:
        window = f"{one['length_hours']}h-lag-{one['lag_hours']}h"
        name = f"{window}-after-{one['lines']}"
        checks.append(Check(name, window, one["lines"], one["now"], one["length_hours"], one["lag_hours"], one["models"]))
    return Moments(content["config"], sorted(checks, key=lambda check: check.lines))


def events_file(path: Path) -> Path:
    """The stream that an expectation is about: beside it, else packaged with calmon."""
    name = path.name.removesuffix(EXPECT).removesuffix(WINDOWS) + EVENTS
    beside = path.with_name(name)
    return beside if beside.exists() else PACKAGED / name


def event_lines(path: Path, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
    """Lines [start, stop) of a stream, with their ends."""
    with gzip.open(path, "rb") as lines:
        yield from islice(lines, start, stop)
