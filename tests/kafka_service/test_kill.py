"""SIGKILL at every point between topics, state and quarantine, and at any moment: as if nothing had happened."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from monitor.config_file import load_config
from monitor.pipeline.account import Account, merge_accounts
from monitor.pipeline.digest import digest, dump
from monitor.pipeline.shard import Shard
from monitor.state import keys
from monitor.state.rocks import RocksStore
from tests.kafka_quarantine.topic import fields, read
from tests.kafka_service.topics import Place, Topics, evaluate
from tests.recovery.stream import DAY_MS, START_MS, encode, label, make_stream, prediction, write_lines
from tests.recovery.test_kill import quick_folder
from tests.services.kafka import Kafka

ROOT = Path(__file__).parents[2]
BATCH = 80
SMALL_BATCH = 20
"""Makes many deltas, so that there is something to absorb."""
SPARED = 60
CLOSING = [
    encode(event)
    for day in (50, 70)
    for number in range(8)
    for event in (
        prediction(f"last-{day}-{number}", START_MS + day * DAY_MS, 0.7),
        label(f"last-{day}-{number}", START_MS + day * DAY_MS, "yes"),
    )
]
"""Ends each partition so late that every other row expires, whatever the order in which the partitions were read."""
LINES = [line.value for line in make_stream()] + CLOSING
VARIANTS: Mapping[str, Mapping[str, Any]] = {
    "no_horizon": {"state": {"horizon": "none"}, "windows": [{"name": "24h", "length": "24h", "lag": "0s"}]},
    "horizon": {
        "state": {"horizon": "2d", "history": "90d"},
        "windows": [{"name": "1h", "length": "1h", "lag": "0s"}, {"name": "24h", "length": "24h", "lag": "24h"}],
    },
}
POINTS = {
    "no_horizon": ("start", "joined", "committed", "applied", "drained", "mirror", "acknowledged", "delivered", "absorbing"),
    "horizon": ("committed", "mirror", "folding", "expiring"),
}
TIMES = {"start": (1, 1), "acknowledged": (1, 9), "absorbing": (1, 1), "folding": (1, 1), "expiring": (1, 3)}


class Outcome(NamedTuple):
    """What is left when the topics have been read; the refused ones by place and number at the place."""

    digest: str
    account: Account
    refused: list[tuple[Place, int, str, bytes | None, bytes]]


class Stage(NamedTuple):
    """Topics with the stream in them, and what each variant comes to when nothing disturbs it."""

    topics: Topics
    undisturbed: Mapping[str, Outcome]


def configure(topics: Topics, folder: Path, variant: str) -> tuple[Path, str]:
    """Write the configuration of a variant; its quarantine topic."""
    quarantine = topics.kafka.new_topic("quarantine", 2, {"retention.ms": "-1"})
    sections = dict(VARIANTS[variant])
    sections["state"] = {"directory": str(folder / "state"), **sections["state"]}
    return topics.config(folder, quarantine, **sections), quarantine


def look(topics: Topics, folder: Path, quarantine: str) -> Outcome:
    """Read everything out of the state and the quarantine."""
    with ExitStack() as stack:
        shards = []
        for path in sorted((folder / "state").glob("shard-*")):
            store = RocksStore(path)
            stack.callback(store.close)
            assert list(store.scan(*keys.prefix_range(b"q"))) == []
            shards.append(Shard(store, None, ()))
        records = read(topics.kafka, quarantine)
        refused = []
        for record in records:
            header = fields(record)
            place = Place(header["topic"], int(header["partition"]), int(header["offset"]))
            refused.append((place, int(header["index"]), header["reason"], record.key, record.value))
        assert len({row[:2] for row in refused}) == len(refused)
        return Outcome(digest(dump(shards)), merge_accounts([shard.account for shard in shards]), sorted(refused, key=lambda row: row[:2]))


def run_victim(
    folder: Path, config: Path, kills: Sequence[Mapping[str, object]], spared: int = SPARED, batch: int = BATCH
) -> list[dict[str, Any]]:
    """Carry out a plan; its log."""
    log = folder / "log"
    plan = {"config": str(config), "log": str(log), "batch": batch, "kills": kills, "spared": spared}
    (folder / "plan.json").write_text(json.dumps(plan))
    command = [sys.executable, "-m", "tests.kafka_service.victim", str(folder / "plan.json")]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280, check=False)
    assert result.returncode == 0, result.stderr
    return [json.loads(line) for line in log.read_text().splitlines()]


def check_restarts(log: Sequence[Mapping[str, Any]], batch: int = BATCH) -> None:
    """Each attempt goes on exactly where a checkpoint ended, never before an earlier one, and reads one batch again at most."""
    stored: dict[str, int] = {}
    polled: dict[str, int] = {}
    follows: dict[str, int] = {}
    for entry in log:
        if entry["event"] == "start":
            begin = entry["offsets"]
            again: dict[str, int] = {}
            for name, end in polled.items():
                assert stored.get(name, 0) <= begin.get(name, 0) <= end
                shard = name.rpartition("-")[2]
                again[shard] = again.get(shard, 0) + end - begin.get(name, 0)
            assert all(records <= batch for records in again.values()), again
            stored, polled, follows = dict(begin), dict(begin), {}
        elif entry["event"] == "polled":
            for name, (first, end, events) in entry["read"].items():
                assert first == follows.get(name, stored.get(name, 0))
                assert events <= batch
                follows[name] = polled[name] = end
        elif entry["event"] == "stored":
            for name, offset in entry["offsets"].items():
                assert offset == polled[name] >= stored.get(name, 0)
                stored[name] = offset
    assert log[-1] == {"event": "done"}


def check_same(found: Outcome, expected: Outcome) -> None:
    """Compare part by part, the small ones first: their differences can be read."""
    assert msgspec.structs.asdict(found.account) == msgspec.structs.asdict(expected.account)
    assert found.refused == expected.refused
    assert found.digest == expected.digest


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder for one test, in memory."""
    with quick_folder() as path:
        yield path


