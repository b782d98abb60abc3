"""A class's own probability against "the label is this class": one row a class of a labelled event.

Kept for the positive class, and for every class where the model is watched class by class. Source: FORMULAS sections 3 and 6.
"""

from __future__ import annotations

import numpy as np

from monitor.statistics.addition import Additions
from monitor.statistics.fixed_point import F64, PROBABILITY_BITS, fixed
from monitor.statistics.grid import bin_index
from monitor.statistics.layout import Layout
from monitor.statistics.segment import ONE_VS_REST, VALUES
from monitor.statistics.summand import calibration, moments
from monitor.statistics.value_table import bucket, entry

OWN_COLUMNS = 8
"""Of a row: slot, event time ms, labelled weight, probability of the class, whether it is the label, whether it was predicted, confidence
of the predicted class, slot of the class's values."""


def one_vs_rest(columns: F64, layout: Layout) -> list[Additions]:
    """What rows add to the cells of their classes, and to the tables of their values.

    Args:
        columns: As of `OWN_COLUMNS`, from a `RowBuffer`; shape (8, n).
        layout: What the sums mean.
    """
    slot, event_time_ms, weight = (columns[row].astype(np.int64) for row in (0, 1, 2))
    # Adding 0.0 turns -0.0 into 0.0: equal probabilities must have equal bits.
    probability, is_true, chosen, confidence = columns[3] + 0.0, columns[4] != 0, columns[5] != 0, columns[6]
    inside = (probability >= layout.positive_edges[0]) & (probability <= layout.positive_edges[-1])
    weighted = fixed(confidence, PROBABILITY_BITS) * weight
    bins = {
        **calibration(probability, is_true, weight),
        "weight": weighted,
        "correct_weight": weighted * is_true,
        "chosen": weight * chosen,
        "chosen_correct": weight * (chosen & is_true),
    }
    sums = {"labelled": weight, **moments(probability, is_true, weight * inside, layout.nll_clip)}
    values = {**bins, **entry(probability, weight)}
    return [
        Additions.of(ONE_VS_REST, event_time_ms, slot, bin_index(layout.class_grid, probability), sums, bins),
        Additions.of(VALUES, event_time_ms, columns[7].astype(np.int64), bucket(probability), values, values),
    ]
