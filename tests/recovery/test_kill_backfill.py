"""SIGKILL in a backfill, at every point and at any moment, then the same command again: as if nothing had happened."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

from monitor.app import Engine
from monitor.backfill.labels.beside import Folder, Standing
from monitor.backfill.labels.into_file import IntoFile
from monitor.backfill.labels.label_file import partition_name
from monitor.backfill.labels.sieve import Kept, event_of
from monitor.clock import ManualClock
from monitor.config_file import load_config
from monitor.events.record import Label
from monitor.pipeline.account import Account
from monitor.pipeline.digest import digest, dump
from monitor.request.state import opened_shards
from monitor.sources.protocol import never
from tests.backfill.late_labels import Late, hold_back
from tests.recovery.stream import START_MS, encode, label, make_stream, write_lines
from tests.recovery.victim import AFTER_EVERYTHING_MS

ROOT = Path(__file__).parents[2]
BATCH = 20


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a backfill came to."""

    digest: str
    account: Account
    quarantine: bytes
    refused: list[str]
    counts: dict[str, Any]


def read_all(config: Path) -> None:
    """Let a service read its files to their end, and stop."""
    parsed = load_config(config, {})
    engine = Engine(parsed, ManualClock(AFTER_EVERYTHING_MS), weigh=False)
    engine.runner.start()
    while engine.runner.step(timeout_s=0):
        pass
    engine.close()


def configure(folder: Path) -> Path:
    """A service that follows `folder`/events.ndjson."""
    path = folder / "calmon.yaml"
    source = {"files": [str(folder / "events.ndjson")], "follow": True}
    state = {"directory": str(folder / "state"), "horizon": "none"}
    windows = [{"name": "1h", "length": "1h"}, {"name": "24h", "length": "24h"}]
    path.write_text(json.dumps({"source": source, "state": state, "windows": windows}))
    return path


