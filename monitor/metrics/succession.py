"""Which version came before which: the one to compare a version with on the same window."""

from __future__ import annotations

from collections.abc import Mapping

from monitor.metrics.settings import SettingsOf, VersionName
from monitor.names import ALL_VALUE
from monitor.statistics.fixed_point import I64
from monitor.statistics.segment import ALL
from monitor.statistics.series import SeriesKey

_LABELLED = ALL.scalar("labelled")


def previous_versions(
    cells: Mapping[SeriesKey, I64], first_ms: Mapping[tuple[str, str], int], settings_of: SettingsOf
) -> dict[VersionName, str]:
    """The version first seen last before each one, of those with enough labels in the window.

    Args:
        cells: Cells of the window.
        first_ms: By (model, version): smallest event time of any of its predictions. Versions that began at the same
            moment are ordered by name, so that the answer depends on no order of arrival.
        settings_of: Settings by model; `min_group_count` labels are enough.

    Returns:
        By version the previous one; a version without any is absent.
    """
    begun: dict[str, list[tuple[int, str]]] = {}
    enough = set()
    for key, cell in cells.items():
        name = (key.model, key.version)
        if key.segment == ALL_VALUE and name in first_ms:
            begun.setdefault(key.model, []).append((first_ms[name], key.version))
            if int(cell[_LABELLED]) >= settings_of(key.model).min_group_count:
                enough.add(name)
    previous = {}
    for model, versions in begun.items():
        last: str | None = None
        for _, version in sorted(set(versions)):
            if last is not None:
                previous[model, version] = last
            if (model, version) in enough:
                last = version
    return previous
