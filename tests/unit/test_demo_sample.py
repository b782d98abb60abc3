"""The sample stream: the packaged events at other times, and nothing else changed."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from monitor import cli
from monitor.demo.replay import read_recording
from monitor.demo.sample import main, retimed
from monitor.demo.show import DATA

NAMES = ("flights.ndjson.gz", "employment.ndjson.gz")
LINES = 4_000


@pytest.fixture(scope="module")
def beginnings(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The first lines of the packaged streams, with some that are no event in between."""
    folder = tmp_path_factory.mktemp("sample")
    paths = []
    for name in NAMES:
        lines = gzip.decompress((DATA / name).read_bytes()).splitlines()[:LINES]
        lines[100:100] = [b"no JSON", b"[1]", b'{"type":"label","prediction_id":"lost"}']
        path = folder / name.removesuffix(".gz")
        path.write_bytes(b"\n".join(lines) + b"\n")
        paths.append(path)
    return paths


def evaluated(path: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert cli.main(["evaluate", "--format", "json", str(path)]) == 0
    report: dict[str, Any] = json.loads(capsys.readouterr().out)
    return report


@pytest.mark.parametrize(("number", "time_scale"), [(0, 600.0), (1, 1.0)])
def test_metrics_and_outcomes_are_those_of_the_stream(
    number: int, time_scale: float, beginnings: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    moved = tmp_path / "moved.ndjson"
    due = retimed([read_recording(beginnings[number])], 1_800_000_000_000, time_scale)
    moved.write_bytes(b"\n".join(one.line for one in due) + b"\n")
    there, here = evaluated(beginnings[number], capsys), evaluated(moved, capsys)
    assert there["models"]
    assert here["models"] == there["models"]
    assert here["account"] == there["account"]


def test_times_are_moved_and_pressed_together(beginnings: list[Path]) -> None:
    recordings = [read_recording(path) for path in beginnings]
    start_ms = 1_800_000_000_000
    due = list(retimed(recordings, start_ms, 600))
    assert len(due) == sum(len(one.lines) for one in recordings)
    assert due[0].at_ms == start_ms
    assert [one.at_ms for one in due] == sorted(one.at_ms for one in due)
    span_ms = max(int(one.arrival_ms[-1]) for one in recordings) - min(int(one.arrival_ms[0]) for one in recordings)
    assert due[-1].at_ms - start_ms == round(span_ms / 600)
    for at_ms, line in due:
        event = json.loads(line) if line.startswith(b"{") else {}
        assert event.get("predicted_at", event.get("labelled_at", at_ms)) <= at_ms


def test_runs_have_ids_of_their_own(beginnings: list[Path]) -> None:
    recordings = [read_recording(beginnings[0])]
    first, second = (
        {json.loads(due.line)["prediction_id"] for due in retimed(recordings, start, 1) if due.line[:1] == b"{"} for start in (1, 2)
    )
    assert first & second == {""}  # what had none has none


def test_lines_come_when_they_are_due_until_nobody_reads_them() -> None:
    code = [sys.executable, "-m", "monitor.demo.sample", "--time-scale", "3600"]
    with subprocess.Popen(code, stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        events = [json.loads(running.stdout.readline()) for _ in range(5)]
        now_ms = time.time() * 1000
        assert all(now_ms - 60_000 < event["predicted_at"] <= now_ms for event in events)
        running.stdout.close()
        assert running.wait(30) == 1


def test_a_scale_must_be_positive(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--time-scale", "0"])
    assert "must be greater than 0" in capsys.readouterr().err
