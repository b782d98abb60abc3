"""One bet per block, against exact fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.evidence.blocks import log_e_blocks, log_e_blocks_path
from monitor.statistics.fixed_point import I64, PROBABILITY_BITS, SAFE_EVENTS

ONE = 1 << PROBABILITY_BITS

Block = tuple[int, int, int]


def as_block(count: int, errors: float, confidence: float) -> Block:
    """A block with a share of errors and a mean confidence."""
    return count, round(errors * count), round(confidence * count * ONE)


BLOCKS = st.lists(st.builds(as_block, st.integers(1, 200), st.floats(0, 1), st.floats(0, 0.999)), max_size=12)


def columns(blocks: list[Block]) -> tuple[I64, I64, I64]:
    table = np.array(blocks, dtype=np.int64).reshape(-1, 3)
    return table[:, 0], table[:, 1], table[:, 2]


def slow(blocks: list[Block], rounding: Fraction) -> float:
    total = Fraction(0)
    for stake in (Fraction(0.05), Fraction(0.15), Fraction(0.4), Fraction(0.8)):
        product = Fraction(1)
        for count, errors, confidence in blocks:
            claimed = count - Fraction(confidence, ONE) + rounding * count
            product *= 1 + stake * (errors / claimed - 1)
        total += product / 4
    return math.log(total.numerator) - math.log(total.denominator)


@given(BLOCKS)
def test_block_bets_are_the_formula(blocks: list[Block]) -> None:
    assert float(log_e_blocks(*columns(blocks))) == pytest.approx(slow(blocks, Fraction(0)), rel=1e-9, abs=1e-9)
    guarded = float(log_e_blocks(*columns(blocks), guarded=True))
    assert guarded == pytest.approx(slow(blocks, Fraction(1, 2 * ONE)), rel=1e-9, abs=1e-9)


@given(BLOCKS, st.integers(0, 12))
def test_a_path_ends_where_all_blocks_do_and_can_be_taken_in_two(blocks: list[Block], cut: int) -> None:
    whole, carried = log_e_blocks_path(*columns(blocks))
    prefixes = [float(log_e_blocks(*columns(blocks[: end + 1]), guarded=True)) for end in range(len(blocks))]
    np.testing.assert_allclose(whole, prefixes, rtol=1e-9, atol=1e-9)
    first, between = log_e_blocks_path(*columns(blocks[:cut]))
    second, end = log_e_blocks_path(*columns(blocks[cut:]), between)
    assert np.array_equal(np.concatenate((first, second)), whole)
    assert np.array_equal(end, carried)


def test_mean_one_whatever_the_dependence_in_the_block() -> None:
    """All of 4 claims of 0.75 fail together with probability 1/4, or one fails always: E has mean 1 both times."""
    claim = (np.array([4]), np.array([3 * ONE]))
    e_values = [math.exp(log_e_blocks(claim[0], np.array([errors]), claim[1])) for errors in (0, 4, 1)]
    assert 0.75 * e_values[0] + 0.25 * e_values[1] == pytest.approx(1.0)
    assert e_values[2] == pytest.approx(1.0)


def test_blocks_that_claim_no_error() -> None:
    count, sure = np.array([5]), np.array([5 * ONE])
    assert log_e_blocks(count, np.array([0]), sure) == 0
    assert log_e_blocks(count, np.array([1]), sure) == np.inf
    guarded = [float(log_e_blocks(count, np.array([errors]), sure, guarded=True)) for errors in (0, 1)]
    assert guarded[0] == pytest.approx(math.log(1 - 0.35)), "the mean of the stakes is lost"
    assert guarded[1] == pytest.approx(math.log(0.35 * 2**33 / 5), rel=1e-6)


def test_no_block_an_empty_block_and_the_largest_block() -> None:
    empty = np.zeros((2, 0), dtype=np.int64)
    assert np.array_equal(log_e_blocks(empty, empty, empty), [0, 0])
    zero = np.zeros((2, 3), dtype=np.int64)
    for guarded in (False, True):
        assert np.array_equal(log_e_blocks(zero, zero, zero, guarded=guarded), [0, 0])
        largest = np.array([SAFE_EVENTS])
        assert np.isfinite(log_e_blocks(largest, largest, largest * (ONE - 1), guarded=guarded))


def test_series_are_independent() -> None:
    blocks = [(10, 3, 8 * ONE), (20, 1, 18 * ONE), (8, 5, 6 * ONE), (9, 0, 5 * ONE)]
    count, errors, confidence = (column.reshape(2, 2) for column in columns(blocks))
    alone = [float(log_e_blocks(*columns(pair))) for pair in (blocks[:2], blocks[2:])]
    assert log_e_blocks(count, errors, confidence).tolist() == alone
