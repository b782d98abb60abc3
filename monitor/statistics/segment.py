"""Kinds of segments: which sums a cell of each kind holds, and where they lie in it.

A cell is a few scalars, then a block of sums for each bin of the segment's grid. Position 0 is a count of which every
other sum is a bounded multiple, and it is positive wherever the cell holds anything.
"""

from __future__ import annotations

from dataclasses import dataclass

from monitor.names import (
    ALL_VALUE,
    CLASS_SEGMENT,
    CONFIDENCE_SEGMENT,
    ONE_VS_REST_SEGMENT,
    OWN_CONFIDENCE_SEGMENT,
    SCORE_SEGMENT,
    TEMPERATURE_SEGMENT,
)

TEMPERATURES = 61
"""Temperatures of the grid on which likelihoods are summed (FORMULAS section 8)."""


@dataclass(frozen=True, slots=True)
class Segment:
    """Where the sums of one kind of segment lie inside a cell.

    Attributes:
        scalars: Names of the scalar sums, in their order.
        bins: Names of each bin's sums, in their order.
        hourly: Kept by the hour from the start: too much for its use to be kept by the minute first.
    """

    scalars: tuple[str, ...]
    bins: tuple[str, ...]
    hourly: bool = False

    def width(self, bins: int) -> int:
        """Integers in a cell whose grid has `bins` bins."""
        return len(self.scalars) + bins * len(self.bins)

    def scalar(self, name: str) -> int:
        """Position of a scalar sum."""
        return self.scalars.index(name)

    def bin(self, name: str) -> int:
        """Position of a sum inside a bin's block."""
        return self.bins.index(name)


_CALIBRATION = ("labelled", "correct", "confidence", "confidence_square", "correct_confidence")
_MOMENTS = ("confidence_cube", "confidence_fourth", "nll", "nll_clipped")

_DOMAIN_OUTCOMES = tuple(
    f"labelled_{domain}_{verdict}_{outcome}"
    for domain in ("unknown", "id", "ood")
    for verdict in ("rejected", "accepted")
    for outcome in ("correct", "wrong")
)

ALL = Segment(
    (
        "predictions",
        "confidence_only",
        "labelled",
        "decided",
        "accepted",
        "labelled_decided",
        "labelled_accepted",
        "labelled_accepted_errors",
        "scored_unknown_rejected",
        "scored_unknown_accepted",
        "scored_id_rejected",
        "scored_id_accepted",
        "scored_ood_rejected",
        "scored_ood_accepted",
        *_DOMAIN_OUTCOMES,
        *_MOMENTS,
        "vectors",
        "probability_squares",
        "true_probability",
        "nll_multi",
        "nll_multi_clipped",
        "unknown_class",
        "inverse_high",
        "inverse_low",
        "odds_high",
        "odds_low",
        "cumulant_high",
        "cumulant_low",
        "clipped",
        "clipped_errors",
        "clipped_gap",
    ),
    ("predictions", "prediction_confidence", *_CALIBRATION),
)
"""Segment `all`. Scalars from `confidence_cube` on are over the labelled events that the report bins use; of the bins' sums two are
over all predictions with a confidence in the bin, the others over labelled ones."""

GROUP = Segment(("predictions", "labelled", "decided", "accepted"), ("labelled", "correct", "confidence"))
"""A value of a group attribute."""

CLASS = Segment(
    (
        "events",
        "predicted",
        "predicted_labelled",
        "true",
        "hits",
        "predicted_confidence",
        "true_confidence",
        "hit_confidence",
    ),
    (),
)
"""A class, as predicted and as true: all but `events` and `predicted` over used labelled events; confidence is the predicted class's."""

ONE_VS_REST = Segment(
    ("labelled", *_MOMENTS),
    (*_CALIBRATION, "weight", "correct_weight", "chosen", "chosen_correct"),
)
"""A class's own probability: here `correct` means that the label is the class, `confidence` is the probability of the class, `weight` the
confidence of the predicted class; `chosen` counts events of which the class was the predicted one."""

VALUES = Segment(
    ("labelled",),
    ("labelled", "correct", "value_high", "value_low", "value_hash", "weight", "correct_weight"),
    hourly=True,
)
"""Labelled confidences, or a class's own probabilities, by bucket of `statistics.value_table`; `weight` for the latter alone."""

SCORE = Segment(("predictions",), ("predictions",))
"""OOD scores of one domain and sign."""

TEMPERATURE = Segment(("labelled",), ("labelled", "correct", "confidence", "nll"), hourly=True)
"""A split half: bin t x 15 + b is the t-th temperature and the b-th equal bin of the tempered confidence; the sum of `nll` over a
temperature's bins is its NLL, and the other three are filled in the report half alone."""

_BY_NAME = {
    ALL_VALUE: ALL,
    CLASS_SEGMENT: CLASS,
    ONE_VS_REST_SEGMENT: ONE_VS_REST,
    CONFIDENCE_SEGMENT: VALUES,
    OWN_CONFIDENCE_SEGMENT: VALUES,
    SCORE_SEGMENT: SCORE,
    TEMPERATURE_SEGMENT: TEMPERATURE,
}


def segment_of(name: str) -> Segment:
    """The kind of a series' segment: a name that is not reserved is a group attribute."""
    return _BY_NAME.get(name, GROUP)
