"""A window at past moments, one after the other: from the stored panes, so that it costs what the panes cost."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from monitor.errors import CalmonError
from monitor.metrics.evaluation import Block, WindowCells, evaluate_windows, fold_groups, merge_cells
from monitor.metrics.metric import Metric, segments_read
from monitor.metrics.settings import SettingsOf
from monitor.metrics.succession import previous_versions
from monitor.metrics.version import Version
from monitor.names import RESERVED_PREFIX
from monitor.pipeline.account import merge_accounts
from monitor.pipeline.panes import Panes
from monitor.statistics.fixed_point import I64
from monitor.statistics.pane import PaneLevel, PaneSums
from monitor.statistics.series import SeriesKey, SeriesTable
from monitor.windows.running import ReadPanes, RunningWindow, SlotSpace, WindowSpec

_TOGETHER = 64
"""Moments that are evaluated in one go."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of each moment.

    Attributes:
        model: Whose predictions.
        version: Of which of its versions.
        window: Which run of panes, seen from the moment.
        metrics: What is computed.
        settings_of: Settings by model.
        references: By model what drift is told from.
    """

    model: str
    version: str
    window: WindowSpec
    metrics: Sequence[Metric]
    settings_of: SettingsOf
    references: Mapping[str, Version]


@dataclass(frozen=True, slots=True)
class Moment:
    """A window as it is known now.

    Attributes:
        at_ms: The moment that the window is seen from.
        start_ms: First event time.
        end_ms: Excluded.
        blocks: Values of the version's series; none where it predicted nothing, or where the window holds a change of layout.
    """

    at_ms: int
    start_ms: int
    end_ms: int
    blocks: Sequence[Block]


def sweep(shards: Sequence[Panes], question: Question, moments: Sequence[int]) -> Iterator[Moment]:
    """Answer a question at each moment, in their order; ascending ones cost the panes that enter and leave.

    Raises:
        CalmonError: The panes of a moment are not kept.
        CapacityError: Sums could overflow.
    """
    views = _Views(shards, question)
    for begin in range(0, len(moments), _TOGETHER):
        windows = [views.at(at_ms) for at_ms in moments[begin : begin + _TOGETHER]]
        asked = [window.cells for window in windows if window.cells is not None]
        found = iter(evaluate_windows(asked, views.layouts, question.settings_of, question.metrics))
        for window in windows:
            blocks = [] if window.cells is None else [block.only(lambda key: key.version == question.version) for block in next(found)]
            yield Moment(window.at_ms, window.start_ms, window.end_ms, [block for block in blocks if block is not None])


@dataclass(frozen=True, slots=True)
class _Window:
    """The window of a moment, before it is evaluated; its cells are None where it holds a change of layout."""

    at_ms: int
    start_ms: int
    end_ms: int
    cells: WindowCells | None


class _Views:
    """The question's window, moved from moment to moment over what it needs of the panes."""

    def __init__(self, shards: Sequence[Panes], question: Question) -> None:
        self._shards = shards
        self._question = question
        self._reserved = segments_read(question.metrics)
        self._windows = [RunningWindow(question.window, SlotSpace(shard.series)) for shard in shards]
        self._wanted = [_Wanted(shard.series, question.model, self._reserved) for shard in shards]
        self._first_ms = merge_accounts([shard.account for shard in shards]).first_ms
        self.layouts = {name: layout for shard in shards for name, layout in shard.layouts.items()}

    def at(self, at_ms: int) -> _Window:
        """Move there; the moment's sums."""
        spec = self._question.window
        start_ms, end_ms = (pane * spec.level.pane_ms for pane in spec.panes(at_ms))
        parts = []
        for shard, window, wanted in zip(self._shards, self._windows, self._wanted, strict=True):
            window.advance(at_ms, wanted.reading(shard.read), shard.kept_from_ms(spec.level))
            view = window.view(shard.series, self._reserved)
            if view is None:
                raise CalmonError(f"the panes of the window that begins at {start_ms} ms are not kept any more")
            parts.append((view.keys, view.cells))
        return _Window(at_ms, start_ms, end_ms, self._compared(merge_cells(parts), start_ms, end_ms))

    def _compared(self, cells: Mapping[SeriesKey, I64], start_ms: int, end_ms: int) -> WindowCells | None:
        """Sums of the version, and of the one before it, in the layout whose epoch holds the whole window."""
        model, version = self._question.model, self._question.version
        shards = [shard for shard in self._shards if model in shard.epochs]
        found = {_layout_within(shard, model, start_ms, end_ms) for shard in shards}
        if len(found) != 1 or None in found:
            return None
        cells = {key: cell for key, cell in cells.items() if key.layout in found}
        before = previous_versions(cells, self._first_ms, self._question.settings_of).get((model, version))
        compared = {key: cell for key, cell in cells.items() if key.version in (version, before)}
        present = {shard.epochs[model][-1].layout for shard in shards} == found
        return WindowCells(
            fold_groups(compared, self.layouts)[0],
            {} if before is None else {(model, version): before},
            self._question.references if present else {},
        )


class _Wanted:
    """Which series a question reads: those of its model, in segments that its metrics read."""

    def __init__(self, table: SeriesTable, model: str, reserved: Collection[str]) -> None:
        self._table = table
        self._model = model
        self._reserved = reserved
        self._slots = np.empty(0, dtype=np.bool_)

    def reading(self, read: ReadPanes) -> ReadPanes:
        """Reads the panes of these series alone."""

        def read_wanted(level: PaneLevel, first_pane: int, end_pane: int) -> PaneSums:
            sums = read(level, first_pane, end_pane)
            chosen = self._known()[sums.slot]
            return PaneSums(sums.keys[chosen], sums.values[chosen])

        return read_wanted

    def _known(self) -> NDArray[np.bool_]:
        """Whether each slot is wanted; slots may come while a service runs."""
        if len(self._slots) < len(self._table):
            keys = [self._table.key(slot) for slot in range(len(self._slots), len(self._table))]
            wanted = [
                key.model == self._model and (not key.segment.startswith(RESERVED_PREFIX) or key.segment in self._reserved) for key in keys
            ]
            self._slots = np.concatenate((self._slots, np.array(wanted, dtype=np.bool_)))
        return self._slots


def _layout_within(shard: Panes, model: str, start_ms: int, end_ms: int) -> str | None:
    """Layout of the epoch of a shard that holds a stretch of time; None where it holds the beginning of another one."""
    epochs = shard.epochs[model]
    if any(start_ms < epoch.start_ms < end_ms for epoch in epochs):
        return None
    return next(epoch.layout for epoch in reversed(epochs) if epoch.start_ms <= start_ms)
