"""PromQL of the dashboards, and what the catalogue says of a series: its unit and its description."""

from __future__ import annotations

from collections.abc import Iterable

from monitor.metrics.catalogue import exported
from monitor.metrics.metric import Metric, Subject
from monitor.names import BACKFILL_PREFIX, PREFIX, REVISION_LABEL

EXTRA_FAMILIES = ("costs", "comparison", "reliability", "classes", "ranks", "ood_ranks", "group_tests")
"""Families that the dashboards show and that are off by default: for `evaluation.families`."""

WITH_A_REFERENCE = "drift"
"""Family that is exported by itself where a model has a reference."""

_BY_GAUGE = {one.gauge: one for one in exported((*EXTRA_FAMILIES, WITH_A_REFERENCE)) if one.subject is not Subject.TABLE}

ONE_VERSION = 'model="$model",model_version="$model_version"'
"""Selects the version that the dashboard is about."""

WHOLE = 'segment="all",value="all"'
"""Selects the series of all predictions, not those of groups."""

_UNITS = {"ratio": "percentunit", "events": "short", "seconds": "s", "timestamp": "dateTimeAsIso", "per second": "cps"}


def metric(gauge: str) -> Metric:
    """The catalogue's entry of an exported name, without the prefix.

    Raises:
        KeyError: The catalogue has none in the families that are shown.
    """
    return _BY_GAUGE[gauge]


def unit(name: str) -> str:
    """Grafana's name of a unit of the catalogue; plain numbers for what it has no unit for."""
    return _UNITS.get(name, "none")


def described(gauges: Iterable[str]) -> str:
    """What gauges are, one a line, with the counts that they rest on."""
    lines = []
    for gauge in gauges:
        entry = metric(gauge)
        counted = f" Rests on `{PREFIX}{entry.count}`." if entry.count else ""
        lines.append(f"`{PREFIX}{gauge}`: {entry.help}{counted}")
    return "\n\n".join(lines)


def of_fleet(gauge: str) -> str:
    """A gauge of every chosen model's versions in the window."""
    metric(gauge)
    return f'max by (model, model_version) ({PREFIX}{gauge}{{model=~"$model",window="$window",{WHOLE}}})'


def of_version(gauge: str, window: str = "$window", offset: str = "") -> str:
    """A gauge of the version in a window."""
    metric(gauge)
    moved = f" offset {offset}" if offset else ""
    return f'max({PREFIX}{gauge}{{{ONE_VERSION},window="{window}",{WHOLE}}}{moved})'


def of_backfill(gauge: str) -> str:
    """What was written back of a gauge of the version in the window, by revision: each sample once, never carried on."""
    metric(gauge)
    samples = f'{BACKFILL_PREFIX}{gauge}{{{ONE_VERSION},window="$window",{WHOLE}}}[$__interval]'
    return f"max by ({REVISION_LABEL}) (last_over_time({samples}))"


def of_bins(gauge: str) -> str:
    """A gauge of the version by report bin."""
    metric(gauge)
    return f'max by (bin) ({PREFIX}{gauge}{{{ONE_VERSION},window="$window",{WHOLE}}})'


def of_group_values(gauge: str) -> str:
    """A gauge of the version by value of the chosen group attribute."""
    metric(gauge)
    return f'max by (value) ({PREFIX}{gauge}{{{ONE_VERSION},window="$window",segment="$segment",value!="all"}})'


def of_attribute(gauge: str) -> str:
    """A gauge that compares the values of the chosen group attribute."""
    metric(gauge)
    return f'max({PREFIX}{gauge}{{{ONE_VERSION},window="$window",segment="$segment",value="all"}})'


def of_classes(gauge: str) -> str:
    """A gauge of the version by class."""
    metric(gauge)
    return f'max by (class) ({PREFIX}{gauge}{{{ONE_VERSION},window="$window",{WHOLE}}})'
