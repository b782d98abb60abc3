"""The records that changed what had matured: how many of a kind, and where in their log."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

FIRST_LABEL = "first_label"
CORRECTION = "correction"
WITHDRAWAL = "withdrawal"
PREDICTION = "prediction"


class Cause(msgspec.Struct, frozen=True):
    """Records of one partition that changed matured panes of a version in the same way.

    Attributes:
        model: Whose panes.
        version: Of which of its versions.
        partition: Where the records came from.
        kind: `first_label`, `correction`, `withdrawal`, or `prediction` for one that came after its hour had matured.
        records: How many.
        first_offset: Smallest offset (line number in a file) among them.
        last_offset: Largest.
    """

    model: str
    version: str
    partition: str
    kind: str
    records: int
    first_offset: int
    last_offset: int


def merge_causes(causes: Iterable[Cause]) -> list[Cause]:
    """Causes that differ only in their records put together, in a fixed order."""
    found: dict[tuple[str, str, str, str], Cause] = {}
    for one in causes:
        key = (one.model, one.version, one.partition, one.kind)
        known = found.get(key, one)
        records = one.records if known is one else known.records + one.records
        found[key] = Cause(*key, records, min(known.first_offset, one.first_offset), max(known.last_offset, one.last_offset))
    return [found[key] for key in sorted(found)]
