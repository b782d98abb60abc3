"""The services' own promises: they find faults, they scrape, they leave nothing behind."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from monitor.export.http import MetricsServer, Pages
from tests.services.prometheus import PrometheusServer, ServiceMissingError, check_metrics, find_program

GOOD = b"# HELP calmon_example_ratio An example.\n# TYPE calmon_example_ratio gauge\ncalmon_example_ratio 0.25\n"


def test_clean_exposition_passes() -> None:
    check_metrics(GOOD)


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        (b"calmon_example_ratio 0.25\n", "no help text"),
        (GOOD.replace(b"_ratio", b"_sum"), "_sum"),
        (GOOD + b"nonsense", "text format parsing error|error while linting"),
    ],
)
def test_any_finding_fails(text: bytes, finding: str) -> None:
    with pytest.raises(AssertionError, match=finding):
        check_metrics(text)


def test_missing_program_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ServiceMissingError, match=re.escape("deploy/local/install-services.sh")):
        find_program("promtool")


def test_prometheus_scrapes_a_metrics_server() -> None:
    pages = Pages(metrics=lambda: GOOD, status_page=lambda: b"", ready=lambda: (True, "ready"), healthy=lambda: (True, "alive"))
    server = MetricsServer("127.0.0.1", 0, pages)
    server.start()
    try:
        with PrometheusServer([f"127.0.0.1:{server.port}"]) as prometheus:
            prometheus.wait_for("up == 1")
            (labels, value), *others = prometheus.query("calmon_example_ratio")
            assert (labels["job"], labels["instance"], value) == ("calmon", f"127.0.0.1:{server.port}", 0.25)
            assert others == []
            assert prometheus.query("absent_series") == []
            with pytest.raises(AssertionError, match="bad_data"):
                prometheus.query("sum(")
    finally:
        server.close()
