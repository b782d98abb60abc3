"""All sums of one model version in one window: what metrics read that are about more than one series."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from monitor.metrics.sums import Sums
from monitor.metrics.values import Values
from monitor.statistics.fixed_point import I64


@dataclass(frozen=True, eq=False)
class Version:
    """One model version.

    Attributes:
        everything: Segment `all`, one row.
        classes: Counts by class, rows named after the classes; None without a prediction.
        own: Each watched class's own probability, rows named after the classes; None where none is watched.
        positive: The row of the positive class, with its report edges; None where there is none.
        groups: Values of each attribute, rows named after them.
        scores: Scored predictions by score bin (`score_grid.score_edges`), by domain (`unknown`, `id`, `ood`); a domain without any
            is absent.
        halves: Temperature cells by split half (`fit`, `report`).
        own_values: Known values of each watched class's own probability.
        values: Known values of the confidence; None without a label.
        previous: The version that the model had before, on the same window; None without one.
        reference: The sums that drift is told from; None without any.
    """

    everything: Sums
    classes: Sums | None
    own: Sums | None
    positive: Sums | None
    groups: Mapping[str, Sums]
    scores: Mapping[str, I64]
    halves: Mapping[str, I64]
    own_values: Mapping[str, Values]
    values: Values | None
    previous: Version | None = None
    reference: Version | None = None

    def beside(self, previous: Version | None, reference: Version | None) -> Version:
        """The same with the version that came before it, and with its reference."""
        return replace(self, previous=previous, reference=reference)