class Stage:
    """A state to which labels are late, to be copied; and what it comes to with them, undisturbed.

    Args:
        folder: Its own.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.late: Late = hold_back([line.value for line in make_stream(dense=400, sparse=200)])
        strangers = [encode(label(f"stranger-{number}", START_MS + number, "yes")) for number in range(60)]
        self.labels = [*self.late.labels, *strangers, b"broken", b'{"prediction_id":"x"}']
        random.Random(3).shuffle(strangers)  # noqa: S311 - the same every time
        write_lines(folder / "events.ndjson", self.late.in_time)
        read_all(configure(folder))
        self.undisturbed: dict[bool, Outcome] = {}

    def run(self, folder: Path, append: bool, kills: Sequence[Mapping[str, Any]]) -> tuple[Outcome, list[dict[str, Any]]]:
        """Take the labels in, killed as planned."""
        shutil.copytree(self._folder, folder, dirs_exist_ok=True)
        config = configure(folder)
        labels = write_lines(folder / "late.ndjson", self.labels)
        log = folder / "log"
        log.touch()
        plan = {"config": str(config), "append_to": str(folder / "events.ndjson") if append else None, "files": [str(labels)]}
        (folder / "plan.json").write_text(json.dumps({**plan, "log": str(log), "batch": BATCH, "kills": kills}))
        command = [sys.executable, "-m", "tests.recovery.backfill_victim", str(folder / "plan.json")]
        result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stderr
        entries = [json.loads(line) for line in log.read_bytes().splitlines()]
        if append:
            read_all(config)
        return self._look(folder, labels, entries), entries

    def _look(self, folder: Path, labels: Path, entries: Sequence[Mapping[str, Any]]) -> Outcome:
        with opened_shards(str(folder / "state")) as shards:
            found, account = digest(dump(shards)), shards[0].account
        kept = Folder(str(folder / "state")).quarantine(partition_name(str(labels), {})).read_bytes()
        own = folder / "state" / "quarantine.ndjson"
        refused = sorted(line["record"] for line in map(json.loads, own.read_bytes().splitlines()) if "record" in line)
        return Outcome(found, account, kept, refused, {**entries[-1], "event": "done"})


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    """Made once, for it is only copied."""
    made = Stage(tmp_path_factory.mktemp("stage"))
    for append in (False, True):
        made.undisturbed[append], _ = made.run(tmp_path_factory.mktemp("undisturbed"), append, [])
    folder = tmp_path_factory.mktemp("in-time")
    write_lines(folder / "events.ndjson", [*made.late.in_time, *made.late.labels])
    read_all(configure(folder))
    with opened_shards(str(folder / "state")) as shards:
        assert {one.digest for one in made.undisturbed.values()} == {digest(dump(shards))}
    assert made.undisturbed[False].quarantine.count(b"\n") >= 62
    return made


def points(*kills: tuple[str, int]) -> list[dict[str, Any]]:
    return [{"point": point, "nth": nth} for point, nth in kills]


@pytest.mark.parametrize(
    "kills",
    [
        points(("quarantined", 1), ("joined", 2), ("committed", 1), ("quarantined", 2), ("applied", 3), ("drained", 1)),
        points(("committed", 2), ("committed", 2), ("committed", 2), ("quarantined", 3), ("joined", 1)),
        [{"batches": number % 4, "then_s": 0.003 * number} for number in range(8)],
    ],
)
def test_killed_while_labels_go_into_the_state(stage: Stage, tmp_path: Path, kills: Sequence[Mapping[str, Any]]) -> None:
    found, log = stage.run(tmp_path, False, kills)
    wanted = stage.undisturbed[False]
    assert sum(entry["event"] == "killed" for entry in log) == sum("point" in kill for kill in kills)
    assert found.counts == wanted.counts
    assert msgspec.structs.asdict(found.account) == msgspec.structs.asdict(wanted.account)
    assert found.quarantine == wanted.quarantine
    assert (found.refused, found.digest) == (wanted.refused, wanted.digest)


@pytest.mark.parametrize(
    "kills",
    [
        points(("quarantined", 1), ("saving", 1), ("saving", 2), ("saved", 1), ("quarantined", 4), ("saving", 3)),
        [{"batches": number % 4, "then_s": 0.003 * number} for number in range(8)],
    ],
)
def test_killed_while_labels_are_appended(stage: Stage, tmp_path: Path, kills: Sequence[Mapping[str, Any]]) -> None:
    found, log = stage.run(tmp_path, True, kills)
    wanted = stage.undisturbed[True]
    assert sum(entry["event"] == "killed" for entry in log) == sum("point" in kill for kill in kills)
    assert found.counts == wanted.counts
    assert found.quarantine == wanted.quarantine
    assert found.digest == wanted.digest
    outcomes, wanted_outcomes = Counter(found.account.outcomes), Counter(wanted.account.outcomes)
    sent_twice = outcomes - wanted_outcomes
    assert sent_twice.keys() <= {("label", "duplicate")}
    assert outcomes - sent_twice == wanted_outcomes


@pytest.mark.parametrize("torn", [0, 1, 40])
def test_a_line_that_a_crash_has_torn_is_made_whole(tmp_path: Path, torn: int) -> None:
    labels = [Label(f"id-{number}", "yes", START_MS + number, 0, None, None, None) for number in range(3)]
    kept = [Kept(number, event_of(one), one, 0) for number, one in enumerate(labels)]
    lines = b"".join(one.event + b"\n" for one in kept)
    followed = tmp_path / "events.ndjson"
    followed.write_bytes(b"before\n" + lines[: len(kept[0].event) + 1 + torn])
    assert IntoFile(str(followed), Folder(str(tmp_path / "state"))).deliver("late", kept, Standing(3), never)
    assert followed.read_bytes() == b"before\n" + lines
    # Somebody else has written after the tear: nothing of theirs is touched, and all labels are there.
    followed.write_bytes(b"before\n" + lines[:torn] + b"after\n")
    assert IntoFile(str(followed), Folder(str(tmp_path / "state"))).deliver("late", kept, Standing(3), never)
    assert followed.read_bytes() == b"before\n" + lines[:torn] + b"after\n" + lines
