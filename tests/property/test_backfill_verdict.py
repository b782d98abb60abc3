"""What the verdict says of a label before it is applied, against what the processor then does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.app import new_worker
from monitor.backfill.labels.beside import Standing
from monitor.backfill.labels.into_state import IntoState
from monitor.backfill.labels.join_rows import JoinRows
from monitor.backfill.labels.label_file import LabelRow
from monitor.backfill.labels.nowhere import Nowhere
from monitor.backfill.labels.rehearsal import Rehearsal
from monitor.backfill.labels.sieve import Arrival, Held, Sieve
from monitor.backfill.labels.tally import Tally
from monitor.clock import ManualClock
from monitor.config import Config, StateConfig
from monitor.join.horizon import Horizon
from monitor.join.verdict import EARLY, HELD_BACK, LATE
from monitor.pipeline.account import Account, Version
from monitor.pipeline.configured import layouts_of
from monitor.pipeline.digest import dump
from monitor.pipeline.quarantine import Outbox
from monitor.pipeline.shard import Shard
from monitor.pipeline.worker import Worker
from monitor.sources.protocol import Slice, never
from tests.doubles.memory_store import MemoryStore
from tests.recovery.stream import DAY_MS, HOUR_MS, START_MS, encode, label, prediction

IDS = ("a", "b", "c", "d")
TIMES = st.integers(0, 12).map(lambda number: START_MS + number * 12 * HOUR_MS)
PREDICTIONS = st.builds(
    lambda one, at, model, version: encode(prediction(one, at, 0.75, version, model)),
    st.sampled_from(IDS[:3]),
    TIMES,
    st.sampled_from(("m", "n")),
    st.sampled_from(("v1", "v2")),
)


def _label(one: str, at: int, value: str | None, revision: int, scope: tuple[str | None, str | None], domain: str | None) -> bytes:
    more = {"revision": revision, "model": scope[0], "model_version": scope[1], "domain": domain}
    return encode(label(one, at, value, **{key: word for key, word in more.items() if word}))


LABELS = st.builds(
    _label,
    st.sampled_from(IDS),
    TIMES,
    st.sampled_from(("yes", "no", "maybe", None)),
    st.integers(0, 2),
    st.sampled_from(((None, None), (None, None), ("m", None), ("m", "v1"), ("n", "v2"), ("x", None), ("m", "v9"))),
    st.sampled_from((None, None, "id", "cave")),
)
HISTORIES = st.lists(st.tuples(st.just("events"), PREDICTIONS | LABELS), max_size=14)
HORIZONS_MS = st.sampled_from((None, DAY_MS, 3 * DAY_MS))


def config_of(horizon_ms: int | None) -> Config:
    return Config(state=StateConfig(directory="/nowhere", horizon_ms=horizon_ms))


def worker_on(shard: Shard, config: Config, horizon: Horizon) -> Worker:
    return new_worker(config, shard, Outbox(shard, Nowhere()), horizon, ManualClock(START_MS), frozenset)


def shard_on(store: MemoryStore, config: Config) -> Shard:
    return Shard(store, layouts_of(config), [])


def lived(config: Config, history: Sequence[tuple[str, bytes]]) -> MemoryStore:
    """A state after a history."""
    store = MemoryStore()
    shard = shard_on(store, config)
    values = [value for _, value in history]
    worker_on(shard, config, Horizon(config.state.horizon_ms)).process(
        [Slice("events", "any", values, range(1, len(values) + 1), {"line": 1})]
    )
    return store


def label_outcomes(account: Account) -> Counter[str]:
    """Outcomes of labels, refused ones by reason."""
    outcomes = Counter({outcome: count for (kind, outcome), count in account.outcomes.items() if kind == "label" and outcome != "refused"})
    return outcomes + Counter({reason: count for (kind, reason), count in account.refused.items() if kind == "label"})


def difference(before: Account, after: Account) -> Counter[str]:
    return label_outcomes(after) - label_outcomes(before)


def pairs(tally: Tally) -> Counter[str]:
    """(label, version) pairs that are too far apart, by side."""
    words = {LATE: "late", EARLY: "early"}
    return Counter({side: sum(counts[word] for counts in tally.versions.values()) for word, side in words.items()})


def rows_of(labels: Sequence[bytes]) -> list[LabelRow]:
    return [LabelRow(number, line) for number, line in enumerate(labels, 1)]


def sums(store: MemoryStore, config: Config) -> list[bytes]:
    return list(dump([shard_on(store.copy(), config)]))


@settings(max_examples=200)
@given(history=HISTORIES, labels=st.lists(LABELS, min_size=1, max_size=10), horizon_ms=HORIZONS_MS, cut=st.integers(1, 10))
def test_straight_into_the_state_each_label_becomes_what_was_said(
    history: list[tuple[str, bytes]], labels: list[bytes], horizon_ms: int | None, cut: int
) -> None:
    config = config_of(horizon_ms)
    horizon = Horizon(horizon_ms, expires=False)
    store = lived(config, history)
    shard = shard_on(store, config)
    state = IntoState(shard, worker_on(shard, config, horizon))
    sieve = Sieve(horizon, JoinRows({0: store}), Arrival(lambda number, one: "late", lambda number, partition: 0))
    tally, rows = Tally(), rows_of(labels)
    before = shard.account.copy()
    held: list[Held] = []
    for batch in (rows[:cut], rows[cut:]):
        found = sieve.sort(batch)
        held += found.held
        assert state.deliver("late", found.kept, Standing(batch[-1].number if batch else 0), never)
        tally.merge(found.tally)
    assert tally.rows == len(labels) == tally.labels.total()
    applied = Counter({outcome: count for outcome, count in tally.labels.items() if outcome not in HELD_BACK})
    assert difference(before, shard.account) == applied
    assert shard.account.consumed - before.consumed == applied.total() == len(labels) - len(held)
    assert "expired" not in applied
    check_nothing_is_lost(store, config, [one.event for one in held])


def check_nothing_is_lost(store: MemoryStore, config: Config, held: Sequence[bytes]) -> None:
    """What was held back would have changed no sum: no prediction will ever come for it."""
    copy = store.copy()
    shard = shard_on(copy, config)
    worker = worker_on(shard, config, Horizon(config.state.horizon_ms, expires=False))
    worker.process([Slice("held", "label", held, range(1, len(held) + 1), {"line": 1})])
    assert sums(copy, config) == sums(store, config)


@settings(max_examples=200)
@given(history=HISTORIES, one=LABELS, horizon_ms=HORIZONS_MS)
def test_versions_out_of_reach_are_counted_as_the_processor_counts_them(
    history: list[tuple[str, bytes]], one: bytes, horizon_ms: int | None
) -> None:
    config = config_of(horizon_ms)
    horizon = Horizon(horizon_ms, expires=False)
    store = lived(config, history)
    shard = shard_on(store, config)
    found = Sieve(horizon, JoinRows({0: store}), Arrival(lambda number, one: "late", lambda number, partition: 0)).sort(rows_of([one]))
    before = shard.account.copy()
    worker_on(shard, config, horizon).process([Slice("late", "label", [one], [1], {"line": 1})])
    gained = Counter(shard.account.ineligible) - Counter(before.ineligible)
    (outcome,) = difference(before, shard.account)
    if outcome in ("applied", "corrected", "withdrawn", "stale"):  # a duplicate is not looked at again
        assert gained == +pairs(found.tally)
    delayed = {version: sum(counts) for version, counts in shard.account.delays.items()}
    for version, counts in found.tally.versions.items():
        if counts[LATE] or counts[EARLY]:
            assert delayed.get(Version(*version), 0) == sum(before.delays.get(Version(*version), [0]))


@settings(max_examples=200)
@given(history=HISTORIES, labels=st.lists(LABELS, min_size=1, max_size=10), horizon_ms=HORIZONS_MS, cut=st.integers(1, 10))
def test_a_rehearsal_tells_what_the_partition_of_a_service_would_do(
    history: list[tuple[str, bytes]], labels: list[bytes], horizon_ms: int | None, cut: int
) -> None:
    config = config_of(horizon_ms)
    horizon = Horizon(horizon_ms)
    store = lived(config, history)
    untouched = store.copy()
    rehearsal = Rehearsal(config, {0: shard_on(store, config)}, horizon, lambda number, one: "events", lambda partition: Standing())
    sieve = Sieve(horizon, JoinRows({0: rehearsal.shards[0].store}), rehearsal.arrival)
    tally, kept, rows = Tally(), [], rows_of(labels)
    for batch in (rows[:cut], rows[cut:]):
        found = sieve.sort(batch)
        kept += [one.event for one in found.kept]
        assert rehearsal.deliver("late", found.kept, Standing(), never)
        tally.merge(found.tally)
    assert list(store.scan(b"", b"\xff" * 9)) == list(untouched.scan(b"", b"\xff" * 9))
    live = shard_on(store.copy(), config)
    before = live.account.copy()
    worker_on(live, config, horizon).process([Slice("events", "any", kept, range(1, len(kept) + 1), {"line": 2})])
    assert difference(before, live.account) == Counter({word: count for word, count in tally.labels.items() if word not in HELD_BACK})
    assert list(dump([rehearsal.shards[0]])) == list(dump([live]))
