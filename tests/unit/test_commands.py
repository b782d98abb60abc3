"""The commands, in this process: what they print, and how they refuse."""

from __future__ import annotations

import gzip
import hashlib
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from monitor.cli import main
from tests.recovery.stream import HOUR_MS, MINUTE_MS, START_MS, encode, label, make_stream, prediction, write_lines

LINES = [line.value for line in make_stream(dense=60, sparse=40)]


class Called:
    """A command that ran: its exit code and what it wrote."""

    def __init__(self, capsys: pytest.CaptureFixture[str], *words: str | Path) -> None:
        try:
            self.code = main([str(word) for word in words])
        except SystemExit as error:  # argparse's own way out
            self.code = int(error.code or 0)
        self.out, self.err = capsys.readouterr()

    def last_line(self) -> str:
        """Last line of standard output."""
        return self.out.splitlines()[-1]

    def json(self) -> Any:
        """Standard output as JSON."""
        return json.loads(self.out)


@pytest.fixture
def events(tmp_path: Path) -> Path:
    """A file of events."""
    return write_lines(tmp_path / "events.ndjson", LINES)


def digest_of(capsys: pytest.CaptureFixture[str], *files: Path) -> str:
    """The digest that `evaluate` prints."""
    called = Called(capsys, "evaluate", *files, "--format", "json", "--digest")
    assert (called.code, called.err) == (0, "")
    return called.last_line()


def test_evaluate_prints_a_table(capsys: pytest.CaptureFixture[str], events: Path) -> None:
    called = Called(capsys, "evaluate", events)
    assert called.code == 0
    assert f"{len(LINES)} records" in called.out
    assert "m@v1" in called.out
    assert "m@v2" in called.out
    assert "ece_floor" in called.out
    assert "nan" not in called.out


def test_evaluate_prints_json_of_everything(capsys: pytest.CaptureFixture[str], events: Path) -> None:
    report = Called(capsys, "evaluate", events, "--format", "json").json()
    account = report["account"]
    assert account["records"] == len(LINES)
    outcomes = account["outcomes"]
    assert sum(outcomes.values()) == len(LINES)
    assert account["predictions"] == outcomes["prediction.applied"]
    assert set(report["models"]) == {"m@v1", "m@v2"}
    assert report["basis"]["files"] == [str(events)]
    assert report["models"]["m@v1"]["ece"] is not None


def test_evaluate_of_one_window_sees_only_its_predictions(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    inside, outside = START_MS + 30 * MINUTE_MS, START_MS + 3 * HOUR_MS
    stream = [prediction("a", inside, 0.9), prediction("b", outside, 0.9), label("a", outside, "yes")]
    path = write_lines(tmp_path / "events.ndjson", [encode(event) for event in stream])
    for at in ("2026-06-01T02:00:00Z", "2026-06-01T04:00:00+02:00", str(START_MS + 2 * HOUR_MS)):
        report = Called(capsys, "evaluate", path, "--at", at, "--window", "1h:1h", "--format", "json").json()
        assert report["models"]["m@v1"]["predictions"] == 1
        assert report["models"]["m@v1"]["labelled"] == 1
    report = Called(capsys, "evaluate", path, "--at", "2026-07-01T00:00:00Z", "--window", "1h", "--format", "json").json()
    assert report["models"] == {}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--window", "24h:48h"], "--at and --window go together"),
        (["--at", "2026-06-01T00:00:00Z"], "--at and --window go together"),
        (["--at", "2026-06-01T00:00:00", "--window", "1h"], "--at 2026-06-01T00:00:00: naive_time"),
        (["--at", "yesterday", "--window", "1h"], "--at yesterday: bad_time"),
        (["--at", "1780272000", "--window", "1h"], "epoch milliseconds from 2000 to 2100"),
        (["--at", "2026-06-01T00:00:00Z", "--window", "90s"], "whole minutes"),
        (["--at", "2026-06-01T00:00:00Z", "--window", "0h"], "longer than 0"),
        (["--at", "2026-06-01T00:00:00Z", "--window", "soon"], "--window soon"),
        (["--at", "2026-06-01T00:00:00Z", "--window", "1h:x"], "--window 1h:x"),
    ],
)
def test_evaluate_refuses_a_moment_it_does_not_understand(
    capsys: pytest.CaptureFixture[str], events: Path, words: Sequence[str], said: str
) -> None:
    called = Called(capsys, "evaluate", events, *words)
    assert (called.code, called.out) == (2, "")
    assert said in called.err
    assert "Traceback" not in called.err


