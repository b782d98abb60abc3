"""What changed in panes that had matured and is not in the journal yet: the sums that were added, and the records that did it.

Each checkpoint that changes such panes writes what it adds to them once more, under its own number, so that a crash loses no
revision and sees none twice. Sums have inverses: what a window was before is what it is now, minus these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import msgspec
import numpy as np

from monitor.errors import StateError
from monitor.events.contract import LATEST_MS
from monitor.pipeline.ledger import Chunks
from monitor.pipeline.revisions.cause import Cause, merge_causes
from monitor.pipeline.shard import Shard
from monitor.state import keys
from monitor.state.protocol import Changes, StateStore
from monitor.statistics.pane import HOUR, MINUTE, TABLES, PaneSums, coarser, joined_bytes, merge

_MINUTES = HOUR.pane_ms // MINUTE.pane_ms
_EVERY = keys.revising(0), keys.revising((1 << 64) - 1)
_END_PANE = LATEST_MS // HOUR.pane_ms + 1
_TOGETHER = 1 << 18
"""Sums that are read before they are added up."""


@dataclass(frozen=True, slots=True)
class Pending:
    """Changes of matured panes of a shard.

    Attributes:
        sequence: Number of the last checkpoint that made any; 0 without one.
        sums: What was added to hour panes that are still kept, without the tables of values; keys ascending.
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


def anything_pending(store: StateStore) -> bool:
    """Whether a shard's store holds anything that is not settled."""
    return next(store.scan(*_EVERY), None) is not None


def pending(shard: Shard) -> Pending:
    """What a shard's store holds that is not settled.

    It is added up while it is read: what is in memory grows with the hours that changed, not with the records that did it.

    Args:
        shard: As of its last checkpoint; it must not change.

    Raises:
        StateError: It is damaged.
    """
    # Nobody asks for the tables of values, and what changes them changes other sums too.
    kept = np.array([not key.shape.hourly for key in shard.series], dtype=np.bool_)
    sequence, read = 0, 0
    causes: list[Cause] = []
    parts: list[PaneSums] = []
    try:
        for key, value in shard.store.scan(*_EVERY):
            sequence = int.from_bytes(key[1:], "big")
            found, data = msgspec.msgpack.decode(value, type=tuple[list[Cause], bytes])
            causes += found
            parts.append(PaneSums.from_bytes(data).of_slots(kept))
            read += len(found) + len(parts[-1].keys)
            if read > max(_TOGETHER, len(parts[0].keys)):
                causes, parts, read = merge_causes(causes), [merge(parts)], 0
    except (msgspec.DecodeError, ValueError) as error:
        raise StateError(f"the stored revisions are damaged: {error}; restore the state from a backup or start anew") from error
    sums = merge(parts).with_slots(shard.resolved)
    return Pending(sequence, sums.between(shard.kept_from_ms(HOUR) // HOUR.pane_ms, _END_PANE), merge_causes(causes))


def settled(sequence: int) -> Changes:
    """Changes that forget what checkpoints up to this one have left pending."""
    return Changes(delete_ranges=[(keys.revising(0), keys.revising(sequence + 1))])
