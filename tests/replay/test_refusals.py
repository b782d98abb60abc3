"""What a replay refuses, in one line that says what to do; and it leaves everything as it was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from monitor.app import Engine
from monitor.cli import main
from monitor.clock import ManualClock
from monitor.config_file import load_config
from tests.recovery.stream import make_stream, write_lines
from tests.replay.scratch import configure

LINES = [line.value for line in make_stream(dense=60, sparse=40)]
KAFKA = {"kafka": {"bootstrap_servers": ["127.0.0.1:1"], "start_timeout": "1s"}}


class Stage:
    """A folder with a configuration and a file, and the command on them."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self.file = write_lines(folder / "events.ndjson", LINES)
        self._capsys = capsys

    def config(self, name: str = "calmon", defaults: dict[str, Any] | None = None, **sections: Any) -> Path:
        path = configure(self.folder, defaults or {}, **sections)
        return path.rename(path.with_stem(name))

    def run(self, into: str | Path, *words: str | Path, config: Path | None = None) -> str:
        """What it said; the exit code in front."""
        given = config or self.config()
        code = main(["backfill", "replay", "-c", str(given), "--into", str(self.folder / into), *map(str, words)])
        out, err = self._capsys.readouterr()
        return f"{code}: {out if code == 0 else err}"

    def content(self, into: str) -> dict[str, bytes]:
        return {str(path): path.read_bytes() for path in sorted((self.folder / into).rglob("*")) if path.is_file()}


@pytest.fixture
def stage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Stage:
    return Stage(tmp_path, capsys)


@pytest.mark.parametrize(("into", "how"), [("live", "is"), ("live/in/it", "lies in"), (".", "holds")])
def test_the_live_state_is_refused(stage: Stage, into: str, how: str) -> None:
    said = stage.run(into, stage.file)
    assert said.startswith(f"1: calmon: --into {stage.folder / into} {how} the state.directory of the configuration")
    assert not (stage.folder / "live").exists()


def test_a_link_to_the_live_state_is_refused(stage: Stage) -> None:
    (stage.folder / "live").mkdir()
    (stage.folder / "link").symlink_to(stage.folder / "live")
    assert " is the state.directory of the configuration" in stage.run("link", stage.file)


def test_a_state_that_is_no_replay_is_refused_and_left_alone(stage: Stage) -> None:
    config = stage.config("served", source={"files": [str(stage.file)]}, state={"directory": str(stage.folder / "other")})
    Engine(load_config(config), ManualClock(0)).close()
    before = stage.content("other")
    said = stage.run("other", stage.file)
    assert said.startswith("1: calmon: ")
    assert "other is not empty and holds no replay of its own" in said
    assert "--into" in said
    assert stage.content("other") == before


def test_a_folder_with_something_else_is_refused(stage: Stage) -> None:
    (stage.folder / "photos").mkdir()
    (stage.folder / "photos" / "one.jpg").write_bytes(b"x")
    assert "photos is not empty" in stage.run("photos", stage.file)
    assert list(stage.content("photos").values()) == [b"x"]


def test_a_file_is_no_directory(stage: Stage) -> None:
    assert "cannot use the directory" in stage.run("events.ndjson", stage.file)


@pytest.mark.parametrize(
    ("defaults", "sections", "named"),
    [
        ({"bins": 20}, {}, "defaults"),
        ({"nll_clip": 0.5}, {}, "defaults"),
        ({"classes": ["no", "yes"]}, {}, "defaults"),
        ({}, {"state": {"horizon": "9d"}}, "state.history, state.horizon"),
        ({}, {"models": {"m": {"groups": ["region"]}}}, "models.m"),
    ],
)
def test_a_replay_goes_on_under_its_own_settings_only(stage: Stage, defaults: dict[str, Any], sections: dict[str, Any], named: str) -> None:
    assert stage.run("scratch", stage.file).startswith("0: ")
    before = stage.content("scratch")
    said = stage.run("scratch", stage.file, config=stage.config("changed", defaults, **sections))
    assert said.startswith("1: ")
    assert f"holds a replay under other settings ({named} changed since): name another directory with --into" in said
    assert stage.content("scratch") == before
    same = stage.config("same", models={"m": {"min_group_count": 7}}, windows=[{"name": "7d", "length": "7d"}])
    assert "nothing to do" in stage.run("scratch", stage.file, config=same)  # neither changes a sum


