"""What every state store must do; an adapter's tests subclass `StoreContract` and say how one is opened."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pytest

from monitor.state.protocol import Changes, StateStore

OpenStore: TypeAlias = Callable[[], StateStore]
"""Opens the store; after `close` it can be called again and finds what was committed."""

EVERYTHING = (b"", b"\xff" * 8)


def put(store: StateStore, **values: bytes) -> None:
    """Commit values under plain keys."""
    store.commit(Changes(puts=[(key.encode(), value) for key, value in values.items()]))


def keys_in(store: StateStore, first: bytes, end: bytes) -> list[bytes]:
    """Keys of a scan."""
    return [key for key, _ in store.scan(first, end)]


class StoreContract:
    """Tests for any `StateStore`; a subclass overrides the fixture `open_store`."""

    @pytest.fixture
    def open_store(self) -> OpenStore:
        """Opens one store that is empty at first."""
        raise NotImplementedError

    @pytest.fixture
    def store(self, open_store: OpenStore) -> StateStore:
        """A new, empty store."""
        return open_store()

    def test_a_new_store_is_empty(self, store: StateStore) -> None:
        assert store.get(b"a") is None
        assert store.get_many([b"a", b"b"]) == [None, None]
        assert list(store.scan(*EVERYTHING)) == []

    def test_get_tells_an_empty_value_from_none(self, store: StateStore) -> None:
        put(store, a=b"", b=b"\x00")
        assert (store.get(b"a"), store.get(b"b"), store.get(b"c")) == (b"", b"\x00", None)
        assert list(store.scan(*EVERYTHING)) == [(b"a", b""), (b"b", b"\x00")]

    def test_get_many_keeps_the_order_asked_for(self, store: StateStore) -> None:
        put(store, a=b"1", b=b"2", c=b"")
        assert list(store.get_many([b"c", b"x", b"a", b"b", b"a"])) == [b"", None, b"1", b"2", b"1"]
        assert list(store.get_many([])) == []

    def test_any_bytes_may_be_a_key_or_a_value(self, store: StateStore) -> None:
        raw = [bytes([low, high]) for low in (0, 1, 127, 128, 255) for high in (0, 10, 255)]
        store.commit(Changes(puts=[(key, key * 1000) for key in reversed(raw)]))
        assert list(store.get_many(raw)) == [key * 1000 for key in raw]
        assert keys_in(store, b"", b"\xff\xff\xff") == sorted(raw)

    def test_a_scan_is_in_the_order_of_bytes_and_leaves_its_end_out(self, store: StateStore) -> None:
        put(store, b=b"2", a=b"1", ba=b"3", c=b"4", bb=b"5")
        assert keys_in(store, b"a", b"c") == [b"a", b"b", b"ba", b"bb"]
        assert keys_in(store, b"b", b"bb") == [b"b", b"ba"]
        assert keys_in(store, b"aa", b"b\x00") == [b"b"]
        assert keys_in(store, b"c", b"c") == []
        assert keys_in(store, b"c", b"a") == []
        assert keys_in(store, b"d", b"z") == []

    def test_a_scan_sees_the_store_as_it_was_when_it_began(self, store: StateStore) -> None:
        put(store, a=b"1", b=b"2", c=b"3")
        scan = store.scan(b"a", b"z")
        assert next(scan) == (b"a", b"1")
        store.commit(Changes(deletes=[b"b"], puts=[(b"c", b"new"), (b"d", b"4")]))
        assert list(scan) == [(b"b", b"2"), (b"c", b"3")]
        assert list(store.scan(b"a", b"z")) == [(b"a", b"1"), (b"c", b"new"), (b"d", b"4")]

    def test_a_snapshot_stays_as_the_store_was(self, store: StateStore) -> None:
        put(store, a=b"1", b=b"2", c=b"3")
        snapshot = store.snapshot()
        store.commit(Changes(delete_ranges=[(b"b", b"c")], deletes=[b"a"], puts=[(b"c", b"new"), (b"d", b"4")]))
        for one, other in zip(snapshot.scan(b"a", b"d"), snapshot.scan(b"a", b"d"), strict=True):
            assert one == other
        assert list(snapshot.scan(b"a", b"z")) == [(b"a", b"1"), (b"b", b"2"), (b"c", b"3")]
        assert snapshot.get(b"b") == b"2"
        assert snapshot.get(b"d") is None
        assert snapshot.get_many([b"d", b"c"]) == [None, b"3"]
        assert list(snapshot.snapshot().scan(b"b", b"c")) == [(b"b", b"2")]
        snapshot.close()
        snapshot.close()
        assert keys_in(store, *EVERYTHING) == [b"c", b"d"]

    def test_a_snapshot_is_read_in_any_number_of_pieces(self, store: StateStore) -> None:
        large = {f"k{number}": bytes([number]) * (400 << 10) for number in range(9)}
        put(store, **large)
        snapshot = store.snapshot()
        store.commit(Changes(delete_ranges=[EVERYTHING]))
        assert list(snapshot.scan(b"k", b"l")) == [(name.encode(), value) for name, value in large.items()]
        assert [key for key, _ in snapshot.scan(b"k2", b"k7")] == [b"k2", b"k3", b"k4", b"k5", b"k6"]
        snapshot.close()

    def test_a_commit_deletes_ranges_then_keys_then_puts(self, store: StateStore) -> None:
        put(store, a=b"old", b=b"old", c=b"old", d=b"old")
        store.commit(Changes(puts=[(b"a", b"1"), (b"d", b"4")], deletes=[b"d"], delete_ranges=[(b"a", b"c")]))
        assert list(store.scan(*EVERYTHING)) == [(b"a", b"1"), (b"c", b"old"), (b"d", b"4")]

    def test_a_deleted_range_leaves_its_end(self, store: StateStore) -> None:
        put(store, a=b"", b=b"", c=b"", d=b"")
        store.commit(Changes(delete_ranges=[(b"b", b"c"), (b"x", b"z")]))
        assert keys_in(store, *EVERYTHING) == [b"a", b"c", b"d"]
        assert store.get(b"b") is None

    def test_of_two_puts_of_a_key_the_later_one_stays(self, store: StateStore) -> None:
        store.commit(Changes(puts=[(b"a", b"1"), (b"a", b"2")]))
        assert store.get(b"a") == b"2"

    def test_deleting_what_is_not_there_and_an_empty_commit_are_harmless(self, store: StateStore) -> None:
        put(store, a=b"1")
        store.commit(Changes(deletes=[b"x"]))
        store.commit(Changes())
        assert list(store.scan(*EVERYTHING)) == [(b"a", b"1")]

    def test_what_was_committed_is_there_when_it_is_opened_again(self, open_store: OpenStore) -> None:
        first = open_store()
        put(first, a=b"1", b=b"2")
        first.commit(Changes(deletes=[b"a"]))
        first.close()
        second = open_store()
        assert list(second.scan(*EVERYTHING)) == [(b"b", b"2")]
        second.close()

    def test_closing_twice_is_allowed(self, store: StateStore) -> None:
        store.close()
        store.close()
