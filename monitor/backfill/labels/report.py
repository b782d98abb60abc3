"""What is said of a backfill, as tables or as JSON."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console
from rich.table import Table

from monitor.backfill.labels.moves import Change
from monitor.backfill.labels.run import Outcome
from monitor.backfill.labels.tally import Tally
from monitor.backfill.labels.way import Way
from monitor.duration import format_duration
from monitor.events.instant import instant

_WIDTH = 140


@dataclass(slots=True)
class Report:
    """A backfill.

    Attributes:
        way: Which way the labels went.
        dry_run: Whether nothing was written.
        unchecked: Why labels were not checked against the state; None if they were.
        stopped: Whether somebody asked for the end.
        paused_s: How long the service was waited for.
        outcomes: What became of each file.
        changes: What a dry run would change, by (model, version).
    """

    way: Way
    dry_run: bool = False
    unchecked: str | None = None
    stopped: bool = False
    paused_s: float = 0.0
    outcomes: Sequence[Outcome] = ()
    changes: Mapping[tuple[str, str], Change] = field(default_factory=dict)

    def total(self) -> Tally:
        """The files together."""
        tally = Tally()
        for outcome in self.outcomes:
            tally.merge(outcome.tally)
        return tally


def render(report: Report, form: str) -> str:
    """A report as a table or as JSON."""
    return json.dumps(_json(report), indent=1, allow_nan=False) if form == "json" else _text(report)


def _json(report: Report) -> dict[str, Any]:
    files = [
        {"file": one.file, "same_as": one.same_as, "rows_before": one.before, "quarantine": one.quarantine, **one.tally.report()}
        for one in report.outcomes
    ]
    found: dict[str, Any] = {"to": report.way.kind.value, "name": report.way.name, "dry_run": report.dry_run, "stopped": report.stopped}
    found |= {"unchecked": report.unchecked, "paused_seconds": round(report.paused_s, 3), "files": files, "total": report.total().report()}
    if report.dry_run:
        found["changes"] = {f"{model}@{version}": _change(change) for (model, version), change in report.changes.items()}
    return found


def _change(change: Change) -> dict[str, Any]:
    coverage = change.coverage
    return {
        "predictions": coverage.predictions,
        "labelled_before": coverage.labelled_before,
        "labelled_after": coverage.labelled_after,
        "window": change.window.name,
        "length_ms": change.window.length_ms,
        "lag_ms": change.window.lag_ms,
        "first_at_ms": change.at_ms.start,
        "step_ms": change.at_ms.step,
        "moments": len(change.at_ms),
        "largest_moves": {move.metric: {"at_ms": move.at_ms, "old": move.old, "new": move.new} for move in change.moves},
    }


def _text(report: Report) -> str:
    console = Console(file=io.StringIO(), width=_WIDTH)
    where = {"state": "into the state", "file": "appended to", "topic": "to the topic"}[report.way.kind.value]
    console.print(
        f"{'dry run: labels would go' if report.dry_run else 'labels'} {where} {report.way.name}", soft_wrap=True, highlight=False
    )
    if report.unchecked is not None:
        console.print(report.unchecked, soft_wrap=True, highlight=False)
    for one in report.outcomes:
        if one.same_as is not None:
            console.print(f"{one.file}: the same file as {one.same_as}, and counted there", soft_wrap=True, highlight=False)
            continue
        earlier = f", {one.before:,} of them in earlier runs" if one.before else ""
        held = f"; held back rows are in {one.quarantine}" if one.quarantine else ""
        nothing = "; nothing was left to do" if one.before == one.tally.rows and one.before else ""
        console.print(f"{one.file}: {one.tally.rows:,} rows{earlier}{nothing}{held}", soft_wrap=True, highlight=False)
    console.print(_counts(report.total()))
    for (model, version), change in report.changes.items():
        _print_change(console, f"{model}@{version}", change)
    if report.paused_s >= 1:
        console.print(f"the service was waited for during {report.paused_s:.0f} s", highlight=False)
    if report.stopped:
        console.print("stopped: run the same command again to go on from here", highlight=False)
    file = console.file
    return file.getvalue().rstrip("\n") if isinstance(file, io.StringIO) else ""


def _counts(tally: Tally) -> Table:
    versions = sorted(tally.versions)
    table = Table("labels", "all", *(f"{model}@{version}" for model, version in versions))
    outcomes = {*tally.labels, *(outcome for counts in tally.versions.values() for outcome in counts)}
    for outcome in sorted(outcomes, key=lambda one: (-tally.labels[one], one)):
        table.add_row(outcome, f"{tally.labels[outcome]:,}", *(f"{tally.versions[version][outcome]:,}" for version in versions))
    return table


def _print_change(console: Console, name: str, change: Change) -> None:
    coverage, window = change.coverage, change.window
    shares = [labelled / coverage.predictions for labelled in (coverage.labelled_before, coverage.labelled_after)]
    console.print(
        f"{name}: {coverage.labelled_before:,} -> {coverage.labelled_after:,} of {coverage.predictions:,} predictions labelled "
        f"({shares[0]:.1%} -> {shares[1]:.1%}); window {format_duration(window.length_ms)}, lag {format_duration(window.lag_ms)}, "
        f"at {len(change.at_ms)} moments {format_duration(change.at_ms.step)} apart",
        soft_wrap=True,
        highlight=False,
    )
    table = Table("largest move of", "at", "before", "after")
    for move in change.moves:
        at = instant(move.at_ms, "minutes")
        table.add_row(move.metric, at, *("-" if value is None else f"{value:.6g}" for value in (move.old, move.new)))
    console.print(table)
