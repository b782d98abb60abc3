"""Ranks of one version: AUCs and the risk-coverage curve, from bins and from values that are known to repeat.

Each function gives a value and a bound of its distance from the value of the raw confidences. Source: FORMULAS
sections 6 and 8.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from monitor.metrics.delong import auc_standard_error
from monitor.metrics.rank import auc
from monitor.metrics.risk_coverage import RiskCoverage, aurc, risk_coverage_curve
from monitor.metrics.sums import Sums
from monitor.metrics.values import Orders, Values, orders
from monitor.statistics.fixed_point import F64, I64
from monitor.statistics.grid import bin_index

_TIED = np.array([True])
NO_VALUES = Values.of(np.zeros(1, dtype=np.int64))
"""Where no value is known: windows of minutes."""


class Bounded(NamedTuple):
    """A value and how far it may be from that of the raw confidences; NaN where undefined."""

    value: float
    bound: float


UNDEFINED = Bounded(float("nan"), float("nan"))


def row_auc(sums: Sums, row: int, values: Values) -> Bounded:
    """AUC of one row's confidences for its positives (`correct`)."""
    return _between(*(_auc(order) for order in _counts(sums, row, values)))


def row_weighted_auc(sums: Sums, row: int, values: Values) -> Bounded:
    """AUC in which a pair weighs the product of its two weights."""
    weight, correct = sums.fine("weight")[row], sums.fine("correct_weight")[row]
    order = orders(sums.grid, correct, weight - correct, values.value, values.correct_weight, values.weight - values.correct_weight)
    return _between(_auc(order.best), _auc(order.worst))


def row_auc_se(sums: Sums, row: int) -> float:
    """DeLong's standard error of the AUC of the binned confidences."""
    correct = sums.fine("correct")[[row]]
    return float(auc_standard_error(correct, sums.fine("labelled")[[row]] - correct)[0])


def row_aurc(sums: Sums, row: int, values: Values, events: str = "labelled", correct: str = "correct") -> Bounded:
    """Area under the risk-coverage curve of one row.

    Args:
        sums: Whose bins.
        row: Which row.
        values: Known values; none where the events are not those that the values are of.
        events: Name of the events' sums.
        correct: Name of the right ones' sums.
    """
    right = sums.fine(correct)[row]
    order = orders(sums.grid, right, sums.fine(events)[row] - right, values.value, values.correct, values.labelled - values.correct)
    return _between(*(_aurc(one) for one in (order.best, order.worst)))


def curve(sums: Sums, row: int, values: Values, events_of: str = "labelled", right_of: str = "correct") -> RiskCoverage:
    """The risk-coverage curve: a point for each known value, and one for each bin that holds others too; arguments as `row_aurc`."""
    events, right = sums.fine(events_of)[row], sums.fine(right_of)[row]
    place = bin_index(sums.grid, values.value)
    known = np.bincount(place, weights=values.labelled, minlength=len(events)).astype(np.int64)
    mixed = np.flatnonzero(events > known)
    alone = ~np.isin(place, mixed)
    lowest = np.concatenate((sums.grid[mixed], values.value[alone]))
    highest = np.concatenate((sums.grid[mixed + 1], values.value[alone]))
    count = np.concatenate((events[mixed], values.labelled[alone]))
    wrong = np.concatenate(((events - right)[mixed], (values.labelled - values.correct)[alone]))
    tied = np.concatenate((np.zeros(len(mixed), dtype=np.bool_), np.ones(int(alone.sum()), dtype=np.bool_)))
    order = np.argsort(lowest, kind="stable")
    return risk_coverage_curve(count[order], wrong[order], tied[order], lowest[order], highest[order])


def _counts(sums: Sums, row: int, values: Values) -> tuple[I64, I64]:
    right = sums.fine("correct")[row]
    found: Orders = orders(
        sums.grid, right, sums.fine("labelled")[row] - right, values.value, values.correct, values.labelled - values.correct
    )
    return found.best, found.worst


def _auc(order: I64) -> float:
    positives, negatives = order
    return float(auc(positives[None, :], negatives[None, :], _TIED)[0][0])


def _aurc(order: I64) -> float:
    right, wrong = order
    total: F64 = aurc((right + wrong)[None, :], wrong[None, :], _TIED)[0]
    return float(total[0])


def _between(best: float, worst: float) -> Bounded:
    return Bounded((best + worst) / 2, abs(best - worst) / 2)
