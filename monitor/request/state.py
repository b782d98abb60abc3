"""The state of a service, running or stopped, looked at without changing it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from monitor.errors import StateError
from monitor.pipeline.shard import Shard
from monitor.state.rocks import MARKER, RocksStore
from monitor.windows.running import WindowSpec

_SHARD = "shard-"


@contextlib.contextmanager
def opened_stores(directory: str) -> Iterator[dict[int, RocksStore]]:
    """The stores in a state directory, read only, each as of its last commit, by the number of the shard; 0 is the one of everything.

    Raises:
        StateError: There is no state, or it cannot be read.
    """
    with contextlib.ExitStack() as stack:
        stores = {}
        for number, part in _parts(directory).items():
            stores[number] = RocksStore(part, read_only=True)
            stack.callback(stores[number].close)
        yield stores


@contextlib.contextmanager
def opened_shards(directory: str, windows: Sequence[WindowSpec] = ()) -> Iterator[list[Shard]]:
    """The shards in a state directory, each as of its last checkpoint; a service may go on with them meanwhile, and is not seen.

    Raises:
        StateError: There is no state, or it cannot be read.
    """
    with opened_stores(directory) as stores:
        yield [Shard(store, None, windows) for store in stores.values()]


def _parts(directory: str) -> dict[int, Path]:
    """Where the stores of a state are."""
    path = Path(directory)
    if (path / MARKER).exists():
        return {0: path}
    found = {int(part.parent.name.removeprefix(_SHARD)): part.parent for part in path.glob(f"{_SHARD}*/{MARKER}")}
    if not found:
        raise StateError(f"there is no calmon state in {directory}: name the configured state.directory")
    return dict(sorted(found.items()))
