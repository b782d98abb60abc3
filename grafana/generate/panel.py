"""Panels in the few shapes that the dashboards use: numbers, courses over time, and tables of what is there now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from grafana_foundation_sdk.builders import barchart, dashboard, prometheus, stat, table, timeseries, xychart
from grafana_foundation_sdk.builders import common as common_builders
from grafana_foundation_sdk.models import common
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models import xychart as xy
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

SOURCE = model.DataSourceRef(type_val="prometheus", uid="${datasource}")
"""The data source that the dashboard's variable chooses."""

FULL, HALF, THIRD, SIXTH = 24, 12, 8, 4
"""Widths, of Grafana's 24 columns."""

STAT_HEIGHT, COURSE_HEIGHT, TABLE_HEIGHT = 4, 8, 10


@dataclass(frozen=True, slots=True)
class Query:
    """One line of a panel, or one column of a table.

    Attributes:
        expression: PromQL.
        name: Legend, with Grafana's `{{label}}`; a column's title.
        unit: Grafana's name of the unit, where it is not the panel's.
        dashed: Whether the line is a bound or a floor beside the value.
    """

    expression: str
    name: str
    unit: str = ""
    dashed: bool = False


def number(title: str, text: str, query: Query, steps: Mapping[float, str] | None = None, unit: str = "none") -> stat.Panel:
    """A single number as of now, coloured by the steps that it has reached; the colour below all of them is green."""
    panel = (
        stat.Panel()
        .title(title)
        .description(text)
        .datasource(SOURCE)
        .unit(unit)
        .span(SIXTH)
        .height(STAT_HEIGHT)
        .graph_mode(common.BigValueGraphMode.NONE)
        .reduce_options(common_builders.ReduceDataOptions().calcs(["lastNotNull"]))
        .no_value("undefined")
        .with_target(_target(query, "A", instant=True))
    )
    if steps is None:
        return panel.color_mode(common.BigValueColorMode.NONE)
    levels = [model.Threshold(value=None, color="green"), *(model.Threshold(value=at, color=color) for at, color in steps.items())]
    colors = dashboard.ThresholdsConfig().mode(model.ThresholdsMode.ABSOLUTE).steps(levels)
    return panel.color_mode(common.BigValueColorMode.VALUE).thresholds(colors)


def course(title: str, text: str, queries: Sequence[Query], unit: str = "none", span: int = HALF) -> timeseries.Panel:
    """Lines over time. Gaps stay gaps: where a metric is undefined, no line is drawn across."""
    panel = (
        timeseries.Panel()
        .title(title)
        .description(text)
        .datasource(SOURCE)
        .unit(unit)
        .span(span)
        .height(COURSE_HEIGHT)
        .line_width(1)
        .fill_opacity(0)
        .show_points(common.VisibilityMode.AUTO)
        .span_nulls(False)
        .legend(_legend())
        .tooltip(_tooltip())
    )
    for number_, query in enumerate(queries):
        letter = _letter(number_)
        panel = panel.with_target(_target(query, letter, instant=False))
        properties = []
        if query.dashed:
            properties.append(model.DynamicConfigValue(id_val="custom.lineStyle", value={"fill": "dash", "dash": [6, 6]}))
        if query.unit:
            properties.append(model.DynamicConfigValue(id_val="unit", value=query.unit))
        if properties:
            panel = panel.override_by_query(letter, properties)
    return panel


def rows(title: str, text: str, by: Sequence[str], columns: Sequence[Query], links: Sequence[tuple[str, str]] = ()) -> table.Panel:
    """A table of what is there now: one row for each combination of labels, one column a query.

    Args:
        title: Its title.
        text: Its description.
        by: Labels that make a row; the queries keep no others.
        columns: What the columns show.
        links: Title and address of links in the cells of the last label.
    """
    panel = table.Panel().title(title).description(text).datasource(SOURCE).span(FULL).height(TABLE_HEIGHT)
    panel = panel.align(common.FieldTextAlignment.AUTO)
    for number_, query in enumerate(columns):
        panel = panel.with_target(_target(query, _letter(number_), instant=True, as_table=True))
        if query.unit:
            panel = panel.override_by_name(query.name, [model.DynamicConfigValue(id_val="unit", value=query.unit)])
    if links:
        shown = [{"title": name, "url": url, "targetBlank": False} for name, url in links]
        panel = panel.override_by_name(by[-1], [model.DynamicConfigValue(id_val="links", value=shown)])
    return panel.transformations(joined(by, columns))


