"""The book of evidence: how far the tests have come, every version's course, and the journal of first crossings.

One atomic write takes in panes, courses and entries together, so that a crash neither loses a crossing nor notes it twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from monitor.errors import StateError
from monitor.evidence.course import Alarm, Course
from monitor.evidence.detector import Detector
from monitor.evidence.standing import Crossing
from monitor.state import keys
from monitor.state.protocol import Changes, StateStore
from monitor.statistics.fixed_point import F64, I64
from monitor.windows.matured import VersionKey

FORMAT = 1
"""Raised when bets or the stored form change: carried numbers of one format mean nothing in another."""


class Book:
    """What is kept of the evidence tests.

    Args:
        store: Where; read at once.

    Attributes:
        next_pane: Panes before it have entered.
        courses: By version.
        journal: First crossings, in the order they were noted.

    Raises:
        StateError: It is damaged, or of another format.
    """

    def __init__(self, store: StateStore) -> None:
        self._store = store
        self.next_pane = 0
        self.courses: dict[VersionKey, Course] = {}
        self.journal: list[Crossing] = []
        try:
            self._load()
        except (msgspec.DecodeError, ValueError, TypeError) as error:
            raise StateError(f"the stored evidence is damaged: {error}; restore the state from a backup or start anew") from error
        self._numbers = {version: number for number, version in enumerate(self.courses)}

    def noted(self, alpha: float) -> set[tuple[VersionKey, Alarm]]:
        """What has crossed at a level."""
        return {((entry.model, entry.version), entry.alarm) for entry in self.journal if entry.alpha == alpha}

    def crossings(self, alpha: float) -> dict[VersionKey, dict[Alarm, Crossing]]:
        """Entries of a level by version and alarm."""
        found: dict[VersionKey, dict[Alarm, Crossing]] = {}
        for entry in self.journal:
            if entry.alpha == alpha:
                found.setdefault((entry.model, entry.version), {})[entry.alarm] = entry
        return found

    def commit(self, next_pane: int, courses: Mapping[VersionKey, Course], entries: Sequence[Crossing]) -> None:
        """Take in what has changed, all or nothing.

        Raises:
            StateError: It could not be written; nothing has changed.
        """
        new = sorted(courses.keys() - self._numbers.keys())
        numbers = self._numbers | {version: len(self._numbers) + place for place, version in enumerate(new)}
        changes = Changes(puts=[(keys.EVIDENCE, msgspec.msgpack.encode([FORMAT, next_pane]))])
        changes.puts += [(keys.course(numbers[version]), _course_bytes(version, course)) for version, course in courses.items()]
        changes.puts += [(keys.crossing(len(self.journal) + place), msgspec.json.encode(entry)) for place, entry in enumerate(entries)]
        self._store.commit(changes)
        self._numbers = numbers
        self.next_pane = next_pane
        self.courses |= courses
        self.journal += entries

    def _load(self) -> None:
        data = self._store.get(keys.EVIDENCE)
        if data is None:
            return
        form, self.next_pane = msgspec.msgpack.decode(data, type=tuple[int, int])
        if form != FORMAT:
            raise StateError(f"the stored evidence has format {form}, this calmon reads format {FORMAT}: use the calmon that wrote it")
        self.courses = dict(_course(value) for _, value in self._store.scan(*keys.prefix_range(b"v")))
        self.journal = [msgspec.json.decode(value, type=Crossing) for _, value in self._store.scan(*keys.prefix_range(b"j"))]


_StoredDetector = tuple[bytes, bytes, bytes]
_StoredCourse = tuple[str, str, int, int, bytes, bytes, list[_StoredDetector], bytes, bytes]


def _course_bytes(version: VersionKey, course: Course) -> bytes:
    detectors = [(_bytes(one.log_r), _bytes(one.log_best), _bytes(one.start)) for one in course.detectors]
    numbers = (_bytes(course.cell), _bytes(course.maxima), detectors, _bytes(course.blocks), _bytes(course.bound))
    return msgspec.msgpack.encode([*version, course.first_pane, course.last_pane, *numbers])


def _course(data: bytes) -> tuple[VersionKey, Course]:
    fields = msgspec.msgpack.decode(data, type=_StoredCourse)
    model, version, first, last, cell, maxima, detectors, blocks, bound = fields
    states = tuple(Detector(_reals(log_r), _reals(log_best), _integers(start)) for log_r, log_best, start in detectors)
    course = Course(first, last, _integers(cell), _reals(maxima), states, _reals(blocks), _reals(bound))
    if not course.fits(Course.empty()):
        raise ValueError("a course of other tests")
    return (model, version), course


def _bytes(values: F64 | I64) -> bytes:
    return values.astype(values.dtype.newbyteorder("<"), copy=False).tobytes()


def _reals(data: bytes) -> F64:
    return np.frombuffer(data, dtype="<f8").astype(np.float64)


def _integers(data: bytes) -> I64:
    return np.frombuffer(data, dtype="<i8").astype(np.int64)
