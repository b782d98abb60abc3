"""The join rows of ids, from the stores of a state: told which shard holds each."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import TypeAlias

from monitor.errors import StateError
from monitor.join.row import Row, RowCodec
from monitor.request.state import opened_stores
from monitor.state import keys
from monitor.state.protocol import StateStore

Found: TypeAlias = tuple[int, Row]
"""The number of a shard, and the row there."""

_AGAIN_S = 30.0
"""How old a view may be before it is renewed for ids that are not in it: a prediction may have come since."""


class JoinRows:
    """Looks ids up.

    Args:
        stores: By number of the shard.
        renewed: Opens the stores anew, where somebody else writes them and these stand still; None where they are always as of now.
    """

    def __init__(self, stores: Mapping[int, StateStore], renewed: Callable[[], Mapping[int, StateStore]] | None = None) -> None:
        self._stores = stores
        self._renewed = renewed
        self._opened_at = time.monotonic()
        self._codec = RowCodec()

    def of(self, ids: Sequence[str]) -> dict[str, Found]:
        """The rows that there are; an id with predictions in one shard only.

        Raises:
            StateError: A row is damaged, or the stores cannot be opened anew.
        """
        found = self._look_up(ids)
        if self._renewed is not None and len(found) < len(ids) and time.monotonic() - self._opened_at > _AGAIN_S:
            self._stores, self._opened_at = self._renewed(), time.monotonic()
            found = self._look_up(ids)
        return found

    def _look_up(self, ids: Sequence[str]) -> dict[str, Found]:
        found: dict[str, Found] = {}
        missing = list(ids)
        for number, store in self._stores.items():
            if not missing:
                break
            stored = store.get_many([keys.row(one) for one in missing])
            try:
                found |= {
                    one: (number, self._codec.from_bytes(data)) for one, data in zip(missing, stored, strict=True) if data is not None
                }
            except ValueError as error:
                raise StateError(f"the state holds {error}; restore it from a backup") from error
            missing = [one for one in missing if one not in found or not found[one][1].predictions]
        return found


@contextmanager
def rows_beside(directory: str) -> Iterator[JoinRows]:
    """The rows of a state that a service may be writing.

    Raises:
        StateError: There is no state, or it cannot be read.
    """
    with ExitStack() as stack:

        def renewed() -> Mapping[int, StateStore]:
            stack.close()
            return stack.enter_context(opened_stores(directory))

        yield JoinRows(renewed(), renewed)
