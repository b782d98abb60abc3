"""What a backfill changes: sums by version, and the largest move of each metric of a window over the touched time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from monitor.config import Config
from monitor.duration import HOUR_MS
from monitor.metrics.evaluation import Block
from monitor.metrics.metric import Subject
from monitor.names import ALL_VALUE
from monitor.pipeline.configured import exported_metrics, settings_of
from monitor.pipeline.report import whole_cells
from monitor.pipeline.shard import Shard
from monitor.pipeline.sweep import Question, sweep
from monitor.statistics.pane import HOUR, PaneSums, merge
from monitor.statistics.segment import ALL
from monitor.windows.running import WindowSpec

MOST_MOMENTS = 240
"""Moments that are looked at of a version; of more than that every second, third, ... hour."""

_WHOLE = (Subject.SERIES, Subject.VERSION, Subject.POSITIVE, Subject.COMPARISON)
_LABELLED = ALL.scalar("labelled")


@dataclass(frozen=True, slots=True)
class Coverage:
    """Predictions of a version over all that is kept, and how many have a label before and after."""

    predictions: int
    labelled_before: int
    labelled_after: int


@dataclass(frozen=True, slots=True)
class Move:
    """The largest move of a metric of a version.

    Attributes:
        metric: Its name.
        at_ms: The moment that the window is seen from.
        before: None where it was undefined at that moment; then it was at every moment at which it is defined now.
        after: None where it is undefined now.
    """

    metric: str
    at_ms: int
    before: float | None
    after: float | None


@dataclass(frozen=True, slots=True)
class Change:
    """What changes of a version.

    Attributes:
        window: The window that was looked at.
        at_ms: The moments.
        coverage: Over everything.
        moves: Of each metric that moves, by its name.
    """

    window: WindowSpec
    at_ms: range
    coverage: Coverage
    moves: Sequence[Move]


def changes(config: Config, before: Sequence[Shard], after: Sequence[Shard]) -> dict[tuple[str, str], Change]:
    """What differs between a state and what would become of it, by (model, version).

    Raises:
        CalmonError: The panes are not kept, or sums could overflow.
    """
    window = longest_window(config)
    metrics = [metric for metric in exported_metrics(config) if metric.subject in _WHOLE]
    touched = touched_hours(before, after)
    coverage = _coverage(before, after)
    found = {}
    for model, version in sorted(touched):
        at = moments(window, *touched[model, version])
        question = Question(model, version, window, metrics, settings_of(config), {})
        largest: dict[str, Move] = {}
        for old, new in zip(sweep(before, question, at), sweep(after, question, at), strict=True):
            _compare(old.at_ms, values(old.blocks), values(new.blocks), largest)
        moves = [largest[name] for name in sorted(largest)]
        found[model, version] = Change(window, at, coverage[model, version], moves)
    return found


def longest_window(config: Config) -> WindowSpec:
    """The longest configured window, in whole hours."""
    longest = max(config.windows, key=lambda window: window.length_ms)
    length_ms = -(-longest.length_ms // HOUR_MS) * HOUR_MS
    return WindowSpec(longest.name, length_ms, -(-longest.lag_ms // HOUR_MS) * HOUR_MS, by_hours=True)


def moments(window: WindowSpec, first_hour: int, last_hour: int) -> range:
    """Whole hours from which the window holds any of the hours [first, last]; at most `MOST_MOMENTS`, the first among them."""
    start_ms = (first_hour + 1) * HOUR_MS + window.lag_ms
    end_ms = last_hour * HOUR_MS + window.lag_ms + window.length_ms
    stride = -(-((end_ms - start_ms) // HOUR_MS + 1) // MOST_MOMENTS)
    return range(start_ms, end_ms + 1, stride * HOUR_MS)


def touched_hours(before: Sequence[Shard], after: Sequence[Shard]) -> dict[tuple[str, str], tuple[int, int]]:
    """First and last hour of which anything differs, by (model, version)."""
    touched: dict[tuple[str, str], tuple[int, int]] = {}
    for old, new in zip(before, after, strict=True):
        for day in new.days():
            first, end = day * HOUR.panes_per_chunk, (day + 1) * HOUR.panes_per_chunk
            was = old.read(HOUR, first, end)
            differs = merge([new.read(HOUR, first, end), PaneSums(was.keys, -was.values)])
            for pane, slot in np.unique(np.stack([differs.pane, differs.slot], axis=1), axis=0).tolist():
                key = new.series.key(slot)
                low, high = touched.get((key.model, key.version), (pane, pane))
                touched[key.model, key.version] = (min(low, pane), max(high, pane))
    return touched


def values(blocks: Sequence[Block]) -> dict[str, float]:
    """Metrics of everything of a version, by name; undefined ones are left out."""
    found: dict[str, float] = {}
    for block in blocks:
        if block.subject in _WHOLE:
            for row, key in enumerate(block.keys):
                if key.segment == ALL_VALUE:
                    found |= {metric.name: float(column[row]) for metric, column in block.values.items() if not math.isnan(column[row])}
    return found


def _compare(at_ms: int, old: dict[str, float], new: dict[str, float], largest: dict[str, Move]) -> None:
    for name in old.keys() | new.keys():
        move = Move(name, at_ms, old.get(name), new.get(name))
        if move.before != move.after and (name not in largest or _size(move) > _size(largest[name])):
            largest[name] = move


def _size(move: Move) -> float:
    """How far a metric moves; less than any distance where it becomes defined or undefined."""
    return -1.0 if move.before is None or move.after is None else abs(move.after - move.before)


def _coverage(before: Sequence[Shard], after: Sequence[Shard]) -> dict[tuple[str, str], Coverage]:
    labelled = [_labelled(shards) for shards in (before, after)]
    return {version: Coverage(predictions, labelled[0].get(version, (0, 0))[1], now) for version, (predictions, now) in labelled[1].items()}


def _labelled(shards: Sequence[Shard]) -> dict[tuple[str, str], tuple[int, int]]:
    found: dict[tuple[str, str], tuple[int, int]] = {}
    for key, cell in whole_cells(shards).items():
        if key.segment == ALL_VALUE:
            predictions, labelled = found.get((key.model, key.version), (0, 0))
            found[key.model, key.version] = (predictions + int(cell[0]), labelled + int(cell[_LABELLED]))
    return found
