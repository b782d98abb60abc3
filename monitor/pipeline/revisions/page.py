"""The newest revisions on the status page: what changed, by which records, and how far metrics moved."""

from __future__ import annotations

import html
from collections.abc import Sequence

from monitor.events.instant import instant
from monitor.pipeline.revisions.cause import Cause
from monitor.pipeline.revisions.journal import Move, Revision

_SHOWN = 20


def revisions_section(entries: Sequence[Revision]) -> str:
    """A table of the newest entries; nothing before the first."""
    if not entries:
        return ""
    names = ("noted", "model", "version", "hours that changed", "records", "largest moves", "in Prometheus")
    head = "".join(f"<th>{name}</th>" for name in names)
    rows = "\n".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in _cells(entry)) + "</tr>" for entry in reversed(entries[-_SHOWN:])
    )
    return f"<h2>Revisions</h2>\n<table><tr>{head}</tr>\n{rows}\n</table>"


def hours_text(entry: Revision) -> str:
    """The hours that changed."""
    if entry.start_ms is None or entry.end_ms is None:
        return "none, the changes cancelled out"
    return f"{instant(entry.start_ms, 'minutes')} to {instant(entry.end_ms, 'minutes')}"


def cause_text(cause: Cause) -> str:
    """Records in words: how many of a kind, and where they were."""
    return f"{cause.records} {cause.kind} of {cause.partition} {cause.first_offset} to {cause.last_offset}"


def move_text(move: Move) -> str:
    """A move in words."""
    old, new = ("undefined" if value is None else f"{value:.4g}" for value in (move.old, move.new))
    return f"{move.metric} {old} to {new} ({move.window} at {instant(move.at_ms, 'minutes')})"


def published_text(entry: Revision) -> str:
    """Which of an entry's windows Prometheus has."""
    return "; ".join(f"{name}: {_published(entry.published.get(name))}" for name in entry.moved) or "nothing moved far enough"


def _published(revision: int | None) -> str:
    if revision is None:
        return "not written"
    return f"revision {revision}" if revision else "could not be written, see the log"


def _cells(entry: Revision) -> list[str]:
    return [
        instant(entry.noted_ms, "minutes"),
        entry.model,
        entry.version,
        hours_text(entry),
        "; ".join(cause_text(cause) for cause in entry.causes),
        "; ".join(move_text(move) for move in entry.moves) or "none",
        published_text(entry),
    ]
