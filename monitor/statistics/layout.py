"""What a cell of sums holds and where: the layout, part of which is each model's configuration.

A cell is the sums of one series in one pane: a few scalars, then a block of sums for each bin of the model's grid. Sums
of different layouts never merge, so everything that changes what a sum means is in the layout's fingerprint.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from monitor.statistics.fixed_point import F64
from monitor.statistics.grid import CALIBRATION_STEPS, equal_edges, graded_edges, union_edges

STATISTICS_VERSION = 1
"""Raised whenever the lists below, a scale or a float expression changes: older sums then belong to another layout."""

ALL_SCALARS = (
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
    "nll",
    "nll_clipped",
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
)
"""Scalar sums of segment `all`. From `nll` on they are over the labelled events that are used by the report bins."""

ALL_BINS = ("predictions", "prediction_confidence", "labelled", "correct", "confidence", "confidence_square", "correct_confidence")
"""Sums of each grid bin of segment `all`: two over all predictions with a confidence in it, five over labelled ones."""

GROUP_SCALARS = ("predictions", "labelled", "decided", "accepted")
"""Scalar sums of a group value."""

GROUP_BINS = ("labelled", "correct", "confidence")
"""Sums of each grid bin of a group value."""

MAX_GRID_BINS = 2048


@dataclass(frozen=True, slots=True)
class Segment:
    """Where the sums of one kind of segment lie inside a cell.

    Attributes:
        scalars: Names of the scalar sums, in their order.
        bins: Names of each bin's sums, in their order.
    """

    scalars: tuple[str, ...]
    bins: tuple[str, ...]

    def width(self, grid_bins: int) -> int:
        """Integers in a cell."""
        return len(self.scalars) + grid_bins * len(self.bins)

    def scalar(self, name: str) -> int:
        """Position of a scalar sum."""
        return self.scalars.index(name)

    def bin(self, name: str) -> int:
        """Position of a sum inside a bin's block."""
        return self.bins.index(name)


ALL = Segment(ALL_SCALARS, ALL_BINS)
GROUP = Segment(GROUP_SCALARS, GROUP_BINS)


@dataclass(frozen=True, slots=True)
class Layout:
    """A model's bins, thresholds and groups: what its sums mean.

    Attributes:
        report_edges: Edges of the report bins; for equal-mass bins (0, 1).
        mass_bins: Number of equal-mass report bins, or None for the bins of `report_edges`.
        ood_threshold: OOD operating threshold in the source's units, or None.
        ood_high_is_in: Whether a high score means in distribution.
        confidence_threshold: Acceptance threshold where an event does not say `accepted`, or None.
        groups: Declared group attributes, in configured order.
        stored_group_values: Most values kept for an attribute of a version; the rest is `__other__`.
        grid: Edges of the union grid, derived.
        fingerprint: sha256 of all that the sums mean, derived.
    """

    report_edges: tuple[float, ...]
    mass_bins: int | None
    ood_threshold: float | None
    ood_high_is_in: bool
    confidence_threshold: float | None
    groups: tuple[str, ...]
    stored_group_values: int
    grid: F64 = field(init=False, compare=False, repr=False)
    fingerprint: str = field(init=False, compare=False)

    def __post_init__(self) -> None:
        grid = union_edges(np.asarray(self.report_edges, dtype=np.float64), graded_edges(CALIBRATION_STEPS))
        if len(grid) - 1 > MAX_GRID_BINS:
            raise ValueError(f"a grid of {len(grid) - 1} bins, at most {MAX_GRID_BINS}")
        object.__setattr__(self, "grid", grid)
        canonical = json.dumps([STATISTICS_VERSION, self.to_json()], sort_keys=True, separators=(",", ":"))
        object.__setattr__(self, "fingerprint", hashlib.sha256(canonical.encode()).hexdigest())

    @property
    def grid_bins(self) -> int:
        """Bins of the union grid."""
        return len(self.grid) - 1

    def used(self, confidences: F64) -> NDArray[np.bool_]:
        """Which confidences lie inside the report edges, both ends included."""
        return (confidences >= self.report_edges[0]) & (confidences <= self.report_edges[-1])

    def decisions(self, confidences: F64) -> NDArray[np.bool_] | None:
        """Which confidences the threshold accepts; None without a threshold."""
        return None if self.confidence_threshold is None else confidences >= self.confidence_threshold

    def in_distribution(self, ood_scores: F64) -> NDArray[np.bool_]:
        """Which scores lie on the in-distribution side; none without a threshold, and never a NaN."""
        if self.ood_threshold is None:
            return np.zeros(ood_scores.shape, dtype=np.bool_)
        return ood_scores >= self.ood_threshold if self.ood_high_is_in else ood_scores <= self.ood_threshold

    def to_json(self) -> dict[str, Any]:
        """The fields that it is made from."""
        return {
            "report_edges": list(self.report_edges),
            "mass_bins": self.mass_bins,
            "ood_threshold": self.ood_threshold,
            "ood_high_is_in": self.ood_high_is_in,
            "confidence_threshold": self.confidence_threshold,
            "groups": list(self.groups),
            "stored_group_values": self.stored_group_values,
        }

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> Layout:
        """The layout that `to_json` wrote."""
        return cls(**{**fields, "report_edges": tuple(fields["report_edges"]), "groups": tuple(fields["groups"])})


def report_edges(bins: int, edges: tuple[float, ...] | None) -> tuple[float, ...]:
    """Report edges: the configured ones, else `bins` equal ones on [0, 1]."""
    return tuple(float(edge) for edge in (equal_edges(bins) if edges is None else edges))
