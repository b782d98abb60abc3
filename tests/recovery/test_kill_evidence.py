"""SIGKILL while evidence is judged and noted, or at any moment: no crossing is lost, and none is noted twice."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from monitor.app import Engine
from monitor.config_file import load_config
from monitor.evidence.course import Course
from monitor.evidence.standing import Crossing, Evidence
from monitor.windows.matured import VersionKey
from tests.doubles.evidence_stream import course, made, records, same
from tests.recovery.evidence_victim import begin, read
from tests.recovery.stream import write_lines
from tests.recovery.test_kill import ROOT, quick_folder

EVENTS = made(21, range(0, 14 * 24, 2), {"good": lambda c, hour: c, "bad": lambda c, hour: c - 0.2 * (hour > 100)}, per_hour=6)
LINES = [line for _, line in records(EVENTS)]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is left when the stream has been read."""

    journal: Sequence[Crossing]
    courses: Mapping[VersionKey, Course]
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class Undisturbed:
    """What it comes to when nothing disturbs it, and how many entries the journal had each time it was written."""

    outcome: Outcome
    entries: Sequence[int]


def configure(folder: Path) -> Path:
    stream = write_lines(folder / "events.ndjson", LINES)
    path = folder / "calmon.yaml"
    # Panes expire while the stream is read, some of them soon after they have matured.
    path.write_text(
        f"source: {{files: [{stream}]}}\nstate: {{directory: {folder / 'state'}, horizon: 2d, history: 7d}}\n"
        "windows: [{name: 1h, length: 1h}]\n"
    )
    return path


def look(config_path: Path) -> Outcome:
    """Read on to the end, if there is anything left, and look."""
    engine, clock = begin(load_config(config_path, {}), lambda point: None)
    try:
        read(engine, clock, lambda: None)
        return outcome(engine)
    finally:
        engine.close()


def outcome(engine: Engine) -> Outcome:
    assert engine.tracker is not None
    book = engine.tracker.book
    return Outcome(list(book.journal), dict(book.courses), engine.evaluator.snapshot.evidence)


@pytest.fixture(scope="module")
def undisturbed() -> Undisturbed:
    written: list[int] = []

    def reached(point: str) -> None:
        if point == "journalled":
            written.append(len(outcome(engine).journal))

    with quick_folder() as folder:
        engine, clock = begin(load_config(configure(folder), {}), reached)
        read(engine, clock, lambda: None)
        found = outcome(engine)
        engine.close()
    return Undisturbed(found, written)


@pytest.fixture
def folder() -> Iterator[Path]:
    with quick_folder() as path:
        yield path


def check(folder: Path, kills: Sequence[Mapping[str, object]], expected: Outcome) -> list[dict[str, Any]]:
    """Carry out a plan, compare what is left, and return its log."""
    config_path, log = configure(folder), folder / "log"
    (folder / "plan.json").write_text(json.dumps({"config": str(config_path), "log": str(log), "kills": kills}))
    command = [sys.executable, "-m", "tests.recovery.evidence_victim", str(folder / "plan.json")]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=200, check=False)
    assert result.returncode == 0, result.stderr
    found = look(config_path)
    assert found.journal == expected.journal
    assert found.courses.keys() == expected.courses.keys()
    assert all(same(one, expected.courses[version]) for version, one in found.courses.items())
    assert found.evidence == expected.evidence
    return [json.loads(line) for line in log.read_text().splitlines()]


def crossing_writes(undisturbed: Undisturbed) -> list[int]:
    """Which writes of the book, counted from 1, took in entries of the journal."""
    return [number for number, (before, after) in enumerate(pairwise([0, *undisturbed.entries]), start=1) if after > before]


def test_killed_before_a_crossing_is_written_it_is_noted_after_the_restart(undisturbed: Undisturbed, folder: Path) -> None:
    first, second, *_ = crossing_writes(undisturbed)
    # After the restart the first judgement is the one that was lost.
    nth = [first, 1, 1 + second - first, 1]
    log = check(folder, [{"point": "judged", "nth": one} for one in nth], undisturbed.outcome)
    assert [entry["event"] for entry in log].count("killed") == len(nth)


def test_killed_after_a_crossing_was_written_it_is_not_noted_again(undisturbed: Undisturbed, folder: Path) -> None:
    first, second, *_ = crossing_writes(undisturbed)
    # After the restart the first judgement is the next one.
    nth = [first, second - first, 1, 1]
    log = check(folder, [{"point": "journalled", "nth": one} for one in nth], undisturbed.outcome)
    assert [entry["event"] for entry in log].count("killed") == len(nth)


@pytest.mark.parametrize("point", ["joined", "committed", "expiring"])
def test_killed_at_a_point_of_a_checkpoint_the_evidence_comes_to_the_same(point: str, undisturbed: Undisturbed, folder: Path) -> None:
    log = check(folder, [{"point": point, "nth": nth} for nth in (4, 1, 2)], undisturbed.outcome)
    assert [entry["event"] for entry in log].count("killed") == 3


def test_killed_at_any_moment_the_evidence_comes_to_the_same(undisturbed: Undisturbed, folder: Path) -> None:
    chance = random.Random(7)  # noqa: S311 - the same moments every time, as far as the machine allows
    kills = [{"batches": chance.randint(1, 12), "then_s": chance.uniform(0, 0.03)} for _ in range(10)]
    log = check(folder, kills, undisturbed.outcome)
    assert [entry["event"] for entry in log].count("start") == 11


def test_the_stream_has_crossings_and_loses_panes(undisturbed: Undisturbed) -> None:
    assert len(crossing_writes(undisturbed)) >= 2
    assert {entry.version for entry in undisturbed.outcome.journal} == {"bad"}
    assert all(same(one, course(EVENTS, version)) for (_, version), one in undisturbed.outcome.courses.items())
    # Everything that has expired is in what is known now.
    assert not any(one.restated for one in undisturbed.outcome.evidence.standings)
