"""`calmon reference`: what is stored, listed and shown, and what is refused."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.errors import StateError
from monitor.state.references import References
from monitor.state.rocks import RocksStore
from monitor.statistics.layout import Layout
from monitor.statistics.reference import Reference
from monitor.statistics.segment import ALL
from monitor.statistics.series import SeriesKey
from tests.recovery.stream import DAY_MS, HOUR_MS, START_MS, make_stream, write_lines
from tests.unit.test_commands import Called

LAYOUT = Layout((0.0, 0.5, 1.0), None, -0.5, True, 0.8, ("region",), 200)
WHOLE = SeriesKey("m", LAYOUT.fingerprint, "v1", "all", "all")
INT64 = st.integers(-(2**63), 2**63 - 1)


def reference(**changes: Any) -> Reference:
    cell = np.zeros(LAYOUT.width(ALL), dtype=np.int64)
    cell[[0, 2, 5, -1]] = 9, 7, 2**62, -3
    return replace(Reference("spring", 0, "m", "v1", LAYOUT, START_MS, START_MS + DAY_MS, START_MS, "a file", {WHOLE: cell}), **changes)


@pytest.fixture
def events(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "events.ndjson", [line.value for line in make_stream(dense=60, sparse=40)])


@given(st.lists(st.tuples(st.integers(0, LAYOUT.width(ALL) - 1), INT64), max_size=20), st.text(st.characters(exclude_categories=["Cs"])))
@settings(max_examples=30)
def test_every_integer_comes_back(tmp_path_factory: pytest.TempPathFactory, sums: list[tuple[int, int]], version: str) -> None:
    cell = np.zeros(LAYOUT.width(ALL), dtype=np.int64)
    for position, value in sums:
        cell[position] = value
    group = np.arange(LAYOUT.width(SeriesKey("m", "", version, "region", "eu").shape), dtype=np.int64)
    cells = {WHOLE._replace(version=version): cell, WHOLE._replace(version=version, segment="region", value="eu"): group}
    store = References(tmp_path_factory.mktemp("state"))
    saved = store.save(reference(version=version, cells=cells))
    found = store.load("spring", 1)
    assert replace(found, cells={}) == replace(saved, cells={})
    assert {key: value.tolist() for key, value in found.cells.items()} == {key: value.tolist() for key, value in cells.items()}


def test_a_name_set_again_is_its_next_version(tmp_path: Path) -> None:
    store = References(tmp_path)
    assert store.names() == {}
    assert [store.save(reference(created_ms=at)).label for at in (1, 2)] == ["spring@1", "spring@2"]
    assert store.save(reference(name="autumn")).label == "autumn@1"
    assert store.names() == {"autumn": [1], "spring": [1, 2]}
    assert [store.load("spring", number).created_ms for number in (1, 2)] == [1, 2]
    assert [store.resolve(text) for text in ("spring", "spring@1", "spring@3", "winter")] == [("spring", 2), ("spring", 1), None, None]
    assert sorted(path.name for path in (tmp_path / "references").iterdir()) == ["autumn.1.json", "spring.1.json", "spring.2.json"]


def test_a_number_that_another_process_took_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = References(tmp_path)
    store.save(reference(source="theirs"))
    monkeypatch.setattr(store, "names", dict)
    assert store.save(reference(source="ours")).number == 2
    assert [store.load("spring", number).source for number in (1, 2)] == ["theirs", "ours"]


def test_what_cannot_be_written_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = References(tmp_path)
    monkeypatch.setattr(os, "fsync", lambda handle: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(StateError, match="No space left"):
        store.save(reference())
    assert list((tmp_path / "references").iterdir()) == []


def edited(change: Callable[[dict[str, Any]], object]) -> Callable[[bytes], bytes]:
    def edit(data: bytes) -> bytes:
        content = json.loads(data)
        change(content["reference"])
        return json.dumps(content, separators=(",", ":")).encode()

    return edit


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda data: data[: len(data) // 2], "is damaged"),
        (lambda data: b"", "is damaged"),
        (lambda data: b"\x80\x04K\x01.", "is damaged"),
        (lambda data: b"[" * 100_000, "is damaged"),
        (lambda data: data.replace(b'"9"', b'"8"'), "its sha256 is another"),
        (edited(lambda content: content.update(model="n")), "its sha256 is another"),
        (edited(lambda content: content.update(format=2)), "has format 2, this calmon reads 1"),
        (edited(lambda content: content.update(more=1)), "is damaged"),
        (edited(lambda content: content["sums"][0].update(values=["1"])), "is damaged"),
    ],
)
def test_a_damaged_file_is_refused_in_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, damage: Callable[[bytes], bytes], said: str
) -> None:
    References(tmp_path).save(reference())
    path = tmp_path / "references" / "spring.1.json"
    path.write_bytes(damage(path.read_bytes()))
    for words in (["show", "spring"], ["list"]):
        called = Called(capsys, "reference", *words, "--state", tmp_path)
        assert called.code == 1
        assert said in called.err
        assert str(path) in called.err
        assert len(called.err.splitlines()) == 1


def test_a_damaged_file_does_not_hide_the_others(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    store = References(tmp_path)
    store.save(reference())
    store.save(reference())
    (tmp_path / "references" / "spring.1.json").write_bytes(b"{}")
    called = Called(capsys, "reference", "list", "--state", tmp_path)
    assert (called.code, "spring@2" in called.out, "spring.1.json" in called.err) == (1, True, True)


@pytest.mark.parametrize(
    "sums",
    [
        {"positions": [10**6], "values": ["1"]},
        {"positions": [-1], "values": ["1"]},
        {"positions": [1], "values": [str(2**63)]},
        {"positions": [1], "values": ["9" * 5000]},
        {"positions": [1], "values": ["one"]},
        {"positions": [1, 2], "values": ["1"]},
        {"segment": "region", "value": "eu", "positions": [1], "values": ["1"]},
    ],
)
def test_sums_that_cannot_be_are_refused_even_with_a_right_sha256(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sums: dict[str, Any]
) -> None:
    References(tmp_path).save(reference())
    path = tmp_path / "references" / "spring.1.json"
    path.write_bytes(edited(lambda content: content["sums"][0].update(sums))(path.read_bytes()))
    digest = json.loads(path.read_bytes())["sha256"]
    monkeypatch.setattr("monitor.state.references._digest", lambda content: digest)
    with pytest.raises(StateError, match="is damaged"):
        References(tmp_path).load("spring", 1)


def test_sums_of_another_calmon_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    References(tmp_path).save(reference())
    monkeypatch.setattr("monitor.statistics.layout.STATISTICS_VERSION", 999)
    with pytest.raises(StateError, match="mean something else"):
        References(tmp_path).load("spring", 1)


def test_too_large_a_reference_is_neither_written_nor_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    References(tmp_path).save(reference())
    monkeypatch.setattr("monitor.state.references.MAX_BYTES", 100)
    with pytest.raises(StateError, match="larger than"):
        References(tmp_path).load("spring", 1)
    with pytest.raises(StateError, match="would be larger"):
        References(tmp_path).save(reference())


def test_set_list_and_show(capsys: pytest.CaptureFixture[str], events: Path, tmp_path: Path) -> None:
    config = tmp_path / "calmon.yaml"
    config.write_text(f"state: {{directory: {tmp_path / 'state'}}}\nmodels: {{m: {{bins: 10, groups: [region]}}}}\n")
    of_files: list[str | Path] = ["reference", "set", "spring", "--model", "m", "-c", config, "--version", "v1", "--from", events]
    called = Called(capsys, *of_files)
    assert (called.code, called.err) == (0, "")
    assert "reference spring@1: model m version v1, 2026-06-01T00:00:00Z to " in called.out
    assert 'models: {"m": {reference: spring}}' in called.out
    Called(capsys, *of_files, "--at", "2026-06-01T01:00:00Z", "--window", "1h")
    whole, window = Called(capsys, "reference", "list", "-c", config, "--format", "json").json()
    report = Called(capsys, "evaluate", events, "-c", config, "--format", "json").json()["models"]["m@v1"]
    assert (whole["number"], whole["predictions"], whole["labelled"]) == (1, report["predictions"], report["labelled"])
    assert whole["scored"] == report["ood_scored"]
    assert (window["number"], window["start_ms"], window["end_ms"]) == (2, START_MS, START_MS + HOUR_MS)
    assert 0 < window["predictions"] < whole["predictions"]
    shown = Called(capsys, "reference", "show", "spring", "-c", config).out
    assert "spring@2" in shown
    assert '["region"]' in shown
    assert Called(capsys, "reference", "show", "spring@1", "-c", config, "--format", "json").json()["layout"]["groups"] == ["region"]
    assert Called(capsys, "reference", "list", "-c", config).out.count("\n") == 2


def test_a_reference_may_be_set_before_there_is_a_state(tmp_path: Path) -> None:
    References(tmp_path / "state").save(reference())
    RocksStore(tmp_path / "state").close()
    (tmp_path / "foreign" / "references").mkdir(parents=True)
    (tmp_path / "foreign" / "thesis.txt").touch()
    with pytest.raises(StateError, match="not empty"):
        RocksStore(tmp_path / "foreign")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--model", "x"], 1, "no prediction of model x in EVENTS; there are m"),
        (["--model", "m"], 1, "several versions in EVENTS: name one of v1, v2 with --version"),
        (["--model", "m", "--version", "v9"], 1, "no prediction of version v9 of model m in EVENTS; there are v1, v2"),
        (["--model", "m", "--version", "v1", "--at", "2026-06-01T01:00:00Z"], 2, "--at and --window go together"),
        (["--model", "m", "--version", "v1", "--state", "x"], 2, "--from and --state exclude each other"),
        (["--model", "m", "--version", "v1", "--at", "2027-06-01T01:00:00Z", "--window", "1h"], 1, "there is no prediction at all"),
        ([], 2, "--model"),
    ],
)
def test_set_refuses(
    capsys: pytest.CaptureFixture[str],
    events: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    code: int,
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    called = Called(capsys, "reference", "set", "spring", *words, "--from", events)
    assert (called.code, called.out) == (code, "")
    assert said.replace("EVENTS", str(events)) in called.err
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize("name", ["", "a b", "a/b", "../a", ".a", "a.1", "a@0", "a@x", "x" * 65])
def test_a_name_that_is_none(capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str) -> None:
    for words in (["set", name, "--model", "m"], ["show", name]):
        called = Called(capsys, "reference", *words, "--state", tmp_path)
        assert called.code == 2
        assert "1 to 64 of the characters" in called.err


def test_set_takes_no_number_and_show_knows_what_there_is(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    called = Called(capsys, "reference", "set", "spring@2", "--model", "m", "--state", tmp_path)
    assert (called.code, "leave @2 out" in called.err) == (2, True)
    called = Called(capsys, "reference", "show", "spring", "--state", tmp_path)
    assert (called.code, called.err) == (1, "calmon: there is no reference spring; none is set\n")
    References(tmp_path).save(reference())
    called = Called(capsys, "reference", "show", "spring@2", "--state", tmp_path)
    assert (called.code, called.err) == (1, "calmon: there is no reference spring@2; there are spring@1\n")


def test_without_a_state_there_is_nothing_to_set(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    called = Called(capsys, "reference", "set", "spring", "--model", "m", "--state", tmp_path / "nowhere")
    assert (called.code, "there is no calmon state in" in called.err) == (1, True)
    called = Called(capsys, "reference", "list", "--state", tmp_path / "nowhere")
    assert (called.code, called.out) == (0, "no reference is set: calmon reference set --help says how\n")


@pytest.mark.parametrize("words", [["reference"], ["reference", "set"], ["reference", "list"], ["reference", "show"]])
def test_help_teaches(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    called = Called(capsys, *words, "--help")
    assert (called.code, called.err) == (0, "")
    assert "reference" in called.out
