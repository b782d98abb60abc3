"""What the dashboards have in common: names, variables, and the links between them."""

from __future__ import annotations

from collections.abc import Sequence

from grafana_foundation_sdk.builders import dashboard
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models.common import TimeZoneBrowser

from grafana.generate.panel import SOURCE

FLEET, VERSION, PIPELINE = "calmon-fleet", "calmon-version", "calmon-pipeline"
"""Unique ids: addresses of the dashboards, ``/d/ID``, and names of their files."""

TAG = "calmon"
RUNBOOKS = "https://runbooks.example/calmon"
"""Where runbooks are read until somebody says where; the rules have the same address."""

DATASOURCE_UID = "calmon-prometheus"
"""Fixed id of the data source that is provisioned."""

_TITLES = {FLEET: "calmon: fleet", VERSION: "calmon: one model version", PIPELINE: "calmon: pipeline health"}
_PREDICTIONS = 'calmon_predictions{segment="all"'


def frame(uid: str, text: str, variables: Sequence[Builder[model.VariableModel]]) -> dashboard.Dashboard:
    """A dashboard without panels."""
    board = (
        dashboard.Dashboard(_TITLES[uid])
        .uid(uid)
        .description(text)
        .tags([TAG])
        .timezone(TimeZoneBrowser)
        .time("now-7d", "now")
        .refresh("1m")
        .tooltip(model.DashboardCursorSync.CROSSHAIR)
        .readonly()
        .with_variable(_datasource())
    )
    for variable in variables:
        board = board.with_variable(variable)
    for other in (one for one in _TITLES if one != uid):
        board = board.link(_link(_TITLES[other], f"/d/{other}", include=True))
    return board.link(_link("Runbooks", "${runbooks}", include=False)).with_variable(_runbooks())


def model_variable(*, several: bool) -> dashboard.QueryVariable:
    """Which model, or which models."""
    variable = _labels("model", "Model", f"{_PREDICTIONS}}}", "model", "Models with predictions in a window.")
    return _with_all(variable) if several else variable


def version_variable() -> dashboard.QueryVariable:
    """Which version of the model."""
    text = "Versions of the model with predictions in a window; a retired one is found by choosing a time when it was there."
    return _labels("model_version", "Version", f'{_PREDICTIONS},model="$model"}}', "model_version", text)


def window_variable() -> dashboard.QueryVariable:
    """Which of the configured windows."""
    text = "Configured windows (`windows` in calmon's configuration). Judge a version by one whose lag outlasts the delay of the labels."
    return _labels("window", "Window", f"{_PREDICTIONS}}}", "window", text).current(_option("24h"))  # the mature one of the defaults


def early_variables() -> tuple[dashboard.QueryVariable, dashboard.CustomVariable]:
    """The window of the same length with less lag, and how much less: together they show what was known then."""
    text = "A window as long as the chosen one, with less lag: what it showed is what was known then."
    shift = "Lag of the chosen window minus lag of the earlier one: so long ago the earlier one covered the same predictions."
    lags = ["48h", "0s", "5m", "1h", "6h", "24h", "72h", "7d", "14d", "30d"]
    return (
        _labels("early_window", "Earlier window", f"{_PREDICTIONS}}}", "window", text),
        dashboard.CustomVariable("early_by").label("Earlier by").description(shift).values(",".join(lags)).current(_option(lags[0])),
    )


def segment_variable() -> dashboard.QueryVariable:
    """Which group attribute."""
    series = 'calmon_predictions{model="$model",model_version="$model_version",segment!="all"}'
    return _labels("segment", "Group attribute", series, "segment", "Group attributes of the model's configuration.")


def _labels(name: str, label: str, series: str, of: str, text: str) -> dashboard.QueryVariable:
    query: dict[str, object] = {"qryType": 1, "query": f"label_values({series},{of})", "refId": f"variable-{name}"}
    return (
        dashboard.QueryVariable(name)
        .label(label)
        .description(text)
        .datasource(SOURCE)
        .query(query)
        .refresh(model.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(model.VariableSort.ALPHABETICAL_ASC)
    )


def _with_all(variable: dashboard.QueryVariable) -> dashboard.QueryVariable:
    return variable.multi(True).include_all(True).all_value(".*").current(model.VariableOption(True, "All", "$__all"))


def _datasource() -> dashboard.DatasourceVariable:
    current = model.VariableOption(selected=True, text="calmon Prometheus", value=DATASOURCE_UID)
    text = "A Prometheus that scrapes calmon."
    return dashboard.DatasourceVariable("datasource").label("Data source").description(text).type("prometheus").current(current)


def _runbooks() -> dashboard.TextBoxVariable:
    text = "Where the runbooks of deploy/runbooks can be read, as an address; the link Runbooks leads there."
    return dashboard.TextBoxVariable("runbooks").label("Runbooks at").description(text).default_value(RUNBOOKS)


def _option(value: str) -> model.VariableOption:
    return model.VariableOption(selected=True, text=value, value=value)


def _link(title: str, url: str, *, include: bool) -> dashboard.DashboardLink:
    link = dashboard.DashboardLink(title).type(model.DashboardLinkType.LINK).url(url)
    return link.include_vars(True).keep_time(True) if include else link.target_blank(True)
