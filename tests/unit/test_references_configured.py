"""A running engine and the references that its configuration names: read when they appear, refused with a reason that is told once."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from monitor.app import Engine
from monitor.clock import ManualClock
from monitor.config_file import parse_config
from monitor.errors import ConfigError
from monitor.pipeline.pages import render_snapshot
from monitor.state.references import References
from tests.doubles.list_source import ListSource
from tests.doubles.memory_store import MemoryStore
from tests.golden.product import samples
from tests.recovery.stream import HOUR_MS, START_MS, encode, prediction, write_lines
from tests.unit.test_commands import Called

MODEL = "groups: [region], ood_threshold: 0.0, confidence_threshold: 0.7"
EVENTS = [
    prediction(
        f"{number}", START_MS + number, 0.6 + number % 4 / 10, ood_score=number % 7 - 3.0, groups={"region": "eu" if number % 3 else "us"}
    )
    for number in range(60)
]


class Running:
    """An engine with model `m`, and the page of its next tick."""

    def __init__(self, directory: Path, model: str) -> None:
        quarantine = directory.with_suffix(".quarantine")
        text = f"state: {{directory: {directory}}}\nwindows: [{{name: w, length: 1h}}]\nquarantine: {{file: {quarantine}}}\n"
        config = parse_config(text + f"models: {{m: {{{model}}}}}\n", "test", {})
        source = ListSource([("all", encode(event)) for event in EVENTS])
        self.engine = Engine(config, ManualClock(START_MS + HOUR_MS), source, MemoryStore())
        self.engine.runner.start()
        while self.engine.runner.step(50, 0.0):
            pass

    def page(self) -> dict[str, list[dict[str, Any]]]:
        """Labels of every sample with their value, by name without the prefix."""
        found: dict[str, list[dict[str, Any]]] = {}
        for name, labels, value in samples(render_snapshot(self.engine.evaluator.tick()).metrics):
            found.setdefault(name.removeprefix("calmon_"), []).append({**labels, "is": value})
        return found


def make_reference(capsys: pytest.CaptureFixture[str], directory: Path, model: str = MODEL, named: str = "m") -> None:
    """Set reference `spring` from the events, under a configuration."""
    directory.mkdir(exist_ok=True)
    config = directory.with_suffix(".yaml")
    config.write_text(f"state: {{directory: {directory}}}\nmodels: {{{named}: {{{model}}}}}\n")
    path = write_lines(directory.with_suffix(".ndjson"), [encode({**event, "model": named}) for event in EVENTS])
    assert Called(capsys, "reference", "set", "spring", "--model", named, "-c", config, "--from", path).code == 0


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "monitor.pipeline.references"]


def test_a_reference_is_used_from_the_tick_on_that_finds_it(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    caplog.set_level(logging.INFO)
    running = Running(tmp_path / "state", MODEL + ", reference: spring")
    for _ in range(3):
        page = running.page()
        assert not [name for name in page if name.startswith("drift")]
        assert page["reference_refused"] == [{"model": "m", "reference": "spring", "reason": "missing", "is": 1}]
    assert len(told(caplog)) == 1
    make_reference(capsys, tmp_path / "state")
    page = running.page()
    assert [one["is"] for one in page["drift_confidence_psi"]] == [0]
    assert [(one["segment"], one["value"], one["is"]) for one in page["drift_group_psi"]] == [("region", "all", 0)]
    assert [one["is"] for one in page["drift_ood_acceptance_difference"]] == [0]
    assert page["reference_info"] == [{"model": "m", "reference": "spring@1", "reference_version": "v1", "is": 1}]
    assert "reference_refused" not in page
    make_reference(capsys, tmp_path / "state")
    assert [one["reference"] for one in running.page()["reference_info"]] == ["spring@2"]
    assert len(told(caplog)) == 3


def test_a_numbered_reference_stays(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    running = Running(tmp_path / "state", MODEL + ", reference: spring@1")
    for _ in range(2):
        make_reference(capsys, tmp_path / "state")
        assert [one["reference"] for one in running.page()["reference_info"]] == ["spring@1"]


@pytest.mark.parametrize(
    ("other", "reasons", "absent"),
    [
        ("groups: [region], ood_threshold: 1.0, confidence_threshold: 0.7", {"other_ood_threshold"}, "drift_ood_acceptance_difference"),
        (
            "groups: [region], ood_threshold: 0.0, ood_high_is: out_of_distribution, confidence_threshold: 0.7",
            {"other_ood_threshold"},
            "drift_ood_acceptance_difference",
        ),
        ("groups: [region], ood_threshold: 0.0", {"other_confidence_threshold"}, "drift_rejection_difference"),
        ("ood_threshold: 0.0, confidence_threshold: 0.7", {"group_not_in_it"}, "drift_group_psi"),
        ("groups: [region], ood_threshold: 0.0, confidence_threshold: 0.7, bins: 7, max_group_values: 3", set(), ""),
        ("groups: [region], ood_threshold: 0.0, confidence_threshold: 0.7, scheme: mass", set(), ""),
    ],
)
def test_another_layout_takes_what_it_touches_and_nothing_else(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture, tmp_path: Path, other: str, reasons: set[str], absent: str
) -> None:
    make_reference(capsys, tmp_path / "state", other)
    running = Running(tmp_path / "state", MODEL + ", reference: spring")
    pages = [running.page() for _ in range(2)]
    expected = {"drift_confidence_psi", "drift_score_js", "drift_class_psi", "drift_group_psi", "drift_ood_acceptance_difference"}
    expected |= {"drift_rejection_difference"}
    for page in pages:
        assert {name for name in expected if name not in page} == ({absent} - {""})
        assert {one["reason"] for one in page.get("reference_refused", [])} == reasons
        assert page["drift_confidence_psi"][0]["is"] == 0
    assert len(told(caplog)) == len(reasons)


def test_a_reference_of_another_model_is_refused(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    make_reference(capsys, tmp_path / "state", named="n")
    running = Running(tmp_path / "state", MODEL + ", reference: spring")
    pages = [running.page() for _ in range(2)]
    assert [one["reason"] for one in pages[1]["reference_refused"]] == ["other_model"]
    assert not [name for name in pages[1] if name.startswith("drift")]
    assert [text for text in told(caplog) if "of model n" in text] == ["model m, reference spring@1: it is of model n"]


def test_a_damaged_reference_is_refused_and_the_page_goes_on(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    make_reference(capsys, tmp_path / "state")
    path = tmp_path / "state" / "references" / "spring.1.json"
    path.write_bytes(path.read_bytes()[:-10])
    running = Running(tmp_path / "state", MODEL + ", reference: spring")
    pages = [running.page() for _ in range(2)]
    assert [one["reason"] for one in pages[1]["reference_refused"]] == ["unreadable"]
    assert [one["is"] for one in pages[1]["predictions"] if one["segment"] == "all"] == [60]
    assert len(told(caplog)) == 1
    make_reference(capsys, tmp_path / "state")
    assert running.page()["reference_info"][0]["reference"] == "spring@2"


def test_without_a_configured_reference_nothing_is_said(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    make_reference(capsys, tmp_path / "state")
    page = Running(tmp_path / "state", MODEL).page()
    assert not [name for name in page if name.startswith(("drift", "reference"))]


def test_references_of_a_state_are_left_alone_by_others(tmp_path: Path) -> None:
    assert References(tmp_path / "nowhere").names() == {}
    (tmp_path / "references").mkdir()
    for name in ("notes.txt", "a.b.json", "a.json", ".json", "spring.01.json", "tmp.new"):
        (tmp_path / "references" / name).touch()
    assert References(tmp_path).names() == {}


@pytest.mark.parametrize("text", ["a b", "a@", "a@0", "../a", "''", "3", "[a]"])
def test_configuration_refuses_names_that_are_none(text: str) -> None:
    with pytest.raises(ConfigError, match=r"models\.m\.reference"):
        parse_config(f"models: {{m: {{reference: {text}}}}}\n", "test", {})


def test_configuration_refuses_one_reference_for_all() -> None:
    with pytest.raises(ConfigError, match=r"defaults\.reference: belongs to one model"):
        parse_config("defaults: {reference: spring}\n", "test", {})
    assert parse_config("models: {m: {reference: spring@2}}\n", "test", {}).model("m").reference == "spring@2"


def test_check_says_how_references_stand(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    config = tmp_path / "calmon.yaml"
    state = tmp_path / "state"
    text = f"state: {{directory: {state}}}\nmodels: {{m: {{ood_threshold: 1.0, reference: spring}}}}\n"
    config.write_text(text)
    called = Called(capsys, "check", "-c", config)
    assert (called.code, "models.m.reference spring: not set yet" in called.out) == (0, True)
    assert "drift" in called.out.split("series of each version", 1)[1].split("not exported")[0]
    make_reference(capsys, state)
    called = Called(capsys, "check", "-c", config)
    assert (called.code, "reference spring@1: model m version v1" in called.out, "no drift of OOD acceptance" in called.out) == (
        0,
        True,
        True,
    )
    config.write_text(text.replace("{m:", "{n:"))
    called = Called(capsys, "check", "-c", config)
    assert (called.code, called.err) == (1, "calmon: models.n.reference spring: spring@1 is of model m\n")
    config.write_text(json.dumps({"state": {"directory": str(state)}, "models": {"m": {}}}))
    assert "drift" in Called(capsys, "check", "-c", config).out.split("not exported")[1]
