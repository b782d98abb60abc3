"""A table that recovers confidences which repeat, exactly: what a histogram's bins cannot say about order.

Ranks from bins are uncertain inside a bin. Models whose confidences repeat (isotonic regression, trees, rounding) put
thousands of events on few values, and there the bins' bound is useless. So every labelled confidence is also counted
in one of 8192 buckets by its hash. While all events of a bucket share one double, its sums give that double back:
with n events, sum(high)/n and sum(low)/n are the two halves of its bits, and the sum of its hashes must be n times
its hash. A mixture passes that test with probability 2^-64 or so; it then only stays uncertain, as it is in the bins.

The sum of hashes is kept modulo 2^64, which is still a group: it merges, corrects and cancels exactly as all sums do.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from monitor.statistics.fixed_point import F64, I64

BUCKETS = 8192
_BUCKET_SHIFT = np.uint64(64 - 13)
_START = np.uint64(0x9E3779B97F4A7C15)
_STEPS = ((np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)), (np.uint64(27), np.uint64(0x94D049BB133111EB)))
_LAST_SHIFT = np.uint64(31)
_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFF_FFFF)

U64 = NDArray[np.uint64]


def hashed(values: F64) -> U64:
    """A 64-bit hash of each double, the same on every machine; no NaN, and no -0.0, which would differ from 0.0.

    Source: the output function of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014). Its first step, an addition, matters: without it
    0 has hash 0 and twice the bits have mostly twice the hash, so that 0.0 and another value pass for the value of half its bits.
    """
    mixed = np.ascontiguousarray(values).view(np.uint64) + _START
    for shift, multiplier in _STEPS:
        mixed = (mixed ^ (mixed >> shift)) * multiplier
    return np.asarray(mixed ^ (mixed >> _LAST_SHIFT))


def bucket(values: F64) -> I64:
    """Bucket of each double."""
    return (hashed(values) >> _BUCKET_SHIFT).astype(np.int64)


def entry(values: F64, weight: I64) -> dict[str, I64]:
    """What events with these confidences add to their bucket, shape (n,) each.

    Args:
        values: In [0, 1].
        weight: How often each is added.
    """
    bits = np.ascontiguousarray(values).view(np.uint64)
    return {
        "value_high": (bits >> _HALF).astype(np.int64) * weight,
        "value_low": (bits & _LOW).astype(np.int64) * weight,
        "value_hash": hashed(values).view(np.int64) * weight,
    }


def recovered(count: I64, high: I64, low: I64, hashes: I64) -> tuple[F64, NDArray[np.bool_]]:
    """The double of each bucket, and where there is exactly one; NaN elsewhere.

    Args:
        count: Events of each bucket, any shape; the others alike.
        high: Sums of `value_high`.
        low: Sums of `value_low`.
        hashes: Sums of `value_hash`.
    """
    n = np.maximum(count, 1)
    whole = (count > 0) & (high % n == 0) & (low % n == 0)
    bits = ((high // n).astype(np.uint64) << _HALF) | (low // n).astype(np.uint64)
    values = np.where(whole, bits, np.uint64(0)).view(np.float64)
    one = whole & (hashed(values) * np.ascontiguousarray(count).view(np.uint64) == np.ascontiguousarray(hashes).view(np.uint64))
    return np.where(one, values, np.nan), np.asarray(one)
