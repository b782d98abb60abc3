"""SIGKILL at the points of a replay and at any moment: the same command goes on, and each record is counted once."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.recovery.stream import make_stream, write_lines
from tests.recovery.test_kill import quick_folder
from tests.replay.killed import replay_killed
from tests.replay.scratch import Held, configure, held, replayed

LINES = [line.value for line in make_stream()]
BATCH = 25
DEFAULTS = {"groups": ["region", "shop"], "max_group_values": 5, "bins": 20}
VARIANTS: Mapping[str, Mapping[str, str]] = {"none": {"horizon": "none"}, "horizon": {"horizon": "2d", "history": "7d"}}
POINTS = ("origin", "joined", "committed", "applied", "drained")


@pytest.fixture
def folder() -> Iterator[Path]:
    with quick_folder() as path:
        yield path


@pytest.fixture(scope="module")
def undisturbed() -> dict[str, Held]:
    found = {}
    for variant, state in VARIANTS.items():
        with quick_folder() as folder:
            config = configure(folder, DEFAULTS, state=state)
            replayed(config, folder / "scratch", write_lines(folder / "events.ndjson", LINES))
            found[variant] = held(folder / "scratch")
    return found


def check(folder: Path, variant: str, kills: list[dict[str, Any]], wanted: Held) -> list[dict[str, Any]]:
    config, file = configure(folder, DEFAULTS, state=VARIANTS[variant]), write_lines(folder / "events.ndjson", LINES)
    log = replay_killed(folder, BATCH, kills, config=str(config), into=str(folder / "scratch"), files=[str(file)])
    found = held(folder / "scratch")
    assert found.consumed == len(LINES)
    assert found._replace(quarantine=[]) == wanted._replace(quarantine=[]), kills
    # Each refused record is kept once; what names the file differs between the folders.
    assert len(found.quarantine) == len(set(found.quarantine)) == len(wanted.quarantine), kills
    assert log[-1]["code"] == 0
    return log


@pytest.mark.parametrize("variant", VARIANTS)
def test_killed_at_each_point(variant: str, folder: Path, undisturbed: dict[str, Held]) -> None:
    kills = [{"point": point, "nth": nth} for nth in (1, 3) for point in POINTS if (point, nth) != ("origin", 3)]
    log = check(folder, variant, kills, undisturbed[variant])
    assert [entry["point"] for entry in log if entry["event"] == "killed"] == [kill["point"] for kill in kills]
    text = log[-1]["text"]
    assert " before, " in text
    assert f"digest: {undisturbed[variant].digest}" in text


@pytest.mark.parametrize("variant", VARIANTS)
def test_killed_at_any_moment(variant: str, folder: Path, undisturbed: dict[str, Held]) -> None:
    chance = random.Random()  # noqa: S311 - other moments every time; a failure names them
    kills = [{"batches": batches, "then_s": chance.uniform(0, 0.05)} for batches in (0, 0, 1, 2, 3, 5, 8)]
    check(folder, variant, kills, undisturbed[variant])
