"""The ledger: what is read is what was stored, however it is spread over memory, whole chunks and deltas."""

from __future__ import annotations

import numpy as np
import pytest

from monitor.errors import StateError
from monitor.pipeline.ledger import Ledger, by_chunk
from monitor.state import keys
from monitor.state.protocol import Changes
from monitor.statistics.pane import HOUR, PANE_SHIFT, PaneSums, merge
from tests.doubles.memory_store import MemoryStore

PER_CHUNK = HOUR.panes_per_chunk


def sums(*entries: tuple[int, int]) -> PaneSums:
    """Sums of (pane, value) at slot 0, position 1."""
    parts = [PaneSums(np.array([pane << PANE_SHIFT | 1]), np.array([value])) for pane, value in entries]
    return merge(parts)


def pairs(found: PaneSums) -> list[tuple[int, int]]:
    """(pane, value) of sums."""
    return list(zip(found.pane.tolist(), found.values.tolist(), strict=True))


class Book:
    """A ledger with its store, driven as a shard drives it."""

    def __init__(self, store: MemoryStore | None = None) -> None:
        self.store = store or MemoryStore()
        self.ledger = Ledger(HOUR, self.store)
        self.sequence = 0

    def add(self, *entries: tuple[int, int]) -> None:
        """One checkpoint."""
        self.sequence += 1
        changes = Changes()
        added = by_chunk([sums(*entries)], HOUR)
        self.ledger.stage(added, self.sequence, changes)
        self.store.commit(changes)
        self.ledger.apply(added)

    def absorb(self) -> Changes:
        """Absorb what is worth it."""
        changes = self.ledger.absorb(self.sequence)
        self.store.commit(changes)
        return changes

    def stored(self) -> int:
        """Keys in the store."""
        return len(list(self.store.scan(b"", b"\xff")))


def test_reads_what_was_added_over_chunks() -> None:
    book = Book()
    book.add((0, 1), (PER_CHUNK - 1, 2), (PER_CHUNK, 4))
    book.add((PER_CHUNK, 8), (5 * PER_CHUNK, 16))
    assert pairs(book.ledger.read(0, 6 * PER_CHUNK)) == [(0, 1), (PER_CHUNK - 1, 2), (PER_CHUNK, 12), (5 * PER_CHUNK, 16)]
    assert pairs(book.ledger.read(PER_CHUNK - 1, PER_CHUNK + 1)) == [(PER_CHUNK - 1, 2), (PER_CHUNK, 12)]
    assert pairs(book.ledger.read(PER_CHUNK, PER_CHUNK)) == []
    assert book.ledger.chunks() == [0, 1, 5]


def test_what_cancels_disappears() -> None:
    book = Book()
    book.add((3, 7))
    book.add((3, -7))
    assert pairs(book.ledger.read(0, PER_CHUNK)) == []


@pytest.mark.parametrize("floor_chunk", [0, 1, 9])
@pytest.mark.parametrize("reopened", [False, True])
def test_memory_and_store_say_the_same(floor_chunk: int, reopened: bool) -> None:
    book = Book()
    plain = []
    for number in range(200):
        entries = ((number % (3 * PER_CHUNK), number + 1), (2 * PER_CHUNK + 1, -1))
        if number == 50:
            book.ledger.raise_floor(floor_chunk * HOUR.chunk_ms)
        book.add(*entries)
        plain.append(sums(*entries))
        if number % 7 == 0:
            book.absorb()
    ledger = Ledger(HOUR, book.store) if reopened else book.ledger
    assert pairs(ledger.read(0, 3 * PER_CHUNK)) == pairs(merge(plain))
    assert pairs(Ledger(HOUR, book.store).read(0, 3 * PER_CHUNK)) == pairs(merge(plain))


def test_deltas_are_absorbed_once_there_are_many() -> None:
    book = Book()
    while not (changes := book.absorb()).puts:
        book.add((1, 1))
    assert 8 < book.sequence <= 1000
    assert [key for key, _ in changes.puts] == [keys.pane_base(HOUR.name, 0)]
    assert book.stored() == 1
    book.add((1, 5))
    assert book.absorb().puts == []
    assert book.stored() == 2
    assert pairs(Ledger(HOUR, book.store).read(0, PER_CHUNK)) == [(1, book.sequence - 1 + 5)]


QUIET = 64
"""Checkpoints after which a chunk is."""


def wait(book: Book, checkpoints: int) -> None:
    """So many checkpoints that change the newest chunk alone."""
    for _ in range(checkpoints):
        book.add((9 * PER_CHUNK, 1))


