"""Reals to int64 by one correctly rounded step, so that sums are associative and have exact inverses.

Source: FORMULAS section 1. Multiplying by a power of two is exact and rint is correctly rounded, so an integer made
here is the same on every machine; logarithms are not correctly rounded by libraries and get Ziv's test.
"""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

PROBABILITY_BITS = 32
RATIO_BITS = 20
LOG_BITS = 24
LIMB_BITS = 30
LIMB_MASK = (1 << LIMB_BITS) - 1
LOG_FLOOR = 1e-12
"""Probabilities below it count as it in a logarithm; that of NLL can be configured, and is this one by default."""

SAFE_EVENTS = 1 << 30
"""Most events in one sum: below it no int64 sum of this package can overflow (2^30 x 2^32 < 2^63)."""

_ZIV_MARGIN = 2.0**-16


def fixed(values: F64, bits: int) -> I64:
    """rint(value x 2^bits).

    Args:
        values: Reals whose scaled value stays below 2^63.
        bits: The scale, as a power of two.
    """
    return np.rint(values * float(1 << bits)).astype(np.int64)


def limbs(values: I64) -> tuple[I64, I64]:
    """Split non-negative or negative integers into (value >> 30, value & (2^30 - 1)); high x 2^30 + low is the value."""
    return values >> LIMB_BITS, values & LIMB_MASK


def negative_log(probabilities: F64, floor: float) -> I64:
    """rint(-ln max(p, floor) x 2^24), correctly rounded.

    Args:
        probabilities: In [0, 1].
        floor: Above 1e-30, so that no sum of SAFE_EVENTS of them can overflow.

    Source: Ziv's test, FORMULAS section 1: where the scaled value lies within 2^-16 of a half-integer, 50 decimal
    digits decide.
    """
    clipped = np.maximum(probabilities, floor)
    scaled = -np.log(clipped) * float(1 << LOG_BITS)
    rounded = np.rint(scaled).astype(np.int64)
    doubtful = np.flatnonzero(np.abs(np.abs(scaled - np.floor(scaled)) - 0.5) <= _ZIV_MARGIN)
    for position in doubtful:
        rounded[position] = _exact_negative_log(float(clipped[position]))
    return rounded


def _exact_negative_log(probability: float) -> int:
    with localcontext() as context:
        context.prec = 50
        return int((-Decimal(probability).ln() * (1 << LOG_BITS)).to_integral_value(rounding="ROUND_HALF_EVEN"))
