"""Whole real streams through `calmon evaluate`."""

from __future__ import annotations

from pathlib import Path

from tests.golden.comparison import APPROXIMATE, compare
from tests.golden.conftest import Verdict
from tests.golden.product import evaluate
from tests.golden.stream import events_file, load_expectation

WIDEST = 0.005
"""No rank metric of a real stream may be more uncertain than this."""


def test_whole_stream(expect_path: Path, tmp_path: Path, known: frozenset[str], verdict: Verdict) -> None:
    expectation = load_expectation(expect_path)
    report = evaluate(events_file(expect_path), expectation.config, tmp_path)
    assert report.account["records"] == expectation.events
    assert report.account["rejected"] == expectation.rejected
    assert report.models.keys() == expectation.models
    found = report.flat()
    verdict(compare(expectation.want, found, expectation.models, known, expectation.tolerance))
    bounds = {key: found[f"{key}_bound"] for key in expectation.want if any(part in key for part in APPROXIMATE)}
    assert {key: bound for key, bound in bounds.items() if bound is None or bound >= WIDEST} == {}
