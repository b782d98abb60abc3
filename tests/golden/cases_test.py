"""Golden cases through `calmon evaluate`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.golden.case import load_case
from tests.golden.comparison import compare, family
from tests.golden.conftest import HERE, Verdict
from tests.golden.product import arguments, evaluate, parse_report


def test_case(case_path: Path, tmp_path: Path, known: frozenset[str], verdict: Verdict) -> None:
    case = load_case(case_path)
    if not case.events:
        verdict(compare(case.want, case.found, (), {family(key, ()) for key in case.found}, case.tolerance))
        return
    file = tmp_path / "events.ndjson"
    file.write_bytes(case.lines())
    report = evaluate(file, case.config, tmp_path)
    assert report.account["records"] == len(case.events)
    verdict(compare(case.want, case.settled(report.flat()), case.models, known, case.tolerance))


def test_the_installed_command_says_the_same(tmp_path: Path) -> None:
    case = load_case(HERE / "cases" / "p21_rejects.json")
    file = tmp_path / "events.ndjson"
    file.write_bytes(case.lines())
    command = [sys.executable, "-m", "monitor", *arguments(file, case.config, tmp_path)]
    finished = subprocess.run(command, check=True, capture_output=True, cwd=tmp_path, timeout=60)
    assert parse_report(finished.stdout.decode()) == evaluate(file, case.config, tmp_path)


def test_numbers_that_json_cannot_write_are_sent_as_bare_tokens(tmp_path: Path) -> None:
    path = tmp_path / "case.json"
    numbers = [{"$float": "nan"}, {"$float": "inf"}, {"$float": "-inf"}]
    content = {"name": "c", "arrays": {"confidence": numbers, "correct": [1, 1, 0]}, "expect": {}}
    path.write_text(json.dumps({**content, "tolerance": {"default": 0, "patterns": []}}), "utf-8")
    sent = load_case(path).lines().splitlines()[::2]
    assert [line.rpartition(b": ")[2] for line in sent] == [b"NaN}", b"Infinity}", b"-Infinity}"]
