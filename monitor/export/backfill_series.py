"""What is known now of past moments, as series: the live gauges' labels under names of their own.

A sample is stamped with the moment that its window is seen from, so it lies under the live gauge's sample of that time.
Predictions are counted beside whatever is asked for: so a revision is there wherever anything was predicted, also where
nothing else is defined any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from monitor.export.series import defined_values
from monitor.metrics.entries.counts import PREDICTIONS
from monitor.metrics.evaluation import Block
from monitor.metrics.metric import Metric, Subject
from monitor.names import BACKFILL_PREFIX

Series = tuple[tuple[str, str], ...]
"""Name (as `__name__`) and labels of a series but its revision, sorted; a label without a value is none."""

Samples = dict[Series, dict[int, float]]
"""Values by series and moment in milliseconds, moments ascending."""


class SeenMoment(Protocol):
    """A window as seen from a past moment."""

    @property
    def at_ms(self) -> int:
        """The moment."""
        ...

    @property
    def blocks(self) -> Sequence[Block]:
        """Values of the version's series."""
        ...


@dataclass(frozen=True, slots=True)
class Scope:
    """Which series a backfill speaks of.

    Attributes:
        model: Whose predictions.
        version: Of which of its versions.
        window: Value of the `window` label.
        metrics: Which metrics beside the count of predictions; tables have no series.
    """

    model: str
    version: str
    window: str
    metrics: Sequence[Metric]

    @property
    def gauges(self) -> list[Metric]:
        """The count of predictions, and its metrics that are gauges."""
        return [PREDICTIONS, *(metric for metric in self.metrics if metric.subject is not Subject.TABLE and metric != PREDICTIONS)]


def backfill_samples(scope: Scope, moments: Iterable[SeenMoment]) -> tuple[Samples, list[int]]:
    """Every defined value of the version at every moment, and the moments; moments ascend."""
    samples: Samples = {}
    stamps: list[int] = []
    whose = [scope.model, scope.version]
    names = [(metric, series_name(metric), metric.subject.labels) for metric in scope.gauges]
    for moment in moments:
        stamps.append(moment.at_ms)
        for metric, name, label_names in names:
            for labels, value in defined_values(metric, scope.window, moment.blocks):
                if labels[:2] == whose:
                    series = series_of({"__name__": name, **dict(zip(label_names, labels, strict=True))})
                    samples.setdefault(series, {})[moment.at_ms] = float(value)
    return samples, stamps


def series_name(metric: Metric) -> str:
    """Name of a metric's backfilled series."""
    return BACKFILL_PREFIX + metric.gauge


def series_of(labels: dict[str, str]) -> Series:
    """A series from its labels."""
    return tuple(sorted((name, value) for name, value in labels.items() if value))


def count(samples: Samples) -> int:
    """How many samples there are."""
    return sum(map(len, samples.values()))


def text(series: Series) -> str:
    """A series as Prometheus writes it, for messages."""
    labels = ",".join(f'{name}="{value}"' for name, value in series if name != "__name__")
    return f"{dict(series)['__name__']}{{{labels}}}"
