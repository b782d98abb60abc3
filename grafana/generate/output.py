"""Dashboards as the text of their files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard

from grafana.generate.fleet import fleet
from grafana.generate.frame import FLEET, PIPELINE, VERSION
from grafana.generate.pipeline import pipeline
from grafana.generate.runbook import link_runbooks
from grafana.generate.version import version

FOLDER = Path(__file__).parents[1] / "dashboards"
"""Where the files lie."""


def files() -> Mapping[str, str]:
    """Name and text of each file."""
    made = {FLEET: fleet(), VERSION: version(), PIPELINE: pipeline()}
    return {f"{uid}.json": _text(builder.build()) for uid, builder in made.items()}


def _text(board: Dashboard) -> str:
    link_runbooks(board)
    # Links to single panels name their ids, so they are given here and not by whoever loads the file.
    for place, panel in enumerate(board.panels or [], start=1):
        panel.id_val = place
    return json.dumps(board, cls=JSONEncoder, indent=1, sort_keys=True) + "\n"
