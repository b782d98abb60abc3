"""A grid for OOD scores that needs no data: the ordered bits of the double, 512 bins an octave on either side of 0.

Scores are unbounded and of any scale, so bins are as wide as a 512th of the score's own octave, from 2^-16 to 2^24 in
size; smaller ones share the bin around 0, larger ones the two at the ends. Source: FORMULAS section 7, DESIGN "Exact sums".
"""

from __future__ import annotations

from functools import cache

import numpy as np

from monitor.statistics.fixed_point import F64, I64

STEPS = 512
FIRST_OCTAVE = -16
LAST_OCTAVE = 24
_SIDE = STEPS * (LAST_OCTAVE - FIRST_OCTAVE)

SCORE_BINS = 2 * _SIDE + 3
"""Negative side with its open end, the bin around 0, positive side with its open end."""


@cache
def score_edges() -> F64:
    """Inner edges, ascending, shape (SCORE_BINS - 1,): bin k holds edge[k-1] <= score < edge[k]; the first and last bins are open."""
    octave = np.arange(FIRST_OCTAVE, LAST_OCTAVE)
    sizes = (2.0 ** octave[:, None] * (1.0 + np.arange(STEPS)[None, :] / STEPS)).ravel()
    positive = np.append(sizes, 2.0**LAST_OCTAVE)
    edges = np.concatenate((-positive[::-1], positive))
    edges.setflags(write=False)
    return edges


def score_bin(scores: F64) -> I64:
    """Bin of each score, by comparison with the edges.

    Args:
        scores: Finite.
    """
    return np.searchsorted(score_edges(), scores, side="right").astype(np.int64)
