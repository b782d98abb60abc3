"""The catalogue: every metric once. Exposition, `calmon evaluate`, `calmon check`, the documentation and the tests read it.

To add a metric is to add one entry to its family in `monitor.metrics.entries`, and one function.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from monitor.metrics.entries.acceptance import OOD_ACCEPTANCE, SELECTION
from monitor.metrics.entries.calibration import CALIBRATION, CSR, SCORES
from monitor.metrics.entries.comparison import COMPARISON
from monitor.metrics.entries.counts import BINS, COUNTS, RELIABILITY
from monitor.metrics.entries.drift import DRIFT
from monitor.metrics.metric import Family, Metric

FAMILIES: Sequence[Family] = (COUNTS, CALIBRATION, SCORES, CSR, SELECTION, OOD_ACCEPTANCE, DRIFT, COMPARISON, BINS, RELIABILITY)
"""All families, in the order in which they are shown."""


def expanded(family: Family) -> tuple[Metric, ...]:
    """A family's metrics, and those that the positive class has too."""
    return (*family.metrics, *(metric.of_positive() for metric in family.metrics if metric.positive))


CATALOGUE: Sequence[Metric] = tuple(metric for family in FAMILIES for metric in expanded(family))
"""All metrics."""


def exported(families: Collection[str] = ()) -> tuple[Metric, ...]:
    """Metrics that a tick computes: of the families that are exported by default, and of those that are asked for."""
    return tuple(metric for family in FAMILIES if family.exported or family.name in families for metric in expanded(family))
