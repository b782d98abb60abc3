"""From decoded predictions to observation rows: which layout and series a prediction counts in, and with what.

A track is what all predictions of one head in one epoch share: the layout and the slots of `all` and of its group
values. Events before an epoch's start keep the layout that was in force then.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from monitor.events.record import Head
from monitor.names import (
    ALL_VALUE,
    CLASS_SEGMENT,
    CONFIDENCE_SEGMENT,
    IN_DISTRIBUTION,
    ONE_VS_REST_SEGMENT,
    OWN_CONFIDENCE_SEGMENT,
    SCORE_SEGMENT,
    TEMPERATURE_SEGMENT,
)
from monitor.statistics.addition import Additions
from monitor.statistics.layout import Layout
from monitor.statistics.observation import COLUMNS, Flag, additions
from monitor.statistics.one_vs_rest import OWN_COLUMNS, one_vs_rest
from monitor.statistics.row_buffer import RowBuffer
from monitor.statistics.series import Family, SeriesKey, SeriesTable
from monitor.statistics.tempering import VectorBuffer


@dataclass(frozen=True, slots=True)
class Epoch:
    """From when on a model's predictions count in which layout.

    Attributes:
        start_ms: First event time of the epoch, at a whole hour; the first epoch of a model starts at 0.
        layout: Fingerprint.
    """

    start_ms: int
    layout: str


class ClassSlots(dict[str, int]):
    """Slots of a version's class series, made when a class is first met.

    Labels may be any text, so what is remembered is bounded: beyond `LIMIT` it is dropped and looked up anew.
    """

    LIMIT = 4096

    def __init__(self, series: SeriesTable, family: Family) -> None:
        super().__init__()
        self._series = series
        self._family = family

    def __missing__(self, name: str) -> int:
        if len(self) >= self.LIMIT:
            self.clear()
        slot = self[name] = self._series.group_slot(self._family, name)
        return slot


@dataclass(slots=True)
class Track:
    """Where predictions of one head and epoch count.

    Attributes:
        layout: What their sums mean.
        number: The track's row in its layout's table of slots.
        flags: What every row of the track knows: its domain, and whether it has a vector.
        append: Takes a row (see `observation.COLUMNS`).
        classes: Slots of the version's classes.
        scores: Slots of the version's scores by domain and sign (`SCORE_NAMES`).
        watched: (index in the vector, slot, slot of its values) of each class whose own probability is watched.
        probabilities: Takes a row of a watched class (see `one_vs_rest.OWN_COLUMNS`).
        vectors: Collects whole vectors, or None where temperatures are not watched.
        halves: Slots of the temperature sums: of the half that fits, and of the one that reports.
    """

    layout: Layout
    number: int
    flags: int
    append: Callable[[tuple[float, ...]], None]
    classes: ClassSlots
    scores: ClassSlots
    watched: tuple[tuple[int, int, int], ...]
    probabilities: Callable[[tuple[float, ...]], None]
    vectors: VectorBuffer | None
    halves: tuple[int, int]


@dataclass(slots=True)
class _Open:
    """Rows and slots collected under one layout since the last `take`."""

    layout: Layout
    buffer: RowBuffer = field(default_factory=lambda: RowBuffer(COLUMNS))
    slots: list[tuple[int, ...]] = field(default_factory=list)
    probabilities: RowBuffer = field(default_factory=lambda: RowBuffer(OWN_COLUMNS))
    vectors: VectorBuffer = field(default_factory=VectorBuffer)
    classes: dict[tuple[str, str, str], ClassSlots] = field(default_factory=dict)

    def take(self) -> Iterator[Additions]:
        """What was collected; and start anew."""
        if len(self.buffer):
            slots = np.array(self.slots, dtype=np.int64).reshape(len(self.slots), 2 + len(self.layout.groups))
            yield from additions(self.buffer.take(), slots, self.layout)
        if len(self.probabilities):
            yield from one_vs_rest(self.probabilities.take(), self.layout)
        if len(self.vectors):
            yield self.vectors.take()


class Observer:
    """Collects a batch's observations, layout by layout.

    Args:
        series: Slots of the shard.
        layouts: Layouts by fingerprint.
        epochs_of: Epochs of a model, ascending and at least one.

    Attributes:
        steady: Tracks of the heads whose model has one epoch only, for a look-up without a call; others ask `track`.
    """

    TRACK_LIMIT = 65_536

    def __init__(self, series: SeriesTable, layouts: Mapping[str, Layout], epochs_of: Callable[[str], list[Epoch]]) -> None:
        self._series = series
        self._layouts = layouts
        self._epochs_of = epochs_of
        self._open: dict[str, _Open] = {}
        self._tracks: dict[Head, list[Track | None]] = {}
        self.steady: dict[Head, Track] = {}

    def admits(self, head: Head) -> bool:
        """Whether a prediction of this head can be counted (`SeriesTable.admits`)."""
        return self._series.admits(head.model, head.version)

    def track(self, head: Head, predicted_at: int) -> Track:
        """Where a prediction of this head and event time counts."""
        epochs = self._epochs_of(head.model)
        number = max(bisect_right(epochs, predicted_at, key=lambda one: one.start_ms) - 1, 0)
        tracks = self._tracks.setdefault(head, [None] * len(epochs))
        track = tracks[number]
        if track is None:
            track = tracks[number] = self._new_track(head, epochs[number].layout)
            if len(epochs) == 1:
                self.steady[head] = track
        return track

    def take(self) -> list[Additions]:
        """What was collected since the last call; and start anew."""
        taken = [one for opened in self._open.values() for one in opened.take()]
        if len(self._tracks) > self.TRACK_LIMIT:
            self.forget()
        return taken

    def forget(self) -> None:
        """Drop the tracks, to be made anew: after an eviction, or when there are too many; no rows may be pending."""
        self._tracks.clear()
        self.steady.clear()
        self._open.clear()

    def _new_track(self, head: Head, fingerprint: str) -> Track:
        layout = self._layouts[fingerprint]
        opened = self._open.setdefault(fingerprint, _Open(layout))
        slot = self._series.slot(SeriesKey(head.model, fingerprint, head.version, ALL_VALUE, ALL_VALUE))
        values = dict(head.groups)
        groups = [
            self._series.group_slot(Family(head.model, fingerprint, head.version, attribute), values[attribute])
            if attribute in values
            else -1
            for attribute in layout.groups
        ]
        table = self._series.slot(SeriesKey(head.model, fingerprint, head.version, CONFIDENCE_SEGMENT, ALL_VALUE))
        opened.slots.append((slot, table, *groups))
        flags = domain_flags(head.domain) | (int(Flag.VECTOR) if head.vector else 0)
        version = (head.model, fingerprint, head.version)
        return Track(
            layout,
            len(opened.slots) - 1,
            flags,
            opened.buffer.append,
            self._class_slots(opened, version, CLASS_SEGMENT),
            self._class_slots(opened, version, SCORE_SEGMENT),
            self._watched(opened, version, head),
            opened.probabilities.append,
            opened.vectors if layout.temperature and head.vector else None,
            self._halves(version) if layout.temperature else (-1, -1),
        )

    def _class_slots(self, opened: _Open, version: tuple[str, str, str], segment: str) -> ClassSlots:
        key = (version[0], version[2], segment)
        if key not in opened.classes:
            opened.classes[key] = ClassSlots(self._series, Family(*version, segment))
        return opened.classes[key]

    def _watched(self, opened: _Open, version: tuple[str, str, str], head: Head) -> tuple[tuple[int, int, int], ...]:
        if not head.vector:
            return ()
        cells = self._class_slots(opened, version, ONE_VS_REST_SEGMENT)
        values = self._class_slots(opened, version, OWN_CONFIDENCE_SEGMENT)
        return tuple((index, cells[name], values[name]) for index, name in enumerate(head.classes) if opened.layout.watches(name))

    def _halves(self, version: tuple[str, str, str]) -> tuple[int, int]:
        fit, report = (self._series.slot(SeriesKey(*version, TEMPERATURE_SEGMENT, half)) for half in ("fit", "report"))
        return fit, report


SCORE_NAMES = {
    flags: (f"{name}+", f"{name}-") for flags, name in ((0, "unknown"), (int(Flag.DOMAIN_ID), "id"), (int(Flag.DOMAIN_OOD), "ood"))
}
"""Names of the two score cells, not negative and negative, by what the flags say of the domain."""


def domain_flags(domain: str | None) -> int:
    """Flags of a domain: in distribution, any other word, or not known."""
    if domain is None:
        return 0
    return int(Flag.DOMAIN_ID) if domain == IN_DISTRIBUTION else int(Flag.DOMAIN_OOD)
