"""A million labels in bulk, killed again and again: the sums of labels in time, each applied once."""

from __future__ import annotations

import json
import random
import subprocess
import time
from pathlib import Path

import pytest

from monitor.pipeline.digest import digest, dump
from monitor.request.state import opened_shards
from tests.bench.stream import write_stream
from tests.integration.running import CALMON, ROOT, calmon, report
from tests.recovery.test_kill_backfill import configure, read_all

LABELS = 1_000_000
KILLS = 6


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_a_million_labels_killed_in_the_middle_are_each_applied_once(tmp_path: Path) -> None:
    every, late = tmp_path / "every.ndjson", tmp_path / "late.ndjson"
    write_stream(every, LABELS, ordered=True, seed=6)
    with every.open("rb") as lines, late.open("wb") as labels, (tmp_path / "events.ndjson").open("wb") as events:
        for line in lines:
            (labels if line.startswith(b'{"type":"label"') else events).write(line)
    config = configure(tmp_path)
    read_all(config)
    command = [*CALMON, "backfill", "labels", str(late), "-c", str(config), "--format", "json"]
    began_s, chance = time.monotonic(), random.Random(6)  # noqa: S311 - any moments
    reached = []
    for _ in range(KILLS):
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            process.wait(4 + chance.uniform(0, 3))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        reached.append(rows_done(tmp_path))
    assert 0 < reached[0] < LABELS
    result = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    done = json.loads(result.stdout)
    took_s = time.monotonic() - began_s
    assert done["total"]["labels"] == {"applied": LABELS}
    assert report(calmon("backfill", "labels", late, "-c", config, "--format", "json"))["files"][0]["rows_before"] == LABELS
    with opened_shards(str(tmp_path / "state")) as shards:
        found, account = digest(dump(shards)), shards[0].account
    assert account.consumed == 2 * LABELS
    assert account.outcomes == {("prediction", "applied"): LABELS, ("label", "applied"): LABELS}
    assert account.pending == account.waiting == 0
    in_time = subprocess.run([*CALMON, "evaluate", str(every), "-c", str(config), "--digest"], cwd=ROOT, capture_output=True, check=True)
    assert in_time.stdout.split()[-1].decode() == found
    print(f"{LABELS:,} labels, killed at rows {reached}, in {took_s:.0f} s")  # noqa: T201 - what a soak run measures


def rows_done(folder: Path) -> int:
    """Rows of the one label file that the state has taken in."""
    with opened_shards(str(folder / "state")) as (shard,):
        return max((int(at["row"]) for at in shard.positions.values() if "row" in at), default=0)
