"""What a state store must offer: point reads, ordered scans, and one atomic write a checkpoint."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(slots=True)
class Changes:
    """A checkpoint's writes; applied in this order, all or nothing.

    Attributes:
        delete_ranges: Key ranges [first, end) to remove.
        deletes: Keys to remove.
        puts: Keys and values to set.
    """

    delete_ranges: list[tuple[bytes, bytes]] = field(default_factory=list)
    deletes: list[bytes] = field(default_factory=list)
    puts: list[tuple[bytes, bytes]] = field(default_factory=list)


class StateStore(Protocol):
    """An ordered map of bytes that survives a crash between two commits, never inside one."""

    def get(self, key: bytes) -> bytes | None:
        """Value of a key, or None."""
        ...

    def get_many(self, keys: Sequence[bytes]) -> Sequence[bytes | None]:
        """Values of many keys, in their order."""
        ...

    def scan(self, first: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Keys and values in [first, end), ascending, as they were when the scan began."""
        ...

    def commit(self, changes: Changes) -> None:
        """Apply all changes atomically and durably.

        Raises:
            StateError: They could not be written; nothing of them is applied.
        """
        ...

    def snapshot(self) -> StateStore:
        """The store as of its last commit, to be read by whoever takes long: commits go on meanwhile and are not seen.

        Nothing is to be committed to it, and it is to be closed before the store is.
        """
        ...

    def close(self) -> None:
        """Release the store; safe to call twice."""
        ...
