"""The table of values that repeat: one value comes back bit for bit, a mixture never, and what is taken away is as if never there."""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from monitor.statistics.fixed_point import I64, SAFE_EVENTS
from monitor.statistics.value_table import BUCKETS, bucket, entry, hashed, recovered

MASK = 2**64 - 1
VALUES = st.one_of(
    st.floats(0, 1).map(lambda value: value + 0.0),
    st.sampled_from([0.0, 1.0, 0.5, 5e-324, math.nextafter(1, 0), math.nextafter(0.5, 0)]),
    st.integers(0, 1000).map(lambda k: k / 1000),
)


def bits(value: float) -> int:
    return int(np.float64(value).view(np.uint64))


def hash_of(value: float) -> int:
    """The hash in whole numbers of any size."""
    mixed = (bits(value) + 0x9E3779B97F4A7C15) & MASK
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & MASK
    return mixed ^ (mixed >> 31)


def wrapped(number: int) -> int:
    """A whole number as int64 keeps it."""
    return (number + 2**63) % 2**64 - 2**63


def summed(values: list[float], weights: list[int]) -> dict[str, int]:
    """Sums of what is added, modulo 2^64."""
    added = entry(np.array(values, dtype=np.float64), np.array(weights, dtype=np.int64))
    return {name: int(np.add.reduce(column)) for name, column in added.items()} | {"count": sum(weights)}


def column(number: int) -> I64:
    return np.array([number], dtype=np.int64)


def given_back(sums: dict[str, int]) -> float | None:
    values, known = recovered(*(column(sums[name]) for name in ("count", "value_high", "value_low", "value_hash")))
    assert math.isnan(values[0]) == (not known[0])
    return float(values[0]) if known[0] else None


@given(values=st.lists(VALUES, max_size=20))
def test_hashes_and_buckets_are_those_of_whole_numbers(values: list[float]) -> None:
    array = np.array(values, dtype=np.float64)
    assert hashed(array).tolist() == [hash_of(value) for value in values]
    assert bucket(array).tolist() == [hash_of(value) >> 51 for value in values]
    assert all(0 <= place < BUCKETS for place in bucket(array).tolist())
    strided = np.repeat(array, 3)[::3]
    assert hashed(strided).tolist() == hashed(array).tolist()


@given(value=VALUES, events=st.integers(1, SAFE_EVENTS))
@example(value=1.0, events=SAFE_EVENTS)
@example(value=math.nextafter(1, 0), events=SAFE_EVENTS)
@example(value=0.0, events=1)
def test_one_value_comes_back_whatever_its_count(value: float, events: int) -> None:
    one = entry(np.array([value]), column(1))
    sums = {name: int(summand[0]) * events for name, summand in one.items()}
    assert all(abs(sums[name]) < 2**63 for name in ("value_high", "value_low"))
    assert sums["value_high"] + 0 == (bits(value) >> 32) * events
    found = given_back({"count": events} | {name: wrapped(number) for name, number in sums.items()})
    assert found is not None
    assert bits(found) == bits(value)


@given(values=st.lists(VALUES, min_size=1, max_size=6), data=st.data())
def test_a_mixture_is_not_known_and_what_is_taken_away_leaves_nothing(values: list[float], data: st.DataObject) -> None:
    """In one bucket, which is the hardest place, with any counts."""
    counts = data.draw(st.lists(st.integers(1, 50), min_size=len(values), max_size=len(values)))
    found = given_back(summed(values, counts))
    different = set(map(bits, values))
    assert found == (values[0] if len(different) == 1 else None)
    others = data.draw(st.lists(VALUES, max_size=6))
    both = summed([*values, *others, *others], [*counts, *([3] * len(others)), *([-3] * len(others))])
    assert both == summed(values, counts)
    assert set(summed([*values, *values], [*counts, *(-count for count in counts)]).values()) == {0}


def test_no_two_or_three_values_of_a_bucket_pass_for_one() -> None:
    """All pairs, and pairs with either doubled, of 200,000 values that models send: rounded ones, neighbours, and shares of trees."""
    rounded = np.arange(100_001) / 100_000
    neighbours = (np.float64(0.9).view(np.uint64) + np.arange(60_000, dtype=np.uint64)).view(np.float64)
    shares = np.unique((np.arange(1, 400)[None, :] / np.arange(1, 400)[:, None]).ravel())
    values = np.unique(np.concatenate((rounded, neighbours, shares[shares <= 1])))
    by_bucket: dict[int, list[float]] = defaultdict(list)
    for place, value in zip(bucket(values).tolist(), values.tolist(), strict=True):
        by_bucket[place].append(value)
    assert max(map(len, by_bucket.values())) < 120  # the hash spreads: 200,000 over 8192 buckets are 24 each
    for doubled in (1, 2):
        parts = []
        for members in by_bucket.values():
            one, other = np.triu_indices(len(members), 1)
            array = np.array(members)
            parts.append((array[one], array[other]) if doubled == 1 else (array[other], array[one]))
        first, second = (np.concatenate(side) for side in zip(*parts, strict=True))
        each = np.ones(len(first), dtype=np.int64)
        a, b = entry(first, each * doubled), entry(second, each)
        with np.errstate(over="ignore"):
            sums = {name: a[name] + b[name] for name in a}
        _, known = recovered(each * (doubled + 1), sums["value_high"], sums["value_low"], sums["value_hash"])
        assert len(known) > 1_000_000
        assert not known.any()


@given(number=st.integers(1, bits(1.0) // 2))
def test_zero_and_twice_the_bits_of_a_value_are_not_that_value(number: int) -> None:
    """A hash that is linear in the bits, or takes 0 to 0, would be taken in."""
    double = float(np.uint64(2 * number).view(np.float64))
    assert given_back(summed([0.0, double], [7, 7])) is None
    half = float(np.uint64(number).view(np.float64))
    assert given_back(summed([0.0, half, double], [5, 3, 5])) is None


def test_nothing_is_no_value() -> None:
    assert given_back({"count": 0, "value_high": 0, "value_low": 0, "value_hash": 0}) is None


@settings(max_examples=50)
@given(values=st.lists(VALUES, min_size=1, max_size=8), order=st.randoms(use_true_random=False))
def test_no_order_and_no_split_changes_a_sum(values: list[float], order: object) -> None:
    shuffled = list(values)
    order.shuffle(shuffled)  # type: ignore[attr-defined]
    assert summed(shuffled, [1] * len(values)) == summed(values, [1] * len(values))
    for cut in range(len(values)):
        left, right = (summed(part, [1] * len(part)) for part in (shuffled[:cut], shuffled[cut:]))
        assert {name: wrapped(left[name] + right[name]) for name in left} == summed(values, [1] * len(values))
