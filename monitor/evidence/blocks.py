"""One bet per block of predictions that may share a shock (a batch, a patient, a day): valid whatever the dependence inside.

A block of n predictions whose confidences sum to C has n - C errors in expectation, so 1 + g(errors/(n - C) - 1) has mean 1 for
every g in (0, 1), and sums are all it takes. Source: FORMULAS section 9, rule 5.
"""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

from monitor.statistics.fixed_point import F64, I64, PROBABILITY_BITS

STAKES = (0.05, 0.15, 0.4, 0.8)
"""g of the bets, equal shares each."""


def log_e_blocks(count: I64, errors: I64, confidence: I64, *, guarded: bool = False) -> F64:
    """Logarithm of E of "there are more errors than claimed", all blocks together.

    Args:
        count: Predictions of each block, shape (..., n_blocks), at most 2^30 each. With all predictions here and in
            `confidence`, labelled or not, a missing label counts as correct.
        errors: Those known to be wrong, same shape.
        confidence: Sum of the predictions' confidences scaled by 2^32, same shape.
        guarded: Take n - C as large as the fixed point's rounding allows, as an alarm has to.

    Returns:
        Shape (...); 0 without a block. +inf after an error in a block that claims to hold none, unless guarded.
    """
    log_e = log_block_factors(count, errors, confidence, guarded=guarded).sum(axis=-2)
    return log_mean_over_stakes(log_e)


def log_e_blocks_path(count: I64, errors: I64, confidence: I64, carried: F64 | None = None) -> tuple[F64, F64]:
    """Logarithm of E after each block in their order, guarded.

    Args:
        count: As `log_e_blocks`, shape (..., n_blocks).
        errors: As `log_e_blocks`.
        confidence: As `log_e_blocks`.
        carried: Second result of the blocks before, shape (..., 4); None: there are none.

    Returns:
        ln E, shape (..., n_blocks), and what to carry, shape (..., 4).
    """
    factors = log_block_factors(count, errors, confidence, guarded=True)
    before = np.zeros((*factors.shape[:-2], len(STAKES))) if carried is None else carried
    # The carried value is the first summand, so that a path in two parts is the same additions as a path in one.
    by_stake = np.concatenate((before[..., None, :], factors), axis=-2).cumsum(axis=-2)
    return log_mean_over_stakes(by_stake[..., 1:, :]), by_stake[..., -1, :]


def log_mean_over_stakes(log_e: F64) -> F64:
    """Logarithm of the mean over the bets, shape (..., 4) to (...)."""
    return np.asarray(logsumexp(log_e, axis=-1) - np.log(len(STAKES)))


def log_block_factors(count: I64, errors: I64, confidence: I64, *, guarded: bool) -> F64:
    """ln(1 + g(errors/(n - C) - 1)) of every block and bet; arguments as `log_e_blocks`.

    Returns:
        Shape (..., n_blocks, 4); 0 where a block is empty or claims to hold no error and holds none.
    """
    # n - C scaled by 2^32; above it only by the rounding of n confidences, 2^-33 each.
    claimed = ((count << PROBABILITY_BITS) - confidence) + (0.5 * count if guarded else 0.0)
    ratio = np.ones(count.shape)
    np.divide(errors * float(1 << PROBABILITY_BITS), claimed, out=ratio, where=claimed > 0)
    ratio[(claimed <= 0) & (errors > 0)] = np.inf
    return np.log1p(np.array(STAKES) * (ratio[..., None] - 1))
