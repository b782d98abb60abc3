"""The metric reference: the catalogue as Markdown, for people. `docs/metrics.md` is what it prints."""

from __future__ import annotations

from collections.abc import Iterator

from monitor.metrics.catalogue import FAMILIES, expanded
from monitor.metrics.metric import Family, Metric, Subject
from monitor.names import PREFIX

_INTRODUCTION = """# Metrics

Made by `calmon metrics` from the catalogue; a test fails where it is stale.

Every metric is a function of exact integer sums. `calmon evaluate` prints all of them; `/metrics` has the families that say so, and those
named in `evaluation.families`. A metric that is undefined is absent from `/metrics` and null in JSON; the column *counts* names the
metric that says on how much it rests, and below which count it is undefined. Where sums give an approximation, *error* names the metric
that bounds it; all others are exact up to the rounding of the fixed point.

Labels: `model`, `model_version`, `window`, `segment`, `value`. Segment and value are `all`, or a group attribute and its value; metrics
that compare the values of an attribute have the attribute as segment and `all` as value. Bins add `bin`, classes add `class`.
Names in brackets are those of `calmon evaluate` where they differ from the gauge's: `NAME[value]` for classes and group values,
`group_NAME[value]` for a group value's own calibration, `bins[i].NAME` for report bins.
"""

_FOR = {
    Subject.SERIES: "version",
    Subject.BIN: "report bin",
    Subject.POSITIVE: "positive class",
    Subject.CLASS: "class",
    Subject.OWN: "watched class",
    Subject.ATTRIBUTE: "attribute",
    Subject.VALUE: "group value",
    Subject.VERSION: "version",
    Subject.DRIFT: "version beside its reference",
    Subject.MIX: "attribute beside the reference",
    Subject.COMPARISON: "version beside the one before",
    Subject.TABLE: "version, rows",
}


def reference() -> str:
    """The whole reference."""
    return "\n".join([_INTRODUCTION, *(line for family in FAMILIES for line in _family(family))])


def _family(family: Family) -> Iterator[str]:
    yield f"## {family.name}\n"
    where = "On `/metrics` by default." if family.exported else f"On `/metrics` with `evaluation.families: [{family.name}]`."
    yield f"Serves to decide {family.serves}. {where}\n"
    yield "| metric | for | what it is | unit | counts | error |"
    yield "|---|---|---|---|---|---|"
    yield from (_row(metric) for metric in expanded(family))
    yield ""


def _row(metric: Metric) -> str:
    name = f"`{PREFIX}{metric.gauge}`" if metric.gauge else f"`{metric.name}` in `evaluate`"
    if metric.gauge and metric.name != metric.gauge:
        name += f" (`{metric.name}`)"
    subject = _FOR[metric.subject] + (", group value" if metric.groups else "")
    least = f" >= {metric.minimum}" if metric.minimum > 1 else ""
    counts = f"`{metric.count}`{least}" if metric.count else ""
    error = f"`{metric.bound}`" if metric.bound else ""
    return f"| {name} | {subject} | {metric.help} | {metric.unit} | {counts} | {error} |"
