"""A month of hourly windows of 50 series: from the stored panes, beside recomputing them from the events.

The recomputing side is timed at 200 random steps and extrapolated to all. All is CPU time. Run by `make bench`.
"""

from __future__ import annotations

import math
import random
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

import pytest
import yaml

from monitor.config_file import load_config
from monitor.history.choice import METRICS
from monitor.pipeline.configured import settings_of
from monitor.pipeline.sweep import Question, sweep
from monitor.request.state import opened_shards
from monitor.windows.running import WindowSpec
from tests.bench.month import DAYS, OF_REGION, OF_VERSION, SERIES, THRESHOLD, Columns, Values, month, recompute, write_lines
from tests.history.service import read_to_end
from tests.recovery.stream import DAY_MS, HOUR_MS, START_MS

Result = TypeVar("Result")

PREDICTIONS = 3_000_000
TIMED = 200
ROUNDS = 5
WANTED = 100
MOMENTS = range(START_MS + HOUR_MS, START_MS + DAYS * DAY_MS + 1, HOUR_MS)


def service(folder: Path, columns: Columns) -> Path:
    """Configuration of a service that has read a month and stopped."""
    folder.mkdir()
    events = folder / "events.ndjson"
    write_lines(events, columns, seed=2)
    path = folder / "calmon.yaml"
    config = {
        "source": {"files": [str(events)]},
        "state": {"directory": str(folder / "state"), "horizon": "none"},
        "windows": [{"name": "24h", "length": "24h"}],
        "defaults": {"groups": ["region"], "confidence_threshold": THRESHOLD},
    }
    path.write_text(yaml.safe_dump(config))
    read_to_end(path)
    events.unlink()
    return path


def from_panes(path: Path) -> dict[int, Values]:
    """All series at all moments, the opening of the state included."""
    config = load_config(str(path))
    names = dict.fromkeys((*OF_VERSION, *OF_REGION))
    window = WindowSpec.asked(DAY_MS, 0, MOMENTS[0])
    question = Question("credit", "7", window, [METRICS[name] for name in names], settings_of(config), {})
    found: dict[int, Values] = {}
    with opened_shards(config.state.directory) as shards:
        for moment in sweep(shards, question, MOMENTS):
            values = found[moment.at_ms] = {}
            for block in moment.blocks:
                regions = [key.value for key in block.keys]
                for metric, numbers in block.values.items():
                    values |= {(metric.name, region): number for region, number in zip(regions, numbers.tolist(), strict=True)}
    return found


def measured(work: Callable[[], Result]) -> tuple[float, Result]:
    """CPU seconds of the process, all threads, for others may use the machine meanwhile; and what was found."""
    began = time.process_time()
    found = work()
    return time.process_time() - began, found


def check(found: Values, wanted: Values) -> None:
    """See that both sides say the same of all series."""
    assert len(wanted) == SERIES
    differing = {
        key: (found[key], value) for key, value in wanted.items() if not math.isclose(found[key], value, rel_tol=1e-7, abs_tol=1e-8)
    }
    assert differing == {}


@pytest.mark.bench
@pytest.mark.timeout(3600)
def test_a_month_of_fifty_series_from_panes_and_from_events(tmp_path: Path) -> None:
    panes_s, events_s = [], []
    for predictions in (PREDICTIONS // 10, PREDICTIONS):
        columns = month(predictions, seed=1)
        path = service(tmp_path / str(predictions), columns)
        found = from_panes(path)
        steps = random.Random(3).sample(MOMENTS, TIMED)  # noqa: S311 - the same steps every time
        spent = []
        for at_ms in steps:
            step_s, wanted = measured(partial(recompute, columns, at_ms - DAY_MS, at_ms))
            spent.append(step_s)
            check(found[at_ms], wanted)
        panes_s.append(statistics.fmean(measured(partial(from_panes, path))[0] for _ in range(ROUNDS)))
        events_s.append(statistics.fmean(spent) * len(MOMENTS))
        print(
            f"\n{predictions:,} predictions, {len(MOMENTS)} hourly windows of 24h, {SERIES} series: from panes {panes_s[-1]:.2f} s CPU; "
            f"from events {events_s[-1]:.1f} s, extrapolated from {TIMED} random steps of {statistics.median(spent) * 1000:.1f} ms: "
            f"{events_s[-1] / panes_s[-1]:.0f}x"
        )
    print(f"ten times the events in as many panes: {panes_s[1] / panes_s[0]:.2f}x from panes, {events_s[1] / events_s[0]:.2f}x from events")
    assert panes_s[1] / panes_s[0] < events_s[1] / events_s[0]
    assert events_s[1] / panes_s[1] > WANTED
