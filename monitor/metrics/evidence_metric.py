"""ln E of all labelled events of a window, descriptive: alarms come from the evidence of matured panes alone.

Source: FORMULAS section 9, count-and-sum e-process on the graded grid.
"""

from __future__ import annotations

from monitor.evidence.count_and_sum import log_e_over as over
from monitor.evidence.count_and_sum import log_e_under as under
from monitor.evidence.grid_sums import EDGES, GridSums
from monitor.metrics.sums import Sums
from monitor.statistics.fixed_point import F64

TOLERANCE = 0.02
"""Overconfidence that is tolerated in the test that pages rest on."""


def log_e_over(sums: Sums) -> F64:
    """Ln E against "accuracy is at least the confidence", shape (n,); NaN without a label."""
    return _defined(sums, over(_grid(sums)))


def log_e_over_tolerance(sums: Sums) -> F64:
    """Ln E against "accuracy is at least the confidence less 0.02", shape (n,)."""
    return _defined(sums, over(_grid(sums), TOLERANCE))


def log_e_under(sums: Sums) -> F64:
    """Ln E against "accuracy is at most the confidence", shape (n,)."""
    return _defined(sums, under(_grid(sums)))


def _grid(sums: Sums) -> GridSums:
    return GridSums.of(*(sums.merged(name, EDGES) for name in ("labelled", "correct", "confidence")))


def _defined(sums: Sums, values: F64) -> F64:
    values = values.copy()
    values[sums.count("labelled") == 0] = float("nan")
    return values
