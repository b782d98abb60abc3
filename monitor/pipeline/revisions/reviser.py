"""The job that looks what has changed in matured panes since it looked last, and notes what that did to the windows.

The named points (`revised`, `noted`) are where the recovery tests kill the process.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass

import numpy as np

from monitor.metrics.metric import Metric
from monitor.metrics.settings import SettingsOf
from monitor.pipeline.revisions.cause import merge_causes
from monitor.pipeline.revisions.earlier import EarlierPanes
from monitor.pipeline.revisions.journal import Journal, Revision
from monitor.pipeline.revisions.moves import WATCHED, distance, largest, moments_of, moves_between, runs
from monitor.pipeline.revisions.page import cause_text
from monitor.pipeline.revisions.pending import Pending, anything_pending, pending, settled
from monitor.pipeline.shard import Shard
from monitor.pipeline.sweep import Moment, Question, sweep
from monitor.sources.protocol import never
from monitor.state.protocol import StateStore
from monitor.statistics.fixed_point import I64
from monitor.statistics.pane import HOUR
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
    """What a shard has pending, its panes as they are now, and as they were before."""

    pending: Pending
    now: Shard
    before: EarlierPanes


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
        self._settle_what_a_crash_left()

    def run(self, now_ms: int, stopped: Callable[[], bool] = never) -> list[Revision]:
        """Note what has changed since the last call; the new entries.

        Args:
            now_ms: What the clock shows; later moments have not been shown yet.
            stopped: Whether nobody waits for it any more: then nothing is noted, and the next call takes it all.

        Raises:
            StateError: The state could not be read or written.
            CapacityError: Sums could overflow.
        """
        shards = dict(self._shards())
        with ExitStack() as stack:
            taken = self._take(shards, stack)
            versions = sorted({(cause.model, cause.version) for one in taken.values() for cause in one.pending.causes})
            entries: list[Revision] = []
            for number, version in enumerate(versions, self.journal.next_number):
                if stopped():
                    return []
                entries.append(self._entry(number, version, list(taken.values()), now_ms))
        if entries:
            sequences = {name: one.pending.sequence for name, one in taken.items() if one.pending.sequence}
            self._reached("revised")
            self.journal.commit(sequences, entries)
            self._reached("noted")
            for name, sequence in sequences.items():
                shards[name].store.commit(settled(sequence))
        for entry in entries:
            log.info("revision %d of model %s version %s: %s", entry.number, entry.model, entry.version, _told(entry))
        return entries

    def moments(self, entry: Revision, window: WindowSpec, metrics: Sequence[Metric], at: Sequence[int]) -> list[Moment]:
        """A window of an entry's version at moments, as known now; those whose panes are gone are left out."""
        with ExitStack() as stack:
            panes = [_seen(shard.store, stack) for shard in self._shards().values()]
            question = Question(entry.model, entry.version, window, metrics, self._rules.settings_of, {})
            return list(sweep(panes, question, _kept(panes, window, at)))

    def _settle_what_a_crash_left(self) -> None:
        """Forget what the journal has of each shard, before anything is read.

        A shard that has fewer checkpoints than the journal has taken in, or is not there any more, was begun anew: its numbers are
        others. Once it has read as much again nobody could tell, and its own changes would be forgotten.
        """
        shards = self._shards()
        known = self.journal.sequences
        gone = [name for name, sequence in known.items() if name not in shards or shards[name].sequence < sequence]
        if gone:
            self.journal.forget(gone)
        for name, sequence in self.journal.sequences.items():
            shards[name].store.commit(settled(sequence))

    def _take(self, shards: Mapping[str, Shard], stack: ExitStack) -> dict[str, _Taken]:
        """What is pending of each shard as of its last checkpoint, which stays what it is until the stack ends.

        No lock is held: a store's snapshot has all of a checkpoint or nothing. Nor need all shards be seen at one moment: of each of
        them, what is new in one entry is what is old in the next.
        """
        if not any(anything_pending(shard.store) for shard in shards.values()):
            return {}
        taken = {}
        for name, shard in shards.items():
            now = _seen(shard.store, stack)
            found = pending(now)
            taken[name] = _Taken(found, now, EarlierPanes(now, found.sums))
        return taken

    def _entry(self, number: int, version: Version, taken: Sequence[_Taken], now_ms: int) -> Revision:
        causes = merge_causes(cause for one in taken for cause in one.pending.causes if (cause.model, cause.version) == version)
        touched = _touched(version, taken)
        moves, moved = [], {}
        for window in self._rules.windows:
            question = Question(*version, window, WATCHED, self._rules.settings_of, {}, groups=False)
            at = _kept([one.now for one in taken], window, _moments(touched, window, now_ms))
            before = sweep([one.before for one in taken], question, at)
            after = sweep([one.now for one in taken], question, at)
            found = list(moves_between(window.name, before, after))
            moves += largest(found)
            far = runs(move.at_ms for move in found if distance(move) > self._rules.threshold)
            if far:
                moved[window.name] = far
        start_ms, end_ms = (int(touched[0]) * HOUR.pane_ms, (int(touched[-1]) + 1) * HOUR.pane_ms) if len(touched) else (None, None)
        return Revision(number, now_ms, *version, start_ms, end_ms, causes, largest(moves), moved)


def _seen(store: StateStore, stack: ExitStack) -> Shard:
    """A shard as of its last checkpoint, to be read while the shard itself goes on, until the stack ends."""
    return Shard(stack.enter_context(closing(store.snapshot())), None, ())


def _told(entry: Revision) -> str:
    windows = sum(len(moments_of(found)) for found in entry.moved.values())
    return f"{'; '.join(map(cause_text, entry.causes))}; {windows} windows moved by more than the threshold"


def _touched(version: Version, taken: Sequence[_Taken]) -> I64:
    """Hour panes of a version that changed, ascending."""
    found = [np.empty(0, dtype=np.int64)]
    for one in taken:
        ours = np.array([(key.model, key.version) == version for key in one.now.series], dtype=np.bool_)
        found.append(one.pending.sums.pane[ours[one.pending.sums.slot]])
    return np.unique(np.concatenate(found))


def _moments(touched: I64, window: WindowSpec, now_ms: int) -> list[int]:
    """Moments at which a window that holds any of the panes was shown."""
    length = window.length_ms // HOUR.pane_ms
    ends = np.unique((touched[:, None] + np.arange(1, length + 1)).reshape(-1))
    at = ends * HOUR.pane_ms + window.lag_ms
    return [int(one) for one in at[at <= now_ms]]


def _kept(panes: Sequence[Shard], window: WindowSpec, at: Sequence[int]) -> list[int]:
    """The moments whose panes are all there."""
    floor_ms = max((one.kept_from_ms(HOUR) for one in panes), default=0)
    return [at_ms for at_ms in at if window.panes(at_ms)[0] * HOUR.pane_ms >= floor_ms]
