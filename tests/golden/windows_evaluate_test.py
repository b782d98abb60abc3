"""Windows at moments of real streams through `calmon evaluate --at`."""

from __future__ import annotations

from pathlib import Path

from tests.golden.comparison import compare
from tests.golden.conftest import Verdict
from tests.golden.product import evaluate
from tests.golden.stream import TOLERANCE, event_lines, events_file, load_moments


def test_evaluate_at(windows_path: Path, check_number: int, tmp_path: Path, known: frozenset[str], verdict: Verdict) -> None:
    moments = load_moments(windows_path)
    check = moments.checks[check_number]
    file = tmp_path / "first.ndjson"
    with file.open("wb") as first:
        first.writelines(event_lines(events_file(windows_path), stop=check.lines))
    words = ("--at", str(check.now_ms), "--window", f"{check.length_hours}h:{check.lag_hours}h")
    report = evaluate(file, moments.config, tmp_path, *words)
    assert report.account["records"] == check.lines
    assert report.models.keys() == check.models.keys()
    verdict(compare(check.want, report.flat(), check.models.keys(), known, TOLERANCE))
