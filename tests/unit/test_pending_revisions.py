"""What is pending of a shard's revisions: however much there is, it is added up as it is read."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from monitor.errors import StateError
from monitor.pipeline.revisions.cause import FIRST_LABEL, Cause, merge_causes
from monitor.pipeline.revisions.pending import anything_pending, pending, revising_entry, settled
from monitor.pipeline.shard import Shard
from monitor.state import keys
from monitor.state.protocol import Changes
from monitor.statistics.layout import Layout, report_edges
from monitor.statistics.pane import HOUR, MINUTE, PANE_SHIFT, TABLES, PaneSums, merge
from monitor.statistics.series import SeriesKey
from tests.doubles.memory_store import MemoryStore

LAYOUT = Layout(report_edges(15, None), None, 0.5, True, 0.8, (), 4, "", (0.0, 0.5, 1.0), False, True)
HOURS = 2_000
SUMS = 20
CHECKPOINTS = 60


def stored(tables: bool = False) -> Shard:
    """A shard with many checkpoints that changed the same hours of one series, and perhaps its table of values."""
    shard = Shard(MemoryStore(), None, ())
    shard.layouts[LAYOUT.fingerprint] = LAYOUT
    for segment in ("all", "__confidence__"):
        shard.series.slot(SeriesKey("m", LAYOUT.fingerprint, "v", segment, "all"))
    key = (np.arange(HOURS)[:, None] << PANE_SHIFT | np.arange(SUMS)).reshape(-1)
    deltas = {MINUTE.name: {}, HOUR.name: {0: [PaneSums(key, np.ones_like(key))]}, TABLES.name: {}}
    if tables:
        deltas[TABLES.name] = {0: [PaneSums(key | 1 << 16, np.ones_like(key))]}
    for number in range(1, CHECKPOINTS + 1):
        cause = Cause("m", "v", "events", FIRST_LABEL, HOURS, number * HOURS, (number + 1) * HOURS - 1)
        shard.store.commit(Changes(puts=[(keys.revising(number), revising_entry(deltas, [cause], HOURS))]))
    return shard


@pytest.mark.parametrize("together", [1, 70_000, 1 << 30])
def test_it_is_the_sum_of_all_checkpoints(together: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("monitor.pipeline.revisions.pending._TOGETHER", together)
    found = pending(stored(tables=True))
    assert found.sequence == CHECKPOINTS
    assert len(found.sums.keys) == HOURS * SUMS
    assert set(found.sums.values.tolist()) == {CHECKPOINTS}
    assert found.causes == [Cause("m", "v", "events", FIRST_LABEL, HOURS * CHECKPOINTS, HOURS, (CHECKPOINTS + 1) * HOURS - 1)]
    assert merge_causes(found.causes) == found.causes
    assert found.sums.keys.tolist() == merge([found.sums]).keys.tolist()


def test_memory_grows_with_what_changed_not_with_how_often() -> None:
    shard = stored()
    tracemalloc.start()
    try:
        found = pending(shard)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(found.sums.keys) * 16 * CHECKPOINTS > 30 << 20, "all checkpoints at once"
    assert peak < 20 << 20


def test_settled_checkpoints_are_forgotten() -> None:
    shard = stored()
    shard.store.commit(settled(CHECKPOINTS - 1))
    assert anything_pending(shard.store)
    assert pending(shard).causes[0].first_offset == CHECKPOINTS * HOURS
    shard.store.commit(settled(CHECKPOINTS))
    assert not anything_pending(shard.store)
    assert pending(shard).sequence == 0


def test_damage_is_refused() -> None:
    shard = stored()
    shard.store.commit(Changes(puts=[(keys.revising(7), b"\xc1")]))
    with pytest.raises(StateError, match="the stored revisions are damaged"):
        pending(shard)
