"""The state of a stopped service, looked at without changing what it says."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from monitor.errors import StateError
from monitor.pipeline.shard import Shard
from monitor.state.rocks import MARKER, RocksStore
from monitor.windows.running import WindowSpec


@contextlib.contextmanager
def opened_shards(directory: str, windows: Sequence[WindowSpec] = ()) -> Iterator[list[Shard]]:
    """The shards in a state directory; they hold the lock while they are open, so that no service starts meanwhile.

    Raises:
        StateError: There is no state, it cannot be read, or a service is using it.
    """
    path = Path(directory)
    found = [path] if (path / MARKER).exists() else sorted(part.parent for part in path.glob(f"shard-*/{MARKER}"))
    if not found:
        raise StateError(f"there is no calmon state in {directory}: name the configured state.directory")
    with contextlib.ExitStack() as stack:
        stores = []
        for part in found:
            stores.append(RocksStore(part))
            stack.callback(stores[-1].close)
        yield [Shard(store, None, windows) for store in stores]