def test_a_replay_goes_on_with_its_own_files_only(stage: Stage) -> None:
    more = write_lines(stage.folder / "more.ndjson", LINES[:5])
    third = write_lines(stage.folder / "third.ndjson", LINES[:5])
    assert stage.run("scratch", stage.file).startswith("0: ")
    assert f"holds a replay of the files {stage.file}: give the same again" in stage.run("scratch", more, stage.file)
    assert stage.run("scratch", stage.file, more).startswith("0: ")
    assert f"already holds records of {more}: name it too" in stage.run("scratch", stage.file, third)
    assert "holds a replay of the files" in stage.run("scratch", config=stage.config("topics", source=KAFKA))


def test_a_damaged_note_of_what_it_is_is_refused_unless_there_is_nothing_yet(stage: Stage) -> None:
    scratch = stage.folder / "scratch"
    scratch.mkdir()
    (scratch / "replay.json").write_bytes(b'{"reads":')
    assert stage.run("scratch", stage.file).startswith("0: ")
    (scratch / "replay.json").write_bytes(b'{"reads":')
    assert "replay.json is damaged" in stage.run("scratch", stage.file)
    (scratch / "replay.json").write_text(json.dumps({"reads": {"type": "files", "files": []}, "settings": {}, "format": 99}))
    assert "has format 99, this calmon reads format 1" in stage.run("scratch", stage.file)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["no-such.ndjson"], "1: calmon: {folder}/no-such.ndjson: no such file"),
        (["."], "1: calmon: {folder}: is a directory; name the files in it"),
        (["empty.ndjson"], "1: calmon: nothing to replay: {folder}/empty.ndjson: no bytes in it"),
        (
            ["labels.csv"],
            "  FILE {folder}/labels.csv: events are read from NDJSON; labels from CSV or Parquet are taken in by `calmon backfill lab",
        ),
        (["events.ndjson", "L.CSV.gz"], "  FILE {folder}/L.CSV.gz: events are read from NDJSON"),
        (["labels.parquet"], "  FILE {folder}/labels.parquet: events are read from NDJSON"),
        (["events.ndjson", "events.ndjson"], "is named more than once among the input files"),
    ],
)
def test_files_that_cannot_be_read(stage: Stage, words: list[str], said: str) -> None:
    (stage.folder / "empty.ndjson").touch()
    assert said.format(folder=stage.folder) in stage.run("scratch", *(stage.folder / word for word in words))
    assert not (stage.folder / "scratch").exists()


@pytest.mark.parametrize(
    ("words", "source", "said"),
    [
        ([], {}, "FILE: name event files to read, or give a configuration with source.kafka"),
        (["-"], {}, "FILE -: standard input cannot be read again after a stop"),
        (["events.ndjson", "--since", "earliest"], KAFKA, "--since is for topics: files are read whole"),
        (["--since", "2026-06-01T00:00:00"], KAFKA, "--since 2026-06-01T00:00:00: naive_time"),
        (["--since", "yesterday"], KAFKA, "--since yesterday: bad_time: earliest, RFC 3339 with an offset"),
        (["--until", "earliest"], KAFKA, "--until earliest: bad_time: now, RFC 3339"),
        (["--since", "other:0:5"], KAFKA, "or TOPIC:PARTITION:OFFSET with topic predictions or labels"),
        (["--since", "earliest", "--since", "labels:0:5"], KAFKA, "--since: give one time, or one TOPIC:PARTITION:OFFSET"),
        (["--since", "2026-06-02T00:00:00Z", "--until", "2026-06-01T00:00:00Z"], KAFKA, "--until must lie after --since"),
    ],
)
def test_words_that_cannot_be_understood(stage: Stage, words: list[str], source: dict[str, Any], said: str) -> None:
    answer = stage.run("scratch", *words, config=stage.config(source=source))
    assert answer.startswith("2: calmon: command line: 1 fault(s)")
    assert said in answer
    assert not (stage.folder / "scratch").exists()


def test_a_broker_that_is_away_is_named(stage: Stage) -> None:
    said = stage.run("scratch", config=stage.config(source=KAFKA))
    assert said.startswith("1: calmon: kafka: cannot reach 127.0.0.1:1 within 1 s")
    assert not (stage.folder / "scratch").exists()
