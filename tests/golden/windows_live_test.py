"""Windows at moments of real streams, live: what `/metrics` says once the first lines are read and the clock is set."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from tests.golden.comparison import compare
from tests.golden.conftest import Verdict
from tests.golden.product import process_gauge, read_page
from tests.golden.stream import TOLERANCE, events_file, load_moments
from tests.golden.windows_live import engine_pages, service_pages

Pages = Callable[[Path], dict[str, bytes]]


@pytest.fixture(scope="module")
def of_engine(tmp_path_factory: pytest.TempPathFactory) -> Pages:
    """Pages of an engine, one run a stream."""
    return cache(lambda path: engine_pages(load_moments(path), events_file(path), tmp_path_factory.mktemp("engine")))


@pytest.fixture(scope="module")
def of_service(tmp_path_factory: pytest.TempPathFactory) -> Pages:
    """Pages of a running service, one run a stream."""
    return cache(lambda path: service_pages(load_moments(path), events_file(path), tmp_path_factory.mktemp("service")))


def check_page(pages: Pages, path: Path, number: int, known: frozenset[str], verdict: Verdict) -> None:
    check = load_moments(path).checks[number]
    page = pages(path)[check.name]
    assert process_gauge(page, "records_consumed_total") == check.lines
    assert process_gauge(page, "clock_seconds") == check.now_ms / 1000
    models = read_page(page).get(check.window, {})
    assert models.keys() == check.models.keys()
    got = {f"{model}.{name}": value for model, metrics in models.items() for name, value in metrics.items()}
    verdict(compare(check.want, got, models.keys(), known, TOLERANCE))


def test_engine(windows_path: Path, check_number: int, of_engine: Pages, known: frozenset[str], verdict: Verdict) -> None:
    check_page(of_engine, windows_path, check_number, known, verdict)


def test_service(windows_path: Path, check_number: int, of_service: Pages, known: frozenset[str], verdict: Verdict) -> None:
    check_page(of_service, windows_path, check_number, known, verdict)
