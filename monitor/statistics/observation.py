"""Columns of observations: what one batch adds to or takes from the sums, one row a change.

A row is one prediction in one state (unlabelled, or with a certain label) with two weights: how often it is added to
the sums over all predictions and to the sums over labelled ones. A correction is two rows: the old state taken away and
the new one added, so every change has an exact inverse.
"""

from __future__ import annotations

from enum import IntFlag

import numpy as np

from monitor.statistics.addition import Additions
from monitor.statistics.fixed_point import F64, I64, PROBABILITY_BITS, fixed
from monitor.statistics.grid import bin_index
from monitor.statistics.layout import Layout
from monitor.statistics.score_grid import score_bin
from monitor.statistics.segment import ALL, CLASS, GROUP, SCORE, VALUES
from monitor.statistics.summand import Bools, calibrated_size, calibration, moments, vectors
from monitor.statistics.value_table import bucket, entry

COLUMNS = 12
"""Of a row: track, event time ms, confidence, all weight, labelled weight, flags, OOD score or NaN, sum of p^2, p of the label, slot of
the predicted class, slot of the label's class or -1, slot of the scores or -1."""


class Flag(IntFlag):
    """What a row knows of its prediction."""

    CORRECT = 1
    SENT = 2
    """The service said whether it accepted."""
    SENT_ACCEPTED = 4
    DOMAIN_ID = 8
    DOMAIN_OOD = 16
    VECTOR = 32
    UNKNOWN_CLASS = 64


class _Rows:
    """Columns by name."""

    def __init__(self, columns: F64) -> None:
        self.track, self.event_time_ms, self.all_weight, self.labelled_weight, self.flags = (
            columns[row].astype(np.int64) for row in (0, 1, 3, 4, 5)
        )
        # Adding 0.0 turns -0.0 into 0.0: equal confidences must have equal bits.
        self.confidence, self.score, self.squares, self.true_probability = columns[2] + 0.0, columns[6], columns[7], columns[8]
        self.predicted_slot, self.true_slot, self.score_slot = (columns[row].astype(np.int64) for row in (9, 10, 11))

    def has(self, flag: Flag) -> Bools:
        """Rows with a flag."""
        return np.asarray((self.flags & flag) != 0)

    def decisions(self, layout: Layout) -> tuple[Bools, Bools]:
        """Whether each was decided, and accepted: the service's word, else the threshold's, else undecided."""
        sent, accepted = self.has(Flag.SENT), self.has(Flag.SENT_ACCEPTED)
        threshold = layout.decisions(self.confidence)
        if threshold is None:
            return sent, accepted
        return np.ones_like(sent), np.where(sent, accepted, threshold)


def additions(columns: F64, slots: I64, layout: Layout) -> list[Additions]:
    """Turn rows into the integers they add to cells: of segment `all`, of group values, of classes and of scores.

    Args:
        columns: As of `COLUMNS`, from a `RowBuffer`; shape (12, n).
        slots: Slots of each track: column 0 segment `all`, column 1 its values, then one column a group attribute, -1
            where the attribute has no value; shape (n_tracks, 2 + n_groups).
        layout: What the sums mean.
    """
    made: list[Additions] = []
    predictions = np.flatnonzero(columns[3])
    if len(predictions):
        made += _of_predictions(_Rows(columns[:, predictions]), slots, layout)
    labelled = np.flatnonzero(columns[4])
    if len(labelled):
        made += _of_labelled(_Rows(columns[:, labelled]), slots, layout)
    return made


def _of_predictions(rows: _Rows, slots: I64, layout: Layout) -> list[Additions]:
    """What is over all predictions."""
    weight = rows.all_weight
    decided, accepted = rows.decisions(layout)
    scalars = {
        "predictions": weight,
        "confidence_only": weight * ~rows.has(Flag.VECTOR),
        "decided": weight * decided,
        "accepted": weight * accepted,
        **_domains(rows, layout, "scored", rows.all_weight),
    }
    bins = {"predictions": weight, "prediction_confidence": fixed(rows.confidence, PROBABILITY_BITS) * weight}
    made = _of_segments(rows, slots, layout, scalars, bins)
    made.append(Additions.of(CLASS, rows.event_time_ms, rows.predicted_slot, None, {"events": weight, "predicted": weight}, {}))
    scored = np.flatnonzero(rows.score_slot >= 0)
    if len(scored):
        one = {"predictions": weight[scored]}
        place = score_bin(rows.score[scored])
        made.append(Additions.of(SCORE, rows.event_time_ms[scored], rows.score_slot[scored], place, one, one))
    return made


