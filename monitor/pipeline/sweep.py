"""A window at past moments, one after the other: from the stored panes, so that it costs what the panes cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from monitor.errors import CalmonError
from monitor.metrics.evaluation import Block, WindowCells, evaluate_windows, fold_groups, merge_cells
from monitor.metrics.metric import Metric, compares, segments_read
from monitor.metrics.settings import SettingsOf
from monitor.metrics.succession import previous_versions
from monitor.metrics.version import Version
from monitor.names import ALL_VALUE, RESERVED_PREFIX
from monitor.pipeline.account import merge_accounts
from monitor.pipeline.panes import Panes
from monitor.pipeline.wanted import WantedPanes
from monitor.statistics.series import SeriesKey
from monitor.windows.running import Position, RunningWindow, SlotSpace, WindowSpec, WindowSums

_TOGETHER = 32
"""Most moments that are evaluated in one go."""

_MOST_NUMBERS = 1 << 22
"""Numbers in memory, from which on fewer are."""


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
        groups: Whether values of group attributes are asked for too.
    """

    model: str
    version: str
    window: WindowSpec
    metrics: Sequence[Metric]
    settings_of: SettingsOf
    references: Mapping[str, Version]
    groups: bool = True


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
    end_pane = max((question.window.panes(at_ms)[1] for at_ms in moments), default=0)
    parts = [_Part(shard, question, end_pane) for shard in shards]
    sums = _Sums(shards, question)
    left = list(reversed(moments))
    while left:
        together: list[int] = []
        while left and len(together) < _TOGETHER and sum(part.held for part in parts) < _MOST_NUMBERS:
            together.append(left.pop())
            for part in parts:
                part.move(together[-1])
        views = zip(*(part.take() for part in parts), strict=True) if parts else [()] * len(together)
        spans = [_span_ms(question.window, at_ms) for at_ms in together]
        windows = [sums.compared(of_shards, *span) for of_shards, span in zip(views, spans, strict=True)]
        asked = [window for window in windows if window is not None]
        found = iter(evaluate_windows(asked, sums.layouts, question.settings_of, question.metrics))
        for at_ms, span, window in zip(together, spans, windows, strict=True):
            yield Moment(at_ms, *span, [] if window is None else next(found))


def _span_ms(window: WindowSpec, at_ms: int) -> tuple[int, int]:
    """Event times [start, end) of the panes that a window has at a moment."""
    first, end = window.panes(at_ms)
    return first * window.level.pane_ms, end * window.level.pane_ms


class _Part:
    """The question's window over one shard, and its last positions."""

    def __init__(self, shard: Panes, question: Question, end_pane: int) -> None:
        self._shard = shard
        self._question = question
        self._reserved = segments_read(question.metrics)
        self._compares = compares(question.metrics)
        self._panes = WantedPanes(shard, self._wants, question.window.level, end_pane)
        self._window = RunningWindow(question.window, SlotSpace(shard.series))
        self._positions: list[Position] = []

    @property
    def held(self) -> int:
        """Numbers in the positions that have not been taken."""
        return sum(len(position.sums) for position in self._positions)

    def move(self, at_ms: int) -> None:
        """Move the window there, and note where it is."""
        spec = self._window.spec
        self._window.advance(at_ms, self._panes.read, self._shard.kept_from_ms(spec.level))
        position = self._window.position()
        if position is None:
            raise CalmonError(f"the panes of a window that begins at {_span_ms(spec, at_ms)[0]} ms are not kept any more")
        self._panes.forget_before(position.panes[0])
        self._positions.append(position)

    def take(self) -> list[WindowSums]:
        """Sums by series at the positions noted since the last call."""
        positions, self._positions = self._positions, []
        return self._window.views(positions, self._shard.series, self._reserved)

    def _wants(self, key: SeriesKey) -> bool:
        """Whether a series is read: the version's, and where it is compared, those of the others as a whole."""
        if key.model != self._question.model:
            return False
        if key.version != self._question.version:
            return self._compares and key.segment == ALL_VALUE
        if key.segment.startswith(RESERVED_PREFIX):
            return key.segment in self._reserved
        return self._question.groups or key.segment == ALL_VALUE


class _Sums:
    """From windows over shards to what is evaluated."""

    def __init__(self, shards: Sequence[Panes], question: Question) -> None:
        self._question = question
        self._shards = [shard for shard in shards if question.model in shard.epochs]
        self._first_ms = merge_accounts([shard.account for shard in shards]).first_ms
        self.layouts = {name: layout for shard in shards for name, layout in shard.layouts.items()}

    def compared(self, of_shards: Sequence[WindowSums], start_ms: int, end_ms: int) -> WindowCells | None:
        """Sums of the version, beside those of the one before it, in the layout whose epoch holds the whole window; None without one."""
        model, version = self._question.model, self._question.version
        found = {_layout_within(shard, model, start_ms, end_ms) for shard in self._shards}
        if len(found) != 1 or None in found:
            return None
        cells = {key: cell for key, cell in merge_cells([(one.keys, one.cells) for one in of_shards]).items() if key.layout in found}
        before = previous_versions(cells, self._first_ms, self._question.settings_of).get((model, version))
        present = {shard.epochs[model][-1].layout for shard in self._shards} == found
        return WindowCells(
            fold_groups({key: cell for key, cell in cells.items() if key.version in (version, before)}, self.layouts)[0],
            {} if before is None else {(model, version): before},
            self._question.references if present else {},
            version,
        )


def _layout_within(shard: Panes, model: str, start_ms: int, end_ms: int) -> str | None:
    """Layout of the epoch of a shard that holds a stretch of time; None where it holds the beginning of another one."""
    epochs = shard.epochs[model]
    if any(start_ms < epoch.start_ms < end_ms for epoch in epochs):
        return None
    return next(epoch.layout for epoch in reversed(epochs) if epoch.start_ms <= start_ms)
