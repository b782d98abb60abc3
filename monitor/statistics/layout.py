"""A model's layout: the bins, thresholds and groups of its configuration that decide what its sums mean.

Sums of different layouts never merge, so everything that changes what a sum means is in the layout's fingerprint.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from monitor.names import FIXED_SEGMENTS, ONE_VS_REST_SEGMENT, OWN_CONFIDENCE_SEGMENT
from monitor.statistics.fixed_point import F64, LOG_FLOOR
from monitor.statistics.grid import CALIBRATION_STEPS, RANK_STEPS, equal_edges, graded_edges, union_edges
from monitor.statistics.score_grid import SCORE_BINS
from monitor.statistics.segment import ALL, CLASS, GROUP, ONE_VS_REST, SCORE, TEMPERATURE, TEMPERATURES, VALUES, Segment
from monitor.statistics.summand import CSR_CLIP
from monitor.statistics.value_table import BUCKETS

STATISTICS_VERSION = 2
"""Raised whenever the lists of `statistics.segment`, a scale or a float expression changes: older sums then belong to another layout."""

MAX_GRID_BINS = 4096

TEMPERED_BINS = 15
"""Equal bins in which the effect of a temperature on ECE is measured."""


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
        stored_group_values: Most values kept for an attribute of a version, and most classes; the rest is `__other__`.
        positive_class: The class whose own probability is watched, or None.
        positive_edges: Report edges of that probability.
        classwise: Whether every class's own probability is watched.
        temperature: Whether likelihoods at a grid of temperatures are summed.
        nll_clip: Least probability in NLL.
        csr_clip: Least distance of a confidence from 1 in CSR.
        grid: Edges of the grid of segment `all`, derived: the report edges and the graded grid of ranks.
        group_grid: Edges of the grid of group values, derived: the report edges and the graded grid of calibration.
        class_grid: Edges of the grid of a class's own probability, derived: those of `grid` and the positive edges.
        fingerprint: sha256 of all that the sums mean, derived.
    """

    report_edges: tuple[float, ...]
    mass_bins: int | None
    ood_threshold: float | None
    ood_high_is_in: bool
    confidence_threshold: float | None
    groups: tuple[str, ...]
    stored_group_values: int
    positive_class: str | None = None
    positive_edges: tuple[float, ...] = (0.0, 1.0)
    classwise: bool = False
    temperature: bool = False
    nll_clip: float = LOG_FLOOR
    csr_clip: float = CSR_CLIP
    grid: F64 = field(init=False, compare=False, repr=False)
    group_grid: F64 = field(init=False, compare=False, repr=False)
    class_grid: F64 = field(init=False, compare=False, repr=False)
    fingerprint: str = field(init=False, compare=False)

    def __post_init__(self) -> None:
        report, positive = (np.asarray(edges, dtype=np.float64) for edges in (self.report_edges, self.positive_edges))
        grid = union_edges(report, graded_edges(RANK_STEPS))
        class_grid = union_edges(positive, grid)
        if len(class_grid) - 1 > MAX_GRID_BINS:
            raise ValueError(f"a grid of {len(class_grid) - 1} bins, at most {MAX_GRID_BINS}")
        object.__setattr__(self, "grid", grid)
        object.__setattr__(self, "class_grid", class_grid)
        object.__setattr__(self, "group_grid", union_edges(report, graded_edges(CALIBRATION_STEPS)))
        canonical = json.dumps([STATISTICS_VERSION, self.to_json()], sort_keys=True, separators=(",", ":"))
        object.__setattr__(self, "fingerprint", hashlib.sha256(canonical.encode()).hexdigest())

    def edges(self, segment: Segment) -> F64:
        """Edges of the grid of a kind of segment that has one over probabilities."""
        return {ALL: self.grid, GROUP: self.group_grid, ONE_VS_REST: self.class_grid}[segment]

    def width(self, segment: Segment) -> int:
        """Integers in a cell of a kind of segment."""
        if segment is CLASS:
            return segment.width(0)
        if segment is VALUES:
            return segment.width(BUCKETS)
        if segment is SCORE:
            return segment.width(SCORE_BINS)
        if segment is TEMPERATURE:
            return segment.width(TEMPERATURES * TEMPERED_BINS)
        return segment.width(len(self.edges(segment)) - 1)

    def uncapped(self, segment: str, value: str) -> bool:
        """Whether a series takes no part in the cap on values: its segment has few, or the configuration names it."""
        own = segment in (ONE_VS_REST_SEGMENT, OWN_CONFIDENCE_SEGMENT) and value == self.positive_class
        return own or segment in FIXED_SEGMENTS

    def watches(self, name: str) -> bool:
        """Whether a class's own probability is watched."""
        return self.classwise or name == self.positive_class

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
        """The fields that it is made from; clips only where they are not the usual ones, as before they could be set."""
        clips = {"nll_clip": (self.nll_clip, LOG_FLOOR), "csr_clip": (self.csr_clip, CSR_CLIP)}
        return {
            "report_edges": list(self.report_edges),
            "mass_bins": self.mass_bins,
            "ood_threshold": self.ood_threshold,
            "ood_high_is_in": self.ood_high_is_in,
            "confidence_threshold": self.confidence_threshold,
            "groups": list(self.groups),
            "stored_group_values": self.stored_group_values,
            "positive_class": self.positive_class,
            "positive_edges": list(self.positive_edges),
            "classwise": self.classwise,
            "temperature": self.temperature,
            **{name: own for name, (own, usual) in clips.items() if own != usual},
        }

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> Layout:
        """The layout that `to_json` wrote."""
        given: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}
        return cls(**given)


def report_edges(bins: int, edges: tuple[float, ...] | None) -> tuple[float, ...]:
    """Report edges: the configured ones, else `bins` equal ones on [0, 1]."""
    return tuple(float(edge) for edge in (equal_edges(bins) if edges is None else edges))
