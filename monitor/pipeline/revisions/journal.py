"""The journal of revisions: what windows were before matured panes changed, what they are now, and by which records.

An entry and how far each shard was taken in are one atomic write, so that a crash neither loses a revision nor notes it twice.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence

import msgspec

from monitor.errors import StateError
from monitor.pipeline.revisions.cause import Cause
from monitor.state import keys
from monitor.state.protocol import Changes, StateStore

KEPT = 1_000
"""Entries that are kept; the oldest goes first, but those that wait for Prometheus go last."""

log = logging.getLogger(__name__)


class Move(msgspec.Struct, frozen=True):
    """The largest move of a metric.

    Attributes:
        metric: Its name.
        window: Name of the window.
        at_ms: Moment that the window is seen from.
        old: What it was before; None where undefined.
        new: What it is now; None where undefined.
    """

    metric: str
    window: str
    at_ms: int
    old: float | None
    new: float | None


class Revision(msgspec.Struct, frozen=True):
    """One entry: what changed of a version between two looks.

    Attributes:
        number: From 0, in the order they were noted.
        noted_ms: When, by the clock.
        model: Whose panes changed.
        version: Of which of its versions.
        start_ms: First event time of the hours that changed; None where the changes cancelled out.
        end_ms: End of the last one; None as well.
        causes: The records that did it.
        moves: Of each metric that moved at all.
        moved: By window: first and last moment of each hourly run that moved by more than the threshold.
        published: By window: the `revision` that Prometheus has of these moments; windows that wait are absent.
    """

    number: int
    noted_ms: int
    model: str
    version: str
    start_ms: int | None
    end_ms: int | None
    causes: list[Cause]
    moves: list[Move]
    moved: dict[str, list[tuple[int, int]]]
    published: dict[str, int] = {}

    @property
    def waiting(self) -> list[str]:
        """Windows that moved and that Prometheus does not have."""
        return [name for name in self.moved if name not in self.published]


class _Taken(msgspec.Struct):
    """How far the journal has come: number of the next entry, and the last checkpoint taken in of each shard."""

    next_number: int = 0
    sequences: dict[str, int] = {}


class Journal:
    """What is kept of revisions.

    Args:
        store: Where; read at once.
        publishes: Whether Prometheus is told, so that entries wait for it.

    Attributes:
        entries: The newest last.

    Raises:
        StateError: It is damaged.
    """

    def __init__(self, store: StateStore, publishes: bool = False) -> None:
        self._store = store
        self._publishes = publishes
        try:
            data = store.get(keys.REVISED)
            self._taken = _Taken() if data is None else msgspec.msgpack.decode(data, type=_Taken)
            self.entries = [msgspec.json.decode(value, type=Revision) for _, value in store.scan(*keys.prefix_range(b"w"))]
        except msgspec.DecodeError as error:
            raise StateError(f"the journal of revisions is damaged: {error}; restore the state from a backup or start anew") from error

    @property
    def next_number(self) -> int:
        """Number of the next entry; as many there have ever been."""
        return self._taken.next_number

    @property
    def sequences(self) -> Mapping[str, int]:
        """The last checkpoint of each shard that was taken in."""
        return self._taken.sequences

    def commit(self, sequences: Mapping[str, int], entries: Sequence[Revision]) -> None:
        """Take in checkpoints of shards up to these numbers with the entries made of them, all or nothing.

        Raises:
            StateError: It could not be written; nothing has changed.
        """
        taken = _Taken(self.next_number + len(entries), {**self._taken.sequences, **sequences})
        dropped = self._too_many([*self.entries, *entries])
        gone = {entry.number for entry in dropped}
        changes = Changes(puts=[(keys.REVISED, msgspec.msgpack.encode(taken))])
        changes.puts += [(keys.revision(entry.number), msgspec.json.encode(entry)) for entry in entries if entry.number not in gone]
        changes.deletes = [keys.revision(entry.number) for entry in self.entries if entry.number in gone]
        self._store.commit(changes)
        self._taken = taken
        self.entries = [entry for entry in (*self.entries, *entries) if entry.number not in gone]
        lost = [entry for entry in dropped if self._waits(entry)]
        if lost:
            log.warning(
                "%d moved windows of revisions %d to %d never came to Prometheus: more than %d revisions wait, and the oldest are dropped",
                sum(len(entry.waiting) for entry in lost),
                lost[0].number,
                lost[-1].number,
                KEPT,
            )

    def forget(self, names: Collection[str]) -> None:
        """Know nothing any more of shards that were begun anew.

        Raises:
            StateError: It could not be written; nothing has changed.
        """
        taken = _Taken(self.next_number, {name: sequence for name, sequence in self.sequences.items() if name not in names})
        self._store.commit(Changes(puts=[(keys.REVISED, msgspec.msgpack.encode(taken))]))
        self._taken = taken

    def published(self, number: int, window: str, revision: int) -> None:
        """Note which `revision` Prometheus has of an entry's window.

        Raises:
            StateError: It could not be written.
        """
        place = next(place for place, entry in enumerate(self.entries) if entry.number == number)
        entry = self.entries[place]
        entry = msgspec.structs.replace(entry, published={**entry.published, window: revision})
        self._store.commit(Changes(puts=[(keys.revision(number), msgspec.json.encode(entry))]))
        self.entries = [*self.entries[:place], entry, *self.entries[place + 1 :]]

    def _too_many(self, entries: Sequence[Revision]) -> list[Revision]:
        """Entries that are not kept, of those in the order of their numbers: the oldest that wait for nothing, then the oldest."""
        return sorted(entries, key=self._waits)[: max(0, len(entries) - KEPT)]

    def _waits(self, entry: Revision) -> bool:
        return self._publishes and bool(entry.waiting)
