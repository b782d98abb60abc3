"""The state of a service, running or stopped, looked at without changing it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from monitor.errors import StateError
from monitor.pipeline.shard import Shard
from monitor.state.rocks import MARKER, RocksStore
from monitor.windows.running import WindowSpec


@contextlib.contextmanager
def opened_stores(directory: str) -> Iterator[list[RocksStore]]:
    """The stores in a state directory, read only, each as of its last commit.

    Raises:
        StateError: There is no state, or it cannot be read.
    """
    path = Path(directory)
    found = [path] if (path / MARKER).exists() else sorted(part.parent for part in path.glob(f"shard-*/{MARKER}"))
    if not found:
        raise StateError(f"there is no calmon state in {directory}: name the configured state.directory")
    with contextlib.ExitStack() as stack:
        stores = []
        for part in found:
            stores.append(RocksStore(part, read_only=True))
            stack.callback(stores[-1].close)
        yield stores


@contextlib.contextmanager
def opened_shards(directory: str, windows: Sequence[WindowSpec] = ()) -> Iterator[list[Shard]]:
    """The shards in a state directory, each as of its last checkpoint; a service may go on with them meanwhile, and is not seen.

    Raises:
        StateError: There is no state, or it cannot be read.
    """
    with opened_stores(directory) as stores:
        yield [Shard(store, None, windows) for store in stores]