def bars(title: str, text: str, by: str, columns: Sequence[Query], span: int = HALF) -> barchart.Panel:
    """Bars of what is there now, side by side for each value of a label."""
    panel = (
        barchart.Panel()
        .title(title)
        .description(text)
        .datasource(SOURCE)
        .span(span)
        .height(TABLE_HEIGHT)
        .unit("short")
        .fill_opacity(80)
        .x_field(by)
        .x_tick_label_rotation(-45)
        .legend(_legend())
        .tooltip(_tooltip())
        .transformations(joined([by], columns))
    )
    for number_, query in enumerate(columns):
        panel = panel.with_target(_target(query, _letter(number_), instant=True, as_table=True))
        if query.unit:
            panel = panel.override_by_name(query.name, [model.DynamicConfigValue(id_val="unit", value=query.unit)])
    return panel


def scatter(title: str, text: str, by: str, x: Query, line: Query, points: Sequence[Query]) -> xychart.Panel:
    """What is there now as points of an x and several y, one for each value of a label, beside a line over the same x."""
    queries = [x, line, *points]
    panel = (
        xychart.Panel()
        .title(title)
        .description(text)
        .datasource(SOURCE)
        .unit("percentunit")
        .min(0)
        .max(1)
        .span(HALF)
        .height(TABLE_HEIGHT)
        .show(xy.XYShowMode.POINTS)
        .mapping(xy.SeriesMapping.MANUAL)
        .series([_pairs(x.name, query.name) for query in queries[1:]])
        .legend(_legend())
        .tooltip(_tooltip())
        .transformations(joined([by], queries))
        .override_by_name(line.name, [model.DynamicConfigValue(id_val="custom.show", value=xy.XYShowMode.LINES)])
    )
    for number_, query in enumerate(queries):
        panel = panel.with_target(_target(query, _letter(number_), instant=True, as_table=True))
    return panel


def joined(by: Sequence[str], columns: Sequence[Query]) -> list[model.DataTransformerConfig]:
    """Tables of single queries joined to one, its columns named as the queries are."""
    names = {f"Value #{_letter(number_)}": query.name for number_, query in enumerate(columns)}
    if len(columns) == 1:
        names["Value"] = columns[0].name
    order = [*by, *names]
    return [
        model.DataTransformerConfig(id_val="merge", options={}),
        model.DataTransformerConfig(
            id_val="organize",
            options={
                "excludeByName": {"Time": True},
                "indexByName": {name: place for place, name in enumerate(order)},
                "renameByName": names,
            },
        ),
        model.DataTransformerConfig(id_val="sortBy", options={"fields": {}, "sort": [{"field": by[0], "desc": False}]}),
    ]


def _target(query: Query, letter: str, *, instant: bool, as_table: bool = False) -> prometheus.Dataquery:
    target = prometheus.Dataquery().ref_id(letter).datasource(SOURCE).expr(query.expression).legend_format(query.name)
    target = target.format(PromQueryFormat.TABLE if as_table else PromQueryFormat.TIME_SERIES)
    return target.instant() if instant else target.range()


def _letter(number_: int) -> str:
    """Names of a panel's queries, as Grafana gives them: A to Z."""
    return chr(ord("A") + number_)


def _pairs(x: str, y: str) -> xychart.XYSeriesConfig:
    def by_name(name: str) -> xychart.MatcherConfig:
        return xychart.MatcherConfig().id("byName").options(name)

    return (
        xychart.XYSeriesConfig()
        .name(xychart.XychartXYSeriesConfigName().fixed(y))
        .x(xychart.XychartXYSeriesConfigX().matcher(by_name(x)))
        .y(xychart.XychartXYSeriesConfigY().matcher(by_name(y)))
    )


def _legend() -> common_builders.VizLegendOptions:
    """A list below the panel."""
    return (
        common_builders.VizLegendOptions()
        .display_mode(common.LegendDisplayMode.LIST)
        .placement(common.LegendPlacement.BOTTOM)
        .show_legend(True)
    )


def _tooltip() -> common_builders.VizTooltipOptions:
    """All lines at the pointer's time, the largest first."""
    return common_builders.VizTooltipOptions().mode(common.TooltipDisplayMode.MULTI).sort(common.SortOrder.DESCENDING)
