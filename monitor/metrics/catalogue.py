"""The catalogue: every metric once. Exposition, `calmon evaluate`, `calmon check`, the documentation and the tests read it.

To add a metric is to add one entry to its family in `monitor.metrics.entries`, and one function.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cache

from monitor.metrics.entries.acceptance import COSTS, OOD_ACCEPTANCE, SELECTION
from monitor.metrics.entries.calibration import CALIBRATION, CSR, SCORES
from monitor.metrics.entries.classes import CLASSES, CLASSWISE, PRIOR
from monitor.metrics.entries.comparison import COMPARISON
from monitor.metrics.entries.counts import BINS, COUNTS, RELIABILITY
from monitor.metrics.entries.drift import DRIFT
from monitor.metrics.entries.evidence import LOG_E
from monitor.metrics.entries.groups import GROUP_REJECTION, GROUP_TESTS
from monitor.metrics.entries.rank import OOD_RANKS, RANKS
from monitor.metrics.entries.significance import DECOMPOSITION, RESOLUTION, SIGNIFICANCE
from monitor.metrics.metric import Family, Metric

FAMILIES: Sequence[Family] = (
    COUNTS,
    CALIBRATION,
    SCORES,
    CSR,
    SELECTION,
    COSTS,
    OOD_ACCEPTANCE,
    DRIFT,
    COMPARISON,
    GROUP_REJECTION,
    BINS,
    RELIABILITY,
    SIGNIFICANCE,
    RESOLUTION,
    DECOMPOSITION,
    CLASSES,
    CLASSWISE,
    PRIOR,
    RANKS,
    OOD_RANKS,
    GROUP_TESTS,
    LOG_E,
)
"""All families, in the order in which they are shown."""


@cache
def expanded(family: Family) -> tuple[Metric, ...]:
    """A family's metrics, those that bound their errors, and those that the positive class has too."""
    metrics = [half for metric in family.metrics for half in metric.halves()]
    return (*metrics, *(metric.of_positive() for metric in metrics if metric.positive))


CATALOGUE: Sequence[Metric] = tuple(metric for family in FAMILIES for metric in expanded(family))
"""All metrics."""


def exported(families: Collection[str] = ()) -> tuple[Metric, ...]:
    """Metrics that a tick computes: of the families that are exported by default, and of those that are asked for."""
    return tuple(metric for family in FAMILIES if family.exported or family.name in families for metric in expanded(family))
