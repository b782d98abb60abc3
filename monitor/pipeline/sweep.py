"""A window at past moments, one after the other: from the stored panes, so that it costs what the panes cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from monitor.errors import CalmonError
from monitor.metrics.evaluation import Block, evaluate, fold_groups, merge_cells
from monitor.metrics.metric import Metric, segments_read
from monitor.metrics.settings import SettingsOf
from monitor.metrics.succession import previous_versions
from monitor.metrics.version import Version
from monitor.pipeline.account import Account, merge_accounts
from monitor.statistics.fixed_point import I64
from monitor.statistics.layout import Layout
from monitor.statistics.pane import PaneLevel, PaneSums
from monitor.statistics.series import SeriesKey, SeriesTable
from monitor.statistics.track import Epoch
from monitor.windows.running import RunningWindow, SlotSpace, WindowSpec


class Panes(Protocol):
    """What a shard, or a copy of a part of it, tells of its panes."""

    @property
    def series(self) -> SeriesTable:
        """Slots of its series."""
        ...

    @property
    def layouts(self) -> Mapping[str, Layout]:
        """Layouts by fingerprint."""
        ...

    @property
    def epochs(self) -> Mapping[str, Sequence[Epoch]]:
        """Epochs by model, ascending."""
        ...

    @property
    def account(self) -> Account:
        """What became of its records."""
        ...

    def read(self, level: PaneLevel, first_pane: int, end_pane: int) -> PaneSums:
        """Sums of panes [first, end), keys ascending."""
        ...

    def kept_from_ms(self, level: PaneLevel) -> int:
        """Event time from which on panes of a level are kept."""
        ...


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
    windows = [RunningWindow(question.window, SlotSpace(shard.series)) for shard in shards]
    first_ms = merge_accounts([shard.account for shard in shards]).first_ms
    reserved = segments_read(question.metrics)
    for at_ms in moments:
        views = []
        for shard, window in zip(shards, windows, strict=True):
            window.advance(at_ms, shard.read, shard.kept_from_ms(question.window.level))
            views.append(window.view(shard.series, reserved))
        first, end = question.window.panes(at_ms)
        pane_ms = question.window.level.pane_ms
        if any(view is None for view in views):
            raise CalmonError(f"the panes of the window that begins at {first * pane_ms} ms are not kept any more")
        cells = merge_cells([(view.keys, view.cells) for view in views if view is not None])
        blocks = _blocks(cells, shards, question, first_ms, first * pane_ms, end * pane_ms)
        yield Moment(at_ms, first * pane_ms, end * pane_ms, blocks)


def _blocks(
    cells: Mapping[SeriesKey, I64],
    shards: Sequence[Panes],
    question: Question,
    first_ms: Mapping[tuple[str, str], int],
    start_ms: int,
    end_ms: int,
) -> list[Block]:
    """Values of the version in the layout whose epoch holds the whole window."""
    model, version = question.model, question.version
    found = {_layout_within(shard, model, start_ms, end_ms) for shard in shards if model in shard.epochs}
    if len(found) != 1 or None in found:
        return []
    (fingerprint,) = found
    cells = {key: cell for key, cell in cells.items() if key.model == model and key.layout == fingerprint}
    before = previous_versions(cells, first_ms, question.settings_of).get((model, version))
    layouts = {name: layout for shard in shards for name, layout in shard.layouts.items()}
    compared = {key: cell for key, cell in fold_groups(cells, layouts)[0].items() if key.version in (version, before)}
    present = {shard.epochs[model][-1].layout for shard in shards if model in shard.epochs} == found
    previous = {} if before is None else {(model, version): before}
    blocks = evaluate(compared, layouts, question.settings_of, question.metrics, previous, question.references if present else None)
    return [one for one in (_of_version(block, version) for block in blocks) if one is not None]


def _layout_within(shard: Panes, model: str, start_ms: int, end_ms: int) -> str | None:
    """Layout of the epoch of a shard that holds a stretch of time; None where it holds the beginning of another one."""
    epochs = shard.epochs[model]
    if any(start_ms < epoch.start_ms < end_ms for epoch in epochs):
        return None
    return next(epoch.layout for epoch in reversed(epochs) if epoch.start_ms <= start_ms)


def _of_version(block: Block, version: str) -> Block | None:
    """The part of a block that is of a version; None without any."""
    rows = [row for row, key in enumerate(block.keys) if key.version == version]
    if not rows or len(rows) == len(block.keys):
        return block if rows else None
    values = {metric: [found[row] for row in rows] if isinstance(found, list) else found[rows] for metric, found in block.values.items()}
    return replace(block, keys=[block.keys[row] for row in rows], values=values)
