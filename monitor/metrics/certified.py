"""A confidence threshold whose selective risk is certified: at most the wanted risk, except with probability delta.

Learn-then-Test with a fixed sequence of thresholds. It holds for independent, identically distributed events that nothing
else was chosen on. Source: Angelopoulos et al., arXiv 2110.01052; FORMULAS section 8.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import betainc

from monitor.statistics.fixed_point import F64, I64
from monitor.statistics.grid import bin_index, graded_edges

THRESHOLD_STEPS = 32
"""Steps an octave of the grid that thresholds are chosen from where no other edges are given."""

STARTS = 4
"""Sequences of tests, each from another threshold down; the error probability is split among them."""


@dataclass(frozen=True, slots=True)
class CertifiedThreshold:
    """A certified threshold and what the calibration events show there.

    Attributes:
        threshold: Accept confidences at or above it.
        accepted: Events at or above it.
        errors: Wrong ones of these.
        coverage: Accepted over all events.
        risk: Errors over accepted; the certificate is about the risk behind it, not about this number.
    """

    threshold: float
    accepted: int
    errors: int
    coverage: float
    risk: float


def certified_threshold(events: I64, errors: I64, thresholds: F64, max_risk: float, delta: float) -> CertifiedThreshold | None:
    """The lowest threshold certified to have a selective risk of at most `max_risk`, with confidence 1 - delta.

    Args:
        events: Labelled events per bin of one series; shape (n_bins,), bins ascending by confidence.
        errors: Wrong ones of these.
        thresholds: Lower edges of the bins, fixed before the outcomes were seen.
        max_risk: Wanted risk, in (0, 1).
        delta: Probability with which the certificate may be wrong, in (0, 1).

    Returns:
        The threshold, or None: no threshold can be certified with these events.

    Raises:
        ValueError: `max_risk` or `delta` outside (0, 1).

    Source: hypothesis "risk above max_risk" at a threshold has the p-value P(Binomial(n, max_risk) <= errors). Sequence j starts at
    the highest threshold with n0 2^j events, n0 being the fewest that pass without an error, and ends at its first failure.
    """
    if not (0 < max_risk < 1 and 0 < delta < 1):
        message = f"max_risk and delta have to be in (0, 1), not {max_risk} and {delta}"
        raise ValueError(message)
    level = delta / STARTS
    accepted = np.cumsum(events[::-1])
    failed = np.cumsum(errors[::-1])
    passes = binomial_cdf(failed, accepted, max_risk) <= level
    fewest = math.ceil(math.log(level) / math.log1p(-max_risk))
    starts = np.searchsorted(accepted, [fewest << step for step in range(STARTS)])
    failures = np.append(np.flatnonzero(~passes), len(passes))
    ends = failures[np.searchsorted(failures, starts)]
    lowest = int(np.max(ends, where=ends > starts, initial=0)) - 1
    if lowest < 0:
        return None
    count, wrong = int(accepted[lowest]), int(failed[lowest])
    return CertifiedThreshold(float(thresholds[::-1][lowest]), count, wrong, count / int(accepted[-1]), wrong / count)


def choose_threshold(confidences: F64, correct: I64, max_risk: float, delta: float, edges: F64 | None = None) -> CertifiedThreshold | None:
    """`certified_threshold` of raw events.

    Args:
        confidences: Confidence of each labelled event, inside the edges; shape (n_events,).
        correct: 1 where the prediction was right, else 0.
        max_risk: Wanted risk, in (0, 1).
        delta: Probability with which the certificate may be wrong, in (0, 1).
        edges: Ascending, shape (n_bins + 1,); all but the last are the thresholds to choose from. The graded grid with 32 steps
            an octave if not given.

    Returns:
        The threshold, or None.
    """
    grid = graded_edges(THRESHOLD_STEPS) if edges is None else edges
    place = bin_index(grid, confidences)
    bins = len(grid) - 1
    events = np.bincount(place, minlength=bins)
    return certified_threshold(events, np.bincount(place[correct == 0], minlength=bins), grid[:-1], max_risk, delta)


def binomial_cdf(successes: I64, trials: I64, probability: float) -> F64:
    """P(Binomial(trials, probability) <= successes), by the incomplete beta function.

    Args:
        successes: 0 <= successes <= trials; any shape.
        trials: Same shape; 0 gives 1.
        probability: In (0, 1).
    """
    failures = np.maximum(trials - successes, 1)  # without a failure the answer is 1, whatever the function says
    return np.where(successes >= trials, 1.0, betainc(failures, successes + 1, 1 - probability))
