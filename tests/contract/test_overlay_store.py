"""The store in memory on top of another one: a store like any, and one that leaves the lower one alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.state.overlay import OverlayStore
from monitor.state.protocol import Changes
from tests.doubles.memory_store import MemoryStore

from .store_contract import EVERYTHING, OpenStore, StoreContract


class TestOverlayStore(StoreContract):
    @pytest.fixture
    def open_store(self) -> OpenStore:
        store = OverlayStore(MemoryStore())
        return lambda: store


KEYS = st.binary(min_size=1, max_size=3)
CHANGES = st.builds(
    Changes,
    delete_ranges=st.lists(st.tuples(KEYS, KEYS).map(lambda pair: (min(pair), max(pair))), max_size=2),
    deletes=st.lists(KEYS, max_size=4),
    puts=st.lists(st.tuples(KEYS, st.binary(max_size=2)), max_size=8),
)


@given(
    below=st.dictionaries(KEYS, st.binary(max_size=2)),
    commits=st.lists(CHANGES, max_size=5),
    asked=st.lists(KEYS),
    span=st.tuples(KEYS, KEYS),
)
def test_it_reads_like_a_copy_with_the_same_commits(
    below: dict[bytes, bytes], commits: list[Changes], asked: list[bytes], span: tuple[bytes, bytes]
) -> None:
    lower, copy = MemoryStore(below), MemoryStore(below)
    overlay = OverlayStore(lower)
    for changes in commits:
        overlay.commit(changes)
        copy.commit(changes)
    assert list(overlay.get_many(asked)) == list(copy.get_many(asked)) == [overlay.get(key) for key in asked]
    for first, end in (EVERYTHING, (min(span), max(span))):
        assert list(overlay.scan(first, end)) == list(copy.scan(first, end))
    assert list(lower.scan(*EVERYTHING)) == sorted(below.items())
    assert lower.commits == 0
