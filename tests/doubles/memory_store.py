"""A state store in a dict."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence

from monitor.state.protocol import Changes


class MemoryStore:
    """Keeps everything until it is garbage: to close it and to open it again with another engine is a restart.

    Attributes:
        commits: Checkpoints and other commits so far.
    """

    def __init__(self, items: dict[bytes, bytes] | None = None) -> None:
        self._items = dict(items or {})
        self.commits = 0

    def copy(self) -> MemoryStore:
        """A store with the same content that changes on its own: what a crash leaves, or a backup."""
        return MemoryStore(self._items)

    def get(self, key: bytes) -> bytes | None:
        """Value of a key, or None."""
        return self._items.get(key)

    def get_many(self, keys: Sequence[bytes]) -> Sequence[bytes | None]:
        """Values of many keys, in their order."""
        return [self._items.get(key) for key in keys]

    def scan(self, first: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Keys and values in [first, end), ascending, as they were when the scan began."""
        return iter([(key, self._items[key]) for key in self._between(first, end)])

    def commit(self, changes: Changes) -> None:
        """Apply all changes."""
        for first, end in changes.delete_ranges:
            for key in self._between(first, end):
                del self._items[key]
        for key in changes.deletes:
            self._items.pop(key, None)
        self._items.update(changes.puts)
        self.commits += 1

    def snapshot(self) -> MemoryStore:
        """The store as it is now."""
        return self.copy()

    def close(self) -> None:
        """Nothing to release."""

    def _between(self, first: bytes, end: bytes) -> list[bytes]:
        keys = sorted(self._items)
        return keys[bisect_left(keys, first) : bisect_left(keys, end)]
