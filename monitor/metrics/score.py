"""Proper scores, CSR and confidence-weighted accuracy. Source: FORMULAS sections 4 to 6."""

from __future__ import annotations

import numpy as np

from monitor.metrics.interval import normal_cdf
from monitor.metrics.sums import Sums, divide
from monitor.statistics.fixed_point import F64, I64, LOG_BITS, PROBABILITY_BITS

_ONE = float(1 << PROBABILITY_BITS)
_LOG = float(1 << LOG_BITS)
GAUSSIAN_SKEW = 0.5
"""Largest skewness at which P_risk may be read as a Gaussian tail."""


def brier(sums: Sums) -> F64:
    """Brier score of the event "correct": (Q - 2X + K)/n, in [0, 1]. Source: Brier 1950."""
    square, correct_confidence = sums.bins("confidence_square"), sums.bins("correct_confidence")
    total = (square - 2 * correct_confidence + (sums.bins("correct") << PROBABILITY_BITS)).sum(axis=1)
    return divide(total / _ONE, sums.used)


def nll(sums: Sums) -> F64:
    """Mean negative log-likelihood of the event "correct", nats; probabilities below the clip count as it."""
    return divide(sums.count("nll") / _LOG, sums.used)


def brier_multi(sums: Sums) -> F64:
    """Multi-class Brier score, in [0, 2]: (sum p^2 - 2 sum p_true + n)/n over used events with a vector."""
    vectors = sums.count("vectors")
    total = sums.count("probability_squares") - 2 * sums.count("true_probability") + (vectors << PROBABILITY_BITS)
    return divide(total / _ONE, vectors)


def nll_multi(sums: Sums) -> F64:
    """Mean -ln of the probability of the true class, nats, over used events with a vector."""
    return divide(sums.count("nll_multi") / _LOG, sums.count("vectors"))


def nll_multi_clipped(sums: Sums) -> I64:
    """Events whose probability was clipped in `nll_multi`."""
    return sums.count("nll_multi_clipped")


def unknown_class(sums: Sums) -> I64:
    """Labels outside the vector of their prediction."""
    return sums.count("unknown_class")


def csr_clipped(sums: Sums) -> I64:
    """Events with a confidence closer to 1 than the clip."""
    return sums.count("clipped")


def csr_clipped_errors(sums: Sums) -> I64:
    """Wrong ones of the clipped events."""
    return sums.count("clipped_errors")


def csr(sums: Sums) -> F64:
    """Calibrated Size Ratio: mean of wrong/q, q = max(1 - c, clip); 1 if calibrated. Source: arXiv 2605.01796."""
    return divide(sums.ratio("inverse") + sums.count("clipped_errors") / sums.csr_clip, sums.used)


def csr_null_mean(sums: Sums) -> F64:
    """Expected CSR of a calibrated model with these confidences; below 1 only through clipping."""
    lost = sums.count("clipped") - sums.probability("clipped_gap")
    return 1 - divide(lost, sums.used)


def csr_sigma(sums: Sums) -> F64:
    """Standard deviation of CSR under calibration: sqrt(sum (1-q)/q)/n."""
    return divide(np.sqrt(_odds(sums)), sums.used)


def csr_z(sums: Sums) -> F64:
    """(CSR - 1)/sigma; NaN where sigma is 0."""
    return divide(csr(sums) - 1, np.nan_to_num(csr_sigma(sums)))


def csr_skew(sums: Sums) -> F64:
    """Skewness of CSR under calibration: third cumulants over (n sigma)^3; NaN where sigma is 0."""
    size = sums.csr_clip
    cumulant = sums.ratio("cumulant") + sums.count("clipped") * ((1 - size) * (1 - 2 * size) / (size * size))
    return divide(cumulant, _odds(sums) ** 1.5)


def p_risk(sums: Sums) -> F64:
    """Phi(z): one minus a one-sided p-value, about 1/2 when all is well; see `p_risk_gaussian_ok`."""
    return normal_cdf(csr_z(sums))


def p_risk_gaussian_ok(sums: Sums) -> F64:
    """1 where the skewness lets P_risk be read as a Gaussian tail, else 0."""
    skew = csr_skew(sums)
    return np.where(np.isnan(skew), np.nan, (skew <= GAUSSIAN_SKEW).astype(np.float64))


def cw_accuracy(sums: Sums) -> F64:
    """Confidence-weighted accuracy: X/C; NaN where all confidences are 0. Source: arXiv 2605.01796."""
    return divide(sums.bins("correct_confidence").sum(axis=1), sums.confidence)


def _odds(sums: Sums) -> F64:
    return sums.ratio("odds") + sums.count("clipped") * ((1 - sums.csr_clip) / sums.csr_clip)
