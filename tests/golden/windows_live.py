"""Feed a stream to a running calmon line by line, set its clock, and take the page that it shows then."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import yaml

from monitor.app import Engine
from monitor.clock import ManualClock
from monitor.config import MAX_WINDOWS, Config
from monitor.config_file import parse_config
from monitor.metrics.catalogue import FAMILIES
from monitor.pipeline.pages import render_snapshot
from monitor.service import Service
from tests.golden.product import model_keys, process_gauge
from tests.golden.stream import HOUR_MS, Check, Moments, event_lines

STEP_LINES = 2_500
"""Lines between two ticks on the way to a check: windows slide there as a service's do, instead of being made anew."""

PATIENCE_S = 60.0


def live_config(moments: Moments, windows: Sequence[str], file: Path, directory: Path, *, follow: bool) -> Config:
    """A configuration with the named windows of a stream's checks; nothing expires in it."""
    checks = moments.windows()
    content: dict[str, Any] = {
        "source": {"files": [str(file)], "follow": follow},
        "state": {"directory": str(directory / "state"), "horizon": "none"},
        "windows": [{"name": name, "length": f"{checks[name].length_hours}h", "lag": f"{checks[name].lag_hours}h"} for name in windows],
        "evaluation": {"tick": "100ms", "families": [family.name for family in FAMILIES]},
        "http": {"port": 0},
        "defaults": model_keys(moments.config),
    }
    return parse_config(yaml.safe_dump(content), "golden", {})


def by_windows(moments: Moments) -> Iterator[tuple[list[str], list[Check]]]:
    """The checks, so many at a time that one configuration can hold their windows."""
    names = list(moments.windows())
    for first in range(0, len(names), MAX_WINDOWS):
        some = names[first : first + MAX_WINDOWS]
        yield some, [check for check in moments.checks if check.window in some]


def engine_pages(moments: Moments, file: Path, directory: Path) -> dict[str, bytes]:
    """The page of every check by its name, from an engine without threads."""
    pages: dict[str, bytes] = {}
    for number, (windows, checks) in enumerate(by_windows(moments)):
        clock = ManualClock(checks[0].now_ms)
        engine = Engine(live_config(moments, windows, file, directory / str(number), follow=False), clock)
        try:
            engine.runner.start()
            for check in checks:
                _read_to(engine, clock, check)
                clock.set(check.now_ms)
                pages[check.name] = render_snapshot(engine.evaluator.tick()).metrics
        finally:
            engine.close()
    return pages


def _read_to(engine: Engine, clock: ManualClock, check: Check) -> None:
    while (left := check.lines - engine.shard.account.consumed) > 0:
        assert engine.runner.step(min(STEP_LINES, left)) > 0
        clock.set(min(engine.shard.newest_event_ms, check.now_ms))
        engine.evaluator.tick()


def service_pages(moments: Moments, file: Path, directory: Path) -> dict[str, bytes]:
    """The page of every check by its name, over HTTP from a running service that follows a growing file."""
    pages: dict[str, bytes] = {}
    for number, (windows, checks) in enumerate(by_windows(moments)):
        growing = directory / f"{number}.ndjson"
        growing.touch()
        clock = ManualClock(checks[0].now_ms)
        config = live_config(moments, windows, growing, directory / str(number), follow=True)
        written = 0
        with _running(config, clock) as service, growing.open("ab") as out:
            for check in checks:
                # The tick that first shows the last line may have copied the windows before that line; a later one has not.
                parked_ms = check.now_ms - HOUR_MS
                clock.set(parked_ms)
                out.writelines(event_lines(file, written, check.lines))
                out.flush()
                written = check.lines
                _page_when(service, written, parked_ms)
                clock.set(check.now_ms)
                pages[check.name] = _page_when(service, written, check.now_ms)
    return pages


@contextmanager
def _running(config: Config, clock: ManualClock) -> Iterator[Service]:
    engine = Engine(config, clock)
    try:
        service = Service(config, engine)
        service.start()
    except BaseException:
        engine.close()
        raise
    try:
        yield service
    finally:
        service.close()


def _page_when(service: Service, lines: int, now_ms: int) -> bytes:
    """The first page that shows so many lines read, and this clock."""
    deadline = time.monotonic() + PATIENCE_S
    shown: tuple[float, float] | None = None
    while time.monotonic() < deadline:
        page = _get(service.address)
        shown = process_gauge(page, "records_consumed_total"), process_gauge(page, "clock_seconds")
        if shown == (lines, now_ms / 1000):
            return page
        time.sleep(0.02)
    raise AssertionError(f"the page shows (lines, clock) {shown} instead of {(lines, now_ms / 1000)}")


def _get(address: str) -> bytes:
    connection = HTTPConnection(address, timeout=10)
    try:
        connection.request("GET", "/metrics")
        response = connection.getresponse()
        assert response.status == 200
        return response.read()
    finally:
        connection.close()
