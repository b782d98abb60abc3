"""Drift of a version from its reference: which histograms and shares are compared, and over which bins.

Needs no labels and proves no miscalibration. Source: FORMULAS section 7.

* Confidences of all predictions: the graded grid with 8 steps an octave, which every layout's grid is a refinement of.
* OOD scores, whatever their domain: at most 128 bins of equal mass in the reference, merged from the score grid, the two outer ones open.
* Predicted classes and group values: one bin each; what either side keeps as `__other__` only is one bin on both.

A bin that is empty on both sides says nothing and is left out, so that the floor of PSI counts bins that could have moved.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from monitor.metrics import acceptance, divergence
from monitor.metrics.comparison import Difference, rejection_rate_difference, share_difference
from monitor.metrics.sums import Sums
from monitor.metrics.version import Version
from monitor.names import OTHER_VALUE
from monitor.statistics.fixed_point import F64, I64
from monitor.statistics.grid import CALIBRATION_STEPS, graded_edges

SCORE_DRIFT_BINS = 128
"""Most bins that OOD scores are compared in."""


@dataclass(frozen=True)
class Histograms:
    """Events by bin now and in the reference.

    Attributes:
        current: Shape (1, n_bins).
        reference: Same shape.
    """

    current: I64
    reference: I64

    @classmethod
    def of(cls, current: I64, reference: I64) -> Histograms:
        """Of counts by the same bins, each of shape (n_bins,); at least one bin is left."""
        kept = (current > 0) | (reference > 0)
        kept[0] |= not kept.any()
        return cls(current[None, kept], reference[None, kept])

    @property
    def events(self) -> I64:
        """Events now, shape (1,)."""
        return np.asarray(self.current.sum(axis=1))

    def psi(self) -> F64:
        """See `divergence.psi`."""
        return divergence.psi(self.current, self.reference)

    def psi_floor(self) -> F64:
        """See `divergence.psi_floor`."""
        return divergence.psi_floor(self.current, self.reference)

    def js(self) -> F64:
        """See `divergence.jensen_shannon`."""
        return divergence.jensen_shannon(self.current, self.reference)

    def ks_lower(self) -> F64:
        """See `divergence.ks_lower`."""
        return divergence.ks_lower(self.current, self.reference)

    def ks_upper(self) -> F64:
        """See `divergence.ks_upper`."""
        return divergence.ks_upper(self.current, self.reference)

    def ks_p(self) -> F64:
        """See `divergence.ks_p`."""
        return divergence.ks_p(self.current, self.reference)


@dataclass(frozen=True)
class Drift:
    """A version beside its reference.

    Attributes:
        version: As of the window.
        reference: The reference's sums.
    """

    version: Version
    reference: Version

    @cached_property
    def confidences(self) -> Histograms:
        """Of all predictions."""
        edges = graded_edges(CALIBRATION_STEPS)
        now, then = (one.everything.merged("predictions", edges)[0] for one in (self.version, self.reference))
        return Histograms.of(now, then)

    @cached_property
    def scores(self) -> Histograms:
        """OOD scores; without any on a side that side is empty."""
        now, then = (_all_domains(one.scores) for one in (self.version, self.reference))
        nothing = np.zeros(1, dtype=np.int64)
        if now is None or then is None:
            return Histograms.of(*(nothing if one is None else one.sum(keepdims=True) for one in (now, then)))
        starts = mass_starts(then, SCORE_DRIFT_BINS)
        return Histograms.of(np.add.reduceat(now, starts), np.add.reduceat(then, starts))

    @cached_property
    def classes(self) -> Histograms:
        """Predictions by predicted class."""
        return aligned(self.version.classes, self.reference.classes, "predicted")

    @cached_property
    def ood_acceptance(self) -> Difference:
        """Of the share accepted as in distribution."""
        now, then = self.version.everything, self.reference.everything
        return share_difference(
            acceptance.ood_passed(now), acceptance.ood_tested(now), acceptance.ood_passed(then), acceptance.ood_tested(then)
        )

    @cached_property
    def rejection(self) -> Difference:
        """Of the share of rejected predictions."""
        return rejection_rate_difference(self.version.everything, self.reference.everything)


def mass_starts(counts: I64, bins: int) -> I64:
    """First fine bin of each of at most so many bins of about equal mass; the first is 0, the last bin reaches to the end.

    Args:
        counts: Events by fine bin, at least one.
        bins: How many bins are wanted; fewer come out where values repeat.
    """
    total = int(counts.sum())
    positions = [k * total // bins for k in range(1, bins)]
    return np.unique(np.append(0, np.searchsorted(np.cumsum(counts), positions, side="right"))).astype(np.int64)


def aligned(current: Sums | None, reference: Sums | None, count: str) -> Histograms:
    """Counts by name on both sides.

    A name that one side does not have counts 0 there if that side has everything by name; else its events may be in that
    side's `__other__`, and it is moved to `__other__` on the side that has it.
    """
    now, then = (_by_name(sums, count) for sums in (current, reference))
    names = {
        name for name in now.keys() | then.keys() if (name in now or OTHER_VALUE not in now) and (name in then or OTHER_VALUE not in then)
    }
    order = sorted(names - {OTHER_VALUE})
    sides = []
    for side in (now, then):
        named = [side.get(name, 0) for name in order]
        sides.append(np.array([*named, sum(side.values()) - sum(named)], dtype=np.int64))
    return Histograms.of(*sides)


def _by_name(sums: Sums | None, count: str) -> Mapping[str, int]:
    return {} if sums is None else dict(zip(sums.names, sums.count(count).tolist(), strict=True))


def _all_domains(scores: Mapping[str, I64]) -> I64 | None:
    """Scored predictions by bin, whatever their domain; None without any."""
    total = sum(scores.values(), start=np.zeros(1, dtype=np.int64)) if scores else None
    return None if total is None or not total.any() else total
