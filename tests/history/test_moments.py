"""Past moments from stored panes: in any order, from any number of shards, and never across a change of layout."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.config import Config
from monitor.errors import CalmonError
from monitor.metrics.evaluation import Block
from monitor.pipeline.configured import settings_of
from monitor.pipeline.references import ConfiguredReferences
from monitor.pipeline.report import models_report, report_blocks
from monitor.pipeline.shard import Shard
from monitor.state.references import References
from monitor.windows.running import WindowSpec
from tests.doubles.memory_store import MemoryStore
from tests.history.shards import answers, config, shard_of
from tests.recovery.stream import DAY_MS, HOUR_MS, MINUTE_MS, START_MS, encode, label, make_stream, prediction

LENGTHS_MS = (MINUTE_MS, 90 * MINUTE_MS, 6 * HOUR_MS, DAY_MS, 9 * DAY_MS)


@pytest.fixture(scope="module")
def configured(tmp_path_factory: pytest.TempPathFactory) -> Config:
    return config(tmp_path_factory.mktemp("moments"))


@pytest.fixture(scope="module")
def lines() -> list[bytes]:
    return [line.value for line in make_stream(200, 150)]


@pytest.fixture(scope="module")
def whole(configured: Config, lines: list[bytes]) -> Shard:
    return shard_of(lines, configured)


@pytest.fixture(scope="module")
def halves(configured: Config, lines: list[bytes]) -> list[Shard]:
    """Two shards with half of the ids each."""
    parts: list[list[bytes]] = [[], []]
    for line in lines:
        try:
            one = json.loads(line)["prediction_id"]
        except (ValueError, KeyError, TypeError):
            one = ""
        parts[sum(one.encode()) % 2].append(line)
    return [shard_of(part, configured) for part in parts]


@st.composite
def questions(draw: st.DrawFn) -> tuple[str, WindowSpec, list[int]]:
    """A version, a window, and moments in any order, also the same twice."""
    by_hours = draw(st.booleans())
    length_ms = draw(st.sampled_from([one for one in LENGTHS_MS if not by_hours or one % HOUR_MS == 0]))
    unit_ms = HOUR_MS if by_hours else MINUTE_MS
    lag_ms = draw(st.integers(0, 30)) * unit_ms
    near = st.integers(-2 * unit_ms, 3 * HOUR_MS)
    moments = draw(st.lists(near | st.integers(0, 26 * DAY_MS), min_size=1, max_size=8))
    return draw(st.sampled_from(["v1", "v2"])), WindowSpec("any", length_ms, lag_ms, by_hours), [START_MS + one for one in moments]


@settings(max_examples=40, deadline=None)
@given(questions())
def test_any_order_of_moments_and_any_number_of_shards_says_the_same(
    whole: Shard, halves: list[Shard], configured: Config, asked: tuple[str, WindowSpec, list[int]]
) -> None:
    version, window, moments = asked
    ascending = sorted(set(moments))
    found = {one[0]: one for one in answers([whole], configured, version, window, ascending)}
    assert list(found) == ascending
    assert answers([whole], configured, version, window, moments) == [found[at_ms] for at_ms in moments]
    assert answers(halves, configured, version, window, ascending) == list(found.values())


def test_many_moments_at_once_say_what_each_says_alone(whole: Shard, configured: Config) -> None:
    window = WindowSpec("any", DAY_MS, 0)
    moments = [START_MS + hour * HOUR_MS for hour in range(-1, 69)]
    found = answers([whole], configured, "v1", window, moments)
    assert found == [answers([whole], configured, "v1", window, [at_ms])[0] for at_ms in moments]
    assert [bool(one[3]) for one in found] == [False, False, *[True] * 68]


def test_without_a_shard_there_is_nothing_to_say(configured: Config) -> None:
    assert answers([], configured, "v1", WindowSpec("any", DAY_MS, HOUR_MS), [START_MS]) == [
        (START_MS, START_MS - DAY_MS - HOUR_MS, START_MS - HOUR_MS, {})
    ]


def test_minutes_that_are_no_longer_kept_are_an_error(whole: Shard, configured: Config) -> None:
    kept_ms, whole.minute_floor_ms = whole.minute_floor_ms, START_MS + HOUR_MS
    try:
        window = WindowSpec("any", HOUR_MS, 0)
        assert len(answers([whole], configured, "v1", window, [START_MS + 2 * HOUR_MS])) == 1
        with pytest.raises(CalmonError, match="are not kept"):
            answers([whole], configured, "v1", window, [START_MS + 2 * HOUR_MS, START_MS + 2 * HOUR_MS - MINUTE_MS])
    finally:
        whole.minute_floor_ms = kept_ms


def day_of(number: int) -> list[bytes]:
    """A labelled prediction of two versions each half hour of a day."""
    found: list[bytes] = []
    for half in range(48):
        at_ms = START_MS + number * DAY_MS + half * 30 * MINUTE_MS
        for version in ("v1", "v2"):
            one = f"{version}-{number}-{half}"
            found.append(encode(prediction(one, at_ms, 0.5 + half / 97, version, groups={"region": "eu"}, ood_score=half - 20.0)))
            found.append(encode(label(one, at_ms + 1000, "yes" if half % 3 else "no")))
    return found


def reported(values: Sequence[bytes], configured: Config, folder: Path, at_ms: int, version: str) -> object:
    """What `calmon evaluate --at` says of a version with a window of six hours."""
    blocks: list[Block] = report_blocks(
        [shard_of(values, configured)],
        settings_of(configured),
        ConfiguredReferences(References(folder), {}, settings_of(configured)),
        WindowSpec.asked(6 * HOUR_MS, 0, at_ms),
        at_ms,
    )
    return models_report(blocks)[f"m@{version}"]


def test_a_window_has_the_layout_of_its_epoch_and_none_across_a_change(tmp_path: Path) -> None:
    store, ten, five = MemoryStore(), config(tmp_path, bins=10), config(tmp_path, bins=5)
    shard_of(day_of(0), ten, store)
    late = encode(label("v1-0-7", START_MS + DAY_MS, "no", revision=1))
    shard = shard_of([*day_of(1), late], five, store)
    change_ms = START_MS + DAY_MS
    moments = [change_ms + hour * HOUR_MS for hour in range(-3, 10)]
    found = answers([shard], five, "v2", WindowSpec.asked(6 * HOUR_MS, 0, change_ms), moments)
    bins = [len(found_of["m@v2"]["bins"]) if found_of else 0 for _, _, _, found_of in found]
    assert bins == [10] * 4 + [0] * 5 + [5] * 4
    assert found[2][3]["m@v2"] == reported([*day_of(0), late], ten, tmp_path, moments[2], "v2")
    assert found[-1][3]["m@v2"] == reported([*day_of(0), *day_of(1), late], five, tmp_path, moments[-1], "v2")
    assert found[-1][3]["m@v2"]["accuracy_difference"] == 0