def _of_labelled(rows: _Rows, slots: I64, layout: Layout) -> list[Additions]:
    """What is over labelled predictions; scalars from `moments` on over those that the report bins use."""
    weight, correct = rows.labelled_weight, rows.has(Flag.CORRECT)
    used = weight * layout.used(rows.confidence)
    decided, accepted = rows.decisions(layout)
    scalars = {
        "labelled": weight,
        "labelled_decided": weight * decided,
        "labelled_accepted": weight * accepted,
        "labelled_accepted_errors": weight * (accepted & ~correct),
        **_outcomes(rows, layout, correct),
        **moments(rows.confidence, correct, used, layout.nll_clip),
        **vectors(rows.squares, rows.true_probability, rows.has(Flag.UNKNOWN_CLASS), used * rows.has(Flag.VECTOR), layout.nll_clip),
        **calibrated_size(rows.confidence, correct, used, layout.csr_clip),
    }
    made = _of_segments(rows, slots, layout, scalars, calibration(rows.confidence, correct, weight))
    counts = {"labelled": weight, "correct": weight * correct, **entry(rows.confidence, weight)}
    made.append(Additions.of(VALUES, rows.event_time_ms, slots[rows.track, 1], bucket(rows.confidence), counts, counts))
    return [*made, *_of_classes(rows, correct, used)]


def _of_segments(rows: _Rows, slots: I64, layout: Layout, scalars: dict[str, I64], bins: dict[str, I64]) -> list[Additions]:
    """The same sums for segment `all` and for each group attribute."""
    slot = np.delete(slots, 1, axis=1)[rows.track]
    made = [Additions.of(ALL, rows.event_time_ms, slot[:, 0], bin_index(layout.grid, rows.confidence), scalars, bins)]
    if slot.shape[1] > 1:
        place = bin_index(layout.group_grid, rows.confidence)
        first = Additions.of(GROUP, rows.event_time_ms, slot[:, 1], place, scalars, bins)
        made += [first, *(first.of_slots(slot[:, column]) for column in range(2, slot.shape[1]))]
    return made


def _of_classes(rows: _Rows, correct: Bools, used: I64) -> list[Additions]:
    """What a labelled event adds to the class that was predicted, and to the one that was true."""
    confidence = fixed(rows.confidence, PROBABILITY_BITS) * used
    predicted = {
        "events": rows.labelled_weight,
        "predicted_labelled": used,
        "hits": used * correct,
        "predicted_confidence": confidence,
        "hit_confidence": confidence * correct,
    }
    true = {"events": rows.labelled_weight, "true": used, "true_confidence": confidence}
    return [
        Additions.of(CLASS, rows.event_time_ms, rows.predicted_slot, None, predicted, {}),
        Additions.of(CLASS, rows.event_time_ms, rows.true_slot, None, true, {}),
    ]


def _domains(rows: _Rows, layout: Layout, name: str, weight: I64) -> dict[str, I64]:
    """Scored events by what is known of their domain and by the OOD threshold."""
    scored = weight * ~np.isnan(rows.score)
    passed = layout.in_distribution(rows.score)
    domain = rows.flags & (Flag.DOMAIN_ID | Flag.DOMAIN_OOD)
    sums = {}
    for word, value in (("unknown", 0), ("id", Flag.DOMAIN_ID), ("ood", Flag.DOMAIN_OOD)):
        here = scored * (domain == value)
        sums[f"{name}_{word}_rejected"] = here * ~passed
        sums[f"{name}_{word}_accepted"] = here * passed
    return sums


def _outcomes(rows: _Rows, layout: Layout, correct: Bools) -> dict[str, I64]:
    """Labelled scored events by domain, OOD threshold and outcome."""
    parts = {"correct": rows.labelled_weight * correct, "wrong": rows.labelled_weight * ~correct}
    return {
        f"{name}_{outcome}": sums for outcome, weight in parts.items() for name, sums in _domains(rows, layout, "labelled", weight).items()
    }
