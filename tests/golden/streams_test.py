"""Whole real streams through `calmon evaluate`."""

from __future__ import annotations

from pathlib import Path

from tests.golden.comparison import compare
from tests.golden.conftest import Verdict
from tests.golden.product import evaluate
from tests.golden.stream import events_file, load_expectation


def test_whole_stream(expect_path: Path, tmp_path: Path, known: frozenset[str], verdict: Verdict) -> None:
    expectation = load_expectation(expect_path)
    report = evaluate(events_file(expect_path), expectation.config, tmp_path)
    assert report.account["records"] == expectation.events
    assert report.account["rejected"] == expectation.rejected
    assert report.models.keys() == expectation.models
    verdict(compare(expectation.want, report.flat(), expectation.models, known, expectation.tolerance))
