"""Every alert fires where it must and only there, by promtool; and what is rendered is not stale."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from monitor import cli
from monitor.alerts.choice import Choice, ChoiceError, chosen, settable
from monitor.alerts.link import dashboard_url
from monitor.alerts.render import GRAFANA, RULES, rendered
from monitor.alerts.table import ALERTS
from tests.rules import calibration_cases, decision_cases, feed_cases, process_cases
from tests.rules.case import Firing, Silent
from tests.rules.promtool import promtool, run_cases

ROOT = Path(__file__).parents[2]
CASES = (*calibration_cases.CASES, *decision_cases.CASES, *feed_cases.CASES, *process_cases.CASES)


def test_what_is_rendered_is_not_stale(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["rules", "render", "--output", str(tmp_path)]) == 0
    written = capsys.readouterr().out.split()
    for path in written:
        name = Path(path).relative_to(tmp_path)
        assert (ROOT / name).read_text("utf-8") == Path(path).read_text("utf-8"), f"{name} is stale: run `calmon rules render --output .`"
    assert len(written) == 3
    assert cli.main(["rules", "render"]) == 0
    assert capsys.readouterr().out == (ROOT / RULES).read_text("utf-8")


def test_rules_pass_promtools_lint() -> None:
    assert f"{len(ALERTS)} rules found" in promtool("check", "rules", "--lint=all", "--lint-fatal", ROOT / RULES)


@pytest.mark.parametrize("alert", [alert.name for alert in ALERTS])
def test_an_alert_fires_where_it_must_and_only_there(alert: str, tmp_path: Path) -> None:
    cases = [case for case in CASES if case.alert == alert]
    assert {type(case) for case in cases} == {Firing, Silent}
    run_cases(cases, ROOT / RULES, tmp_path)


@pytest.mark.parametrize("alert", [alert.name for alert in ALERTS])
def test_a_case_can_fail(alert: str, tmp_path: Path) -> None:
    """Promtool itself must see a difference: a firing case under a silent one's expectation."""
    firing = next(case for case in CASES if case.alert == alert and isinstance(case, Firing))
    with pytest.raises(AssertionError, match=alert):
        run_cases([Silent(alert, "it fires", firing.given, at=(firing.at,))], ROOT / RULES, tmp_path)


def test_choices_are_rendered() -> None:
    words = [
        "severity.CalmonConflicts=page",
        "severity.CalmonSeriesFolded=off",
        "bound.label_silence=6h",
        "bound.disparity=0.25",
        "for.CalmonTargetDown=30s",
        "job=classifiers",
        "url.runbooks=https://wiki.example/calmon/",
    ]
    rules = {rule["alert"]: rule for group in yaml.safe_load(rendered(chosen(words))[RULES])["groups"] for rule in group["rules"]}
    assert rules["CalmonConflicts"]["labels"]["severity"] == "page"
    assert "CalmonSeriesFolded" not in rules
    assert "> 21600" in rules["CalmonLabelFeedDead"]["expr"]
    assert "(bound: 6h)" in rules["CalmonLabelFeedDead"]["annotations"]["description"]
    assert "calmon_group_rejection_spread_ratio > 0.25" in rules["CalmonGroupDisparity"]["expr"]
    assert "(bound: 25%)" in rules["CalmonGroupDisparity"]["annotations"]["description"]
    assert rules["CalmonTargetDown"]["for"] == "30s"
    assert 'up{job="classifiers"}' in rules["CalmonTargetDown"]["expr"]
    assert rules["CalmonTargetDown"]["annotations"]["runbook_url"] == "https://wiki.example/calmon/CalmonTargetDown.md"


def test_links_lead_to_dashboards_that_there_are() -> None:
    folder = ROOT / "grafana" / "dashboards"
    for alert in ALERTS:
        board = json.loads((folder / f"{alert.dashboard}.json").read_text("utf-8"))
        variables = {variable["name"] for variable in board["templating"]["list"]}
        wanted = set(re.findall(r"var-([a-z_]+)=", dashboard_url(alert, Choice())))
        assert board["uid"] == alert.dashboard
        assert wanted <= variables, alert.name


def test_grafanas_alerts_ask_the_data_source_that_is_provisioned_for_what_prometheus_evaluates() -> None:
    sources = yaml.safe_load((ROOT / "grafana/provisioning/datasources/calmon.yaml").read_text("utf-8"))["datasources"]
    asked = [rule for group in yaml.safe_load(rendered(Choice())[GRAFANA])["groups"] for rule in group["rules"]]
    rules = {rule["alert"]: rule for group in yaml.safe_load(rendered(Choice())[RULES])["groups"] for rule in group["rules"]}
    assert {rule["title"] for rule in asked} == set(rules)
    for rule in asked:
        value, *details, condition = rule["data"]
        assert value["model"]["expr"] == rules[rule["title"]]["expr"]
        assert {query["datasourceUid"] for query in (value, *details)} == {source["uid"] for source in sources}
        assert (condition["refId"], condition["model"]["expression"]) == (rule["condition"], "is_number($A)")
        assert rule["labels"] == rules[rule["title"]]["labels"]
        assert len(rule["uid"]) <= 40
        texts = " ".join(rule["annotations"].values())
        assert set(re.findall(r"\$values\.([A-Z])", texts)) - {"A"} == {query["refId"] for query in details}


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("bound.disparity", "write NAME=VALUE"),
        ("severity.CalmonConflict=page", "did you mean severity.CalmonConflicts?"),
        ("severity.CalmonConflicts=loud", "must be one of page, ticket, info, off"),
        ("bound.label_silence=6", "must have a unit"),
        ("bound.disparity=much", "must be a number"),
        ("bound.disparity=nan", "must be a number of at least 0"),
        ("for.CalmonConflicts=soon", "must be a whole number with a unit"),
        ("colour=red", "cannot be set"),
    ],
)
def test_what_cannot_be_chosen_is_refused(word: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ChoiceError, match=re.escape(said)):
        chosen([word])
    assert cli.main(["rules", "render", "--set", word]) == 2
    assert capsys.readouterr().out == ""


def test_nothing_that_can_be_set_is_missing_in_an_expression_or_text() -> None:
    """Setting any bound changes what is rendered: there is no option without an effect."""
    usual = rendered(Choice())[RULES]
    for name in settable():
        if name.startswith("bound."):
            value = "77s" if name.endswith(("_silence", "_slack", "_lag")) else "0.777"
            assert rendered(chosen([f"{name}={value}"]))[RULES] != usual, name
