"""How far windows moved: the same question asked of the panes before and after."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from monitor.duration import HOUR_MS
from monitor.metrics.catalogue import CATALOGUE
from monitor.metrics.evaluation import Block
from monitor.metrics.metric import Metric, Subject
from monitor.names import ALL_VALUE
from monitor.pipeline.revisions.journal import Move
from monitor.pipeline.sweep import Moment

WHOLE = (Subject.SERIES, Subject.VERSION, Subject.POSITIVE, Subject.COMPARISON)
"""Subjects with one value of a version as a whole."""

WATCHED: Sequence[Metric] = tuple(
    metric
    for metric in CATALOGUE
    if metric.subject is Subject.SERIES
    and metric.name
    in (
        "completeness",
        "accuracy",
        "overconfidence",
        "ece",
        "brier",
        "nll",
        "csr",
        "p_risk",
        "coverage",
        "selective_risk",
    )
)
"""Metrics whose moves the journal tells."""


def moves_between(window: str, before: Iterable[Moment], after: Iterable[Moment]) -> Iterator[Move]:
    """Every move of every metric of the whole version, at every moment; the moments of both are the same."""
    for old, new in zip(before, after, strict=True):
        old_values, new_values = whole_values(old.blocks), whole_values(new.blocks)
        for name in sorted(old_values.keys() | new_values.keys()):
            one, other = old_values.get(name), new_values.get(name)
            if one != other:
                yield Move(name, window, old.at_ms, one, other)


def distance(move: Move) -> float:
    """How far a metric moved; without end where it was or became undefined."""
    return math.inf if move.old is None or move.new is None else abs(move.new - move.old)


def largest(moves: Iterable[Move]) -> list[Move]:
    """The largest move of each metric, the earliest of equal ones; that it became defined or undefined, only if it did nothing else."""
    found: dict[str, Move] = {}
    for move in moves:
        if move.metric not in found or _told(move) > _told(found[move.metric]):
            found[move.metric] = move
    return [found[name] for name in sorted(found)]


def whole_values(blocks: Sequence[Block]) -> dict[str, float]:
    """Metrics of everything of a version, by name; undefined ones are left out."""
    found: dict[str, float] = {}
    for block in blocks:
        if block.subject in WHOLE:
            for row, key in enumerate(block.keys):
                if key.segment == ALL_VALUE:
                    found |= {metric.name: float(column[row]) for metric, column in block.values.items() if not math.isnan(column[row])}
    return found


def runs(moments: Iterable[int]) -> list[tuple[int, int]]:
    """First and last moment of each run of consecutive hours."""
    found: list[tuple[int, int]] = []
    for at_ms in sorted(set(moments)):
        if found and at_ms == found[-1][1] + HOUR_MS:
            found[-1] = (found[-1][0], at_ms)
        else:
            found.append((at_ms, at_ms))
    return found


def moments_of(found: Iterable[tuple[int, int]]) -> list[int]:
    """The moments of runs."""
    return [at_ms for first, last in found for at_ms in range(first, last + 1, HOUR_MS)]


def _told(move: Move) -> float:
    """How much there is to tell of a move: less than of any distance where there is none."""
    return -1.0 if move.old is None or move.new is None else abs(move.new - move.old)
