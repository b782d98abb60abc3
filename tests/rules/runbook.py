"""Runbooks as tests read them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "deploy" / "runbooks"
SECTIONS = ("Meaning", "Impact", "Diagnosis", "Mitigation", "False alarms")
_BLOCK = re.compile(r"^```(promql|sh)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NAME = re.compile(r"\b(?:calmon_[a-z0-9_]+|up|scrape_[a-z_]+)\b")


@dataclass(frozen=True, slots=True)
class Query:
    """A query of a runbook.

    Attributes:
        runbook: Name of its alert.
        text: As it is pasted, with its comment.
    """

    runbook: str
    text: str

    @property
    def may_be_empty(self) -> bool:
        """Whether its comment says when it returns nothing."""
        return "; empty " in self.text.splitlines()[0]


def names(expression: str) -> set[str]:
    """Metrics that an expression reads."""
    return set(_NAME.findall(expression))


def queries(path: Path) -> list[Query]:
    """Queries of a runbook."""
    return [Query(path.stem, text) for kind, text in _BLOCK.findall(path.read_text("utf-8")) if kind == "promql"]


def commands(path: Path) -> list[str]:
    """Commands of a runbook, without comments."""
    blocks = [text for kind, text in _BLOCK.findall(path.read_text("utf-8")) if kind == "sh"]
    return [line for text in blocks for line in text.splitlines() if line and not line.startswith("#")]
