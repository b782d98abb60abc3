"""A run of calmon as blocks of Prometheus: every hour of its clock its page is kept, as a scrape would."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from monitor.app import Engine
from monitor.clock import ManualClock
from monitor.config import Config
from monitor.demo.replay import Recording, ReplaySource
from monitor.duration import HOUR_MS
from monitor.pipeline.configured import surroundings
from monitor.pipeline.pages import render_snapshot
from tests.doubles.memory_store import MemoryStore
from tests.rules.promtool import promtool

STEP_MS = HOUR_MS
TARGET = 'job="calmon",instance="a:9779"'
_BATCH = 20_000


def run(config: Config, recordings: Sequence[Recording], begin_ms: int, end_ms: int, folder: Path) -> Path:
    """Run calmon over the recordings on a clock of its own; the directory with the blocks."""
    clock = ManualClock(begin_ms)
    source = ReplaySource(recordings, clock)
    engine = Engine(config, clock, source, store=MemoryStore())
    text = folder / "pages.txt"
    try:
        engine.runner.start()
        with text.open("w", encoding="utf-8") as file:
            for now_ms in range(begin_ms, end_ms + 1, STEP_MS):
                clock.set(now_ms)
                while engine.runner.step(_BATCH, 0):
                    pass
                page = render_snapshot(engine.evaluator.tick(), source.status(), 0, surroundings(config)).metrics.decode()
                file.writelines(scraped(page, now_ms))
            file.write("# EOF\n")
    finally:
        engine.close()
    blocks = folder / "blocks"
    # One block for all: by default each two hours would read the whole text once more.
    promtool("tsdb", "create-blocks-from", "--max-block-duration=2000h", "openmetrics", text, blocks)
    return blocks


def scraped(page: str, now_ms: int) -> list[str]:
    """Samples of a page with the labels of a target and the time of the scrape."""
    moment = f" {now_ms / 1000:.3f}\n"
    lines = [f"up{{{TARGET}}} 1{moment}"]
    for line in page.splitlines():
        if line.startswith(("#", "calmon_bin_", "calmon_label_delay_seconds_bucket")):
            continue
        name, value = line.rsplit(" ", 1)
        head, brace, labels = name.partition("{")
        lines.append(f"{head}{{{TARGET},{labels} {value}{moment}" if brace else f"{head}{{{TARGET}}} {value}{moment}")
    return lines
