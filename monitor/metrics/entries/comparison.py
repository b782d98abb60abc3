"""Entries of a version against the one before it on the same window."""

from __future__ import annotations

from collections.abc import Callable

from monitor.metrics.comparison import Comparison, Difference
from monitor.metrics.metric import Family, Metric, Subject
from monitor.statistics.fixed_point import F64


def _four(name: str, what: str, of: Callable[[Comparison], Difference], count: str) -> tuple[Metric, ...]:
    """A difference, the ends of its interval, and its z."""

    def field(suffix: str, text: str, function: Callable[[Comparison], F64], unit: str = "1") -> Metric:
        return Metric(f"{name}_difference{suffix}", f"{name}_difference{suffix}", text, function, unit, Subject.COMPARISON, count=count)

    return (
        field("", f"{what} minus that of the previous version on the same window.", lambda pair: of(pair).value),
        field("_lower", "Lower end of its interval at 95 %.", lambda pair: of(pair).lower),
        field("_upper", "Upper end of its interval at 95 %.", lambda pair: of(pair).upper),
        field("_z", "It in standard deviations of what it would be by chance.", lambda pair: of(pair).z, "sd"),
    )


COMPARISON = Family(
    "comparison",
    "whether a version is better or worse than the one before it on the same days, and by more than chance",
    False,
    (
        *_four("accuracy", "Accuracy", lambda pair: pair.accuracy, "labelled_used"),
        *_four("overconfidence", "Mean confidence minus accuracy", lambda pair: pair.overconfidence, "labelled_used"),
        *_four("selective_risk", "Share of errors among the accepted", lambda pair: pair.selective_risk, "labelled_accepted"),
        *_four("rejection_rate", "Share of rejected predictions", lambda pair: pair.rejection_rate, "decided"),
    ),
)
