"""The committed files: what the generator makes, what Grafana's models know, and complete for people."""

from __future__ import annotations

import copy
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import yaml

from grafana.generate.frame import DATASOURCE_UID, FLEET, PIPELINE, VERSION
from grafana.generate.output import FOLDER, files
from grafana.generate.query import EXTRA_FAMILIES
from grafana.generate.runbook import ALERTS
from monitor.metrics.catalogue import FAMILIES, expanded
from monitor.names import PREFIX
from tests.grafana.dashboards import committed, filled, panels, queries, series_names
from tests.grafana.model_check import faults

PROVISIONING = FOLDER.parent / "provisioning"
RUNBOOKS = FOLDER.parents[1] / "deploy/runbooks"
UIDS = (FLEET, VERSION, PIPELINE)


def test_the_files_are_what_the_generator_makes() -> None:
    there = {path.name: path.read_text() for path in FOLDER.iterdir()}
    assert there == files(), "stale: run `make dashboards`"


@pytest.mark.parametrize("uid", UIDS)
def test_grafanas_models_know_every_field_and_type(uid: str) -> None:
    assert faults(committed()[uid]) == []


def _set_unit(board: dict[str, Any]) -> None:
    board["panels"][1]["fieldConfig"]["defaults"]["unit"] = 3


def _unknown_field(board: dict[str, Any]) -> None:
    board["panels"][1]["colour"] = "red"


def _bad_choice(board: dict[str, Any]) -> None:
    board["panels"][1]["options"]["graphMode"] = "sparkle"


def _text_for_number(board: dict[str, Any]) -> None:
    board["panels"][1]["gridPos"]["w"] = "4"


def _other_source(board: dict[str, Any]) -> None:
    board["panels"][1]["datasource"]["type"] = board["panels"][1]["targets"][0]["datasource"]["type"] = "nowhere"


@pytest.mark.parametrize("spoil", [_set_unit, _unknown_field, _bad_choice, _text_for_number, _other_source])
def test_the_check_of_models_finds_faults(spoil: Callable[[dict[str, Any]], None]) -> None:
    board = copy.deepcopy(committed()[FLEET])
    spoil(board)
    assert len(faults(board)) == 1


@pytest.mark.parametrize("uid", UIDS)
def test_panels_say_what_they_show(uid: str) -> None:
    shown = panels(committed()[uid])
    titles = [panel["title"] for panel in shown]
    assert len(set(titles)) == len(titles)
    for panel in shown:
        assert panel["description"], panel["title"]
        assert panel["datasource"]["uid"] == "${datasource}"
        assert panel["targets"], panel["title"]
        assert "unit" in panel["fieldConfig"]["defaults"] or panel["type"] in ("table", "barchart"), panel["title"]
    for variable in committed()[uid]["templating"]["list"]:
        assert variable["description"], variable["name"]
        assert variable["label"], variable["name"]


@pytest.mark.parametrize("uid", UIDS)
def test_panels_lie_side_by_side(uid: str) -> None:
    places = [(panel["title"], panel["gridPos"]) for panel in committed()[uid]["panels"]]
    for title, place in places:
        assert place["x"] + place["w"] <= 24, title
    for (title, one), (other_title, other) in combinations(places, 2):
        apart = (
            one["x"] + one["w"] <= other["x"]
            or other["x"] + other["w"] <= one["x"]
            or one["y"] + one["h"] <= other["y"]
            or other["y"] + other["h"] <= one["y"]
        )
        assert apart, (title, other_title)
    assert len({panel["id"] for panel in committed()[uid]["panels"]}) == len(places)


@pytest.mark.parametrize("uid", UIDS)
def test_links_lead_to_dashboards_that_are_there(uid: str) -> None:
    text = (FOLDER / f"{uid}.json").read_text()
    linked = {part.split("?")[0].split('"')[0].split(")")[0].split("\\")[0] for part in text.split("/d/")[1:]}
    assert linked
    assert linked <= set(UIDS)
    assert {f"/d/{other}" for other in UIDS if other != uid} <= {link["url"] for link in committed()[uid]["links"]}
    assert "${runbooks}" in [link["url"] for link in committed()[uid]["links"]]


def test_each_family_that_must_be_switched_on_is_shown() -> None:
    shown = {name for asked in queries() for name in series_names(asked.expression)}
    for family in FAMILIES:
        if family.name in EXTRA_FAMILIES:
            assert not family.exported
            assert shown & {PREFIX + metric.gauge for metric in expanded(family)}, family.name


def test_panels_link_to_runbooks() -> None:
    for uid, by_title in ALERTS.items():
        links = {panel["title"]: [link["url"] for link in panel["links"]] for panel in panels(committed()[uid]) if "links" in panel}
        assert links == {title: [f"${{runbooks}}/{alert}.md" for alert in alerts] for title, alerts in by_title.items()}


def test_runbooks_are_there() -> None:
    named = {alert for by_title in ALERTS.values() for alerts in by_title.values() for alert in alerts}
    assert {path.stem for path in RUNBOOKS.glob("Calmon*.md")} >= named > set()


def test_provisioning_names_the_data_source_and_the_folder() -> None:
    (source,) = yaml.safe_load((PROVISIONING / "datasources" / "calmon.yaml").read_text())["datasources"]
    assert (source["uid"], source["type"], source["editable"]) == (DATASOURCE_UID, "prometheus", False)
    (provider,) = yaml.safe_load((PROVISIONING / "dashboards" / "calmon.yaml").read_text())["providers"]
    assert (provider["type"], Path(provider["options"]["path"]).name) == ("file", FOLDER.name)
    for board in committed().values():
        (variable,) = [one for one in board["templating"]["list"] if one["type"] == "datasource"]
        assert variable["current"]["value"] == DATASOURCE_UID
        assert variable["current"]["text"] == source["name"]


def test_names_are_found_in_expressions() -> None:
    expression = 'sum by (model, le) (rate(a_total{x="b c"}[$__range] offset $o)) / on (i) group_right () (d_e > 0) or vector(0) and f:g'
    assert series_names(expression) == {"a_total", "d_e", "f:g"}
    assert filled('a{b="$x",c="${y}"}', {"x": "1", "y": "2"}) == 'a{b="1",c="2"}'
    with pytest.raises(KeyError):
        filled("$unknown", {})
