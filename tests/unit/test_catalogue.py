"""The catalogue: complete entries, names that do not clash, and a reference that is not stale."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from monitor import cli
from monitor.metrics.catalogue import CATALOGUE, FAMILIES, expanded, exported
from monitor.metrics.metric import Metric, Subject, segments_read
from monitor.metrics.reference import reference
from monitor.names import RESERVED_SEGMENTS
from tests.golden.product import EVERY_KEY, evaluate

ROOT = Path(__file__).parents[2]
UNITS = {"ratio", "events", "nats", "sd", "score", "1"}
NAMES = {(metric.subject, metric.name) for metric in CATALOGUE}
BY_NAME = {metric.name: metric for metric in CATALOGUE if metric.subject is not Subject.BIN}


def test_the_reference_is_what_calmon_metrics_prints(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["metrics"]) == 0
    assert (ROOT / "docs" / "metrics.md").read_text("utf-8") == capsys.readouterr().out == reference() + "\n"


def test_names_and_gauges_are_unique() -> None:
    assert [name for name, count in Counter((metric.subject, metric.name) for metric in CATALOGUE).items() if count > 1] == []
    assert [name for name, count in Counter(metric.gauge for metric in CATALOGUE if metric.gauge).items() if count > 1] == []
    assert len({family.name for family in FAMILIES}) == len(FAMILIES)


@pytest.mark.parametrize("metric", CATALOGUE, ids=lambda metric: f"{metric.subject.name.lower()}-{metric.name}")
def test_an_entry_says_everything(metric: Metric) -> None:
    assert metric.unit in UNITS
    assert metric.help.endswith(".")
    assert set(metric.reads) <= set(RESERVED_SEGMENTS)
    if metric.subject is Subject.TABLE:
        assert metric.gauge == ""
    else:
        assert re.fullmatch(r"[a-z][a-z0-9_]*", metric.gauge)
        assert (metric.unit == "ratio") <= metric.gauge.endswith(("_ratio", "_sd", "_se"))
        assert not metric.gauge.endswith(("_total", "_count", "_bucket", "_sum", "_info"))
    for other in (metric.count, metric.bound):
        assert not other or other in BY_NAME or (metric.subject, other) in NAMES


def test_what_a_tick_computes_is_what_is_exported_or_asked_for() -> None:
    usual = exported()
    assert {metric for family in FAMILIES if family.exported for metric in expanded(family)} == set(usual)
    assert set(exported(("ranks",))) - set(usual) == {
        metric for family in FAMILIES if family.name == "ranks" for metric in expanded(family)
    }
    assert segments_read(usual) <= {"__one_vs_rest__"}


def test_a_metric_is_undefined_where_its_count_is_too_small_and_only_there(tmp_path: Path) -> None:
    """A version without a label: counts are there, and say why the rest is null."""
    file = tmp_path / "events.ndjson"
    head = '"type":"prediction","model":"m","model_version":"1","predicted_at":1780000000000'
    file.write_text("".join(f'{{{head},"prediction_id":"{i}","probabilities":{{"a":0.75,"b":0.25}}}}\n' for i in range(3)), "utf-8")
    found = evaluate(file, EVERY_KEY, tmp_path).models["m@1"]
    assert found["predictions"] == 3
    for name, value in found.items():
        metric = BY_NAME.get(name)
        if metric is None or metric.subject is Subject.TABLE or not metric.count:
            continue
        rests_on = found.get(metric.count)
        if rests_on is not None and rests_on < metric.minimum:
            assert value is None, name
