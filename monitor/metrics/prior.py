"""What a version would show under another mix of classes: events of each true class reweighted to a stated share.

Valid where only the mix has changed (label shift): inside a true class confidences and errors stay as they are.
Source: Saerens, Latinne and Decaestecker 2002; the weights are share / observed share.
"""

from __future__ import annotations

import math

import numpy as np

from monitor.metrics.sums import Sums
from monitor.metrics.version import Version
from monitor.statistics.fixed_point import PROBABILITY_BITS

_ONE = float(1 << PROBABILITY_BITS)


def prior_accuracy(version: Version) -> float:
    """Accuracy under the target prior: sum of share x recall; NaN where a class of the prior never occurred."""
    return _expected(version, "hits", 1.0)


def prior_mean_confidence(version: Version) -> float:
    """Mean confidence under the target prior."""
    return _expected(version, "true_confidence", _ONE)


def prior_overconfidence(version: Version) -> float:
    """Overconfidence under the target prior."""
    return prior_mean_confidence(version) - prior_accuracy(version)


def positive_prior_ece(version: Version) -> float:
    """ECE of the positive class's probability under the target prior's share of that class; NaN where one side never occurred."""
    sums, share = version.positive, _share_of_positive(version)
    if sums is None or share is None:
        return math.nan
    total, positives = int(sums.used[0]), int(sums.correct[0])
    if positives in (0, total):
        return math.nan
    on_positive = sums.bins("correct_confidence")[0] / _ONE
    on_negative = sums.bins("confidence")[0] / _ONE - on_positive
    weight, other = share / positives, (1 - share) / (total - positives)
    return float(np.abs(weight * (on_positive - sums.bins("correct")[0]) + other * on_negative).sum())


def _expected(version: Version, name: str, scale: float) -> float:
    """Sum over the classes of the prior of share x the class's mean of a sum."""
    prior, classes = version.everything.settings.target_prior, version.classes
    if not prior or classes is None:
        return math.nan
    return sum(share * _mean(classes, one, name) / scale for one, share in prior)


def _mean(classes: Sums, name: str, of: str) -> float:
    if name not in classes.names:
        return math.nan
    row = list(classes.names).index(name)
    true = int(classes.count("true")[row])
    return int(classes.count(of)[row]) / true if true else math.nan


def _share_of_positive(version: Version) -> float | None:
    settings = version.everything.settings
    return dict(settings.target_prior).get(settings.positive_class or "")
