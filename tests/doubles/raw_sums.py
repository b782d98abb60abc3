"""Sums of events in memory, without a layout, a grid or panes: what the metric functions read, added up directly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from monitor.metrics.settings import Settings
from monitor.metrics.sums import Sums
from monitor.statistics.fixed_point import F64, I64

Events = tuple[F64, NDArray[np.bool_]]
"""Confidences of labelled events, and which are correct."""

_ONE = 2.0**32


class RawSums(Sums):
    """Sums of labelled events, one row a series.

    Args:
        series: Events of each series.
        edges: Report edges; an event outside them is not used.
        counts: Other scalar sums by name, each of shape (n,).
        settings: As for `Sums`.
    """

    def __init__(
        self, series: Sequence[Events], edges: Sequence[float], counts: Mapping[str, I64] | None = None, settings: Settings | None = None
    ) -> None:
        self.settings = settings or Settings()
        self._counts = dict(counts or {})
        self._bins: dict[str, I64] = {}
        for row, (confidences, correct) in enumerate(series):
            inside = (confidences >= edges[0]) & (confidences <= edges[-1])
            c, y = confidences[inside], correct[inside]
            place = np.minimum(np.searchsorted(edges, c, side="right") - 1, len(edges) - 2)
            per_bin = {"labelled": np.ones(len(c)), "correct": y}
            per_bin |= {"confidence": c * _ONE, "confidence_square": c * c * _ONE, "correct_confidence": c * y * _ONE}
            for name, values in per_bin.items():
                into = self._bins.setdefault(name, np.zeros((len(series), len(edges) - 1), dtype=np.int64))
                np.add.at(into[row], place, np.rint(values).astype(np.int64))
            for name, power in (("confidence_cube", c * c * c), ("confidence_fourth", (c * c) * (c * c))):
                scalar = self._counts.setdefault(name, np.zeros(len(series), dtype=np.int64))
                scalar[row] = np.rint(power * _ONE).astype(np.int64).sum()

    def count(self, name: str) -> I64:
        """A scalar sum."""
        return self._counts[name]

    def bins(self, name: str) -> I64:
        """A per-bin sum."""
        return self._bins[name]
