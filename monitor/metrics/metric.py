"""What a metric is: one entry that says everything about it, which exposition, `evaluate`, documents and tests read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache
from typing import Any

from monitor.names import BIN_LABEL, CLASS_LABEL, CLASS_SEGMENT, ONE_VS_REST_SEGMENT, SERIES_LABELS


class Subject(Enum):
    """What a metric is computed for; it decides what its function takes, what it returns and which labels its series have."""

    SERIES = "a version, and its group values where the entry says so: Sums to one value a row"
    BIN = "each report bin of a version: Sums to one value a row and bin"
    POSITIVE = "the positive class's own probability: Sums to one value a row"
    CLASS = "each class, as predicted and as true: Sums of its counts to one value a row"
    OWN = "each watched class's own probability: Sums to one value a row"
    ATTRIBUTE = "a group attribute: GroupTable to one value an attribute"
    VALUE = "each value of a group attribute among the others: GroupTable to one value an attribute and value"
    VERSION = "a version with all its sums: Version to one value, or to a value and its bound"
    DRIFT = "a version beside its reference: Drift to one value; nothing without a reference"
    MIX = "a group attribute beside the reference: Histograms of its values to one value; nothing without a reference"
    COMPARISON = "a version beside the one before it: Comparison to one value"
    TABLE = "a version: Version to rows of named numbers; in `evaluate` alone"

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels of its series."""
        if self is Subject.BIN:
            return (*SERIES_LABELS, BIN_LABEL)
        return (*SERIES_LABELS, CLASS_LABEL) if self in (Subject.CLASS, Subject.OWN) else SERIES_LABELS


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric, which is one exported gauge.

    Attributes:
        name: Its key in `evaluate` and in the golden cases; for `Subject.BIN` the key inside each bin.
        gauge: Exported name, without the prefix.
        help: What it is, for people who read `/metrics`.
        function: From what the subject says to a value or values; NaN where undefined.
        unit: `ratio` (a share), `events`, `nats`, `sd` (standard deviations), `score` (unit of the OOD score), or `1` for other numbers.
        subject: What it is computed for.
        groups: Whether group values have it too.
        positive: Whether the positive class has it too, as `positive_NAME`.
        count: Name of the metric that counts what it rests on; undefined where that is below `minimum`. Empty for counts themselves.
        minimum: Least such count.
        bounded: Whether the function gives a value and the bound of its error, which then is a metric too: `NAME_bound`.
        reads: Reserved segments that it reads, of those that its subject does not say.
        bound: Name of the metric that bounds its error, where that is more than the fixed point's rounding.
    """

    name: str
    gauge: str
    help: str
    function: Callable[..., Any]
    unit: str = "ratio"
    subject: Subject = Subject.SERIES
    groups: bool = False
    positive: bool = False
    count: str = "labelled_used"
    minimum: int = 1
    bounded: bool = False
    reads: tuple[str, ...] = ()
    bound: str = ""

    def __hash__(self) -> int:
        # Dictionaries of values by metric are made for every window: the name tells nearly all apart, equality the rest.
        return hash(self.name)

    def halves(self) -> tuple[Metric, ...]:
        """The metric, and the one that bounds its error where the function gives both."""
        if not self.bounded:
            return (self,)
        # The two halves of a version are asked for one after the other.
        function = lru_cache(maxsize=1)(self.function)
        stem, ratio, _ = self.gauge.partition("_ratio")
        bound = f"{self.name}_bound"
        text = f"Bound of the error of {self.name}, from the same sums."
        value = replace(self, function=lambda version: function(version).value, bounded=False, bound=bound)
        error = replace(self, name=bound, gauge=f"{stem}_bound{ratio}", help=text, function=lambda version: function(version).bound)
        return value, replace(error, bounded=False)

    def of_positive(self) -> Metric:
        """The same metric of the positive class."""

        def named(name: str) -> str:
            return f"positive_{name}" if name else ""

        text = f"Of the positive class's probability: {self.help[0].lower()}{self.help[1:]}"
        return replace(
            self,
            name=named(self.name),
            gauge=named(self.gauge),
            help=text,
            subject=Subject.POSITIVE,
            groups=False,
            positive=False,
            count=named(self.count),
            bound=named(self.bound),
        )


@dataclass(frozen=True, slots=True)
class Family:
    """Metrics that answer one question; they are exported together or not at all.

    Attributes:
        name: As in `evaluation.families`.
        serves: The decision that they serve.
        exported: Whether they are on `/metrics` unless the configuration says otherwise; all families are in `evaluate`.
        metrics: Their entries.
    """

    name: str
    serves: str
    exported: bool
    metrics: Sequence[Metric]


_OF_SUBJECT = {Subject.CLASS: CLASS_SEGMENT, Subject.OWN: ONE_VS_REST_SEGMENT, Subject.POSITIVE: ONE_VS_REST_SEGMENT}


def compares(metrics: Sequence[Metric]) -> bool:
    """Whether metrics tell a version from the one before it."""
    return any(metric.subject is Subject.COMPARISON for metric in metrics)


def segments_read(metrics: Sequence[Metric]) -> frozenset[str]:
    """Reserved segments that metrics read."""
    read = [name for metric in metrics for name in metric.reads]
    return frozenset([*read, *(_OF_SUBJECT[metric.subject] for metric in metrics if metric.subject in _OF_SUBJECT)])
