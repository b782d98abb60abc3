"""The journal of revisions: which entries it keeps, and that it says so where one is lost."""

from __future__ import annotations

import pytest

from monitor.errors import StateError
from monitor.pipeline.revisions.journal import KEPT, Journal, Revision
from monitor.state import keys
from monitor.state.protocol import Changes
from tests.doubles.memory_store import MemoryStore

MOVED = {"24h": [(0, 0)], "7d": [(0, 0)]}


def entries(first: int, end: int, moved: dict[str, list[tuple[int, int]]] | None = None) -> list[Revision]:
    return [Revision(number, number, "m", "v", 0, 0, [], [], moved or {}) for number in range(first, end)]


def numbers(journal: Journal) -> list[int]:
    return [entry.number for entry in journal.entries]


def test_it_keeps_the_newest_entries() -> None:
    store = MemoryStore()
    journal = Journal(store)
    made = entries(0, KEPT + 20, MOVED)
    for first in range(0, len(made), 70):
        journal.commit({"all": first + 1}, made[first : first + 70])
    assert journal.entries == made[-KEPT:]
    again = Journal(store)
    assert again.entries == made[-KEPT:]
    assert again.next_number == len(made)
    again.published(made[-1].number, "24h", 2)
    assert Journal(store).entries[-1].published == {"24h": 2}


def test_more_entries_at_once_than_it_keeps_leave_nothing_behind() -> None:
    store = MemoryStore()
    journal = Journal(store)
    journal.commit({"all": 1}, entries(0, 10))
    journal.commit({"all": 2}, entries(10, KEPT + 50))
    assert numbers(journal) == numbers(Journal(store)) == list(range(50, KEPT + 50))
    assert len(list(store.scan(*keys.prefix_range(b"w")))) == KEPT


def test_what_waits_for_prometheus_is_dropped_last_and_not_without_a_word(caplog: pytest.LogCaptureFixture) -> None:
    store = MemoryStore()
    journal = Journal(store, publishes=True)
    journal.commit({"all": 1}, entries(0, 20, MOVED))
    for name in MOVED:
        journal.published(3, name, 1)
    journal.published(4, "24h", 1)
    journal.commit({"all": 2}, entries(20, KEPT))
    journal.commit({"all": 3}, entries(KEPT, KEPT + 2))
    assert numbers(journal) == [*range(3), *range(4, 20), *range(21, KEPT + 2)], "what waits for nothing goes, the oldest first"
    assert caplog.messages == []
    journal.commit({"all": 4}, entries(KEPT + 2, 2 * KEPT, MOVED))
    assert numbers(journal) == numbers(Journal(store)) == [*[n for n in range(20) if n != 3][17:], *range(KEPT + 2, 2 * KEPT)]
    assert caplog.messages == [
        f"33 moved windows of revisions 0 to 17 never came to Prometheus: more than {KEPT} revisions wait, and the oldest are dropped"
    ]


def test_shards_that_were_begun_anew_are_forgotten() -> None:
    store = MemoryStore()
    journal = Journal(store)
    journal.commit({"0": 7, "1": 9}, entries(0, 1))
    journal.forget(["0"])
    for one in (journal, Journal(store)):
        assert (one.sequences, one.next_number, numbers(one)) == ({"1": 9}, 1, [0])


def test_a_damaged_one_is_refused() -> None:
    store = MemoryStore()
    store.commit(Changes(puts=[(b"!revised", b"\xc1")]))
    with pytest.raises(StateError, match="the journal of revisions is damaged"):
        Journal(store)
