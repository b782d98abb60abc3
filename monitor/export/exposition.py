"""Exposition: a snapshot as Prometheus text, rendered once a tick.

prometheus-client's own collectors count as they go; here everything is known at once, so families are filled from the
snapshot and rendered by its text encoder, which knows the format's escaping and float rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

import numpy as np
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector

from monitor import __version__
from monitor.export.series import defined_values
from monitor.metrics.catalogue import CATALOGUE
from monitor.metrics.evaluation import Block
from monitor.metrics.metric import Subject
from monitor.names import PREFIX


class _Families(Collector):
    def __init__(self, families: Sequence[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


class NamedWindow(Protocol):
    """A window's values, as far as exposition reads them."""

    @property
    def name(self) -> str:
        """Value of the `window` label."""
        ...

    @property
    def blocks(self) -> Sequence[Block]:
        """Its series."""
        ...


def render(families: Sequence[Metric]) -> bytes:
    """Text format 0.0.4 of the families, in their order."""
    return generate_latest(registry_of(families))


def registry_of(families: Sequence[Metric]) -> CollectorRegistry:
    """Families as what prometheus-client renders."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Families(families))
    return registry


def series_families(windows: Sequence[NamedWindow]) -> list[Metric]:
    """One gauge family a metric of the catalogue that has any value; an undefined value has no sample."""
    families: list[Metric] = []
    for metric in CATALOGUE:
        if metric.subject is Subject.TABLE:
            continue
        family = GaugeMetricFamily(PREFIX + metric.gauge, metric.help, labels=metric.subject.labels)
        for window in windows:
            for labels, value in defined_values(metric, window.name, window.blocks):
                family.add_metric(labels, value)
        if family.samples:
            families.append(family)
    return families


def count_samples(families: Iterable[Metric]) -> int:
    """Series in the families."""
    return sum(len(family.samples) for family in families)


def gauge(name: str, text: str, labels: Sequence[str], values: Iterable[tuple[Sequence[str], float]]) -> Metric:
    """A gauge family of the process."""
    family = GaugeMetricFamily(PREFIX + name, text, labels=labels)
    for value_labels, value in values:
        family.add_metric(list(value_labels), value)
    return family


def counter(name: str, text: str, labels: Sequence[str], values: Iterable[tuple[Sequence[str], int]]) -> Metric:
    """A counter family; `name` without `_total`."""
    family = CounterMetricFamily(PREFIX + name, text, labels=labels)
    for value_labels, value in values:
        family.add_metric(list(value_labels), value)
    return family


def histogram(
    name: str, text: str, labels: Sequence[str], bounds: Sequence[float], values: Iterable[tuple[Sequence[str], Sequence[int], float]]
) -> Metric:
    """A histogram family from counts by bucket (the last one above all bounds) and the sum."""
    family = HistogramMetricFamily(PREFIX + name, text, labels=labels)
    for value_labels, counts, total in values:
        reached = np.cumsum(counts).tolist()
        buckets = [*zip([str(float(bound)) for bound in bounds], reached[:-1], strict=True), ("+Inf", reached[-1])]
        family.add_metric(list(value_labels), buckets, total)
    return family


def build_info() -> Metric:
    """Which calmon this is."""
    return InfoMetricFamily(PREFIX + "build", "The running version.", value={"version": __version__})
