"""The evidence on the status page: each version, since when, what there is now, and what has crossed."""

from __future__ import annotations

import html
from datetime import UTC, datetime

from monitor.evidence.bets import Side
from monitor.evidence.course import E_PROCESS, Alarm
from monitor.evidence.standing import Crossing, Evidence, Standing

_SHOWN = Alarm(E_PROCESS, Side.OVER.value, 0.02)
"""The one that pages people."""


def evidence_section(evidence: Evidence) -> str:
    """A table of the versions that are watched; nothing before the first pane has matured."""
    if evidence.matured_until_ms is None:
        return ""
    names = ("model", "version", "since", "predictions", "labelled", "ln E over 0.02", "worst over-confidence at least", "crossed first")
    head = "".join(f"<th>{name}</th>" for name in names)
    rows = "\n".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in _cells(one)) + "</tr>" for one in evidence.standings)
    until = f"<p>Hours until {_moment(evidence.matured_until_ms)} have matured.</p>"
    return f"<h2>Evidence</h2>\n{until}\n<table><tr>{head}</tr>\n{rows}\n</table>"


def _cells(one: Standing) -> list[str]:
    log_e = f"{one.log_e[_SHOWN]:.4g}" + (" (restated)" if one.restated else "")
    crossed = "; ".join(_crossing(entry) for entry in sorted(one.crossings.values(), key=lambda entry: (entry.pane_end_ms, entry.alarm)))
    numbers = [str(one.predictions), str(one.labelled), log_e, f"{one.overconfidence_lower:g}"]
    return [one.model, one.version, _moment(one.since_ms), *numbers, crossed or "never"]


def _crossing(entry: Crossing) -> str:
    begun = "" if entry.change_start_ms is None else f", begun {_moment(entry.change_start_ms)}"
    name = f"{entry.alarm.statistic} {entry.alarm.side} {entry.alarm.tolerance:g}"
    return f"{name}: {_moment(entry.pane_end_ms)} ({entry.value:.4g}{begun})"


def _moment(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="minutes").removesuffix("+00:00") + "Z"
