"""The evidence on the status page: each version, since when, what there is now, and what has crossed."""

from __future__ import annotations

import html

from monitor.events.instant import instant
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
    until = f"<p>Hours until {instant(evidence.matured_until_ms, 'minutes')} have matured.</p>"
    return f"<h2>Evidence</h2>\n{until}\n<table><tr>{head}</tr>\n{rows}\n</table>"


def _cells(one: Standing) -> list[str]:
    log_e = f"{one.log_e[_SHOWN]:.4g}" + (" (restated)" if one.restated else "")
    crossed = "; ".join(_crossing(entry) for entry in sorted(one.crossings.values(), key=lambda entry: (entry.pane_end_ms, entry.alarm)))
    numbers = [str(one.predictions), str(one.labelled), log_e, f"{one.overconfidence_lower:g}"]
    return [one.model, one.version, instant(one.since_ms, "minutes"), *numbers, crossed or "never"]


def _crossing(entry: Crossing) -> str:
    begun = "" if entry.change_start_ms is None else f", begun {instant(entry.change_start_ms, 'minutes')}"
    name = f"{entry.alarm.statistic} {entry.alarm.side} {entry.alarm.tolerance:g}"
    return f"{name}: {instant(entry.pane_end_ms, 'minutes')} ({entry.value:.4g}{begun})"
