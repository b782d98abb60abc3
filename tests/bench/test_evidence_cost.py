"""What evidence adds to a tick and its page: while nothing matures, when an hour of every version does, and under corrections.

The same stream is read twice, with and without evidence; ticks of both are measured in turn and the ratio is taken pair by
pair. Nothing here is asserted.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from monitor.app import Engine
from monitor.clock import ManualClock
from monitor.config_file import parse_config
from monitor.duration import DAY_MS, HOUR_MS
from monitor.pipeline.pages import render_snapshot
from tests.doubles.evidence_stream import made, records
from tests.doubles.list_source import ListSource
from tests.doubles.memory_store import MemoryStore
from tests.recovery.stream import START_MS, encode, label

VERSIONS = 50
HOURS = 6 * 24
PER_HOUR = 20
PAIRS = 9


def cpu_ms(work: Callable[[], object]) -> float:
    began = time.thread_time()
    work()
    return (time.thread_time() - began) * 1000


def tick(engine: Engine) -> None:
    render_snapshot(engine.evaluator.tick())


@pytest.mark.bench
@pytest.mark.timeout(1800)
def test_cost_of_a_tick_with_evidence(tmp_path: Path) -> None:
    events = made(1, range(HOURS), {f"v{number}": lambda c, hour: c for number in range(VERSIONS)}, PER_HOUR)
    # Labels of what has matured long ago turn around, a few of every version before each tick.
    wrong = [event for event in events if event.correct is not None and event.at_ms < START_MS + DAY_MS]
    corrections = [encode(label(event.one, START_MS + 9 * DAY_MS, "no" if event.correct else "yes", revision=1)) for event in wrong]
    step = VERSIONS * PER_HOUR // 4
    lines = [*(line for _, line in records(events)), *corrections[: step * PAIRS]]
    quarantine = f"quarantine: {{file: {tmp_path / 'quarantine'}}}\n"
    config = parse_config(f"state: {{directory: unused, horizon: none}}\n{quarantine}", "bench", {})
    clock = ManualClock(START_MS)
    engines = [
        Engine(config, clock, source=ListSource([("events", line) for line in lines], follow=True), store=MemoryStore(), weigh=weigh)
        for weigh in (False, True)
    ]
    plain, weighing = engines
    for engine in engines:
        engine.runner.start()
        left = len(lines) - step * PAIRS
        while left:
            left -= engine.runner.step(min(left, 5000))
    clock.set(events[-1].at_ms)
    assert weighing.tracker is not None
    entered, spent = -1, 0.0
    while weighing.tracker.book.next_pane != entered:
        entered = weighing.tracker.book.next_pane
        spent += cpu_ms(lambda: tick(weighing))
    panes = (entered - START_MS // HOUR_MS) * VERSIONS
    print(f"\n{VERSIONS} versions; catching up: {spent / panes:.2f} ms CPU a pane of a version, {panes} of them")
    report("while nothing matures", [(cpu_ms(lambda: tick(plain)), cpu_ms(lambda: tick(weighing))) for _ in range(PAIRS)])
    report("under corrections of every version", [_corrected(plain, weighing, step) for _ in range(PAIRS)])
    for engine in engines:
        while engine.runner.step():
            pass
    maturing = []
    for number in range(1, PAIRS + 1):
        clock.set(events[-1].at_ms + number * HOUR_MS)
        maturing.append((cpu_ms(lambda: tick(plain)), cpu_ms(lambda: tick(weighing))))
    report("when an hour of every version matures", maturing)


def _corrected(plain: Engine, weighing: Engine, step: int) -> tuple[float, float]:
    for engine in (plain, weighing):
        engine.runner.step(step)
    return cpu_ms(lambda: tick(plain)), cpu_ms(lambda: tick(weighing))


def report(when: str, pairs: list[tuple[float, float]]) -> None:
    ratio = statistics.median(with_it / without for without, with_it in pairs)
    without, with_it = (statistics.median(pair[side] for pair in pairs) for side in (0, 1))
    print(f"  a tick {when}: {ratio:.2f}x the one without evidence; {with_it:.1f} ms CPU beside {without:.1f} ms")
