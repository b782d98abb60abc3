"""The grid of scores: a bin is found by comparison with the edges alone, for any double."""

from __future__ import annotations

import math
import sys
from bisect import bisect_left, bisect_right
from fractions import Fraction

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from monitor.statistics.score_grid import SCORE_BINS, both_signs, score_bin, score_edges, size_edges

SIZES = size_edges().tolist()
EDGES = score_edges().tolist()

NEAR_EDGES = st.sampled_from(EDGES).flatmap(
    lambda edge: st.sampled_from([edge, math.nextafter(edge, -math.inf), math.nextafter(edge, math.inf)])
)
HUGE = sys.float_info.max
HARD = st.sampled_from([0.0, -0.0, 5e-324, -5e-324, 2.0**-30, -(2.0**-30), 2.0**30, -(2.0**30), HUGE, -HUGE, sys.float_info.min, 1.0, -1.0])
SCORES = st.one_of(st.floats(allow_nan=False, allow_infinity=False), NEAR_EDGES, HARD)


def test_edges_are_the_doubles_that_their_definition_names() -> None:
    assert [Fraction(edge) for edge in SIZES[:-1:977]] == [
        Fraction(2) ** (number // 1024 - 30) * (1 + Fraction(number % 1024, 1024)) for number in range(0, len(SIZES) - 1, 977)
    ]
    assert sorted(set(SIZES)) == SIZES
    assert (SIZES[0], SIZES[-1], len(SIZES)) == (2.0**-30, 2.0**30, SCORE_BINS - 1)
    assert sorted(set(EDGES)) == EDGES
    assert [-edge for edge in reversed(EDGES)] == EDGES
    assert len(EDGES) == 2 * SCORE_BINS - 1


def place(score: float) -> int:
    """The bin among those of both signs, ascending, in which the product counts a score."""
    found = int(score_bin(np.array([score]))[0])
    one = np.zeros(SCORE_BINS, dtype=np.int64)
    one[found] = 1
    return int(np.argmax(both_signs(one, None) if score < 0 else both_signs(None, one)))


@given(score=SCORES)
@example(score=-0.0)
@example(score=0.0)
@example(score=-5e-324)
@example(score=-HUGE)
def test_a_bin_is_found_by_comparison(score: float) -> None:
    """Sizes lie in [edge, next edge), of negative scores in (edge, next edge]: ascending, every bin is [edge, next edge)."""
    found = place(score)
    assert found == bisect_right(EDGES, score)
    assert found == 0 or EDGES[found - 1] <= score
    assert found == len(EDGES) or score < EDGES[found]
    inside = int(score_bin(np.array([score]))[0])
    assert inside == (bisect_left(SIZES, -score) if score < 0 else bisect_right(SIZES, score))


@given(scores=st.lists(SCORES, min_size=2, max_size=30))
def test_order_is_kept_and_bins_are_narrow(scores: list[float]) -> None:
    ascending = sorted(scores)
    places = [place(score) for score in ascending]
    assert places == sorted(places)
    for score, found in zip(ascending, places, strict=True):
        if 2.0**-30 < abs(score) < 2.0**30:
            assert EDGES[found] - EDGES[found - 1] <= abs(score) / 1000


def test_a_missing_sign_is_no_counts() -> None:
    assert both_signs(None, None).tolist() == [0] * (2 * SCORE_BINS)
    negative, positive = np.arange(SCORE_BINS), np.arange(SCORE_BINS) * 2
    assert both_signs(negative, positive).tolist() == [*reversed(range(SCORE_BINS)), *range(0, 2 * SCORE_BINS, 2)]
