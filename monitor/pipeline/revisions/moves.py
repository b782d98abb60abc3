"""How far windows moved: the same question asked of the panes before and after."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from monitor.duration import HOUR_MS
from monitor.metrics.catalogue import CATALOGUE
from monitor.metrics.metric import Metric, Subject
from monitor.names import ALL_VALUE
from monitor.pipeline.revisions.journal import Move
from monitor.pipeline.sweep import Moment

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
"""Metrics whose moves are told, of the whole version."""


def moves_between(window: str, before: Iterable[Moment], after: Iterable[Moment]) -> Iterator[Move]:
    """Every move of a watched metric at every moment; the moments of both are the same."""
    for old, new in zip(before, after, strict=True):
        old_values, new_values = _values(old), _values(new)
        for metric in WATCHED:
            one, other = old_values.get(metric.name), new_values.get(metric.name)
            if one != other:
                yield Move(metric.name, window, old.at_ms, one, other)


def distance(move: Move) -> float:
    """How far a metric moved; without end where it was or became undefined."""
    return math.inf if move.old is None or move.new is None else abs(move.new - move.old)


def largest(moves: Iterable[Move]) -> list[Move]:
    """The largest move of each metric, the earliest of equal ones, metrics in the catalogue's order."""
    found: dict[str, Move] = {}
    for move in moves:
        if move.metric not in found or distance(move) > distance(found[move.metric]):
            found[move.metric] = move
    return [found[metric.name] for metric in WATCHED if metric.name in found]


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


def _values(moment: Moment) -> dict[str, float | None]:
    """Watched metrics of the whole version that are defined."""
    found: dict[str, float | None] = {}
    for block in moment.blocks:
        for row, key in enumerate(block.keys):
            if key.segment == ALL_VALUE:
                values = {metric.name: float(block.values[metric][row]) for metric in WATCHED if metric in block.values}
                found |= {name: value for name, value in values.items() if not math.isnan(value)}
    return found
