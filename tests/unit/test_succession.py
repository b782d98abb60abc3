"""Which version came before which, and that first sight depends on no order, batch, partition or restart."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.app import Engine
from monitor.clock import ManualClock
from monitor.config_file import parse_config
from monitor.metrics.settings import Settings
from monitor.metrics.succession import previous_versions
from monitor.pipeline.account import Account, merge_accounts
from monitor.pipeline.pages import render_snapshot
from monitor.statistics.fixed_point import I64
from monitor.statistics.segment import ALL
from monitor.statistics.series import SeriesKey
from tests.doubles.list_source import ListSource
from tests.doubles.memory_store import MemoryStore
from tests.golden.product import samples
from tests.recovery.stream import HOUR_MS, MINUTE_MS, START_MS, encode, label, prediction

Record = tuple[str, bytes]


def cells(**labelled: int) -> dict[SeriesKey, I64]:
    """Cells of model m: labels by version."""
    made = {}
    for version, count in labelled.items():
        cell = np.zeros(ALL.width(0), dtype=np.int64)
        cell[[0, ALL.scalar("labelled")]] = count + 5, count
        made[SeriesKey("m", "layout", version, "all", "all")] = cell
    return made


def previous(first_ms: dict[str, int], minimum: int = 30, **labelled: int) -> dict[str, str]:
    named = {("m", version): at for version, at in first_ms.items()}
    found = previous_versions(cells(**labelled), named, lambda model: Settings(min_group_count=minimum))
    return {version: before for (_, version), before in found.items()}


def test_the_one_first_seen_last_before() -> None:
    assert previous({"c": 5, "a": 7, "b": 1}, a=50, b=50, c=50) == {"a": "c", "c": "b"}


def test_versions_with_few_labels_are_passed_over_but_have_one_themselves() -> None:
    assert previous({"a": 1, "b": 2, "c": 3}, a=30, b=29, c=2) == {"b": "a", "c": "a"}
    assert previous({"a": 1, "b": 2}, minimum=31, a=30, b=500) == {}


def test_versions_that_began_together_are_ordered_by_name() -> None:
    assert previous({"b": 1, "a": 1}, a=50, b=50) == {"b": "a"}


def test_a_version_outside_the_window_or_of_another_model_is_none() -> None:
    assert previous({"a": 1, "b": 2, "gone": 1}, a=50, b=50) == {"b": "a"}
    two = {**cells(a=50), SeriesKey("other", "layout", "b", "all", "all"): next(iter(cells(b=50).values()))}
    assert previous_versions(two, {("m", "a"): 1, ("other", "b"): 2}, lambda model: Settings()) == {}


@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("12"), st.integers(0, 50)), max_size=30), st.integers(1, 4))
def test_first_sight_merges_and_is_stored(seen: list[tuple[str, str, int]], parts: int) -> None:
    accounts = [Account() for _ in range(parts)]
    for number, one in enumerate(seen):
        accounts[number % parts].saw_version(*one)
    want = {name: min(at for model, version, at in seen if (model, version) == name) for name in {one[:2] for one in seen}}
    assert merge_accounts([Account.from_bytes(account.to_bytes()).copy() for account in accounts]).first_ms == want


def test_an_account_of_before_has_seen_none() -> None:
    stored = Account(consumed=3).to_bytes()
    without = bytes([stored[0] - 1]) + stored[1:-1]  # a msgpack array that lacks its last, empty, element
    assert stored[-1:] == b"\x90"
    assert Account.from_bytes(without) == Account(consumed=3)


def events(chance: random.Random) -> list[bytes]:
    """Predictions of three versions out of order, some twice, some refused."""
    made = []
    for number in range(150):
        at_ms = START_MS + chance.randrange(50 * MINUTE_MS)
        event = encode(prediction(f"id-{number}", at_ms, 0.9, version=chance.choice(["v1", "v2", "v3"])))
        made += [event] * chance.choice([1, 1, 2])
    return [*made, encode({**prediction("bad", START_MS - HOUR_MS, 0.9, version="v1"), "accepted": 7})]


def first_seen(records: Sequence[Record], tmp_path: Path, batch: int, restart_after: int) -> dict[tuple[str, str], int]:
    config = parse_config(f"state: {{horizon: none}}\nquarantine: {{file: {tmp_path / 'quarantine'}}}\n", "test", {})
    store = MemoryStore()
    engine = Engine(config, ManualClock(START_MS), ListSource(records), store)
    engine.runner.start()
    for _ in range(restart_after):
        engine.runner.step(batch, 0.0)
    engine = Engine(config, ManualClock(START_MS), ListSource(records), store)
    engine.runner.start()
    while engine.runner.step(batch, 0.0):
        pass
    return engine.shard.account.first_ms


@pytest.mark.parametrize("seed", range(4))
def test_first_sight_depends_on_no_order_batch_partition_or_restart(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)  # noqa: S311 - must be the same every time
    lines = events(random.Random(1))  # noqa: S311
    want = first_seen([("all", line) for line in lines], tmp_path, 5_000, 0)
    assert len(want) == 3
    assert min(want.values()) >= START_MS, "a refused prediction is not seen"
    chance.shuffle(lines)
    records = [(f"p{hash_of(line) % 3}", line) for line in lines]
    assert first_seen(records, tmp_path, chance.randrange(1, 60), chance.randrange(5)) == want, seed


def hash_of(line: bytes) -> int:
    return sum(line.split(b'"prediction_id":"')[1].split(b'"')[0])


def test_the_page_compares_a_version_with_the_one_before(tmp_path: Path) -> None:
    stream = []
    for number in range(80):
        version = "old" if number < 40 else "new"
        stream.append(prediction(f"{number}", START_MS + number * 1000, 0.9, version=version))
        stream.append(label(f"{number}", START_MS + HOUR_MS, "yes" if number % (4 if version == "old" else 2) else "no"))
    text = f"windows: [{{name: w, length: 1h}}]\nevaluation: {{families: [comparison]}}\nquarantine: {{file: {tmp_path / 'q'}}}\n"
    clock = ManualClock(START_MS + HOUR_MS)
    engine = Engine(parse_config(text, "test", {}), clock, ListSource([("all", encode(event)) for event in stream]), MemoryStore())
    engine.runner.start()
    while engine.runner.step(7, 0.0):
        pass
    page = samples(render_snapshot(engine.evaluator.tick()).metrics)
    found = {labels["model_version"]: value for name, labels, value in page if name == "calmon_accuracy_difference"}
    assert found == {"new": pytest.approx(0.5 - 0.75)}
    (info,) = [labels for name, labels, _ in page if name == "calmon_previous_version_info"]
    assert (info["model_version"], info["previous_version"]) == ("new", "old")
