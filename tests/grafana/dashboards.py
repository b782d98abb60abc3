"""The committed dashboards, and what their queries are once Grafana has put the variables in."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from grafana.generate.output import FOLDER


class Asked(NamedTuple):
    """A query of a dashboard.

    Attributes:
        place: Dashboard and panel or variable, for messages.
        expression: PromQL with Grafana's variables.
    """

    place: str
    expression: str


@cache
def committed() -> Mapping[str, dict[str, Any]]:
    """Dashboards by uid."""
    boards = [json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))]
    return {board["uid"]: board for board in boards}


def panels(board: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Its panels without the titles of rows."""
    return [panel for panel in board["panels"] if panel["type"] != "row"]


def queries() -> Iterator[Asked]:
    """Every query of every panel."""
    for uid, board in committed().items():
        for panel in panels(board):
            for target in panel["targets"]:
                yield Asked(f"{uid}: {panel['title']} {target['refId']}", target["expr"])


def variable_queries() -> Iterator[Asked]:
    """Every query of a variable, as the PromQL that has a series for each of its values."""
    for uid, board in committed().items():
        for variable in board["templating"]["list"]:
            if variable["type"] == "query":
                found = re.fullmatch(r"label_values\((.*),(\w+)\)", variable["query"]["query"])
                assert found is not None, variable
                yield Asked(f"{uid}: variable {variable['name']}", f"count by ({found[2]}) ({found[1]})")


def filled(expression: str, values: Mapping[str, str]) -> str:
    """An expression with values for its variables; one that has none fails."""
    return re.sub(r"\$\{?(\w+)\}?", lambda found: values[found[1]], expression)


def series_names(expression: str) -> set[str]:
    """Names of series in an expression: what stands outside strings and label lists, and is no function or keyword."""
    bare = re.sub(r'"(?:[^"\\]|\\.)*"', '""', expression)
    bare = re.sub(r"\b(?:by|on|ignoring|without|group_left|group_right)\s*\([^)]*\)", " ", bare)
    bare = re.sub(r"\{[^}]*\}|\[[^\]]*\]|\boffset\s+\S+", " ", bare)
    words = re.findall(r"(?<![\w$.])([A-Za-z_:][\w:]*)(?!\s*\(|\w)", bare)
    return {word for word in words if word not in {"and", "or", "unless", "bool", "by", "on", "ignoring"}}
