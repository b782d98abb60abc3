"""`calmon history` at the command line: the same numbers in every format, and one clear line for what cannot be answered."""

from __future__ import annotations

import csv
import io
import json
import math
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from monitor.history.question import MOST_MOMENTS
from tests.golden.stream import PACKAGED
from tests.history.service import MINUTE_MS, calmon, read_to_end, write_config
from tests.recovery.stream import HOUR_MS, START_MS, encode, label, prediction, write_lines

TIMES = ("--window", "2h", "--step", "1h", "--from", "2026-06-01T00:00:00Z", "--to", "2026-06-01T05:00:00Z")
GROUPS = {"region": "eu, north"}


def events() -> list[bytes]:
    """An hour with labels of both outcomes, an hour without any, and three hours of nothing."""
    lines = []
    for number in range(60):
        at_ms = START_MS + number * 2 * MINUTE_MS
        lines.append(encode(prediction(f"a{number}", at_ms, 0.5 + number % 25 / 50, groups=GROUPS if number % 2 else {"region": "us"})))
        if at_ms < START_MS + HOUR_MS:
            lines.append(encode(label(f"a{number}", at_ms + 1000, "yes" if number % 3 else "no")))
    return lines


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Configuration of a stopped service."""
    folder = tmp_path_factory.mktemp("service")
    models = {"m": {"groups": ["region"], "confidence_threshold": 0.7, "positive_class": "yes", "min_group_count": 5}}
    path = write_config(folder, write_lines(folder / "events.ndjson", events()), models)
    read_to_end(path)
    return path


def ask(service: Path, *words: str) -> str:
    """What it prints."""
    code, out, errors = calmon("history", "m", "v1", "-c", service, *TIMES, *words)
    assert (code, errors) == (0, "")
    return out


def refusal(service: Path, *words: str | Path, code: int = 1) -> str:
    """What it refuses with, on standard error."""
    found, out, errors = calmon("history", *words, "-c", service)
    assert (found, out) == (code, "")
    assert "Traceback" not in errors
    return errors


def rows_of_csv(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_csv_has_a_row_for_each_number_with_its_counts(service: Path) -> None:
    rows = rows_of_csv(ask(service, "--format", "csv", "--metrics", "accuracy,bins.accuracy,class_recall,positive_ece"))
    assert {row["at"] for row in rows} == {f"2026-06-01T0{hour}:00:00Z" for hour in (1, 2, 3)}
    first = [row for row in rows if row["at"] == "2026-06-01T02:00:00Z"]
    assert {(row["window_start"], row["window_end"]) for row in first} == {("2026-06-01T00:00:00Z", "2026-06-01T02:00:00Z")}
    assert {(row["model"], row["model_version"], row["segment"], row["value"]) for row in first} == {("m", "v1", "all", "all")}
    assert {(row["predictions"], row["labelled"], row["completeness"]) for row in first} == {("60", "30", "0.5")}
    (accuracy,) = [row for row in first if row["metric"] == "accuracy"]
    assert (accuracy["class"], accuracy["bin"], float(accuracy["number"])) == ("", "", 20 / 30)
    assert {row["class"] for row in first if row["metric"] == "class_recall"} == {"no", "yes"}
    bins = [row for row in first if row["metric"] == "bins.accuracy"]
    assert len(bins) == 15
    assert [row["number"] for row in bins if row["bin"].startswith("0-")] == [""]
    unlabelled = [row for row in rows if row["at"] == "2026-06-01T03:00:00Z" and row["metric"] == "accuracy"]
    assert [(row["number"], row["predictions"], row["completeness"]) for row in unlabelled] == [("", "30", "0.0")]


def test_group_values_have_their_own_counts(service: Path) -> None:
    rows = rows_of_csv(ask(service, "--format", "csv", "--segment", "region"))
    first = [row for row in rows if row["at"] == "2026-06-01T01:00:00Z"]
    assert {(row["segment"], row["value"], row["predictions"]) for row in first} == {("region", "us", "15"), ("region", "eu, north", "15")}
    one = rows_of_csv(ask(service, "--format", "csv", "--segment", "region=eu, north"))
    assert one == [row for row in rows if row["value"] == "eu, north"]
    compared = rows_of_csv(ask(service, "--format", "csv", "--segment", "region", "--metrics", "groups_used,rejection_rate_p_holm"))
    counts = {(row["metric"], row["value"], row["predictions"]) for row in compared if row["at"] == "2026-06-01T02:00:00Z"}
    of_values = {("rejection_rate_p_holm", "us", "30"), ("rejection_rate_p_holm", "eu, north", "30")}
    assert counts == {("groups_used", "all", "60"), *of_values}


@pytest.mark.parametrize("segment", ["all", "region", "region=us"])
def test_parquet_and_json_say_what_csv_says(service: Path, segment: str, tmp_path: Path) -> None:
    words = ["--segment", segment, "--metrics", "all"]
    rows = rows_of_csv(ask(service, *words, "--format", "csv"))
    file = tmp_path / "history.parquet"
    assert ask(service, *words, "--format", "parquet", "-o", str(file)) == ""
    table = pyarrow.parquet.read_table(file)
    assert table.schema.field("at").type == pyarrow.timestamp("ms", tz="UTC")
    assert table.schema.field("predictions").type == pyarrow.int64()
    assert [plain(row) for row in table.to_pylist()] == [plain(row) for row in rows]
    assert list(tmp_path.iterdir()) == [file]

    answer = json.loads(ask(service, *words, "--format", "json"))
    assert (answer["model"], answer["model_version"], answer["window"]) == ("m", "v1", "2h:0s")
    assert [moment["at"] for moment in answer["moments"]] == [f"2026-06-01T0{hour}:00:00Z" for hour in range(6)]
    for moment in answer["moments"]:
        of_csv = {row["metric"]: row for row in rows if row["at"] == moment["at"]}
        if not of_csv:
            assert moment | {"at": None, "window_start": None, "window_end": None, "metrics": None} == dict.fromkeys(moment)
        elif segment != "region":
            assert str(moment["labelled"]) == of_csv["accuracy"]["labelled"]
            name = "accuracy" if segment == "all" else "group_accuracy[region=us]"
            assert moment["metrics"][name] == (float(of_csv["accuracy"]["number"]) if of_csv["accuracy"]["number"] else None)


def plain(row: dict[str, Any]) -> dict[str, Any]:
    """A row with its times as text and its numbers as numbers, empty ones None."""
    found = dict(row)
    for name in ("number", "predictions", "labelled", "completeness"):
        found[name] = None if row[name] in (None, "") else float(row[name])
        assert found[name] is None or math.isfinite(found[name])
    for name in ("at", "window_start", "window_end"):
        if isinstance(row[name], datetime):
            found[name] = row[name].astimezone(UTC).isoformat().replace("+00:00", "Z")
    return found


def test_a_table_is_for_people_and_shows_moments_without_a_value(service: Path) -> None:
    lines = ask(service, "--metrics", "accuracy,class_true").splitlines()
    assert lines[0].split() == ["at", "segment", "predictions", "labelled", "completeness", "accuracy", "class_true[no]", "class_true[yes]"]
    assert lines[1].split() == ["2026-06-01T00:00:00Z", "-", *["-"] * 6]
    assert lines[2].split() == ["2026-06-01T01:00:00Z", "all", "30", "30", "1", "0.666667", "10", "20"]
    assert lines[4].split() == ["2026-06-01T03:00:00Z", "all", "30", "0", "0", "-", "0", "0"]
    assert len({len(line) for line in lines}) == 1


def test_a_file_is_there_whole_or_as_it_was(service: Path, tmp_path: Path) -> None:
    file = tmp_path / "history.csv"
    words = ["-o", str(file), "--format", "csv"]
    assert ask(service, *words) == ""
    first = file.read_text()
    assert rows_of_csv(first) == rows_of_csv(ask(service, "--format", "csv"))
    assert "more than 16 columns" in refusal(service, "m", "v1", *TIMES, "--metrics", "all", "-o", file)
    assert file.read_text() == first
    assert list(tmp_path.iterdir()) == [file]
    assert "cannot write" in refusal(service, "m", "v1", *TIMES, "-o", tmp_path / "none" / "history.csv")


def test_what_is_not_there_is_named_with_what_is(service: Path) -> None:
    assert "no prediction of model x in the state; there are m" in refusal(service, "x", "v1", *TIMES)
    assert "no prediction of version v7 of model m in the state; there are v1" in refusal(service, "m", "v7", *TIMES)
    assert "no group attribute shop; there are region" in refusal(service, "m", "v1", *TIMES, "--segment", "shop")
    assert "with region=asia; there are eu, north, us" in refusal(service, "m", "v1", *TIMES, "--segment", "region=asia")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--metrics", "acuracy"], "--metrics acuracy: there is no such metric; did you mean accuracy"),
        (["--metrics", "ece,zzzzzzzzzz"], "--metrics zzzzzzzzzz: there is no such metric; calmon metrics lists them all"),
        (["--metrics", "rc", "--format", "csv"], "--metrics rc: it is a table: ask for --format json"),
        (["--metrics", "csr", "--segment", "region"], "--metrics csr: it is not known of group values; there are predictions, labelled"),
        (["--metrics", "rejection_rate_p_holm"], "--metrics rejection_rate_p_holm: it is about values of a group attribute"),
        (["--segment", "region="], "--segment region=: all, an attribute NAME for each of its values, or NAME=VALUE"),
        (["--window", "2h:x"], "--window 2h:x: must be a whole number with a unit"),
        (["--window", "7h:30m"], "must be whole hours"),
        (["--step", "0"], "--step 0: the window 2h is made of minutes: the finest step is 1m"),
        (["--step", "59s"], "--step 59s: the window 2h is made of minutes: the finest step is 1m"),
        (["--window", "24h", "--step", "30m"], "--step 30m: the window 24h is made of hours: the finest step is 1h"),
        (["--from", "2026-06-01T06:00:00Z"], "--from 2026-06-01T06:00:00Z: it is after --to 2026-06-01T05:00:00Z"),
        (["--from", "2026-06-01T06:00:00"], "--from 2026-06-01T06:00:00: "),
        (["--from", "2020-06-01T06:00:00Z", "--step", "1m"], f"more than {MOST_MOMENTS}: take a longer step or a shorter time"),
        (["--format", "parquet"], "--format parquet: it is no text for a terminal: name a file with -o FILE"),
    ],
)
def test_words_that_ask_for_nothing_are_explained(service: Path, words: list[str], said: str) -> None:
    assert said in refusal(service, "m", "v1", *TIMES, *words, code=2)


def test_parquet_without_its_library_says_what_to_install(service: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)  # as if it were not installed
    words = ["--format", "parquet", "-o", str(tmp_path / "a.parquet")]
    assert "Parquet needs pyarrow: pip install 'calmon[parquet]'" in refusal(service, "m", "v1", *TIMES, *words)


def test_without_a_state_nothing_is_made(tmp_path: Path) -> None:
    code, _, errors = calmon("history", "m", "v1", *TIMES, "--state", tmp_path / "none")
    assert code == 1
    assert f"there is no calmon state in {tmp_path / 'none'}" in errors
    assert not (tmp_path / "none").exists()


def test_a_step_finer_than_the_panes_kept_names_the_finest(tmp_path: Path) -> None:
    path = write_config(tmp_path, PACKAGED / "employment.ndjson.gz", {"employment": {}})
    read_to_end(path)
    words = ["employment", "iso", "--window", "2h", "--from", "2026-06-05T00:00:00Z", "--to", "2026-06-05T06:00:00Z"]
    message = refusal(path, *words, "--step", "30m")
    assert "the window at 2026-06-05T00:30:00Z begins at 2026-06-04T22:30:00Z" in message
    assert "panes are kept by the minute from 2026-06-21T" in message
    assert "there the finest step is 1h" in message
    code, out, _ = calmon("history", *words, "--step", "1h", "-c", path)
    assert (code, len(out.splitlines())) == (0, 8)
