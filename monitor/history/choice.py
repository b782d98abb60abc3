"""What of a moment is wanted: which metrics, of the whole version or of values of a group attribute."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from monitor.errors import ConfigError
from monitor.metrics.catalogue import CATALOGUE
from monitor.metrics.evaluation import Block
from monitor.metrics.metric import Metric, Subject
from monitor.names import ALL_VALUE, CLASS_SEGMENT, ONE_VS_REST_SEGMENT
from monitor.request.moment import COMMAND_LINE
from monitor.statistics.series import SeriesKey

EVERY = "all"
USUAL = ("accuracy", "overconfidence", "ece", "ece_floor", "brier", "csr", "coverage", "selective_risk", "rejection_rate")
"""Metrics that are shown where none is named, as far as the segment has them."""

_OF_WHOLE = (ALL_VALUE, CLASS_SEGMENT, ONE_VS_REST_SEGMENT)
_OF_ATTRIBUTE = (Subject.ATTRIBUTE, Subject.MIX)


def metric_name(metric: Metric) -> str:
    """How a metric is asked for; those of report bins have the names of others, and `bins.` before them."""
    return f"bins.{metric.name}" if metric.subject is Subject.BIN else metric.name


METRICS = {metric_name(metric): metric for metric in CATALOGUE}
PREDICTIONS, LABELLED = METRICS["predictions"], METRICS["labelled"]


@dataclass(frozen=True, slots=True)
class Choice:
    """Which values are wanted.

    Attributes:
        metrics: Of which metrics.
        attribute: Of which group attribute's values; None for the version as a whole.
        value: Of which one of them; None for all.
    """

    metrics: tuple[Metric, ...]
    attribute: str | None = None
    value: str | None = None

    @property
    def computed(self) -> tuple[Metric, ...]:
        """What has to be computed: predictions and labels stand beside every value."""
        return tuple(dict.fromkeys((PREDICTIONS, LABELLED, *self.metrics)))

    def of(self, blocks: Sequence[Block]) -> list[Block]:
        """What of a moment's blocks is wanted."""
        found = []
        for block in blocks:
            values = {metric: numbers for metric, numbers in block.values.items() if metric in self.metrics}
            part = replace(block, values=values).only(partial(self._wants, block.subject)) if values else None
            if part is not None:
                found.append(part)
        return found

    def _wants(self, subject: Subject, key: SeriesKey) -> bool:
        if self.attribute is None:
            return key.segment in _OF_WHOLE or subject in _OF_ATTRIBUTE
        return key.segment == self.attribute and self.value in (None, key.value)


def chosen(names: str | None, segment: str, tables: bool) -> Choice:
    """What `--metrics` and `--segment` ask for.

    Args:
        names: Names with commas between them, `all`, or None for the usual ones.
        segment: `all`, `NAME` or `NAME=VALUE`.
        tables: Whether metrics that are tables can be shown.

    Raises:
        ConfigError: There is no such metric, or it is not known of the segment.
    """
    attribute, equals, value = segment.partition("=")
    if not attribute or (equals and not value):
        raise ConfigError([f"--segment {segment}: all, an attribute NAME for each of its values, or NAME=VALUE"], COMMAND_LINE)
    whole = segment == ALL_VALUE
    asked = Choice((), None if whole else attribute, value or None)
    if names is None or names == EVERY:
        able = [metric for metric in CATALOGUE if _known_of(metric, asked) and (tables or metric.subject is not Subject.TABLE)]
        return replace(asked, metrics=tuple(metric for metric in able if names == EVERY or metric_name(metric) in USUAL))
    faults = [fault for name in names.split(",") if (fault := _fault(name, asked, tables))]
    if faults:
        raise ConfigError(faults, COMMAND_LINE)
    return replace(asked, metrics=tuple(METRICS[name] for name in dict.fromkeys(names.split(","))))


def gauges(names: str) -> Choice:
    """Metrics by name, with all series that they have as gauges: of the version and of group values.

    Raises:
        ConfigError: There is no such metric, or it is no gauge.
    """
    faults = []
    for name in names.split(","):
        if name not in METRICS:
            faults.append(_unknown(name))
        elif METRICS[name].subject is Subject.TABLE:
            faults.append(f"--metrics {name}: it is a table, which has no series")
    if faults:
        raise ConfigError(faults, COMMAND_LINE)
    return Choice(tuple(METRICS[name] for name in dict.fromkeys(names.split(","))))


def _unknown(name: str) -> str:
    close = difflib.get_close_matches(name, METRICS, n=4, cutoff=0.5)
    hint = f"did you mean {', '.join(close)}?" if close else "calmon metrics lists them all"
    return f"--metrics {name}: there is no such metric; {hint}"


def _fault(name: str, asked: Choice, tables: bool) -> str:
    """Why a metric cannot be shown; empty if it can."""
    metric = METRICS.get(name)
    if metric is None:
        return _unknown(name)
    if metric.subject is Subject.TABLE and not tables:
        return f"--metrics {name}: it is a table: ask for --format json"
    if not _known_of(metric, asked):
        if asked.attribute is None:
            return f"--metrics {name}: it is about values of a group attribute: name one with --segment"
        able = ", ".join(metric_name(one) for one in CATALOGUE if _known_of(one, asked))
        return f"--metrics {name}: it is not known of group values; there are {able}"
    return ""


def _known_of(metric: Metric, asked: Choice) -> bool:
    if asked.attribute is None:
        return metric.subject is not Subject.VALUE
    of_value = metric.groups or metric.subject is Subject.VALUE
    return of_value or (asked.value is None and metric.subject in _OF_ATTRIBUTE)
