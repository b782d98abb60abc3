"""The tracker: at a tick, panes that have become mature enter the tests, and every version's standing is made anew where it changed.

Two truths are kept apart. A course is judged on each pane as it was when it entered, and crossings are noted for ever. What is
shown as evidence now is computed from the matured panes as known now, which a late correction changes.
The named points (`judged`, `journalled`) are where the recovery tests kill the process.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np

from monitor.evidence.cell import WIDTH
from monitor.evidence.course import ALARMS, Course
from monitor.evidence.standing import Crossing, Evidence, Standing
from monitor.pipeline.evidence.book import Book
from monitor.pipeline.evidence.judgement import judge
from monitor.pipeline.evidence.maturity import mature_pane
from monitor.pipeline.evidence.view import show, standings
from monitor.pipeline.shard import Shard
from monitor.statistics.fixed_point import I64
from monitor.statistics.pane import HOUR, POSITION_BITS, SLOT_BITS, PaneSums
from monitor.windows.matured import VersionKey, add_cell, cells_by_pane

log = logging.getLogger(__name__)

PANES_A_TICK = 512
"""About how many panes of versions enter in one tick, which bounds its time; the others enter in the next ones."""

_PER_DAY = HOUR.panes_per_chunk
_Entering = dict[VersionKey, tuple[I64, I64]]


@dataclass(frozen=True, slots=True)
class Rules:
    """What is configured.

    Attributes:
        maturity_ms: How long after its end a pane enters.
        alpha: Level of the tests.
        shown_ms: How long after its last matured prediction a version is shown.
    """

    maturity_ms: int
    alpha: float
    shown_ms: int


class Tracker:
    """Evidence of all shards together.

    Args:
        shards: May grow.
        book: What is kept of the tests.
        rules: What is configured.
        reached: Told at each point.
    """

    def __init__(self, shards: Sequence[Shard], book: Book, rules: Rules, reached: Callable[[str], None]) -> None:
        self._shards = shards
        self.book = book
        self._rules = rules
        self._reached = reached
        self._cells: list[dict[VersionKey, I64]] = []
        self._standings: dict[VersionKey, Standing] = {}
        self._entered_pane = book.next_pane
        for shard in shards:
            self.join(shard)

    def join(self, shard: Shard) -> None:
        """Tell a shard, before it takes anything in, which of its panes have entered already."""
        shard.judged_pane = self._entered_pane

    def tick(self, now_ms: int, known_ms: int | None) -> Evidence:
        """Let panes enter that have become mature; what there is to show.

        Args:
            now_ms: What the clock shows.
            known_ms: Until when everything has been read; None before reading began.

        Raises:
            StateError: Panes could not be read, or the book not be written.
            CapacityError: A version has more predictions than the sums can hold.
        """
        limit = 0 if known_ms is None else mature_pane(now_ms, known_ms, self._rules.maturity_ms)
        shards = list(self._shards)
        try:
            for shard in shards:
                self._catch_up(shard)
            judged = self._mature(shards, limit, now_ms)
            self._look(shards, judged)
        except BaseException:
            # Sums in memory may be ahead of the book: they are made anew.
            for shard in shards:
                with shard.lock:
                    shard.matured.restart()
            self._enter(self.book.next_pane)
            raise
        return show(self._standings, self.book.courses, max(limit, self.book.next_pane), self._rules.shown_ms, self._rules.alpha)

    def _catch_up(self, shard: Shard) -> None:
        """After a start, sum the panes that entered before it; the lock is held for a day of panes at a time."""
        until = self.book.next_pane
        done = False
        while not done:
            with shard.lock:
                matured = shard.matured
                begin = matured.sums.end_pane
                days = [day for day in shard.matured_days() if begin < (day + 1) * _PER_DAY and day * _PER_DAY < until]
                done = begin >= until or not days
                if not done:
                    end = min(until, (days[0] + 1) * _PER_DAY)
                    matured.sums.enter(matured.read(begin, end), end)
                elif begin < until:
                    matured.sums.enter(PaneSums.empty(), until)
                matured.settled_pane = until

    def _mature(self, shards: Sequence[Shard], limit: int, now_ms: int) -> set[VersionKey]:
        """Let panes before `limit` enter, and store that; whose they are."""
        next_pane, entered = self.book.next_pane, 0
        courses: dict[VersionKey, Course] = {}
        crossings: list[Crossing] = []
        noted = self.book.noted(self._rules.alpha)
        while entered < PANES_A_TICK:
            taken = self._take(shards, next_pane, limit)
            if taken is None:
                break
            next_pane, entering = taken
            for version, panes in sorted(entering.items(), key=lambda item: item[0]):
                before = courses.get(version) or self.book.courses.get(version) or Course.empty()
                courses[version], found = judge(version, before, panes, self._rules.alpha, now_ms, noted)
                crossings += found
                noted |= {(version, entry.alarm) for entry in found}
                entered += len(panes[0])
        if courses:
            # One order, however many panes entered at once.
            crossings.sort(key=lambda entry: (entry.pane_end_ms, entry.model, entry.version, ALARMS.index(entry.alarm)))
            self._reached("judged")
            self.book.commit(next_pane, courses, crossings)
            self._reached("journalled")
            for entry in crossings:
                log.warning("evidence: %s", entry.told())
            for shard in shards:
                shard.matured.settled_pane = next_pane
        return set(courses)

    def _take(self, shards: Sequence[Shard], first: int, limit: int) -> tuple[int, _Entering] | None:
        """The next panes that hold anything, of one day: the pane after them, and whose they are; None if there are none.

        All shards are read at one moment, and from that moment on changes of these panes are corrections. So no batch may be in work that
        has looked before what has matured.
        """
        if first >= limit:
            return None
        with ExitStack() as stack:
            for lock in (*(shard.batch for shard in shards), *(shard.lock for shard in shards)):
                stack.enter_context(lock)
            days = sorted({day for shard in shards for day in shard.matured_days()})
            for day in (day for day in days if first < (day + 1) * _PER_DAY and day * _PER_DAY < limit):
                begin, end = max(first, day * _PER_DAY), min(limit, (day + 1) * _PER_DAY)
                parts = [shard.matured.read(begin, end) for shard in shards]
                panes = np.sort(np.concatenate([np.unique(part.keys >> POSITION_BITS) >> SLOT_BITS for part in parts]))
                if len(panes):
                    # So many series of panes at once, but at least one pane whole.
                    last = int(panes[-1] if len(panes) <= PANES_A_TICK else max(panes[0], panes[PANES_A_TICK] - 1))
                    parts = [part.between(begin, last + 1) for part in parts]
                    for shard, part in zip(shards, parts, strict=True):
                        shard.matured.sums.enter(part, last + 1)
                    self._enter(last + 1)
                    return last + 1, _gather(shards, parts)
        return None

    def _enter(self, pane: int) -> None:
        """From now on, what changes in panes before this one is a revision; also in a shard that began after the tick did.

        After a crash before the book is written, what came in between is a revision too, though the tests then see it at once.
        """
        self._entered_pane = pane
        for shard in list(self._shards):
            shard.judged_pane = pane

    def _look(self, shards: Sequence[Shard], judged: Iterable[VersionKey]) -> None:
        """Make the standings anew of versions that were judged or have changed."""
        changed = set(judged)
        self._cells += [{} for _ in shards[len(self._cells) :]]
        for shard, known in zip(shards, self._cells, strict=True):
            with shard.lock:
                new = shard.matured.sums.take_changed()
            known.update(new)
            changed |= new.keys()
        versions = sorted(changed & self.book.courses.keys())
        now = {version: _total([cells[version] for cells in self._cells if version in cells]) for version in versions}
        self._standings |= standings(now, self.book, self._rules.alpha)


def _gather(shards: Sequence[Shard], parts: Sequence[PaneSums]) -> _Entering:
    """Panes of each version, shards summed."""
    merged: dict[VersionKey, dict[int, I64]] = {}
    for shard, part in zip(shards, parts, strict=True):
        for version, panes in cells_by_pane(part, shard.series).items():
            for pane, cell in panes.items():
                add_cell(merged.setdefault(version, {}), pane, cell)
    return {version: (np.array(sorted(panes)), np.stack([panes[pane] for pane in sorted(panes)])) for version, panes in merged.items()}


def _total(cells: Sequence[I64]) -> I64:
    return np.sum(cells, axis=0, dtype=np.int64) if cells else np.zeros(WIDTH, dtype=np.int64)
