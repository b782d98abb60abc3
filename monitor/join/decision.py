"""Decisions within one id: the outcome of a record, and which label a prediction is scored by.

Labels are ordered within their scope (any; model; model and version) by (revision, labelled_at). A prediction takes the
highest key over the scopes that cover it, ties to the narrower; a winning null leaves it unlabelled.
"""

from __future__ import annotations

from collections.abc import Sequence

from monitor.events.record import Head, Label
from monitor.join.horizon import Horizon
from monitor.join.row import StoredLabel, StoredPrediction

MAX_LABELS = 16
"""Labels of one scope that may still win (given at different times); one more is refused."""

MAX_PREDICTIONS = 64
"""Predictions of one id (model versions, shadows, canaries); one more is refused."""

APPLIED = "applied"
DUPLICATE = "duplicate"
CORRECTED = "corrected"
WITHDRAWN = "withdrawn"
STALE = "stale"


def covers(label: StoredLabel, head: Head) -> bool:
    """Whether the label's scope holds the prediction's model and version."""
    return label.model is None or (label.model == head.model and (label.version is None or label.version == head.version))


def winner(head: Head, predicted_at: int, labels: Sequence[StoredLabel], horizon: Horizon) -> StoredLabel | None:
    """The label that scores a prediction of this head and time; may be a withdrawal; None without an eligible one."""
    best: StoredLabel | None = None
    best_key = (-1, -1, -1)
    for label in labels:
        if covers(label, head) and horizon.eligible(predicted_at, label.labelled_at):
            key = (label.revision, label.labelled_at, (label.model is not None) + (label.version is not None))
            if key > best_key:
                best, best_key = label, key
    return best


def judge_prediction(stored: Sequence[StoredPrediction], new: StoredPrediction, same_version: Sequence[int], open_since: int) -> str:
    """Outcome of a prediction.

    Args:
        stored: Predictions of the id.
        new: The arriving one.
        same_version: Positions in `stored` of the same model and version.
        open_since: Older stored predictions decide nothing (`Horizon.accepts_since`).

    Returns:
        `applied`, `duplicate`, `conflicting_prediction` or `too_many_predictions`.
    """
    for position in same_version:
        known = stored[position]
        if known.predicted_at >= open_since:
            return DUPLICATE if known == new else "conflicting_prediction"
    # Only what a partition still looks at counts: older predictions are there or not as other partitions have it.
    counted = sum(known.predicted_at >= open_since for known in stored)
    return APPLIED if counted < MAX_PREDICTIONS else "too_many_predictions"


def judge_label(stored: Sequence[StoredLabel], new: Label, open_since: int, forgets: bool) -> tuple[str, bool]:
    """Outcome of a label within its scope.

    Args:
        stored: Labels of the id, all scopes.
        new: The arriving one.
        open_since: Older stored labels decide nothing.
        forgets: Whether `with_label` drops all lower labels, as it does without a horizon.

    Returns:
        The outcome or the reason of refusal, and whether the label is to be stored.
    """
    key = (new.revision, new.labelled_at)
    highest: StoredLabel | None = None
    highest_key = (-1, -1)
    times = {new.labelled_at}
    for label in stored:
        if label.model != new.model or label.version != new.version or label.labelled_at < open_since:
            continue
        times.add(label.labelled_at)
        known = (label.revision, label.labelled_at)
        if known == key:
            same = label.label == new.label and label.domain == new.domain
            return (DUPLICATE, False) if same else ("conflicting_label", False)
        if known > highest_key:
            highest, highest_key = label, known
    if highest is None:
        return APPLIED, True
    if len(times) > MAX_LABELS and not forgets:
        return "too_many_labels", False
    same = highest.label == new.label and highest.domain == new.domain
    if same:
        return DUPLICATE, True
    if key < highest_key:
        return STALE, True
    return (WITHDRAWN if new.label is None else CORRECTED), True


def with_label(stored: Sequence[StoredLabel], new: StoredLabel, horizon: Horizon) -> list[StoredLabel]:
    """The labels of an id after one more, in order of arrival, without those of its scope that no longer matter.

    A label can never win again if another of its scope has a higher key and is eligible wherever it is: everywhere
    without a horizon, else only where both were given at the same time. The first non-null label of those stays all
    the same: the label delay of a version is that of its first label, whichever order the topics are read in.
    """
    key = (new.revision, new.labelled_at)
    kept: list[StoredLabel] = []
    superseded = named = False
    for label in stored:
        if label.model != new.model or label.version != new.version:
            kept.append(label)
            continue
        comparable = horizon.horizon_ms is None or label.labelled_at == new.labelled_at
        first = comparable and label.label is not None and not named
        named |= first
        lower = (label.revision, label.labelled_at) < key
        superseded |= comparable and not lower
        if first or not (comparable and lower):
            kept.append(label)
    if not superseded or (new.label is not None and not named):
        kept.append(new)
    return kept


def first_label(head: Head, predicted_at: int, labels: Sequence[StoredLabel], horizon: Horizon) -> StoredLabel | None:
    """The first non-null label to arrive that may score a prediction of this head and time, or None."""
    for label in labels:
        if label.label is not None and covers(label, head) and horizon.eligible(predicted_at, label.labelled_at):
            return label
    return None
