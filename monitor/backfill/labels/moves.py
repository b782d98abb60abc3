"""What a backfill changes: sums by version, and the largest move of each metric of a window over the touched time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from monitor.config import Config
from monitor.duration import HOUR_MS
from monitor.names import ALL_VALUE
from monitor.pipeline.configured import exported_metrics, settings_of
from monitor.pipeline.revisions.journal import Move
from monitor.pipeline.revisions.moves import WHOLE, largest, moves_between
from monitor.pipeline.shard import Shard
from monitor.pipeline.sweep import Question, sweep
from monitor.statistics.pane import HOUR, PaneSums, merge
from monitor.statistics.segment import ALL
from monitor.statistics.series import SeriesTable
from monitor.windows.running import WindowSpec

MOST_MOMENTS = 240
"""Moments that are looked at of a version; of more than that every second, third, ... hour."""

_PREDICTIONS, _LABELLED = ALL.scalar("predictions"), ALL.scalar("labelled")


@dataclass(frozen=True, slots=True)
class Coverage:
    """Predictions of a version over all that is kept, and how many have a label before and after."""

    predictions: int
    labelled_before: int
    labelled_after: int


@dataclass(frozen=True, slots=True)
class Change:
    """What changes of a version.

    Attributes:
        window: The window that was looked at.
        at_ms: The moments; none where no window that holds what changes is kept whole.
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
        CalmonError: Sums could overflow.
    """
    window = longest_window(config)
    metrics = [metric for metric in exported_metrics(config) if metric.subject in WHOLE]
    compared = _Compared()
    for old, new in zip(before, after, strict=True):
        for day in new.days():
            compared.add(new.series, _of_day(old, day), _of_day(new, day))
    kept_from_ms = max((shard.kept_from_ms(window.level) for shard in (*before, *after)), default=0)
    found = {}
    for model, version in sorted(compared.touched):
        at = moments(window, *compared.touched[model, version], kept_from_ms)
        question = Question(model, version, window, metrics, settings_of(config), {})
        moves = largest(moves_between(window.name, sweep(before, question, at), sweep(after, question, at)))
        found[model, version] = Change(window, at, Coverage(*compared.counts[model, version]), moves)
    return found


def longest_window(config: Config) -> WindowSpec:
    """The longest configured window, in whole hours."""
    longest = max(config.windows, key=lambda window: window.length_ms)
    length_ms = -(-longest.length_ms // HOUR_MS) * HOUR_MS
    return WindowSpec(longest.name, length_ms, -(-longest.lag_ms // HOUR_MS) * HOUR_MS, by_hours=True)


def moments(window: WindowSpec, first_hour: int, last_hour: int, kept_from_ms: int) -> range:
    """Whole hours from which the window holds any of the hours [first, last]; at most `MOST_MOMENTS`, the first among them.

    Args:
        window: In whole hours.
        first_hour: The first.
        last_hour: The last one.
        kept_from_ms: Event time, a whole hour, before which panes are gone: windows that begin earlier are left out.
    """
    start_ms = max((first_hour + 1) * HOUR_MS, kept_from_ms + window.length_ms) + window.lag_ms
    end_ms = last_hour * HOUR_MS + window.lag_ms + window.length_ms
    stride = max(1, -(-((end_ms - start_ms) // HOUR_MS + 1) // MOST_MOMENTS))
    return range(start_ms, end_ms + 1, stride * HOUR_MS)


def _of_day(shard: Shard, day: int) -> PaneSums:
    """Hour panes of a day, of which nothing stays in memory: a state may hold more of them than fit."""
    every = np.ones(len(shard.series), dtype=np.bool_)
    return merge([sums for _, sums in shard.scan(HOUR, day, day + 1, every)])


@dataclass(frozen=True, slots=True)
class _Compared:
    """What is found day by day, by (model, version).

    Attributes:
        touched: First and last hour of which anything differs.
        counts: Predictions, and those with a label before and after.
    """

    touched: dict[tuple[str, str], tuple[int, int]] = field(default_factory=dict)
    counts: dict[tuple[str, str], list[int]] = field(default_factory=lambda: defaultdict(lambda: [0, 0, 0]))

    def add(self, series: SeriesTable, was: PaneSums, now: PaneSums) -> None:
        """Take in panes of a shard as they are, and as they would be; the series are those of the latter."""
        differs = merge([now, PaneSums(was.keys, -was.values)])
        for pane, slot in np.unique(np.stack([differs.pane, differs.slot], axis=1), axis=0).tolist():
            key = series.key(slot)
            low, high = self.touched.get((key.model, key.version), (pane, pane))
            self.touched[key.model, key.version] = (min(low, pane), max(high, pane))
        for number, sums, position in ((0, now, _PREDICTIONS), (1, was, _LABELLED), (2, now, _LABELLED)):
            chosen = sums.position == position
            slots, values = sums.slot[chosen], sums.values[chosen]
            for slot in np.unique(slots).tolist():
                key = series.key(slot)
                if key.segment == ALL_VALUE:
                    self.counts[key.model, key.version][number] += int(values[slots == slot].sum())
