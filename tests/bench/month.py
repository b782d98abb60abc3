"""A month of a binary classifier's events, as lines to read and as columns; and what it takes to compute a window's metrics from columns.

The recomputing side is given everything for nothing that a script has to do first: parsed, joined with the labels as known now, in numpy
arrays sorted by time. A window is a slice of views; metrics are scikit-learn's where it has them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score, brier_score_loss, log_loss

from monitor.statistics.fixed_point import F64, I64
from tests.recovery.stream import DAY_MS, MINUTE_MS, START_MS

DAYS = 30
REGIONS = tuple(f"r{number}" for number in range(8))
BINS = 15
THRESHOLD = 0.8
OF_VERSION = (
    "predictions",
    "completeness",
    "accuracy",
    "overconfidence",
    "ece",
    "brier",
    "nll",
    "coverage",
    "selective_risk",
    "rejection_rate",
)
OF_REGION = ("accuracy", "mean_confidence", "overconfidence", "ece", "rejection_rate")
SERIES = len(OF_VERSION) + len(OF_REGION) * len(REGIONS)
_EDGES = np.arange(BINS + 1) / BINS

Values = dict[tuple[str, str], float]
"""By metric and region; `all` for the version."""


@dataclass(frozen=True)
class Columns:
    """Predictions by time, with what is known of each now.

    Attributes:
        time_ms: When it was made, ascending.
        p_yes: Probability of `yes`.
        confidence: Of the predicted class.
        predicted: 1 for `yes`.
        label: 1 for `yes`; says nothing where there is none.
        labelled: Whether there is a label.
        region: Number of its region.
    """

    time_ms: I64
    p_yes: F64
    confidence: F64
    predicted: I64
    label: I64
    labelled: NDArray[np.bool_]
    region: I64

    def part(self, chosen: slice | NDArray[np.bool_]) -> Columns:
        """Some of the predictions."""
        return Columns(*(getattr(self, field.name)[chosen] for field in fields(self)))

    def between(self, start_ms: int, end_ms: int) -> Columns:
        """Those of a stretch of time."""
        return self.part(slice(*np.searchsorted(self.time_ms, [start_ms, end_ms])))


def month(predictions: int, seed: int) -> Columns:
    """So many predictions over the month, nine in ten labelled; the classifier is a little too sure."""
    rng = np.random.default_rng(seed)
    time_ms = np.sort(START_MS + rng.integers(0, DAYS * DAY_MS, predictions))
    p_yes = np.clip(rng.beta(0.8, 0.8, predictions), 0.001, 0.999).round(6)
    p_yes[p_yes == 0.5] = 0.51
    label = (rng.random(predictions) < 0.5 + 0.85 * (p_yes - 0.5)).astype(np.int64)
    confidence = np.maximum(p_yes, np.round(1 - p_yes, 6))
    region = rng.integers(0, len(REGIONS), predictions)
    return Columns(time_ms, p_yes, confidence, (p_yes > 0.5).astype(np.int64), label, rng.random(predictions) < 0.9, region)


def write_lines(path: Path, columns: Columns, seed: int) -> None:
    """The same as events: predictions and labels in order of arrival, labels up to two days late."""
    rng = np.random.default_rng(seed)
    labelled = np.flatnonzero(columns.labelled)
    arrival = np.concatenate((columns.time_ms, columns.time_ms[labelled] + rng.integers(MINUTE_MS, 2 * DAY_MS, len(labelled))))
    number = np.concatenate((np.arange(len(columns.time_ms)), labelled))
    order = np.argsort(arrival, kind="stable")
    with path.open("wb") as file:
        file.writelines(_lines(columns, order.tolist(), number.tolist(), arrival.tolist()))


def _lines(columns: Columns, order: list[int], number: list[int], arrival: list[int]) -> Iterator[bytes]:
    count = len(columns.time_ms)
    p_yes, region, label = columns.p_yes.tolist(), columns.region.tolist(), columns.label.tolist()
    for place in order:
        one = number[place]
        if place < count:
            head = f'"prediction_id":"{one:010x}","model":"credit","model_version":"7","predicted_at":{arrival[place]}'
            body = f'"probabilities":{{"no":{1 - p_yes[one]:.6f},"yes":{p_yes[one]:.6f}}},"groups":{{"region":"r{region[one]}"}}'
            yield f'{{"type":"prediction",{head},{body}}}\n'.encode()
        else:
            word = "yes" if label[one] else "no"
            yield f'{{"type":"label","prediction_id":"{one:010x}","label":"{word}","labelled_at":{arrival[place]}}}\n'.encode()


def recompute(columns: Columns, start_ms: int, end_ms: int) -> Values:
    """All series of a window from its events."""
    window = columns.between(start_ms, end_ms)
    found = {(name, "all"): value for name, value in _of_version(window).items()}
    for number, region in enumerate(REGIONS):
        values = _calibration(window.part(window.region == number))
        found |= {(name, region): values[name] for name in OF_REGION}
    return found


def _of_version(window: Columns) -> dict[str, float]:
    known = window.part(window.labelled)
    accepted = known.part(known.confidence >= THRESHOLD)
    shared = _calibration(window)
    return {
        **{name: shared[name] for name in OF_VERSION if name in shared},
        "predictions": len(window.time_ms),
        "completeness": len(known.time_ms) / len(window.time_ms),
        "brier": brier_score_loss(known.label == known.predicted, known.confidence),
        "nll": log_loss(known.label, known.p_yes, labels=[0, 1]),
        "coverage": 1 - shared["rejection_rate"],
        "selective_risk": 1 - accuracy_score(accepted.label, accepted.predicted),
    }


def _calibration(part: Columns) -> dict[str, float]:
    known = part.part(part.labelled)
    accuracy, mean = accuracy_score(known.label, known.predicted), known.confidence.mean()
    bins = np.minimum(np.searchsorted(_EDGES, known.confidence, side="right") - 1, BINS - 1)
    gap = known.confidence - (known.label == known.predicted)
    return {
        "accuracy": accuracy,
        "mean_confidence": float(mean),
        "overconfidence": float(mean - accuracy),
        "ece": float(np.abs(np.bincount(bins, weights=gap, minlength=BINS)).sum() / len(gap)),
        "rejection_rate": float((part.confidence < THRESHOLD).mean()),
    }
