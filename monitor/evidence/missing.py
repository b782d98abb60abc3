"""Predictions whose pane is mature and that still have no label: counted against the alarm, or left out.

Which labels are missing may depend on the outcome, so leaving them out can make a perfect model look miscalibrated. Counted as
correct for "over" and as wrong for "under" they can only lower E: valid whatever is missing. Source: FORMULAS section 9, rule 2.
"""

from __future__ import annotations

from enum import StrEnum

from monitor.evidence.bets import Side
from monitor.evidence.grid_sums import GridSums
from monitor.statistics.fixed_point import I64


class Missing(StrEnum):
    """What a missing label counts as.

    COUNT: correct for over, wrong for under. IGNORE: nothing, which assumes that labels are missing at random given the confidence.
    """

    COUNT = "count"
    IGNORE = "ignore"


def matured(side: Side, missing: Missing, labelled: GridSums, predictions: I64, prediction_confidence: I64) -> GridSums:
    """Sums of mature panes as a side's test takes them.

    Args:
        side: What the test looks for.
        missing: What a missing label counts as.
        labelled: Labelled predictions, shape (..., 306).
        predictions: All predictions, labelled or not, same shape.
        prediction_confidence: Sum of their confidences scaled by 2^32, same shape.

    Returns:
        Same shape.
    """
    if missing is Missing.IGNORE:
        return labelled
    errors = labelled.count - labelled.correct
    return GridSums.of(predictions, predictions - errors if side is Side.OVER else labelled.correct, prediction_confidence)
