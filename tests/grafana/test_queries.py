"""Every query of the dashboards runs on a real Prometheus that scraped the demo's streams, and returns data."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest

from monitor.metrics.catalogue import CATALOGUE
from monitor.names import BACKFILL_PREFIX, PREFIX
from tests.grafana.dashboards import Asked, filled, queries, series_names, variable_queries
from tests.grafana.replay import scraped
from tests.services.prometheus import PrometheusServer

CHOSEN = {
    "model": "flights",
    "model_version": "raw",
    "window": "100d",
    "early_window": "100d",
    "early_by": "2s",
    "segment": "group",
    "__range": "10m",
    "__interval": "10m",
    "__rate_interval": "1m",
}
OF_PROMETHEUS = {"ALERTS", "up", "scrape_duration_seconds"}


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrometheusServer]:
    with scraped(tmp_path_factory.mktemp("replay")) as running:
        yield running


@pytest.fixture(scope="module")
def process_series(prometheus: PrometheusServer) -> set[str]:
    """Series that calmon exports, of models or of the process."""
    return {labels["__name__"] for labels, _ in prometheus.query('{__name__=~"calmon_.+"}')}


def test_every_query_returns_data(prometheus: PrometheusServer) -> None:
    empty = []
    for asked in [*queries(), *variable_queries()]:
        answer = prometheus.query(filled(asked.expression, CHOSEN))
        if all(math.isnan(value) for _, value in answer):
            empty.append(asked)
    assert empty == []


def test_every_series_is_known(process_series: set[str]) -> None:
    known = process_series | {prefix + metric.gauge for metric in CATALOGUE for prefix in (PREFIX, BACKFILL_PREFIX)} | OF_PROMETHEUS
    unknown = [
        (asked.place, name) for asked in [*queries(), *variable_queries()] for name in series_names(asked.expression) if name not in known
    ]
    assert unknown == []


@pytest.mark.parametrize("expression", ["sum(calmon_no_such_gauge)", 'calmon_predictions{model="none"}'])
def test_an_empty_answer_is_seen(prometheus: PrometheusServer, expression: str) -> None:
    assert prometheus.query(filled(Asked("", expression).expression, CHOSEN)) == []
