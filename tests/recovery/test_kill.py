"""SIGKILL at every point of a checkpoint and at any moment: as if nothing had happened."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest

from monitor.app import Engine
from monitor.clock import ManualClock
from monitor.config_file import load_config
from monitor.pipeline.account import Account
from monitor.pipeline.digest import digest, dump
from monitor.pipeline.pages import render_snapshot
from monitor.state import keys
from tests.recovery.stream import DAY_MS, HOUR_MS, START_MS, Line, make_stream, write_lines
from tests.recovery.victim import AFTER_EVERYTHING_MS

ROOT = Path(__file__).parents[2]
BATCH = 20
LINES = make_stream()
VARIANTS = {
    "no_horizon": "state: {directory: %s, horizon: none}\nwindows: [{name: 24h, length: 24h, lag: 0s}]\n",
    "horizon": "state: {directory: %s, horizon: 2d, history: 40d}\n"
    "windows: [{name: 1h, length: 1h, lag: 0s}, {name: 24h, length: 24h, lag: 24h}]\n",
    "history": "state: {directory: %s, horizon: 2d, history: 7d}\n"
    "windows: [{name: 1h, length: 1h, lag: 0s}, {name: 24h, length: 24h, lag: 24h}]\n",
}
"""Rows expire in the second and third; panes in the third only, so that the second's digest still shows what happened first."""
POINTS = {
    "no_horizon": ("start", "joined", "committed", "applied", "drained", "absorbing"),
    "horizon": ("start", "joined", "committed", "applied", "drained", "absorbing", "folding", "expiring"),
    "history": ("expiring",),
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is left when a stream has been read."""

    digest: str
    account: Account
    gauges: tuple[str, ...]
    quarantine: tuple[bytes, ...]


def configure(folder: Path, variant: str) -> Path:
    """Write the configuration of a variant, and the stream it reads."""
    stream = write_lines(folder / "events.ndjson", [line.value for line in LINES])
    path = folder / "calmon.yaml"
    path.write_text(
        f"source: {{files: [{stream}]}}\n"
        + VARIANTS[variant] % (folder / "state")
        + "defaults: {groups: [region, shop], max_group_values: 5, confidence_threshold: 0.8, ood_threshold: 0.1}\n"
    )
    return path


def look(config_path: Path) -> Outcome:
    """Open the state again and read everything out of it."""
    config = load_config(config_path, {})
    newest_ms = max(line.arrives_ms for line in LINES)
    engine = Engine(config, ManualClock(newest_ms // DAY_MS * DAY_MS))
    try:
        waiting = list(engine.shard.store.scan(*keys.prefix_range(b"q")))
        assert waiting == []
        exposition = render_snapshot(engine.evaluator.tick()).metrics.decode()
        gauges = tuple(line for line in exposition.splitlines() if 'window="' in line)
        lines = Path(config.state.directory, "quarantine.ndjson").read_bytes().replace(bytes(config_path.parent), b"").splitlines()
        return Outcome(digest(dump([engine.shard])), engine.shard.account, gauges, tuple(lines))
    finally:
        engine.close()


def read_undisturbed(config_path: Path) -> Outcome:
    """Read the stream in one go, in batches of the same size."""
    engine = Engine(load_config(config_path, {}), ManualClock(AFTER_EVERYTHING_MS))
    engine.runner.start()
    while not engine.source.exhausted:
        engine.runner.step(BATCH)
    engine.close()
    return look(config_path)


@contextmanager
def quick_folder() -> Iterator[Path]:
    """A folder in memory if there is such a place: a killed process needs no disk, and each of thousands of commits is fsynced."""
    memory = Path("/dev/shm")  # noqa: S108 - the folder in it is made safely
    with tempfile.TemporaryDirectory(prefix="calmon-", dir=memory if os.access(memory, os.W_OK) else None) as folder:
        yield Path(folder)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder for one test."""
    with quick_folder() as path:
        yield path


@pytest.fixture(scope="module")
def undisturbed() -> Mapping[str, Outcome]:
    """What each variant comes to when nothing disturbs it."""
    outcomes = {}
    for variant in VARIANTS:
        with quick_folder() as path:
            outcomes[variant] = read_undisturbed(configure(path, variant))
    return outcomes


def run_victim(folder: Path, config_path: Path, kills: Sequence[Mapping[str, object]], spared: int = 2 * BATCH) -> list[dict[str, Any]]:
    """Carry out a plan; its log."""
    log = folder / "log"
    plan = {"config": str(config_path), "log": str(log), "batch": BATCH, "kills": kills, "spared_from": len(LINES) - spared}
    (folder / "plan.json").write_text(json.dumps(plan))
    command = [sys.executable, "-m", "tests.recovery.victim", str(folder / "plan.json")]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=200, check=False)
    assert result.returncode == 0, result.stderr
    return [json.loads(line) for line in log.read_text().splitlines()]


