"""A stored reference as a version is compared with it: what another layout touches is taken out of it."""

from __future__ import annotations

from dataclasses import replace

from monitor.metrics.evaluation import versions
from monitor.metrics.settings import Settings
from monitor.metrics.version import Version
from monitor.names import ALL_VALUE
from monitor.statistics.layout import Layout
from monitor.statistics.reference import Reference
from monitor.statistics.segment import ALL
from monitor.statistics.series import SeriesKey

OTHER_OOD_THRESHOLD = "other_ood_threshold"
OTHER_CONFIDENCE_THRESHOLD = "other_confidence_threshold"
GROUP_NOT_IN_IT = "group_not_in_it"

REASONS = {
    OTHER_OOD_THRESHOLD: "its ood_threshold or ood_high_is is another: no drift of OOD acceptance",
    OTHER_CONFIDENCE_THRESHOLD: "its confidence_threshold is another: no drift of rejection",
    GROUP_NOT_IN_IT: "a group attribute was not declared for it: no drift of that group mix",
}
"""What a difference of layouts takes away, by reason."""


def differences(reference: Layout, layout: Layout) -> list[str]:
    """Reasons for which a part of a reference cannot be compared under a layout.

    Confidences, scores and classes always can: their bins are the same in every layout.
    """
    found = {
        OTHER_OOD_THRESHOLD: (reference.ood_threshold, reference.ood_high_is_in) != (layout.ood_threshold, layout.ood_high_is_in),
        OTHER_CONFIDENCE_THRESHOLD: reference.confidence_threshold != layout.confidence_threshold,
        GROUP_NOT_IN_IT: not set(layout.groups) <= set(reference.groups),
    }
    return [reason for reason, differs in found.items() if differs]


def comparable(reference: Reference, layout: Layout, settings: Settings) -> Version:
    """A reference's sums without what means something else under the present layout, which is then undefined.

    Args:
        reference: As stored.
        layout: The model's present one.
        settings: The model's.
    """
    reasons = differences(reference.layout, layout)
    kept = replace(reference.layout, ood_threshold=None) if OTHER_OOD_THRESHOLD in reasons else reference.layout
    cells = dict(reference.cells)
    key = SeriesKey(reference.model, reference.layout.fingerprint, reference.version, ALL_VALUE, ALL_VALUE)
    if OTHER_CONFIDENCE_THRESHOLD in reasons:
        cells[key] = cells[key].copy()
        cells[key][[ALL.scalar("decided"), ALL.scalar("accepted")]] = 0
    return versions(cells, {reference.layout.fingerprint: kept}, lambda model: settings)[key]
