"""Series and their slots: the small numbers by which sums know who they belong to.

A series is (model, layout, version, segment, value). Values of a group attribute are capped: the ones with the smallest
sha256 are kept, whatever order they came in, and the rest is added to `__other__`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from monitor.errors import CapacityError
from monitor.names import OTHER_VALUE
from monitor.statistics.fixed_point import I64
from monitor.statistics.layout import Layout
from monitor.statistics.pane import MAX_SLOTS
from monitor.statistics.segment import Segment, segment_of

MAX_VERSIONS = 10_000
"""Model versions that a shard takes on; predictions of one more are refused. It bounds what garbage in names can cost."""


class SeriesKey(NamedTuple):
    """Names a series; `layout` is the layout's fingerprint."""

    model: str
    layout: str
    version: str
    segment: str
    value: str

    @property
    def shape(self) -> Segment:
        """Which sums its cells hold."""
        return segment_of(self.segment)


class Family(NamedTuple):
    """The values of one group attribute of one version, which share a cap."""

    model: str
    layout: str
    version: str
    attribute: str


@dataclass(frozen=True, slots=True)
class Eviction:
    """A group value that lost its place: what its slot holds is to be added to `other`."""

    slot: int
    other: int


class SeriesTable:
    """Slots of all series of a shard, in order of first appearance; append-only but for evictions.

    Args:
        layouts: Known layouts by fingerprint; shared with whoever adds layouts.
    """

    def __init__(self, layouts: Mapping[str, Layout]) -> None:
        self._layouts = layouts
        self._keys: list[SeriesKey] = []
        self._widths: list[int] = []
        self._slots: dict[SeriesKey, int] = {}
        self._redirects: dict[int, int] = {}
        self._kept: dict[Family, dict[str, bytes]] = {}
        self._versions: set[tuple[str, str]] = set()
        self.evictions: list[Eviction] = []
        """Evictions since their consumer last cleared the list."""

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[SeriesKey]:
        return iter(self._keys)

    def key(self, slot: int) -> SeriesKey:
        """The series of a slot."""
        return self._keys[slot]

    def layout(self, key: SeriesKey) -> Layout:
        """The layout that a series' sums have."""
        return self._layouts[key.layout]

    def width(self, slot: int) -> int:
        """Integers in a cell of the slot's series."""
        return self._widths[slot]

    @property
    def redirects(self) -> Mapping[int, int]:
        """Evicted slots and the slots that took over their sums."""
        return self._redirects

    def slot(self, key: SeriesKey) -> int:
        """Slot of a series of segment `all`, or of a group value that is never evicted; new if need be.

        Raises:
            CapacityError: There are 2^20 series already.
        """
        known = self._slots.get(key)
        return self._append(key) if known is None else known

    def admits(self, model: str, version: str) -> bool:
        """Whether predictions of a version can be counted: it is known, or there is room for it."""
        return (model, version) in self._versions or len(self._versions) < MAX_VERSIONS

    def group_slot(self, family: Family, value: str) -> int:
        """Slot that a group value's events are counted in: its own, or `__other__`'s where it lost its place."""
        key = SeriesKey(family.model, family.layout, family.version, family.attribute, value)
        if value == OTHER_VALUE or self._layouts[family.layout].uncapped(family.attribute, value):
            return self.slot(key)
        kept = self._kept.setdefault(family, {})
        if value in kept:
            return self._slots[key]
        digest = hashlib.sha256(value.encode()).digest()
        if len(kept) >= self._layouts[family.layout].stored_group_values:
            last = max(kept, key=kept.__getitem__)
            other = self.slot(key._replace(value=OTHER_VALUE))
            if digest > kept[last]:
                return other
            del kept[last]
            self._redirect(self._slots[key._replace(value=last)], other)
        kept[value] = digest
        return self.slot(key)

    def restore(self, keys: list[SeriesKey], redirects: Mapping[int, int]) -> None:
        """Take over the slots of a stored table; only into an empty one."""
        for key in keys:
            self._append(key)
        self._redirects.update(redirects)
        for slot, key in enumerate(self._keys):
            capped = key.value != OTHER_VALUE and not self._layouts[key.layout].uncapped(key.segment, key.value)
            if capped and slot not in redirects:
                family = Family(key.model, key.layout, key.version, key.segment)
                self._kept.setdefault(family, {})[key.value] = hashlib.sha256(key.value.encode()).digest()

    def resolved(self) -> I64:
        """`resolved[slot]` is the slot that holds its sums: itself, or where it was redirected to."""
        slots = np.arange(max(len(self._keys), 1), dtype=np.int64)
        for evicted, other in self._redirects.items():
            slots[evicted] = other
        return slots

    def _redirect(self, slot: int, other: int) -> None:
        self._redirects[slot] = other
        self.evictions.append(Eviction(slot, other))

    def _append(self, key: SeriesKey) -> int:
        slot = len(self._keys)
        if slot >= MAX_SLOTS:
            raise CapacityError(f"more than {MAX_SLOTS} series: declare fewer group attributes or lower max_group_values")
        self._widths.append(self._layouts[key.layout].width(key.shape))
        self._keys.append(key)
        self._slots[key] = slot
        self._versions.add((key.model, key.version))
        return slot