def test_the_digest_does_not_depend_on_how_the_records_are_filed(
    capsys: pytest.CaptureFixture[str], events: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = digest_of(capsys, events)
    assert len(expected) == 64
    (tmp_path / "events.ndjson.gz").write_bytes(gzip.compress(events.read_bytes()))
    assert digest_of(capsys, tmp_path / "events.ndjson.gz") == expected
    first = write_lines(tmp_path / "first.ndjson", LINES[:77])
    (tmp_path / "second.ndjson.gz").write_bytes(gzip.compress(b"\n".join(LINES[77:])))
    assert digest_of(capsys, first, tmp_path / "second.ndjson.gz") == expected
    # The order of two files changes nothing but which of two conflicting records came first.
    unique = [line.value for line in make_stream(dense=60, sparse=40) if line.refused is None]
    whole = write_lines(tmp_path / "whole.ndjson", unique)
    halves = [write_lines(tmp_path / "a.ndjson", unique[::2]), write_lines(tmp_path / "b.ndjson", unique[1::2])]
    assert digest_of(capsys, *halves) == digest_of(capsys, *reversed(halves)) == digest_of(capsys, whole)


def test_the_dump_has_the_digest_as_its_sha256(capsys: pytest.CaptureFixture[str], events: Path, tmp_path: Path) -> None:
    called = Called(capsys, "evaluate", events, "--digest", "--dump", tmp_path / "dump")
    assert called.code == 0
    written = (tmp_path / "dump").read_bytes()
    assert called.last_line() == hashlib.sha256(written).hexdigest()
    hour, model, *_ = json.loads(written.splitlines()[0])
    assert (hour % HOUR_MS, model) == (0, "m")


def test_a_dump_that_cannot_be_written_is_one_line(capsys: pytest.CaptureFixture[str], events: Path, tmp_path: Path) -> None:
    called = Called(capsys, "evaluate", events, "--dump", tmp_path / "missing" / "dump")
    assert called.code == 1
    assert called.err == f"calmon: cannot write the dump {tmp_path / 'missing' / 'dump'}: No such file or directory\n"


def test_evaluate_uses_models_and_leaves_everything_else_of_a_configuration_alone(
    capsys: pytest.CaptureFixture[str], events: Path, tmp_path: Path
) -> None:
    quarantine = tmp_path / "quarantine.ndjson"
    quarantine.write_bytes(b'{"of": "the running service"}\n')
    config = tmp_path / "calmon.yaml"
    config.write_text(
        f"source: {{files: [nowhere.ndjson], follow: true}}\nstate: {{directory: {tmp_path / 'state'}, horizon: 1h}}\n"
        f"quarantine: {{file: {quarantine}}}\nmodels: {{m: {{edges: [0.5, 1], groups: [region], confidence_threshold: 0.75}}}}\n"
    )
    called = Called(capsys, "evaluate", events, "-c", config, "--format", "json")
    assert called.code == 0
    model = called.json()["models"]["m@v1"]
    assert len(model["bins"]) == 1
    assert "rejection_rate[region=eu]" in model
    assert quarantine.read_bytes() == b'{"of": "the running service"}\n'
    assert not (tmp_path / "state").exists()
    assert called.json()["basis"]["late_pairs"] == {}


def test_evaluate_leaves_no_files_behind(
    capsys: pytest.CaptureFixture[str], events: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    Called(capsys, "evaluate", events)
    Called(capsys, "evaluate", tmp_path / "missing.ndjson")
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "said"), [("missing.ndjson", "no such file"), (".", "is a directory"), ("broken.ndjson.gz", "broken.ndjson.gz")]
)
def test_evaluate_of_a_file_that_cannot_be_read_is_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str, said: str
) -> None:
    (tmp_path / "broken.ndjson.gz").write_bytes(b"this is no gzip")
    called = Called(capsys, "evaluate", tmp_path / name)
    assert (called.code, called.out) == (1, "")
    assert said in called.err
    assert len(called.err.splitlines()) == 1


