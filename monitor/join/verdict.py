"""What becomes of a label, told from the join row of its id before it is applied; pure.

A label that would wait for a prediction, or that is too far from all that it covers, changes no sum. In a stream it is kept
all the same, for its prediction may be on its way; in a backfill everything has come that will.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from monitor.events.record import Head, Label
from monitor.join.decision import APPLIED, covers, judge_label, with_label
from monitor.join.horizon import Horizon
from monitor.join.row import Row, StoredLabel

UNKNOWN_ID = "unknown_id"
OTHER_MODEL = "other_model"
OTHER_VERSION = "other_version"
LATE = "late_label"
EARLY = "early_label"
EXPIRED = "expired"

HELD_BACK = (UNKNOWN_ID, OTHER_MODEL, OTHER_VERSION, LATE, EARLY)
"""Why a label cannot score anything."""


class Verdict(NamedTuple):
    """What becomes of a label.

    Attributes:
        outcome: Of the record: one of `HELD_BACK`, `expired`, an outcome of `decision`, or the reason of its refusal.
        versions: The same for each (model, version) that the label covers; one may be out of its reach where another is not.
        keep: Whether the row keeps the label.
    """

    outcome: str
    versions: dict[tuple[str, str], str]
    keep: bool = False


def judge(row: Row | None, label: Label, open_since: int, unpack: Callable[[bytes], Head], horizon: Horizon) -> Verdict:
    """Tell what becomes of a label.

    Args:
        row: Of its id; None without one.
        label: The label.
        open_since: `Horizon.accepts_since` of the partition that it comes in.
        unpack: Heads of stored predictions.
        horizon: The waiting rules.
    """
    stored = to_stored(label)
    known = [] if row is None else [(unpack(one.head), one.predicted_at) for one in row.predictions]
    covered = [(head, at) for head, at in known if covers(stored, head)]
    if row is None or not covered:
        if not known:
            return Verdict(UNKNOWN_ID, {})
        same_model = any(head.model == label.model for head, _ in known)
        return Verdict(OTHER_VERSION if same_model else OTHER_MODEL, {})
    versions: dict[tuple[str, str], str] = {}
    reached: set[tuple[str, str]] = set()
    for head, predicted_at in covered:
        version = (head.model, head.version)
        if horizon.eligible(predicted_at, label.labelled_at):
            reached.add(version)
        elif horizon.late(predicted_at, label.labelled_at):
            versions[version] = LATE
        else:
            versions.setdefault(version, EARLY)
    if not reached:
        return Verdict(LATE if LATE in versions.values() else EARLY, versions)
    if label.labelled_at < open_since:
        outcome, keep = EXPIRED, False
    elif row.labels:
        outcome, keep = judge_label(row.labels, label, open_since, horizon.horizon_ms is None)
    else:
        outcome, keep = APPLIED, True
    return Verdict(outcome, versions | dict.fromkeys(reached, outcome), keep)


def to_stored(label: Label) -> StoredLabel:
    """A label as a row keeps it."""
    return StoredLabel(label.label, label.labelled_at, label.revision, label.model, label.version, label.domain)


def with_verdict(row: Row, label: Label, verdict: Verdict, horizon: Horizon) -> None:
    """Take a label into a row, if it keeps it."""
    if verdict.keep:
        row.labels = with_label(row.labels, to_stored(label), horizon)