def check_restarts(log: Sequence[Mapping[str, Any]]) -> None:
    """Each attempt goes on where a checkpoint ended, so that at most one batch is read again; the last one gets to the end."""
    begun = [number for number, entry in enumerate(log) if entry["event"] == "start"]
    assert log[begun[0]]["line"] == 0
    for number in begun[1:]:
        before = log[:number]
        polled = [entry for entry in before if entry["event"] == "polled"]
        committed = [
            polled_before["last"]
            for polled_before, entry in pairwise(before)
            if (polled_before["event"], entry["event"]) == ("polled", "committed")
        ]
        last_polled = polled[-1]["last"] if polled else 0
        last_committed = committed[-1] if committed else 0
        # A kill from outside may fall between a commit and its note.
        assert log[number]["line"] in (last_committed, last_polled)
        assert last_polled - log[number]["line"] <= BATCH
        following = log[number + 1]
        assert following["event"] in ("polled", "killed", "start", "done")
        if following["event"] == "polled":
            assert following["first"] == log[number]["line"] + 1
    assert log[-1] == {"event": "done"}


def check_same(found: Outcome, expected: Outcome) -> None:
    """Compare part by part, the small ones first: their differences can be read."""
    assert msgspec.structs.asdict(found.account) == msgspec.structs.asdict(expected.account)
    assert found.digest == expected.digest
    assert found.quarantine == expected.quarantine
    assert found.gauges == expected.gauges


@pytest.mark.parametrize(("variant", "point"), [(variant, point) for variant, points in POINTS.items() for point in points])
def test_killed_at_a_point_and_started_again_comes_to_the_same(
    variant: str, point: str, undisturbed: Mapping[str, Outcome], folder: Path
) -> None:
    config_path = configure(folder, variant)
    times = {"start": (1,), "absorbing": (1, 1, 1), "folding": (1, 2, 1), "expiring": (1, 5, 9)}.get(point, (7, 2, 3))
    log = run_victim(folder, config_path, [{"point": point, "nth": nth} for nth in times])
    assert [entry["point"] for entry in log if entry["event"] == "killed"] == [point] * len(times)
    check_restarts(log)
    check_same(look(config_path), undisturbed[variant])


@pytest.mark.parametrize("variant", ["no_horizon", "horizon"])
def test_killed_at_any_moment_comes_to_the_same(variant: str, undisturbed: Mapping[str, Outcome], folder: Path) -> None:
    config_path = configure(folder, variant)
    chance = random.Random(variant)  # noqa: S311 - the same moments every time, as far as the machine allows
    kills = [{"batches": chance.randint(1, 8), "then_s": chance.uniform(0, 0.004)} for _ in range(10)]
    log = run_victim(folder, config_path, kills, spared=15 * BATCH)
    assert sum(entry["event"] == "start" for entry in log) == 11
    assert sum(entry["event"] == "done" for entry in log) < 8  # most attempts did not get to the end
    check_restarts(log)
    check_same(look(config_path), undisturbed[variant])


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("number", range(40))
def test_killed_at_moments_that_nobody_chose(number: int, undisturbed: Mapping[str, Outcome], folder: Path) -> None:
    variant = ("no_horizon", "horizon")[number % 2]
    config_path = configure(folder, variant)
    chance = random.Random()  # noqa: S311 - other moments every time; a failure names them
    kills = [{"batches": chance.randint(1, 8), "then_s": chance.uniform(0, 0.01)} for _ in range(15)]
    log = run_victim(folder, config_path, kills, spared=15 * BATCH)
    check_restarts(log)
    assert look(config_path).digest == undisturbed[variant].digest, kills
    check_same(look(config_path), undisturbed[variant])


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_quarantine_holds_exactly_what_must_be_refused(variant: str, undisturbed: Mapping[str, Outcome]) -> None:
    def is_refused(line: Line) -> bool:
        return line.refused is not None and (variant != "no_horizon" or not line.needs_horizon)

    expected = [(number, line) for number, line in enumerate(LINES, start=1) if is_refused(line)]
    entries = [json.loads(line) for line in undisturbed[variant].quarantine]
    assert [(entry["offset"], entry["reason"]) for entry in entries] == [(number, line.refused) for number, line in expected]
    for entry, (_, line) in zip(entries, expected, strict=True):
        if "record" in entry:
            assert entry["record"].encode() == line.value
    reasons = {line.refused for _, line in expected}
    assert reasons >= {"bad_json", "missing_label", "conflicting_prediction", "conflicting_label"}
    assert ("expired" in reasons) == (variant != "no_horizon")


def test_the_stream_reaches_what_the_tests_are_about(undisturbed: Mapping[str, Outcome]) -> None:
    without, within = undisturbed["no_horizon"].account, undisturbed["horizon"].account
    assert without.consumed == within.consumed == len(LINES)
    assert without.folded > 0
    assert within.ineligible["late"] > 0
    assert without.outcomes[("label", "corrected")] > 0
    assert without.outcomes[("label", "withdrawn")] > 0
    assert within.pending < without.pending  # rows have expired
    assert len({outcome.digest for outcome in undisturbed.values()}) == 3  # late labels, expired panes
    assert max(line.arrives_ms for line in LINES) > START_MS + 20 * DAY_MS + HOUR_MS
