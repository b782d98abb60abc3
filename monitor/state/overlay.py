"""A state store in memory on top of another one: what is written stays in memory, the other is only read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from monitor.state.protocol import Changes, StateStore


class OverlayStore:
    """Looks like the store below with all commits in it; nothing is ever written to that one.

    Args:
        below: The store that shines through; closed by whoever opened it.
        above: What another one has written, to begin with.
    """

    def __init__(self, below: StateStore, above: Mapping[bytes, Mapping[bytes, bytes | None]] | None = None) -> None:
        self._below = below
        # By the keys' first byte, for what is scanned is a small part of what is written: None for a key that was removed.
        self._above: dict[bytes, dict[bytes, bytes | None]] = {byte: dict(items) for byte, items in (above or {}).items()}

    def get(self, key: bytes) -> bytes | None:
        """Value of a key, or None."""
        above = self._above.get(key[:1], {})
        return above[key] if key in above else self._below.get(key)

    def get_many(self, keys: Sequence[bytes]) -> Sequence[bytes | None]:
        """Values of many keys, in their order."""
        values: list[bytes | None] = [None] * len(keys)
        rest: list[int] = []
        for place, key in enumerate(keys):
            above = self._above.get(key[:1], {})
            if key in above:
                values[place] = above[key]
            else:
                rest.append(place)
        for place, value in zip(rest, self._below.get_many([keys[place] for place in rest]), strict=True):
            values[place] = value
        return values

    def scan(self, first: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Keys and values in [first, end), ascending, as they were when the scan began."""
        near = [items for byte, items in self._above.items() if first[:1] <= byte <= end[:1]]
        written = {key: value for items in near for key, value in items.items() if first <= key < end}
        return self._merged(written, self._below.scan(first, end))

    def commit(self, changes: Changes) -> None:
        """Apply all changes, in memory."""
        for first, end in changes.delete_ranges:
            for key in [key for key, _ in self.scan(first, end)]:
                self._put(key, None)
        for key in changes.deletes:
            self._put(key, None)
        for key, value in changes.puts:
            self._put(key, value)

    def snapshot(self) -> OverlayStore:
        """The store as it is now; the one below does not change."""
        return OverlayStore(self._below, self._above)

    def close(self) -> None:
        """Nothing to release."""

    def _put(self, key: bytes, value: bytes | None) -> None:
        self._above.setdefault(key[:1], {})[key] = value

    @staticmethod
    def _merged(written: dict[bytes, bytes | None], below: Iterator[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, bytes]]:
        above = iter(sorted(written.items()))
        upper = next(above, None)
        for key, value in below:
            while upper is not None and upper[0] < key:
                if upper[1] is not None:
                    yield upper[0], upper[1]
                upper = next(above, None)
            if key not in written:
                yield key, value
        while upper is not None:
            if upper[1] is not None:
                yield upper[0], upper[1]
            upper = next(above, None)
