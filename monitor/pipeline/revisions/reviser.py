"""The job that looks what has changed in matured panes since it looked last, and notes what that did to the windows.

The named points (`revised`, `noted`) are where the recovery tests kill the process.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np

from monitor.metrics.metric import Metric
from monitor.metrics.settings import SettingsOf
from monitor.pipeline.revisions.cause import Cause, merge_causes
from monitor.pipeline.revisions.frozen import FrozenPanes, freeze
from monitor.pipeline.revisions.journal import Journal, Revision
from monitor.pipeline.revisions.moves import WATCHED, distance, largest, moments_of, moves_between, runs
from monitor.pipeline.revisions.page import cause_text
from monitor.pipeline.revisions.pending import pending, settled
from monitor.pipeline.shard import Shard
from monitor.pipeline.sweep import Moment, Question, sweep
from monitor.statistics.fixed_point import I64
from monitor.statistics.pane import HOUR, PaneSums
from monitor.windows.running import WindowSpec

log = logging.getLogger(__name__)

Version = tuple[str, str]


@dataclass(frozen=True, slots=True)
class RevisionRules:
    """What is configured.

    Attributes:
        windows: Those whose panes had all matured when they were shown first; made of hours.
        threshold: A window has moved if any of the watched metrics moved by more.
        settings_of: Settings by model.
    """

    windows: Sequence[WindowSpec]
    threshold: float
    settings_of: SettingsOf


@dataclass(frozen=True, slots=True)
class _Taken:
    """What a shard has pending, its panes around it as they are now, and as they were before."""

    sequence: int
    added: PaneSums
    causes: Sequence[Cause]
    now: FrozenPanes
    before: FrozenPanes


class Reviser:
    """Notes revisions of all shards together.

    Args:
        shards: By name; may grow.
        journal: Where they are noted.
        rules: What is configured.
        reached: Told at each point.
    """

    def __init__(
        self, shards: Callable[[], Mapping[str, Shard]], journal: Journal, rules: RevisionRules, reached: Callable[[str], None]
    ) -> None:
        self._shards = shards
        self.journal = journal
        self._rules = rules
        self._reached = reached

    def run(self, now_ms: int) -> list[Revision]:
        """Note what has changed since the last call; the new entries.

        Args:
            now_ms: What the clock shows; later moments have not been shown yet.

        Raises:
            StateError: The state could not be read or written.
            CapacityError: Sums could overflow.
        """
        shards = dict(self._shards())
        self._settle(shards)
        taken = self._take(shards)
        versions = sorted({(cause.model, cause.version) for one in taken.values() for cause in one.causes})
        first_number = self.journal.next_number
        entries = [self._entry(first_number + place, version, list(taken.values()), now_ms) for place, version in enumerate(versions)]
        if entries:
            self._reached("revised")
            self.journal.commit({name: one.sequence for name, one in taken.items()}, entries)
            self._reached("noted")
            self._settle(shards)
        for entry in entries:
            log.info("revision %d of model %s version %s: %s", entry.number, entry.model, entry.version, _told(entry))
        return entries

    def moments(self, entry: Revision, window: WindowSpec, metrics: Sequence[Metric], at: Sequence[int]) -> list[Moment]:
        """A window of an entry's version at moments, as known now; those whose panes are gone are left out."""
        first = min(window.panes(at_ms)[0] for at_ms in at)
        end = max(window.panes(at_ms)[1] for at_ms in at)
        with ExitStack() as stack:
            shards = self._locked(dict(self._shards()), stack)
            frozen = [freeze(shard, {entry.model}, first, end) for shard in shards.values()]
        return list(self._sweep(frozen, (entry.model, entry.version), window, metrics, _kept(frozen, window, at)))

    def _settle(self, shards: Mapping[str, Shard]) -> None:
        """Forget what the journal has; a crash may have left it."""
        for name, sequence in self.journal.sequences.items():
            if name in shards:
                shards[name].store.commit(settled(sequence))

    def _locked(self, shards: Mapping[str, Shard], stack: ExitStack) -> Mapping[str, Shard]:
        for shard in shards.values():
            stack.enter_context(shard.lock)
        return shards

    def _take(self, shards: Mapping[str, Shard]) -> dict[str, _Taken]:
        """What is pending, of all shards at one moment."""
        taken = {}
        reach = max((window.length_ms // HOUR.pane_ms for window in self._rules.windows), default=1)
        with ExitStack() as stack:
            self._locked(shards, stack)
            found = {name: pending(shard.store) for name, shard in shards.items()}
            models = {cause.model for one in found.values() for cause in one.causes}
            panes = [int(pane) for one in found.values() if len(one.sums.keys) for pane in one.sums.pane[[0, -1]]]
            if not models:
                return {}
            first, end = (min(panes) - reach + 1, max(panes) + reach) if panes else (0, 0)
            for name, shard in shards.items():
                added = found[name].sums.with_slots(shard.resolved)
                now = freeze(shard, models, first, end)
                added = added.between(now.floor_ms // HOUR.pane_ms, end)
                taken[name] = _Taken(found[name].sequence, added, found[name].causes, now, now.before(added))
        return taken

    def _entry(self, number: int, version: Version, taken: Sequence[_Taken], now_ms: int) -> Revision:
        causes = merge_causes(cause for one in taken for cause in one.causes if (cause.model, cause.version) == version)
        touched = _touched(version, taken)
        moves, moved = [], {}
        for window in self._rules.windows:
            at = _kept([one.now for one in taken], window, _moments(touched, window, now_ms))
            before = self._sweep([one.before for one in taken], version, window, WATCHED, at)
            after = self._sweep([one.now for one in taken], version, window, WATCHED, at)
            found = list(moves_between(window.name, before, after))
            moves += found
            far = runs(move.at_ms for move in found if distance(move) > self._rules.threshold)
            if far:
                moved[window.name] = far
        start_ms, end_ms = (int(touched[0]) * HOUR.pane_ms, (int(touched[-1]) + 1) * HOUR.pane_ms) if len(touched) else (None, None)
        return Revision(number, now_ms, *version, start_ms, end_ms, causes, largest(moves), moved)

    def _sweep(
        self, panes: Sequence[FrozenPanes], version: Version, window: WindowSpec, metrics: Sequence[Metric], at: Sequence[int]
    ) -> Iterator[Moment]:
        return sweep(panes, Question(*version, window, metrics, self._rules.settings_of, {}), at)


def _told(entry: Revision) -> str:
    windows = sum(len(moments_of(found)) for found in entry.moved.values())
    return f"{'; '.join(map(cause_text, entry.causes))}; {windows} windows moved by more than the threshold"


def _touched(version: Version, taken: Sequence[_Taken]) -> I64:
    """Hour panes of a version that changed, ascending."""
    found = [np.empty(0, dtype=np.int64)]
    for one in taken:
        ours = np.array([(key.model, key.version) == version for key in one.now.series], dtype=np.bool_)
        found.append(one.added.pane[ours[one.added.slot]])
    return np.unique(np.concatenate(found))


def _moments(touched: I64, window: WindowSpec, now_ms: int) -> list[int]:
    """Moments at which a window that holds any of the panes was shown."""
    length = window.length_ms // HOUR.pane_ms
    ends = np.unique((touched[:, None] + np.arange(1, length + 1)).reshape(-1))
    at = ends * HOUR.pane_ms + window.lag_ms
    return [int(one) for one in at[at <= now_ms]]


def _kept(panes: Sequence[FrozenPanes], window: WindowSpec, at: Sequence[int]) -> list[int]:
    """The moments whose panes are all there."""
    floor_ms = max((one.floor_ms for one in panes), default=0)
    return [at_ms for at_ms in at if window.panes(at_ms)[0] * HOUR.pane_ms >= floor_ms]
