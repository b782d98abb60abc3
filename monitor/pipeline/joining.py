"""Joining one batch: rows in, outcomes and observation rows out; what changed is left for the checkpoint.

This is the only code that runs once a record after decoding, so it is written for speed: few objects, and shortcuts for
the common cases (first prediction of an id, first label of its predictions) that the general way would decide alike.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

from monitor.duration import DAY_MS
from monitor.events.contract import LATEST_MS
from monitor.events.record import Head, HeadTable, Label, Prediction
from monitor.join.decision import APPLIED, DUPLICATE, covers, first_label, judge_label, judge_prediction, winner, with_label
from monitor.join.horizon import Horizon
from monitor.join.row import Row, StoredLabel, StoredPrediction
from monitor.pipeline.account import Account
from monitor.pipeline.revisions.cause import CORRECTION, FIRST_LABEL, PREDICTION, WITHDRAWAL
from monitor.statistics.observation import Flag
from monitor.statistics.split import fits
from monitor.statistics.track import SCORE_NAMES, Observer, Track, domain_flags

_CORRECT = int(Flag.CORRECT)
_UNKNOWN_CLASS = int(Flag.UNKNOWN_CLASS)
_SENT = {None: 0, False: int(Flag.SENT), True: int(Flag.SENT | Flag.SENT_ACCEPTED)}
_DOMAIN = int(Flag.DOMAIN_ID | Flag.DOMAIN_OOD)
_NO_SCORE = math.nan


class BatchJoin:
    """Applies the records of one batch to the rows they concern.

    Args:
        rows: Rows of the batch's ids, by id; an id without a row is absent.
        heads: Table of heads.
        observer: Collects what changes in the sums.
        account: Counts what waits and what could not be joined.
        horizon: The waiting rules.
        matured_ms: Predictions before it have matured: whatever changes them is a revision.

    Attributes:
        rows: The rows, changed in place and with the new ones.
        touched: Ids of the rows that changed, in order: neighbours in time are often neighbours in the store.
        due: Ids of the rows that are new, by the day on which they may be done (`Horizon`).
        prediction_outcomes: Outcome of each prediction that was not refused.
        label_outcomes: The same of labels.
        delays: Delays of first labels, ms, by head.
        first_ms: Smallest event time of the predictions that were applied, by head.
        revised: What the record in work changed of matured predictions, and how; whoever notes it takes it out.
    """

    def __init__(
        self, rows: dict[str, Row], heads: HeadTable, observer: Observer, account: Account, horizon: Horizon, matured_ms: int
    ) -> None:
        self.rows = rows
        self._heads = heads
        self._observer = observer
        self._steady = observer.steady
        self._account = account
        self._horizon = horizon
        self._matured_ms = matured_ms
        self._earliest_ms = horizon.earliest_ms
        self._latest_ms = horizon.latest_ms
        self._prediction_waits_ms = horizon.prediction_done_ms(0)
        self._id = ""  # of the record in work
        self.touched: dict[str, None] = {}
        self.due: defaultdict[int, list[str]] = defaultdict(list)
        self.prediction_outcomes: list[str] = []
        self.label_outcomes: list[str] = []
        self.delays: defaultdict[Head, list[int]] = defaultdict(list)
        self.first_ms: dict[Head, int] = {}
        self.revised: list[tuple[Head, str]] = []

    def prediction(self, new: Prediction, open_since: int) -> str | None:
        """Apply a prediction.

        Args:
            new: The prediction.
            open_since: `Horizon.accepts_since` of its partition.

        Returns:
            The reason if it is refused, else None.
        """
        head = new.head
        self._id = new.prediction_id
        stored = StoredPrediction(head.packed, new.predicted_at, new.probabilities, new.predicted, new.ood_score, new.accepted)
        row = self.rows.get(new.prediction_id)
        label = None
        if head not in self._steady and not self._observer.admits(head):
            return "too_many_versions"
        if row is None:
            self.rows[new.prediction_id] = Row([stored], [])
            if self._prediction_waits_ms is not None:
                self.due[(new.predicted_at + self._prediction_waits_ms) // DAY_MS + 1].append(new.prediction_id)
        else:
            same = [position for position, known in enumerate(row.predictions) if self._same_version(known, head)]
            outcome = judge_prediction(row.predictions, stored, same, open_since)
            if outcome == DUPLICATE:
                self.prediction_outcomes.append(DUPLICATE)
                return None
            if outcome != APPLIED:
                return outcome
            if not row.predictions:
                self._account.waiting -= _scopes(row)
            row.predictions.append(stored)
            if row.labels:
                label = self._labelled_before(head, stored, row.labels)
        self.touched[new.prediction_id] = None
        self.prediction_outcomes.append(APPLIED)
        if new.predicted_at < self.first_ms.get(head, LATEST_MS):
            self.first_ms[head] = new.predicted_at
        if new.predicted_at < self._matured_ms:
            self.revised.append((head, PREDICTION))
        if label is not None and label.label is not None:
            self._observe(head, stored, label, 1, 1)
        else:
            self._account.pending += 1
            self._observe(head, stored, None, 1, 0)
        return None

    def label(self, new: Label, open_since: int) -> str | None:
        """Apply a label.

        Args:
            new: The label.
            open_since: `Horizon.accepts_since` of its partition.

        Returns:
            The reason if it is refused, else None.
        """
        self._id = new.prediction_id
        row = self.rows.get(new.prediction_id)
        if row is None:
            row = self.rows[new.prediction_id] = Row([], [])
            done_at = self._horizon.label_done_ms(new.labelled_at)
            if done_at is not None:
                self.due[done_at // DAY_MS + 1].append(new.prediction_id)
        keep = True
        outcome = APPLIED
        if row.labels:
            outcome, keep = judge_label(row.labels, new, open_since, self._horizon.horizon_ms is None)
            if not keep and outcome != DUPLICATE:
                return outcome
        self.label_outcomes.append(outcome)
        if keep:
            self._store_label(row, new)
            self.touched[new.prediction_id] = None
        return None

    def _labelled_before(self, head: Head, prediction: StoredPrediction, labels: Sequence[StoredLabel]) -> StoredLabel | None:
        """The label that scores a prediction which comes after its labels."""
        predicted_at = prediction.predicted_at
        self._count_pairs(head, predicted_at, labels)
        first = first_label(head, predicted_at, labels, self._horizon)
        if first is not None:
            self.delays[head].append(first.labelled_at - predicted_at)
        return winner(head, predicted_at, labels, self._horizon)

    def _store_label(self, row: Row, new: Label) -> None:
        stored = StoredLabel(new.label, new.labelled_at, new.revision, new.model, new.version, new.domain)
        before = row.labels
        row.labels = with_label(before, stored, self._horizon) if before else [stored]
        if not row.predictions:
            if not any(label.model == new.model and label.version == new.version for label in before):
                self._account.waiting += 1
            return
        for prediction in row.predictions:
            head = self._heads.unpack(prediction.head)
            if new.model is not None and not covers(stored, head):
                continue
            if not self._earliest_ms <= new.labelled_at - prediction.predicted_at <= self._latest_ms:
                self._count_pairs(head, prediction.predicted_at, (stored,))
            elif before or new.label is None:
                self._rescore(head, prediction, stored, before, row.labels)
            else:
                self._first_score(head, prediction, stored)

    def _first_score(self, head: Head, prediction: StoredPrediction, new: StoredLabel) -> None:
        """Score a prediction that no label has spoken of before."""
        self.delays[head].append(new.labelled_at - prediction.predicted_at)
        self._account.pending -= 1
        if prediction.predicted_at < self._matured_ms:
            self.revised.append((head, FIRST_LABEL))
        if new.domain is None or new.domain == head.domain:
            self._observe(head, prediction, new, 0, 1)
        else:
            self._observe(head, prediction, None, -1, 0)
            self._observe(head, prediction, new, 1, 1)

    def _rescore(
        self, head: Head, prediction: StoredPrediction, new: StoredLabel, before: Sequence[StoredLabel], after: Sequence[StoredLabel]
    ) -> None:
        """Move a prediction from the label that scored it to the one that does now."""
        predicted_at = prediction.predicted_at
        if new.label is not None and first_label(head, predicted_at, before, self._horizon) is None:
            self.delays[head].append(new.labelled_at - predicted_at)
        old = winner(head, predicted_at, before, self._horizon)
        now = winner(head, predicted_at, after, self._horizon)
        old_label, old_domain = _content(old, head)
        now_label, now_domain = _content(now, head)
        if old_label == now_label and old_domain == now_domain:
            return
        was_labelled = old_label is not None
        is_labelled = now_label is not None
        self._account.pending += was_labelled - is_labelled
        if predicted_at < self._matured_ms:
            kind = CORRECTION if was_labelled and is_labelled else FIRST_LABEL if is_labelled else WITHDRAWAL
            self.revised.append((head, kind))
        moved = int(old_domain != now_domain)
        if was_labelled or moved:
            self._observe(head, prediction, old, -moved, -int(was_labelled))
        if is_labelled or moved:
            self._observe(head, prediction, now, moved, int(is_labelled))

    def _observe(
        self, head: Head, prediction: StoredPrediction, scored_by: StoredLabel | None, all_weight: int, labelled_weight: int
    ) -> None:
        """Add or take away a prediction in the state that a label (or None) gives it."""
        track = self._steady.get(head) or self._observer.track(head, prediction.predicted_at)
        probabilities = prediction.probabilities
        flags = track.flags | _SENT[prediction.accepted]
        squares = true_probability = 0.0
        label = None if scored_by is None else scored_by.label
        if scored_by is not None and label is not None:
            if label == head.classes[prediction.predicted]:
                flags |= _CORRECT
            if scored_by.domain is not None:
                flags = flags & ~domain_flags(head.domain) | domain_flags(scored_by.domain)
            if head.vector:
                for probability in probabilities:
                    squares += probability * probability
                try:
                    true_probability = probabilities[head.classes.index(label)]
                except ValueError:
                    flags |= _UNKNOWN_CLASS
                if labelled_weight and (track.watched or track.vectors is not None):
                    self._observe_vector(track, head, prediction, label, labelled_weight)
        score = prediction.ood_score
        score_slot = -1
        if score is None:
            score = _NO_SCORE
        elif all_weight:
            score_slot = track.scores[SCORE_NAMES[flags & _DOMAIN][score < 0]]
        track.append(
            (
                track.number,
                prediction.predicted_at,
                probabilities[prediction.predicted],
                all_weight,
                labelled_weight,
                flags,
                score,
                squares,
                true_probability,
                track.classes[head.classes[prediction.predicted]],
                -1 if label is None else track.classes[label],
                score_slot,
            )
        )

    def _observe_vector(self, track: Track, head: Head, prediction: StoredPrediction, label: str, weight: int) -> None:
        """Add or take away a labelled prediction where classes' own probabilities or temperatures are watched."""
        vector, predicted, at = prediction.probabilities, prediction.predicted, prediction.predicted_at
        confidence = vector[predicted]
        for index, slot, values in track.watched:
            track.probabilities((slot, at, weight, vector[index], head.classes[index] == label, index == predicted, confidence, values))
        if track.vectors is not None and label in head.classes:
            reports = not fits(self._id)
            true = head.classes.index(label)
            track.vectors.append((track.halves[reports], at, weight, reports, true, predicted), vector)

    def _same_version(self, known: StoredPrediction, head: Head) -> bool:
        other = self._heads.unpack(known.head)
        return other is head or (other.model == head.model and other.version == head.version)

    def _count_pairs(self, head: Head, predicted_at: int, labels: Sequence[StoredLabel]) -> None:
        """Count the labels that cover a prediction but are too far from it in time."""
        for label in labels:
            if covers(label, head):
                if self._horizon.late(predicted_at, label.labelled_at):
                    self._account.not_eligible("late")
                elif self._horizon.early(predicted_at, label.labelled_at):
                    self._account.not_eligible("early")


def _content(label: StoredLabel | None, head: Head) -> tuple[str | None, str | None]:
    """Label and effective domain of a prediction that `label` scores; a withdrawn label's domain does not apply."""
    if label is None or label.label is None:
        return None, head.domain
    return label.label, head.domain if label.domain is None else label.domain


def _scopes(row: Row) -> int:
    """Different scopes that the labels of a row have."""
    return len({(label.model, label.version) for label in row.labels})


def done_ms(row: Row, horizon: Horizon) -> int | None:
    """Once every partition has passed this time, no record can meet anything in the row; None for never."""
    times = [horizon.prediction_done_ms(prediction.predicted_at) for prediction in row.predictions]
    times += [horizon.label_done_ms(label.labelled_at) for label in row.labels]
    return max((time for time in times if time is not None), default=None)


def forget_row(row: Row, heads: HeadTable, horizon: Horizon, account: Account) -> None:
    """Take what an expiring row still counts as waiting out of the account."""
    if not row.predictions:
        account.waiting -= _scopes(row)
    for prediction in row.predictions:
        label = winner(heads.unpack(prediction.head), prediction.predicted_at, row.labels, horizon)
        account.pending -= label is None or label.label is None