def test_evaluate_of_an_empty_file_says_that_there_was_nothing(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    empty = write_lines(tmp_path / "empty.ndjson", [])
    called = Called(capsys, "evaluate", empty, "--format", "json")
    assert called.json()["account"]["records"] == 0
    assert called.json()["models"] == {}
    assert digest_of(capsys, empty) == hashlib.sha256(b"").hexdigest()
    assert Called(capsys, "evaluate", empty).code == 0


def test_check_says_what_would_be_watched_and_starts_nothing(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    config = tmp_path / "calmon.yaml"
    config.write_text(
        f"source: {{files: [{tmp_path / 'e.ndjson'}], follow: true}}\nstate: {{directory: {tmp_path / 'state'}, horizon: none}}\n"
        "windows: [{name: day, length: 24h, lag: 48h}]\nmodels: {m: {bins: 10, groups: [region]}}\n"
    )
    called = Called(capsys, "check", "-c", config)
    assert called.code == 0
    for words in ("valid", "day (24h, lag 48h)", "nothing expires", "e.ndjson (followed)", "model m: 10 bins, groups region", "20000"):
        assert words in called.out.replace("1d", "24h").replace("2d", "48h"), words
    assert sorted(path.name for path in tmp_path.iterdir()) == ["calmon.yaml"]


def test_check_names_every_fault(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    config = tmp_path / "calmon.yaml"
    config.write_text("http: {port: many}\nstat: {}\nmodels: {m: {bin: 3}}\n")
    called = Called(capsys, "check", "-c", config)
    assert (called.code, called.out) == (2, "")
    assert "3 fault(s)" in called.err
    for path in ("http.port", "stat", "models.m.bin"):
        assert path in called.err


def test_state_digest_of_what_is_no_state_makes_none(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for directory in (tmp_path / "missing", tmp_path):
        called = Called(capsys, "state", "digest", directory)
        assert called.code == 1
        assert called.err == f"calmon: there is no calmon state in {directory}: name the configured state.directory\n"
    assert list(tmp_path.iterdir()) == []


def test_schema_prints_json_schema(capsys: pytest.CaptureFixture[str]) -> None:
    called = Called(capsys, "schema")
    assert called.code == 0
    schema = json.loads(called.out)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert set(schema["$defs"]) == {"PredictionMessage", "LabelMessage"}


@pytest.mark.parametrize("words", [[], ["evaluate"], ["run"], ["nothing"], ["evaluate", "x", "--format", "xml"], ["state"]])
def test_wrong_usage_exits_with_2(capsys: pytest.CaptureFixture[str], words: Sequence[str]) -> None:
    called = Called(capsys, *words)
    assert (called.code, called.out) == (2, "")
    assert "usage: calmon" in called.err


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ([], "evaluate"),
        (["run"], "--config FILE"),
        (["evaluate"], "--window LENGTH:LAG"),
        (["demo"], "--port"),
        (["check"], "--config FILE"),
        (["schema"], "usage: calmon schema"),
        (["state"], "digest"),
        (["state", "digest"], "DIR"),
    ],
)
def test_every_command_explains_itself(capsys: pytest.CaptureFixture[str], command: Sequence[str], said: str) -> None:
    called = Called(capsys, *command, "--help")
    assert (called.code, called.err) == (0, "")
    assert said in called.out


def test_a_command_waits_for_no_library_that_it_may_not_need() -> None:
    program = "import sys, monitor.cli; print(*{'kafka', 'pyarrow', 'scipy.interpolate', 'scipy.optimize'} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"