@pytest.mark.parametrize("reopened", [False, True])
def test_a_chunk_that_has_left_memory_is_absorbed_once_it_is_quiet(reopened: bool) -> None:
    book = Book()
    for _ in range(5):
        book.add((1, 1))
    wait(book, QUIET - 1)
    book.ledger.raise_floor(HOUR.chunk_ms)
    assert keys.pane_base(HOUR.name, 0) not in dict(book.absorb().puts)
    wait(book, 1)
    if reopened:
        sequence, book = book.sequence, Book(book.store)
        book.sequence = sequence
        book.ledger.raise_floor(HOUR.chunk_ms)
    changes = book.absorb()
    assert keys.pane_base(HOUR.name, 0) in dict(changes.puts)
    assert [key for key, _ in book.store.scan(*keys.panes(HOUR.name, 0, 1))] == [keys.pane_base(HOUR.name, 0)]
    assert pairs(Ledger(HOUR, book.store).read(0, PER_CHUNK)) == [(1, 5)]
    wait(book, QUIET)
    assert keys.pane_base(HOUR.name, 0) not in dict(book.absorb().puts)


def test_a_chunk_in_memory_is_not_rewritten_for_being_quiet() -> None:
    book = Book()
    book.add((1, 1))
    wait(book, 2 * QUIET)
    assert keys.pane_base(HOUR.name, 0) not in dict(book.absorb().puts)


def test_a_few_late_labels_do_not_rewrite_a_quiet_chunk() -> None:
    book = Book()
    book.add(*((pane, 1) for pane in range(PER_CHUNK)))
    book.ledger.raise_floor(HOUR.chunk_ms)
    wait(book, QUIET)
    book.absorb()
    added, written = 0, False
    while not written:
        book.add((3, 1))
        wait(book, QUIET)
        added += 1
        written = keys.pane_base(HOUR.name, 0) in dict(book.absorb().puts)
    assert added * 4 > PER_CHUNK >= (added - 1) * 4
    assert dict(pairs(Ledger(HOUR, book.store).read(0, PER_CHUNK)))[3] == 1 + added


def test_after_a_long_stop_quiet_chunks_are_absorbed_one_a_round() -> None:
    book = Book()
    for chunk in range(4):
        book.add((chunk * PER_CHUNK, chunk + 1))
    wait(book, QUIET)
    book.ledger.raise_floor(4 * HOUR.chunk_ms)
    rounds = [{key for key, _ in book.absorb().puts if key < keys.pane_base(HOUR.name, 4)} for _ in range(5)]
    assert [len(one) for one in rounds] == [1, 1, 1, 1, 0]


def test_absorbing_after_a_restart_and_more_deltas_keeps_everything() -> None:
    book = Book()
    for _ in range(60):
        book.add((1, 1))
    again = Book(book.store.copy())
    again.sequence = book.sequence
    while not again.absorb().puts:
        again.add((1, 1))
    assert pairs(Ledger(HOUR, again.store).read(0, PER_CHUNK)) == [(1, again.sequence)]


def test_an_absorbed_chunk_that_a_crash_kept_from_the_store_is_absorbed_again() -> None:
    book = Book()
    while not book.ledger.absorb(book.sequence).puts:  # never committed
        book.add((1, 1))
    again = Book(book.store.copy())
    assert again.absorb().puts != []
    assert pairs(Ledger(HOUR, again.store).read(0, PER_CHUNK)) == [(1, book.sequence)]


def test_expiring_drops_whole_chunks_before_a_time() -> None:
    book = Book()
    book.add((0, 1), (PER_CHUNK, 2), (2 * PER_CHUNK, 3))
    changes = book.ledger.expire(2 * HOUR.chunk_ms - 1)
    book.store.commit(changes)
    assert pairs(book.ledger.read(0, 9 * PER_CHUNK)) == [(PER_CHUNK, 2), (2 * PER_CHUNK, 3)]
    assert pairs(Ledger(HOUR, book.store).read(0, 9 * PER_CHUNK)) == [(PER_CHUNK, 2), (2 * PER_CHUNK, 3)]
    assert book.ledger.expire(HOUR.chunk_ms).delete_ranges == []


def test_a_late_change_to_an_expired_chunk_begins_it_anew() -> None:
    book = Book()
    book.add((0, 1))
    book.store.commit(book.ledger.expire(HOUR.chunk_ms))
    book.add((0, 5))
    assert pairs(book.ledger.read(0, PER_CHUNK)) == [(0, 5)]


def test_damaged_bytes_are_an_error_that_names_the_chunk() -> None:
    book = Book()
    book.add((0, 1))
    book.store.commit(Changes(puts=[(keys.pane_delta(HOUR.name, 0, 99), b"12345")]))
    with pytest.raises(StateError, match="h-pane chunk 0 is damaged"):
        Ledger(HOUR, book.store).read(0, PER_CHUNK)
