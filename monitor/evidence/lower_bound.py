"""How bad at least: an anytime-valid lower bound of the worst over-confidence.

H0(d) says that no prediction's confidence exceeds its probability of being correct by more than d. The worst over-confidence is
the smallest true d, and the bound is wrong only if that one is rejected: with probability alpha at most, at any time.
Source: FORMULAS section 9.
"""

from __future__ import annotations

import numpy as np

from monitor.evidence.bets import Side, bets, log_threshold
from monitor.evidence.grid_sums import GridSums
from monitor.evidence.path import log_e_path
from monitor.statistics.fixed_point import F64

TOLERANCES = (0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5)
"""The fixed grid of d."""


def fold_maxima(panes: GridSums, carried: GridSums | None = None, maxima: F64 | None = None) -> F64:
    """Largest ln E so far of each tolerance.

    Args:
        panes: As `matured` gives them for over, in order of their time, shape (..., n_panes, 306).
        carried: All panes before these, shape (..., 306); None: there are none.
        maxima: Result for the panes before; None: there are none.

    Returns:
        Shape (..., 12), at least 0: E is 1 at the start.
    """
    paths = [log_e_path(bets(Side.OVER, tolerance), panes, carried) for tolerance in TOLERANCES]
    largest = np.stack([path.max(axis=-1, initial=0.0) for path in paths], axis=-1)
    return largest if maxima is None else np.maximum(maxima, largest)


def lower_bound(maxima: F64, alpha: float) -> F64:
    """Largest d such that it and all smaller ones were rejected at some time.

    Args:
        maxima: Largest ln E so far of each tolerance, shape (..., 12).
        alpha: Probability of a bound above the truth, in (0, 1).

    Returns:
        Shape (...); 0 where nothing was rejected: the worst over-confidence is at least none.
    """
    rejected = np.logical_and.accumulate(maxima >= log_threshold(alpha), axis=-1)
    return np.asarray(np.concatenate(([0.0], TOLERANCES))[rejected.sum(axis=-1)])
