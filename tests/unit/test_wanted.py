"""Wanted panes: whatever is read in whatever order, it is what is there; and what lies in a row is looked for once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from monitor.names import ALL_VALUE
from monitor.pipeline.account import Account
from monitor.pipeline.wanted import WantedPanes
from monitor.statistics.layout import Layout, report_edges
from monitor.statistics.pane import HOUR, PANE_SHIFT, POSITION_BITS, PaneLevel, PaneSums, merge
from monitor.statistics.series import SeriesKey, SeriesTable
from monitor.statistics.track import Epoch

LAYOUT = Layout(report_edges(15, None), None, 0.5, True, 0.8, (), 4, "", (0.0, 0.5, 1.0), False, True)
PER_CHUNK = HOUR.panes_per_chunk
END = 6 * PER_CHUNK


@dataclass
class Watched:
    """Hour panes in memory that note from where they are scanned, and how far that was read."""

    series: SeriesTable
    sums: PaneSums
    layouts: Mapping[str, Layout] = field(default_factory=dict)
    epochs: Mapping[str, Sequence[Epoch]] = field(default_factory=dict)
    account: Account = field(default_factory=Account)
    scans: list[list[int]] = field(default_factory=list)

    def scan(self, level: PaneLevel, first_chunk: int, end_chunk: int, wanted: NDArray[np.bool_]) -> Iterator[tuple[int, PaneSums]]:
        """The chunks, each noted when it is taken."""
        taken: list[int] = []
        self.scans.append(taken)
        per_chunk = level.panes_per_chunk
        for number, sums in self.sums.between(first_chunk * per_chunk, end_chunk * per_chunk).of_slots(wanted).split(per_chunk):
            taken.append(number)
            yield number, sums

    def kept_from_ms(self, level: PaneLevel) -> int:
        """All are kept."""
        del level
        return 0


def panes(entries: dict[tuple[int, int], int]) -> Watched:
    """Panes with a value at (pane, slot); the wanted slots are the even ones."""
    series = SeriesTable({LAYOUT.fingerprint: LAYOUT})
    series.restore([SeriesKey("m", LAYOUT.fingerprint, "1" if slot % 2 == 0 else "2", ALL_VALUE, str(slot)) for slot in range(4)], {})
    parts = [
        PaneSums(np.array([pane << PANE_SHIFT | slot << POSITION_BITS | 1]), np.array([value])) for (pane, slot), value in entries.items()
    ]
    return Watched(series, merge(parts))


def wanted(source: Watched) -> WantedPanes:
    """Of version 1."""
    return WantedPanes(source, lambda key: key.version == "1", HOUR, END)


def entries_of(sums: PaneSums) -> list[tuple[int, int, int]]:
    """(pane, slot, value)."""
    return list(zip(sums.pane.tolist(), sums.slot.tolist(), sums.values.tolist(), strict=True))


@given(
    st.dictionaries(st.tuples(st.integers(0, END - 1), st.integers(0, 3)), st.integers(1, 9), max_size=12),
    st.lists(st.tuples(st.integers(0, END), st.integers(0, END), st.booleans()), max_size=8),
)
def test_every_read_is_what_is_there(entries: dict[tuple[int, int], int], reads: list[tuple[int, int, bool]]) -> None:
    found = wanted(panes(entries))
    for one, other, forget in reads:
        first, end = min(one, other), max(one, other)
        there = sorted((pane, slot, value) for (pane, slot), value in entries.items() if first <= pane < end and slot % 2 == 0)
        assert entries_of(found.read(HOUR, first, end)) == there
        if forget:
            found.forget_before(first)


def test_a_window_that_moves_on_is_one_scan_and_reads_no_further_than_it_must() -> None:
    source = panes({(chunk * PER_CHUNK, 0): chunk + 1 for chunk in (0, 1, 2, 4, 5)})
    found = wanted(source)
    for first in range(3 * PER_CHUNK):
        found.read(HOUR, first, first + PER_CHUNK)
        found.forget_before(first)
    assert source.scans == [[0, 1, 2, 4]]


def test_a_jump_does_not_read_what_lies_between() -> None:
    source = panes({(chunk * PER_CHUNK, 0): chunk + 1 for chunk in range(6)})
    found = wanted(source)
    found.read(HOUR, 0, PER_CHUNK)
    found.read(HOUR, 4 * PER_CHUNK, 5 * PER_CHUNK)
    found.read(HOUR, 4 * PER_CHUNK, 5 * PER_CHUNK)
    assert source.scans == [[0], [4]]
