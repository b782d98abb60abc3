"""Streams for the evidence tests in the running service, and what they must come to: one pass over panes made of the events themselves."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from monitor.duration import HOUR_MS
from monitor.evidence.cell import SUMS
from monitor.evidence.course import Course, extend
from monitor.evidence.grid_sums import BINS, EDGES
from monitor.statistics.fixed_point import F64, I64
from tests.recovery.stream import START_MS, encode, label, prediction

Accuracy = Callable[[float, int], float]
"""How often a prediction of some confidence is correct, by the hour it is made in."""

MATURITY_MS = 48 * HOUR_MS


@dataclass(frozen=True, slots=True)
class Event:
    """A prediction, and its label if there is one.

    Attributes:
        one: Its id.
        version: Of model `m`.
        at_ms: When it is made.
        confidence: Of class `yes`.
        correct: Whether the label is `yes`; None without a label.
        labelled_ms: When the label comes.
    """

    one: str
    version: str
    at_ms: int
    confidence: float
    correct: bool | None
    labelled_ms: int


def made(seed: int, hours: Sequence[int], versions: Mapping[str, Accuracy], per_hour: int = 20, unlabelled: float = 0.05) -> list[Event]:
    """Events of some hours, each version as many; labels come within 40 hours."""
    chance = random.Random(seed)  # noqa: S311 - the same every time
    events = []
    for hour in hours:
        for number in range(per_hour):
            for version, accuracy in versions.items():
                confidence = round(chance.uniform(0.5, 1.0), 6)
                correct = chance.random() < accuracy(confidence, hour)
                at_ms = START_MS + hour * HOUR_MS + number * 60_000
                labelled_ms = at_ms + chance.randrange(40 * HOUR_MS)
                known = correct if chance.random() >= unlabelled else None
                events.append(Event(f"{version}-{hour}-{number}", version, at_ms, confidence, known, labelled_ms))
    return events


def records(events: Sequence[Event]) -> list[tuple[int, bytes]]:
    """When each record arrives, and its bytes, in order."""
    found = []
    for event in events:
        found.append((event.at_ms, encode(prediction(event.one, event.at_ms, event.confidence, version=event.version))))
        if event.correct is not None:
            found.append((event.labelled_ms, encode(label(event.one, event.labelled_ms, "yes" if event.correct else "no"))))
    return sorted(found)


def cells(events: Sequence[Event]) -> tuple[I64, I64]:
    """Pane numbers and cells of the events of one version."""
    numbers = np.array([event.at_ms // HOUR_MS for event in events])
    panes, place = np.unique(numbers, return_inverse=True)
    confidence = np.array([event.confidence for event in events])
    # A confidence of exactly 1 belongs to the last bin, which is closed.
    column = np.minimum(np.searchsorted(EDGES, confidence, side="right") - 1, BINS - 1)
    found = np.zeros((len(panes), len(SUMS), BINS), dtype=np.int64)
    labelled = np.array([event.correct is not None for event in events], dtype=np.int64)
    correct = np.array([event.correct is True for event in events], dtype=np.int64)
    for number, values in enumerate((np.ones(len(events), dtype=np.int64), _fixed(confidence), labelled, correct)):
        np.add.at(found[:, number], (place, column), values)
    return panes, found.reshape(len(panes), -1)


def course(events: Sequence[Event], version: str) -> Course:
    """The course of a version in one pass."""
    return _course(tuple(events), version)


@cache
def _course(events: tuple[Event, ...], version: str) -> Course:
    return extend(Course.empty(), *cells([event for event in events if event.version == version]))[0]


def same(one: Course, other: Course) -> bool:
    """Whether two courses have the same bits."""
    states = zip(one.detectors, other.detectors, strict=True)
    pairs = [(getattr(a, name), getattr(b, name)) for a, b in states for name in ("log_r", "log_best", "start")]
    pairs += [(getattr(one, name), getattr(other, name)) for name in ("cell", "maxima", "blocks", "bound")]
    return (one.first_pane, one.last_pane) == (other.first_pane, other.last_pane) and all(np.array_equal(a, b) for a, b in pairs)


def _fixed(confidence: F64) -> I64:
    return np.array([round(value * 2**32) for value in confidence.tolist()], dtype=np.int64)