@pytest.fixture(scope="module")
def stage(kafka: Kafka) -> Stage:
    """Made once, for it is only read."""
    topics = Topics(kafka, 2)
    topics.send(LINES, random.Random(5))  # noqa: S311 - the same batches every time
    outcomes = {}
    for variant in VARIANTS:
        with quick_folder() as folder:
            config, quarantine = configure(topics, folder, variant)
            log = run_victim(folder, config, [])
            check_restarts(log)
            outcomes[variant] = look(topics, folder, quarantine)
            if variant == "no_horizon":
                wanted = evaluate(write_lines(folder / "events.ndjson", LINES), config)
                assert outcomes[variant].digest == wanted.digest
    assert {zlib.crc32(b"last-70-%d" % number) % 2 for number in range(8)} == {0, 1}
    assert outcomes["no_horizon"].account.consumed == len(LINES)
    assert len(outcomes["no_horizon"].refused) > 100
    assert {row[2] for row in outcomes["horizon"].refused} > {row[2] for row in outcomes["no_horizon"].refused}  # some are expired
    assert outcomes["horizon"].account.pending < outcomes["no_horizon"].account.pending  # rows have expired
    return Stage(topics, outcomes)


def kill_and_compare(stage: Stage, folder: Path, variant: str, kills: Sequence[tuple[str, int]], batch: int) -> None:
    """Kill at points, one attempt after the other, and compare with the undisturbed run."""
    config, quarantine = configure(stage.topics, folder, variant)
    log = run_victim(folder, config, [{"point": point, "nth": nth} for point, nth in kills], batch=batch)
    assert [entry["point"] for entry in log if entry["event"] == "killed"] == [point for point, _ in kills]
    check_restarts(log, batch)
    check_same(look(stage.topics, folder, quarantine), stage.undisturbed[variant])


