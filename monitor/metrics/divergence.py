"""Drift: how far a histogram is from a reference histogram over the same bins. No labels needed; proves no miscalibration.

Counts may have shape (n, n_bins), the reference also (n_bins,). Source: FORMULAS section 7.
"""

from __future__ import annotations

import numpy as np
from scipy.special import chdtrc, kolmogorov, rel_entr

from monitor.metrics.sums import divide
from monitor.statistics.fixed_point import F64, I64


def psi(current: I64, reference: I64) -> F64:
    """Population stability index: sum of (p - q) ln(p/q), with half an event added to every bin so that none is zero.

    Args:
        current: Events per bin.
        reference: Events per bin of the reference.

    Returns:
        Shape (n,), >= 0. NaN where either has no event.
    """
    size = current.shape[-1]
    p = (current + 0.5) / (current.sum(axis=-1, keepdims=True) + size / 2)
    q = (reference + 0.5) / (reference.sum(axis=-1, keepdims=True) + size / 2)
    defined = (current.sum(axis=-1) > 0) & (reference.sum(axis=-1) > 0)
    distance = (p - q) * np.log(p / q)
    return np.where(defined, distance.sum(axis=-1), np.nan)


def psi_floor(current: I64, reference: I64) -> F64:
    """PSI expected without any drift: (bins - 1)(1/n + 1/m); NaN where either has no event. Arguments as of `psi`."""
    return np.asarray((current.shape[-1] - 1) * _noise(current, reference))


def psi_p(current: I64, reference: I64) -> F64:
    """P-value of the PSI: without drift, PSI over (1/n + 1/m) is about chi-square with bins - 1 degrees of freedom.

    Args:
        current: Events per bin; at least two bins, each with events enough for the approximation.
        reference: Events per bin of the reference.

    Returns:
        Shape (n,). NaN where either has no event.

    Source: Yurdakul 2018.
    """
    noise = _noise(current, reference)
    return np.asarray(chdtrc(float(current.shape[-1] - 1), divide(psi(current, reference), np.nan_to_num(noise))))


def jensen_shannon(current: I64, reference: I64) -> F64:
    """Jensen-Shannon divergence in bits, unsmoothed, in [0, 1]: 0 for equal shares, 1 where no bin is shared.

    Args:
        current: Events per bin.
        reference: Events per bin of the reference.

    Returns:
        Shape (n,). NaN where either has no event.

    Source: Lin 1991.
    """
    p, q = _share(current), _share(reference)
    middle = (p + q) / 2
    nats = (rel_entr(p, middle) + rel_entr(q, middle)).sum(axis=-1) / 2
    return np.asarray(np.clip(nats / np.log(2.0), 0.0, 1.0))


def ks_lower(current: I64, reference: I64) -> F64:
    """Lower end of the Kolmogorov-Smirnov statistic of the raw values: the largest |F - G| at an edge of the bins.

    Args:
        current: Events per bin, bins ascending.
        reference: Events per bin of the reference.

    Returns:
        Shape (n,), in [0, 1]. NaN where either has no event.
    """
    return np.asarray(np.abs(_difference(current, reference)).max(axis=-1))


def ks_upper(current: I64, reference: I64) -> F64:
    """Upper end of the statistic: in some bin, all events of one side come before all of the other. Arguments as above."""
    p, q = _share(current), _share(reference)
    after = _difference(current, reference)
    before = np.concatenate((np.zeros_like(after[..., :1]), after[..., :-1]), axis=-1)
    return np.asarray(np.maximum(before + p, q - before).max(axis=-1))


def ks_p(current: I64, reference: I64) -> F64:
    """P-value of the lower end by the limiting distribution at sqrt(n m/(n + m)) D: conservative, since D is not smaller.

    Args:
        current: Events per bin, bins ascending.
        reference: Events per bin of the reference.

    Returns:
        Shape (n,). NaN where either has no event.

    Source: Kolmogorov's distribution, as for the two-sample test of Smirnov 1948.
    """
    return np.asarray(kolmogorov(divide(ks_lower(current, reference), np.sqrt(_noise(current, reference)))))


def _share(counts: I64) -> F64:
    return divide(counts, counts.sum(axis=-1, keepdims=True))


def _difference(current: I64, reference: I64) -> F64:
    """F - G at the right edge of every bin, from whole cumulative counts."""
    left = divide(np.cumsum(current, axis=-1), current.sum(axis=-1, keepdims=True))
    right = divide(np.cumsum(reference, axis=-1), reference.sum(axis=-1, keepdims=True))
    return left - right


def _noise(current: I64, reference: I64) -> F64:
    """1/n + 1/m; NaN where either has no event."""
    one = np.ones(())
    return divide(one, current.sum(axis=-1)) + divide(one, reference.sum(axis=-1))
