"""Slots by class: as the table of series has them, whatever is remembered of them."""

from __future__ import annotations

from monitor.names import CLASS_SEGMENT, OTHER_VALUE
from monitor.statistics.layout import Layout, report_edges
from monitor.statistics.series import Family, SeriesTable
from monitor.statistics.track import ClassSlots

LAYOUT = Layout(report_edges(15, None), None, None, True, None, (), 4)


def test_labels_that_are_all_different_do_not_fill_the_memory() -> None:
    table = SeriesTable({LAYOUT.fingerprint: LAYOUT})
    family = Family("m", LAYOUT.fingerprint, "1", CLASS_SEGMENT)
    slots = ClassSlots(table, family)
    most = 0
    for number in range(3 * ClassSlots.LIMIT):
        name = f"label {number}"
        assert slots[name] == table.group_slot(family, name)
        most = max(most, len(slots))
    assert most == ClassSlots.LIMIT
    kept = [key.value for slot, key in enumerate(table) if slot not in table.redirects]
    assert len(kept) == 5
    assert OTHER_VALUE in kept
    assert [slots[name] for name in kept] == [table.group_slot(family, name) for name in kept]