@pytest.mark.parametrize(
    ("variant", "batch", "kills"),
    [
        ("no_horizon", BATCH, [("start", 1), ("committed", 1), ("joined", 2), ("mirror", 3), ("applied", 4), ("start", 1), ("drained", 2)]),
        ("no_horizon", SMALL_BATCH, [("acknowledged", 1), ("delivered", 1), ("mirror", 1), ("acknowledged", 9), ("absorbing", 1)]),
        ("horizon", BATCH, [("folding", 1), ("joined", 3), ("delivered", 3), ("mirror", 2)]),
        # Rows expire late in the stream. How much is left then depends on how the broker hands out the partitions: plans for it are short.
        ("horizon", BATCH, [("expiring", 1), ("expiring", 1), ("mirror", 1)]),
    ],
)
def test_killed_at_point_after_point_comes_to_the_same(
    variant: str, batch: int, kills: Sequence[tuple[str, int]], stage: Stage, folder: Path
) -> None:
    kill_and_compare(stage, folder, variant, kills, batch)


@pytest.mark.soak
@pytest.mark.parametrize(("variant", "point"), [(variant, point) for variant, points in POINTS.items() for point in points])
def test_killed_at_one_point_again_and_again_comes_to_the_same(variant: str, point: str, stage: Stage, folder: Path) -> None:
    batch = SMALL_BATCH if point == "absorbing" else BATCH
    kill_and_compare(stage, folder, variant, [(point, nth) for nth in TIMES.get(point, (4, 3, 2))], batch)


def moments(chance: random.Random, count: int) -> list[dict[str, float]]:
    """Moments from the fork on, and from a batch on."""
    kills = []
    for _ in range(count):
        batches = chance.randint(0, 4)
        kills.append({"batches": batches, "then_s": chance.uniform(0, 0.06 if batches else 1.0)})
    return kills


@pytest.mark.parametrize("variant", VARIANTS)
def test_killed_at_any_moment_comes_to_the_same(variant: str, stage: Stage, folder: Path) -> None:
    config, quarantine = configure(stage.topics, folder, variant)
    log = run_victim(folder, config, moments(random.Random(variant), 10), spared=2 * SPARED)  # noqa: S311 - the same every time
    assert sum(entry["event"] == "done" for entry in log) < 6  # most attempts did not get to the end
    check_restarts(log)
    check_same(look(stage.topics, folder, quarantine), stage.undisturbed[variant])


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("number", range(20))
def test_killed_at_moments_that_nobody_chose(number: int, stage: Stage, folder: Path) -> None:
    variant = ("no_horizon", "horizon")[number % 2]
    config, quarantine = configure(stage.topics, folder, variant)
    kills = moments(random.Random(), 10)  # noqa: S311 - other moments every time; a failure names them
    check_restarts(run_victim(folder, config, kills, spared=2 * SPARED))
    found = look(stage.topics, folder, quarantine)
    assert found.digest == stage.undisturbed[variant].digest, kills
    check_same(found, stage.undisturbed[variant])


def test_the_group_has_the_stored_offsets_in_the_end(stage: Stage, folder: Path) -> None:
    config, _ = configure(stage.topics, folder, "no_horizon")
    log = run_victim(folder, config, [{"point": "mirror", "nth": 3}])
    kafka = load_config(config, {}).source.kafka
    assert kafka is not None
    with stage.topics.kafka.admin() as admin:
        (found,) = admin.list_group_offsets([kafka.group_id]).values()
    offsets = {f"{part.topic}-{part.partition}": there.offset for part, there in found.items()}
    stored: dict[str, int] = {}
    for entry in log:
        if entry["event"] == "stored":
            stored |= entry["offsets"]
    assert offsets == stored
    assert offsets.keys() == set(stage.topics.names)
