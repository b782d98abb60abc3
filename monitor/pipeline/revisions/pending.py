"""What changed in panes that had matured and is not in the journal yet: the sums that were added, and the records that did it.

Each checkpoint that changes such panes writes what it adds to them once more, under its own number, so that a crash loses no
revision and sees none twice. Sums have inverses: what a window was before is what it is now, minus these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import msgspec

from monitor.errors import StateError
from monitor.pipeline.ledger import Chunks
from monitor.pipeline.revisions.cause import Cause
from monitor.state import keys
from monitor.state.protocol import Changes, StateStore
from monitor.statistics.pane import HOUR, MINUTE, TABLES, PaneSums, coarser, joined_bytes, merge

_MINUTES = HOUR.pane_ms // MINUTE.pane_ms
_LAST = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Pending:
    """Changes of matured panes of a shard.

    Attributes:
        sequence: Number of the last checkpoint that made any; 0 without one.
        sums: What was added to hour panes, under the slots of the time; keys ascending.
        causes: The records that did it.
    """

    sequence: int
    sums: PaneSums
    causes: Sequence[Cause]


def revising_entry(deltas: Mapping[str, Chunks], causes: Sequence[Cause], end_pane: int) -> bytes:
    """What a checkpoint that changes matured panes stores of it.

    Args:
        deltas: What it adds to the panes of each level.
        causes: The records that did it.
        end_pane: Hour panes before it have matured.
    """
    by_hour = chain.from_iterable(deltas[level.name].values() for level in (HOUR, TABLES))
    hours = [part.between(0, end_pane) for part in chain.from_iterable(by_hour)]
    minutes = [part.between(0, end_pane * _MINUTES) for part in chain.from_iterable(deltas[MINUTE.name].values())]
    return msgspec.msgpack.encode([causes, joined_bytes([merge([*hours, coarser(minutes, _MINUTES)])])])


def pending(store: StateStore) -> Pending:
    """What a shard's store holds that is not settled.

    Raises:
        StateError: It is damaged.
    """
    sequence, parts, causes = 0, [], []
    try:
        for key, value in store.scan(keys.revising(0), keys.revising(_LAST)):
            sequence = int.from_bytes(key[1:], "big")
            found, sums = msgspec.msgpack.decode(value, type=tuple[list[Cause], bytes])
            causes += found
            parts.append(PaneSums.from_bytes(sums))
    except (msgspec.DecodeError, ValueError) as error:
        raise StateError(f"the stored revisions are damaged: {error}; restore the state from a backup or start anew") from error
    return Pending(sequence, merge(parts), causes)


def settled(sequence: int) -> Changes:
    """Changes that forget what checkpoints up to this one have left pending."""
    return Changes(delete_ranges=[(keys.revising(0), keys.revising(sequence + 1))])
