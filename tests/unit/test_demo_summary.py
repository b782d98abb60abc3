"""What the demo shows, and the configuration that it shows it with."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from monitor import commands
from monitor.app import Engine
from monitor.clock import ManualClock
from monitor.config import SourceConfig
from monitor.config_file import load_config
from monitor.demo.replay import ReplaySource, read_recording
from monitor.demo.show import CONFIG, DATA
from monitor.demo.summary import Row, latest_windows, lesson, progress_line, summary_lines, summary_rows, summary_table
from monitor.duration import DAY_MS
from monitor.pipeline.tick import Snapshot

VERSIONS = ["employment iso", "employment raw", "flights iso", "flights raw"]
WINDOWS = ["1d", "7d", "7d-mature", "100d"]


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    """The fifth day of the demo."""
    config = load_config(CONFIG, {})
    state = config.state.model_copy(update={"directory": str(tmp_path_factory.mktemp("demo") / "state")})
    config = config.model_copy(update={"state": state, "source": SourceConfig()})
    recordings = [read_recording(DATA / name) for name in ("flights.ndjson.gz", "employment.ndjson.gz")]
    clock = ManualClock(int(recordings[0].arrival_ms[0]) + 5 * DAY_MS)
    engine = Engine(config, clock, ReplaySource(recordings, clock))
    engine.runner.start()
    while engine.runner.step(timeout_s=0.0):
        pass
    snapshot = engine.evaluator.tick()
    engine.close()
    return snapshot


def rendered(rows: list[Row], width: int = 80) -> str:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(summary_table(rows))
    file = console.file
    assert isinstance(file, io.StringIO)
    return file.getvalue()


def test_all_four_versions_have_every_number_in_every_window(snapshot: Snapshot) -> None:
    rows = summary_rows(snapshot)
    assert [(row.window, f"{row.model} {row.version}") for row in rows] == [(window, name) for window in WINDOWS for name in VERSIONS]
    needed = {"ece", "ece_floor", "csr", "p_risk", "ood_acceptance_rate", "rejection_rate", "completeness"}
    for row in rows:
        assert needed <= set(row.values), row
    share = {(row.window, f"{row.model} {row.version}"): row.values["completeness"] for row in rows}
    for name in VERSIONS:
        assert share["1d", name] < share["7d", name] < share["7d-mature", name] <= 1


def test_the_table_fits_80_columns_with_nothing_cut(snapshot: Snapshot) -> None:
    text = rendered(summary_rows(snapshot))
    assert max(map(len, text.splitlines())) <= 80
    assert "…" not in text
    for window in WINDOWS:
        assert f"\n{window} " in text
    assert len(text.splitlines()) == 1 + len(WINDOWS) * (1 + len(VERSIONS))


def test_undefined_numbers_are_dashes_and_left_out_of_sentences() -> None:
    row = Row("1d", "flights", "iso", {"predictions": 3.0, "completeness": 0.0, "csr": 0.5})
    assert rendered([row]).splitlines()[-1].split() == ["flights", "iso", "3", "0%", "-", "-", "-", "-", "0.50", "-", "-", "-"]
    assert summary_lines([row]) == ["  1d flights iso: 3 predictions, 0% labelled, CSR 0.50"]


@pytest.mark.parametrize(("lines", "windows"), [(20, WINDOWS), (19, WINDOWS[1:]), (15, WINDOWS[1:]), (5, WINDOWS[3:]), (0, WINDOWS[3:])])
def test_the_shortest_windows_give_way_on_a_small_terminal(snapshot: Snapshot, lines: int, windows: list[str]) -> None:
    rows = latest_windows(summary_rows(snapshot), lines)
    assert list(dict.fromkeys(row.window for row in rows)) == windows
    assert len(rows) == len(windows) * len(VERSIONS)


def test_nothing_to_show_is_shown_as_nothing() -> None:
    assert summary_rows(Snapshot(0)) == []
    assert latest_windows([], 10) == []
    assert lesson([]).startswith("What to look for")


def test_the_lesson_is_told_only_where_the_numbers_say_it(snapshot: Snapshot) -> None:
    rows = [row for row in summary_rows(snapshot) if row.window == "100d"]
    told = lesson(rows)
    iso = next(row.values for row in rows if (row.model, row.version) == ("employment", "iso"))
    assert told.startswith("What it shows: employment iso has a low ECE")
    assert f"{iso['csr_clipped_errors']:.0f} answers" in told
    assert iso["csr"] > 100
    for change in ({"csr_clipped_errors": 0.0}, {"ece": 0.9}, {"csr": 1.0}, {"labelled_used": 10.0}):
        changed = [
            Row(row.window, row.model, row.version, {**row.values, **change} if row.version == "iso" else row.values) for row in rows
        ]
        assert lesson(changed).startswith("What to look for"), change
    assert lesson([row for row in rows if row.version == "iso"]).startswith("What to look for")


def test_the_progress_line_fits(snapshot: Snapshot) -> None:
    start_ms = snapshot.now_ms - 5 * DAY_MS
    line = progress_line(snapshot, start_ms, 97 * DAY_MS + 1, 92_934)
    assert "(day 5.0 of 98)" in line
    assert f"{snapshot.account.consumed:,} of 92,934 records" in line
    assert len(line) < 80


def test_the_configuration_is_one_to_copy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "demo.yaml").write_bytes(CONFIG.read_bytes())
    monkeypatch.chdir(tmp_path)
    said = "\n".join(commands.check("demo.yaml"))
    assert "demo.yaml: valid" in said
    assert "model flights: 15 bins, groups group" in said
    assert "7d-mature (7d, lag 2d)" in said


def test_the_packaged_streams_name_their_origin() -> None:
    files = {path.name for path in DATA.iterdir()}
    assert files >= {*load_config(CONFIG, {}).source.files, "demo.yaml", "ATTRIBUTION.md"}
    text = (DATA / "ATTRIBUTION.md").read_text()
    assert "nycflights13" in text
    assert "CC0" in text
    assert "Apache-2.0" in text
