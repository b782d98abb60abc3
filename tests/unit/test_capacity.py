"""What happens at the limits: loud refusals, never a wrong number."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from monitor.app import Engine
from monitor.clock import ManualClock
from monitor.config_file import parse_config
from monitor.errors import CapacityError
from monitor.metrics.evaluation import merge_cells
from monitor.pipeline.report import account_report
from monitor.statistics import series
from monitor.statistics.fixed_point import SAFE_EVENTS
from monitor.statistics.layout import Layout, report_edges
from monitor.statistics.pane import HOUR, PaneSums, cell_sums, merge
from monitor.statistics.series import SeriesKey, SeriesTable
from monitor.windows.running import RunningWindow, SlotSpace, WindowSpec

START_MS = 1_780_272_000_000


def counts(predictions: int) -> PaneSums:
    return cell_sums(0, np.zeros(1, dtype=np.int64), np.array([predictions], dtype=np.int64))


def test_a_pane_with_too_many_predictions_is_refused_before_its_sums_can_overflow() -> None:
    assert merge([counts(SAFE_EVENTS - 1), counts(1)]).values.tolist() == [SAFE_EVENTS]
    with pytest.raises(CapacityError, match="more than 1073741824 predictions in one pane"):
        merge([counts(SAFE_EVENTS), counts(1)])


def test_a_window_with_too_many_predictions_is_refused_and_says_which() -> None:
    layout = Layout(report_edges(15, None), None, None, True, None, (), 200)
    table = SeriesTable({layout.fingerprint: layout})
    table.slot(SeriesKey("m", layout.fingerprint, "1", "all", "all"))
    window = RunningWindow(WindowSpec("24h", 24 * HOUR.pane_ms, 0), SlotSpace(table))
    window.advance(24 * HOUR.pane_ms, lambda level, first, end: counts(SAFE_EVENTS), 0)
    assert window.view(table, ()) is not None
    window.apply(HOUR, counts(1))
    with pytest.raises(CapacityError, match="window 24h: a series has more than"):
        window.view(table, ())


def test_shards_that_have_too_many_predictions_together_are_refused() -> None:
    key = SeriesKey("m", "layout", "1", "all", "all")
    half = np.array([SAFE_EVENTS // 2], dtype=np.int64)
    assert merge_cells([([key], [half]), ([key], [half])])[key].tolist() == [SAFE_EVENTS]
    with pytest.raises(CapacityError, match="model m version 1: more than 1073741824 predictions"):
        merge_cells([([key], [half]), ([key], [half]), ([key], [np.ones(1, dtype=np.int64)])])


def test_versions_beyond_the_limit_are_refused_and_known_ones_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(series, "MAX_VERSIONS", 2)
    versions = ["1", "2", "3", "1"]
    events = [
        {
            "type": "prediction",
            "prediction_id": str(number),
            "model": "m",
            "model_version": version,
            "predicted_at": START_MS + number,
            "confidence": 0.9,
            "predicted_class": "a",
        }
        for number, version in enumerate(versions)
    ]
    path = tmp_path / "events.ndjson"
    path.write_text("".join(json.dumps(event) + "\n" for event in events), encoding="utf-8")
    text = json.dumps({"source": {"files": [str(path)]}, "state": {"directory": str(tmp_path / "state")}})
    engine = Engine(parse_config(text, "test", {}), ManualClock(START_MS))
    engine.runner.start()
    while not engine.source.exhausted:
        engine.runner.step()
    report = account_report(engine.shard.account)
    engine.close()
    assert report["predictions"] == 3
    assert report["rejected"] == {"too_many_versions": 1}
