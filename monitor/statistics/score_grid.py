"""A grid for OOD scores that needs no data: the ordered bits of the double, 1024 bins an octave.

Scores are unbounded and of any scale, so bins are as wide as a 1024th of the score's own octave, from 2^-30 to 2^30 in
size; smaller ones share the bins next to 0, larger ones those at the ends. Negative scores have a cell of their own.
Source: FORMULAS section 7, DESIGN "Exact sums".
"""

from __future__ import annotations

from functools import cache

import numpy as np

from monitor.statistics.fixed_point import F64, I64

STEPS = 1024
FIRST_OCTAVE = -30
LAST_OCTAVE = 30

SCORE_BINS = STEPS * (LAST_OCTAVE - FIRST_OCTAVE) + 2
"""Bins of a sign: the one next to 0, those of the octaves, and an open end."""


@cache
def size_edges() -> F64:
    """Inner edges of the sizes, ascending, shape (SCORE_BINS - 1,)."""
    octave = np.arange(FIRST_OCTAVE, LAST_OCTAVE)
    sizes = (2.0 ** octave[:, None] * (1.0 + np.arange(STEPS)[None, :] / STEPS)).ravel()
    edges = np.append(sizes, 2.0**LAST_OCTAVE)
    edges.setflags(write=False)
    return edges


@cache
def score_edges() -> F64:
    """Inner edges of both signs together, ascending, shape (2 x SCORE_BINS - 1,); in the middle 0, which is not negative."""
    edges = np.concatenate((-size_edges()[::-1], [0.0], size_edges()))
    edges.setflags(write=False)
    return edges


def score_bin(scores: F64) -> I64:
    """Bin of each score inside the cell of its sign, by comparison: sizes in [edge, next edge), of negative ones (edge, next edge].

    Args:
        scores: Finite.
    """
    positive = np.searchsorted(size_edges(), scores, side="right")
    negative = np.searchsorted(size_edges(), -scores, side="left")
    return np.where(scores < 0, negative, positive).astype(np.int64)


def both_signs(negative: I64 | None, positive: I64 | None) -> I64:
    """Counts of the two cells of a domain over ascending scores, shape (2 x SCORE_BINS,); None is a cell without any."""
    nothing = np.zeros(SCORE_BINS, dtype=np.int64)
    return np.concatenate((nothing if negative is None else negative[::-1], nothing if positive is None else positive))
