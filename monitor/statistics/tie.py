"""Fingerprints that tell whether all confidences of a bin are one and the same double.

Ranks from a histogram are exact where the events of a bin are tied and uncertain where they are not; isotonic
regression ties thousands. Each double has a 31-bit hash h. With n events, the sums of h and of h^2 satisfy
n * sum(h^2) = (sum h)^2 if and only if all h are equal (Cauchy-Schwarz). Sums are kept modulo 2^64, which is still a
group: they merge, correct and cancel exactly as all others do. Two doubles pass for one with probability 2^-31.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from monitor.statistics.fixed_point import F64, I64

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(29)
_TOP = np.uint64(33)


def tie_hash(values: F64) -> I64:
    """A 31-bit hash of each double, the same on every machine.

    Args:
        values: Any shape; no NaN, and no -0.0, which would differ from 0.0.
    """
    bits = np.ascontiguousarray(values).view(np.uint64)
    mixed = (bits ^ (bits >> _SHIFT)) * _MULTIPLIER
    mixed = (mixed ^ (mixed >> _SHIFT)) * _MULTIPLIER
    return (mixed >> _TOP).astype(np.int64)


def tied(count: I64, hashes: I64, squares: I64) -> NDArray[np.bool_]:
    """Where all events of a bin have the same value; true for bins with none.

    Args:
        count: Events.
        hashes: Sum of `tie_hash`, modulo 2^64.
        squares: Sum of its square, modulo 2^64.
    """
    n, s1, s2 = (np.ascontiguousarray(one).view(np.uint64) for one in (count, hashes, squares))
    return np.asarray(n * s2 == s1 * s1)
