"""A whole history of records joined by the letter of the rules: nothing is ever forgotten, everything is recomputed from lists.

Rules: DESIGN.md "Order of labels of one id", "Late", "Time rules" and "One outcome per record". All records and labels are kept for
ever; what a rule may look at (entries younger than a bound) is selected from them each time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from tests.oracle.events import Judgement, Label, Prediction, Refusal, judge

TWO_DAYS_MS = 2 * 86_400_000
MAX_LABELS = 16

Scope: TypeAlias = tuple[str, str | None, str | None]


@dataclass(frozen=True)
class Scored:
    """A surviving prediction with the label that wins for it, which may be absent or a withdrawal."""

    prediction: Prediction
    winner: Label | None

    @property
    def label(self) -> str | None:
        """The class that the prediction is scored with; None while unlabelled or withdrawn."""
        return self.winner.label if self.winner is not None else None

    @property
    def correct(self) -> bool:
        """Whether the label is the predicted class."""
        return self.label == self.prediction.predicted_class

    @property
    def domain(self) -> str | None:
        """The label's domain where a label scores and names one, else the prediction's."""
        if self.winner is not None and self.winner.label is not None and self.winner.domain is not None:
            return self.winner.domain
        return self.prediction.domain


@dataclass
class Account:
    """What became of every record."""

    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    refusals: Counter[tuple[str, str]] = field(default_factory=Counter)
    late: int = 0
    early: int = 0
    pending: int = 0
    orphan_labels: int = 0

    @property
    def consumed(self) -> int:
        """All records: each has exactly one outcome."""
        return sum(self.outcomes.values())

    @property
    def predictions(self) -> int:
        """Predictions applied."""
        return self.outcomes["prediction", "applied"]

    @property
    def duplicates(self) -> int:
        """Duplicates of both kinds and stale labels together."""
        return self.outcomes["prediction", "duplicate"] + self.outcomes["label", "duplicate"] + self.outcomes["label", "stale"]

    @property
    def rejected(self) -> dict[str, int]:
        """Refused records by reason."""
        by_reason: Counter[str] = Counter()
        for (_, reason), count in self.refusals.items():
            by_reason[reason] += count
        return dict(by_reason)


@dataclass(frozen=True)
class Joined:
    """The truth as known after the last record."""

    scored: list[Scored]
    account: Account


def join(records: Iterable[tuple[int, bytes]], horizon_ms: int | None, classes: Mapping[str, Sequence[str]] | None = None) -> Joined:
    """Judge and join a history.

    Args:
        records: (partition, line) in order of arrival.
        horizon_ms: How long a prediction waits for its label; None: for ever.
        classes: Per model, the configured class names that a probability list is read with.

    Returns:
        The surviving predictions in order of arrival, each with its winning label, and the account.
    """
    return join_judged(((partition, judge(line, classes)) for partition, line in records), horizon_ms)


def join_judged(records: Iterable[tuple[int, Judgement]], horizon_ms: int | None) -> Joined:
    """The same for records that have been judged already."""
    reach_ms = None if horizon_ms is None else horizon_ms + TWO_DAYS_MS
    account = Account()
    newest: dict[int, int] = {}
    predictions: dict[str, list[Prediction]] = {}
    labels: dict[Scope, list[Label]] = {}
    survivors: list[Prediction] = []

    for partition, record in records:
        if isinstance(record, Refusal):
            _count(account, record.kind, record.reason, refused=True)
            continue
        kind = "prediction" if isinstance(record, Prediction) else "label"
        time_ms = record.predicted_at_ms if isinstance(record, Prediction) else record.labelled_at_ms
        newest_ms = max(newest.get(partition, time_ms), time_ms)
        oldest_ms = None if reach_ms is None else newest_ms - reach_ms
        if oldest_ms is not None and time_ms < oldest_ms:
            _count(account, kind, "expired", refused=True)
            continue
        newest[partition] = newest_ms
        if isinstance(record, Prediction):
            entries = predictions.setdefault(record.prediction_id, [])
            outcome, refused = prediction_outcome(record, entries, oldest_ms)
            if outcome == "applied":
                entries.append(record)
                survivors.append(record)
        else:
            stored = labels.setdefault((record.prediction_id, record.model, record.model_version), [])
            outcome, refused = label_outcome(record, stored, oldest_ms)
            if not refused and all(_key(record) != _key(other) for other in stored):
                stored.append(record)
        _count(account, kind, outcome, refused=refused)

    scored = [Scored(prediction, winner(prediction, labels, horizon_ms)) for prediction in survivors]
    account.pending = sum(1 for event in scored if event.label is None)
    account.orphan_labels = sum(1 for scope, stored in labels.items() if stored and scope[0] not in predictions)
    for prediction in survivors:
        verdicts = [eligibility(label, prediction, horizon_ms) for label in _covering(prediction, labels)]
        account.late += verdicts.count("late")
        account.early += verdicts.count("early")
    return Joined(scored, account)


def prediction_outcome(record: Prediction, entries: Sequence[Prediction], oldest_ms: int | None) -> tuple[str, bool]:
    """The outcome (or reason) of a prediction within its (id, model, version), and whether that refuses it."""
    decisive = [
        other
        for other in entries
        if (other.model, other.model_version) == (record.model, record.model_version)
        and (oldest_ms is None or other.predicted_at_ms >= oldest_ms)
    ]
    if not decisive:
        return "applied", False
    return ("duplicate", False) if record in decisive else ("conflicting_prediction", True)


def label_outcome(record: Label, stored: Sequence[Label], oldest_ms: int | None) -> tuple[str, bool]:
    """The outcome (or reason) of a label within its id and scope, and whether that refuses it.

    Args:
        record: The label.
        stored: The labels of its scope that were not refused.
        oldest_ms: Entries older than this no longer decide; None (no horizon): all decide.
    """
    decisive = [other for other in stored if oldest_ms is None or other.labelled_at_ms >= oldest_ms]
    for other in decisive:
        if _key(other) == _key(record):
            return ("duplicate", False) if _content(other) == _content(record) else ("conflicting_label", True)
    # Of the labels with one time only the highest key can win; without a horizon only the highest key of all.
    if oldest_ms is not None and len({other.labelled_at_ms for other in [*decisive, record]}) > MAX_LABELS:
        return "too_many_labels", True
    if not decisive:
        return "applied", False
    highest = max(decisive, key=_key)
    if _content(record) == _content(highest):
        return "duplicate", False
    if _key(record) < _key(highest):
        return "stale", False
    return ("withdrawn" if record.label is None else "corrected"), False


def winner(prediction: Prediction, labels: Mapping[Scope, Sequence[Label]], horizon_ms: int | None) -> Label | None:
    """The eligible label with the highest key, ties to the narrower scope; a withdrawal wins like any other."""
    eligible = [label for label in _covering(prediction, labels) if eligibility(label, prediction, horizon_ms) == "eligible"]
    return max(eligible, key=lambda label: (*_key(label), label.model is not None, label.model_version is not None), default=None)


def eligibility(label: Label, prediction: Prediction, horizon_ms: int | None) -> str:
    """Whether a label may score a prediction that its scope covers: "eligible", "late" or "early"."""
    if horizon_ms is None:
        return "eligible"
    delay_ms = label.labelled_at_ms - prediction.predicted_at_ms
    if delay_ms > horizon_ms:
        return "late"
    if delay_ms < -(horizon_ms + TWO_DAYS_MS):
        return "early"
    return "eligible"


def _covering(prediction: Prediction, labels: Mapping[Scope, Sequence[Label]]) -> list[Label]:
    """All stored labels of the scopes that cover a prediction."""
    scopes: list[Scope] = [
        (prediction.prediction_id, None, None),
        (prediction.prediction_id, prediction.model, None),
        (prediction.prediction_id, prediction.model, prediction.model_version),
    ]
    return [label for scope in scopes for label in labels.get(scope, ())]


def _key(label: Label) -> tuple[int, int]:
    return label.revision, label.labelled_at_ms


def _content(label: Label) -> tuple[str | None, str | None]:
    return label.label, label.domain


def _count(account: Account, kind: str, outcome: str, *, refused: bool) -> None:
    account.outcomes[kind, "refused" if refused else outcome] += 1
    if refused:
        account.refusals[kind, outcome] += 1
