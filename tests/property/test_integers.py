"""Exactness, on the stored integers with `==`: nothing but the records decides what the sums are."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate, count, pairwise
from typing import TypeVar

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from monitor.events.contract import RecordKind
from monitor.events.record import HeadTable
from monitor.join.horizon import Horizon
from monitor.join.row import RowCodec
from monitor.names import ONE_VS_REST_SEGMENT, OWN_CONFIDENCE_SEGMENT, RESERVED_SEGMENTS, SCORE_SEGMENT, TEMPERATURE_SEGMENT
from monitor.pipeline.account import Account, merge_accounts
from monitor.pipeline.digest import digest, dump
from monitor.pipeline.joining import forget_row
from monitor.state import keys
from monitor.statistics.segment import TEMPERATURE
from monitor.statistics.series import SeriesKey
from monitor.statistics.split import fits
from monitor.windows.running import WindowSums
from tests.oracle.events import Judgement, Label, Prediction, judge
from tests.oracle.join import Scored, join_judged
from tests.oracle.metrics import ModelConfig
from tests.oracle.strategies import CLASSES, DEFAULTS, MODELS, START_MS, History, histories
from tests.property.play import DAY_MS, HOUR_MS, MINUTE_MS, WATCHED, WINDOWS, Play, Records, make_config, quarantine_file

ItemT = TypeVar("ItemT")

DAYS = 8
HORIZONS = pytest.mark.parametrize("horizon_ms", [None, HOUR_MS, DAY_MS // 2])
"""Without a horizon nothing is forgotten; with a short one rows expire again and again within a history."""

CLOCKS = (START_MS - DAY_MS, START_MS + 3 * DAY_MS + 12_345, START_MS + 30 * DAY_MS)
"""No stored sum may depend on the clock."""


@dataclass(frozen=True)
class Manner:
    """How records are fed: batch sizes and restarts, in turn, and what the clock shows."""

    batches: list[tuple[int, bool]]
    now_ms: int
    follow: bool


MANNERS = st.builds(
    Manner,
    st.lists(st.tuples(st.sampled_from([1, 2, 5, 20, 1000]), st.booleans()), min_size=1, max_size=4),
    st.sampled_from(CLOCKS),
    st.booleans(),
)
PLAIN = Manner([(5_000, False)], CLOCKS[1], True)


@contextmanager
def played(
    records: Records,
    horizon_ms: int | None,
    manner: Manner = PLAIN,
    kinds: Mapping[str, RecordKind] | None = None,
    models: Mapping[str, ModelConfig] = MODELS,
    history_ms: int | None = None,
) -> Iterator[Play]:
    """The product after all records."""
    with quarantine_file() as quarantine:
        config = make_config(DEFAULTS, models, horizon_ms, WINDOWS, history_ms, WATCHED)
        play = Play(config, records, quarantine, manner.now_ms, kinds, manner.follow)
        turn = 0
        while play.fed < len(records):
            batch, restart = manner.batches[turn % len(manner.batches)]
            play.feed(batch)
            if restart:
                play.restart()
            turn += 1
        yield play


def sums_of(records: Records, horizon_ms: int | None, manner: Manner = PLAIN) -> list[bytes]:
    with played(records, horizon_ms, manner) as play:
        return play.dump()


def named(history: History) -> list[tuple[str, bytes]]:
    return [(f"p{partition}", record) for partition, record in history.records]


def judged(records: Records) -> list[tuple[int, Judgement]]:
    return [(int(partition[1:]), judge(record, CLASSES)) for partition, record in records]


@st.composite
def interleaved(draw: st.DrawFn, records: Sequence[tuple[str, ItemT]]) -> list[tuple[str, ItemT]]:
    """The same partitions, each in its order, in any other interleaving, in long runs or short ones."""
    left: dict[str, list[ItemT]] = {}
    for partition, record in records:
        left.setdefault(partition, []).append(record)
    merged = []
    while left:
        partition = draw(st.sampled_from(sorted(left)))
        count = draw(st.sampled_from([1, 3, 10, 1000]))
        merged += [(partition, record) for record in left[partition][:count]]
        left[partition] = left[partition][count:]
        left = {name: rest for name, rest in left.items() if rest}
    return merged


def big_histories(partitions: int) -> st.SearchStrategy[History]:
    return st.sampled_from([0, 12, 30]).flatmap(
        lambda least: histories(partitions=partitions, days=DAYS, min_records=least, max_records=60)
    )


def counted(account: Account, expires: bool) -> dict[str, object]:
    """What of an account no interleaving may change; what waits in rows goes with them, sooner or later."""
    sure: dict[str, object] = {
        "consumed": account.consumed,
        "outcomes": account.outcomes,
        "refused": account.refused,
        "delays": {version: list(counts) for version, counts in account.delays.items()},
        "delay_sums_ms": account.delay_sums_ms,
        "newest_ms": account.newest_ms,
    }
    return sure if expires else sure | {"pending": account.pending, "waiting": account.waiting}


@HORIZONS
@given(data=st.data(), history=big_histories(3), manner=MANNERS)
@settings(max_examples=35)
def test_batches_restarts_and_interleaving_of_partitions(
    data: st.DataObject, history: History, manner: Manner, horizon_ms: int | None
) -> None:
    records = named(history)
    other = data.draw(interleaved(records), label="other order")
    with played(records, horizon_ms) as first, played(other, horizon_ms, manner) as second:
        assert second.dump() == first.dump()
        assert digest(iter(second.dump())) == digest(iter(first.dump()))
        expires = horizon_ms is not None
        assert counted(second.engine.shard.account, expires) == counted(first.engine.shard.account, expires)


@HORIZONS
@given(data=st.data(), history=big_histories(1), manner=MANNERS)
@settings(max_examples=35)
def test_interleaving_of_the_two_topics(data: st.DataObject, history: History, manner: Manner, horizon_ms: int | None) -> None:
    records = []
    for _, record in history.records:
        kind = "labels" if isinstance(judge(record, CLASSES), Label) else "predictions"
        records.append((kind, record))
    kinds: dict[str, RecordKind] = {"predictions": "prediction", "labels": "label"}
    other = data.draw(interleaved(records), label="other order")
    labels_first = sorted(records, key=lambda record: record[0])
    with played(labels_first, horizon_ms, kinds=kinds) as first, played(other, horizon_ms, manner, kinds) as second:
        assert second.dump() == first.dump()
        expires = horizon_ms is not None
        assert counted(second.engine.shard.account, expires) == counted(first.engine.shard.account, expires)


@given(data=st.data(), history=big_histories(2), manner=MANNERS)
@settings(max_examples=25)
def test_old_hours_go_and_the_rest_stays(data: st.DataObject, history: History, manner: Manner) -> None:
    records = named(history)
    other = data.draw(interleaved(records), label="other order")
    short_ms = 4 * DAY_MS
    with (
        played(records, HOUR_MS) as first,
        played(other, HOUR_MS, manner, history_ms=short_ms) as second,
    ):
        newest_ms = max(second.engine.shard.newest_ms.values(), default=0)
        assert second.engine.shard.hour_floor_ms <= max(0, newest_ms - short_ms)
        start_ms = second.engine.shard.hour_floor_ms
        assert second.dump(start_ms) == first.dump(start_ms)


@HORIZONS
@given(history=big_histories(3), manner=MANNERS)
@settings(max_examples=25)
def test_the_account_counts_what_the_store_holds(history: History, manner: Manner, horizon_ms: int | None) -> None:
    """Every record has one outcome, and all that waits is in a row."""
    with played(named(history), horizon_ms, manner) as play:
        account = play.engine.shard.account
        assert account.consumed == sum(account.outcomes.values()) == len(history.records)
        refused = sum(count for (_, outcome), count in account.outcomes.items() if outcome == "refused")
        assert refused == sum(account.refused.values())
        left = Account.from_bytes(account.to_bytes())
        for _, row in play.store.scan(*keys.prefix_range(keys.ROW)):
            forget_row(RowCodec().from_bytes(row), HeadTable(), Horizon(horizon_ms), left)
        assert (left.pending, left.waiting) == (0, 0)
        assert Account.from_bytes(account.to_bytes()) == account


def split(records: Records, shards: int) -> list[list[tuple[str, bytes]]]:
    """Whole partitions, dealt to shards."""
    dealt: list[list[tuple[str, bytes]]] = [[] for _ in range(shards)]
    for partition, record in records:
        dealt[int(partition[1:]) % shards].append((partition, record))
    return dealt


@HORIZONS
@given(history=big_histories(4), shards=st.integers(2, 4), manner=MANNERS)
@settings(max_examples=25)
def test_shards_merge_to_the_whole(history: History, shards: int, manner: Manner, horizon_ms: int | None) -> None:
    records = named(history)
    parts = []
    for part in split(records, shards):
        with played(part, horizon_ms, manner) as play:
            parts.append(play.engine.shard)
    with played(records, horizon_ms) as whole:
        assert list(dump(parts)) == whole.dump()
        merged = merge_accounts([part.account for part in parts])
        expires = horizon_ms is not None
        assert counted(merged, expires) == counted(whole.engine.shard.account, expires)


def without_conflicts(records: Records) -> list[tuple[str, bytes]]:
    """One content for each (id, model, version) and each key of a label; what is refused anyway stays."""
    known: dict[object, object] = {}
    kept = []
    for partition, record in records:
        verdict = judge(record, CLASSES)
        key: object = record
        content: object = record
        if isinstance(verdict, Prediction):
            key, content = (verdict.prediction_id, verdict.model, verdict.model_version), verdict
        elif isinstance(verdict, Label):
            key = (verdict.prediction_id, verdict.model, verdict.model_version, verdict.revision, verdict.labelled_at_ms)
            content = verdict
        if known.setdefault(key, content) == content:
            kept.append((partition, record))
    return kept


@given(data=st.data(), history=big_histories(1), manner=MANNERS)
@settings(max_examples=35)
def test_any_order_without_conflicts(data: st.DataObject, history: History, manner: Manner) -> None:
    records = without_conflicts(named(history))
    other = data.draw(st.permutations(records), label="other order")
    assert sums_of(other, None, manner) == sums_of(records, None)


@given(data=st.data(), history=big_histories(1), manner=MANNERS)
@settings(max_examples=35)
def test_any_order_of_different_ids(data: st.DataObject, history: History, manner: Manner) -> None:
    by_id = [(getattr(judge(record, CLASSES), "prediction_id", ""), (partition, record)) for partition, record in named(history)]
    other = [record for _, record in data.draw(interleaved(by_id), label="other order")]
    assert sums_of(other, None, manner) == sums_of(named(history), None)


def accepted(records: Records, horizon_ms: int | None) -> list[bool]:
    """Whether each record is refused or not, by the oracle."""
    verdicts = judged(records)
    refusals = [sum(join_judged(verdicts[:count], horizon_ms).account.refusals.values()) for count in range(len(verdicts) + 1)]
    return [before == after for before, after in pairwise(refusals)]


@HORIZONS
@given(data=st.data(), history=big_histories(2), manner=MANNERS)
@settings(max_examples=25)
def test_repetitions_change_nothing(data: st.DataObject, history: History, manner: Manner, horizon_ms: int | None) -> None:
    """A record that was not refused may come again at any later place of its partition."""
    records = named(history)
    fine = [place for place, is_fine in enumerate(accepted(records, horizon_ms)) if is_fine]
    places = data.draw(st.lists(st.sampled_from(fine), max_size=20), label="repeated") if fine else []
    repeated: list[list[tuple[str, bytes]]] = [[record] for record in records]
    for place in places:
        repeated[data.draw(st.integers(place, len(records) - 1))].append(records[place])
    assert sums_of([record for group in repeated for record in group], horizon_ms, manner) == sums_of(records, horizon_ms)


def wire(number: int, event: Scored) -> list[tuple[str, bytes]]:
    """A surviving prediction under an id of its own in the same half of the split, and the label that scores it."""
    prediction = event.prediction
    names = (f"final-{number}-{attempt}" for attempt in count())
    name = next(one for one in names if fits(one) == fits(prediction.prediction_id))
    head = {"prediction_id": name, "model": prediction.model, "model_version": prediction.model_version}
    record: dict[str, object] = head | {
        "type": "prediction",
        "predicted_at": prediction.predicted_at_ms,
        "predicted_class": prediction.predicted_class,
        "ood_score": prediction.ood_score,
        "accepted": prediction.accepted,
        "groups": dict(prediction.groups),
        "domain": prediction.domain,
    }
    if prediction.probabilities is None:
        record["confidence"] = prediction.confidence
    else:
        record["probabilities"] = dict(prediction.probabilities)
    lines = [("p0", json.dumps(record).encode())]
    if event.winner is not None and event.label is not None:
        label = {"type": "label", "label": event.label, "labelled_at": event.winner.labelled_at_ms, "domain": event.winner.domain}
        lines.append(("p0", json.dumps(head | label).encode()))
    return lines


@HORIZONS
@given(history=big_histories(2), manner=MANNERS)
@settings(max_examples=35)
def test_a_fresh_run_on_the_final_truth(history: History, manner: Manner, horizon_ms: int | None) -> None:
    """Late labels, corrections and withdrawals leave exactly what would be there had they been known at once."""
    records = named(history)
    final = join_judged(judged(records), horizon_ms).scored
    fresh = [line for number, event in enumerate(final) for line in wire(number, event)]
    assert sums_of(records, horizon_ms, manner) == sums_of(fresh, None)


CAPPED = {"m": ModelConfig(groups=("city", "shop"), max_group_values=1)}
"""Stores four values of each attribute, and four classes."""

POSITIVE = WATCHED["m"]["positive_class"]
OWN_SEGMENTS = (ONE_VS_REST_SEGMENT, OWN_CONFIDENCE_SEGMENT)

CROWD = ("a", "b", "c", "d", "e", "f", "g")


@st.composite
def crowded(draw: st.DrawFn) -> list[tuple[str, bytes]]:
    """Predictions with many group values and classes, some of them labelled; an id is in one partition."""
    lines = []
    for number in range(draw(st.integers(0, 40))):
        partition = f"p{number % 4}"
        groups = {"city": f"c{draw(st.integers(0, 9))}", "shop": draw(st.sampled_from(["__other__", "a", "b", "c", "d", "e", "f"]))}
        confidence = draw(st.sampled_from([0.1, 0.5, 0.9]))
        names = draw(st.sampled_from(CROWD)), draw(st.sampled_from(CROWD))
        record: dict[str, object] = {
            "type": "prediction",
            "prediction_id": str(number),
            "model": "m",
            "model_version": draw(st.sampled_from("12")),
            "predicted_at": START_MS + draw(st.integers(0, 3)) * HOUR_MS + number,
            "confidence": confidence,
            "predicted_class": names[0],
            "groups": groups,
            "ood_score": draw(st.sampled_from([None, 0.75, -0.75, 0, -0.0])),
            "domain": draw(st.sampled_from([None, "id", "camera-7"])),
        }
        if names[0] != names[1]:
            record["probabilities"] = {names[0]: confidence, names[1]: 1 - confidence}
        lines.append((partition, json.dumps(record).encode()))
        if draw(st.booleans()):
            label = {"type": "label", "prediction_id": str(number), "label": draw(st.sampled_from(CROWD)), "labelled_at": START_MS}
            domain = draw(st.sampled_from([None, None, "id", "camera-7"]))
            lines.append((partition, json.dumps(label | ({"domain": domain} if domain else {})).encode()))
    return lines


def labelled_positive(records: Records) -> set[str]:
    """Versions with a labelled vector that has the positive class."""
    events = [json.loads(raw) for _, raw in records]
    labelled = {event["prediction_id"] for event in events if event["type"] == "label"}
    vectors = [event for event in events if event["prediction_id"] in labelled and POSITIVE in event.get("probabilities", ())]
    return {event["model_version"] for event in vectors}


@given(data=st.data(), records=crowded(), manner=MANNERS, shards=st.integers(1, 4))
@settings(max_examples=50)
def test_the_cap_of_group_values_knows_no_order(data: st.DataObject, records: list[tuple[str, bytes]], manner: Manner, shards: int) -> None:
    other = data.draw(st.permutations(records), label="other order")
    parts = []
    for part in split(other, shards):
        with played(part, None, manner, models=CAPPED) as play:
            parts.append(play.engine.shard)
    with played(records, None, models=CAPPED) as whole:
        lines = whole.dump()
        assert list(dump(parts)) == lines
        stored: dict[tuple[str, ...], set[str]] = {}
        positive: set[tuple[str, str]] = set()
        for line in lines:
            _, model, layout, version, segment, value, _ = json.loads(line)
            if segment == SCORE_SEGMENT:
                assert value != "__other__"  # domains and signs are few and never evicted: mixed, they would mean nothing
            elif value == POSITIVE and segment in OWN_SEGMENTS:
                positive.add((version, segment))  # takes no part in the cap, and is never folded
            elif value not in ("all", "__other__"):
                stored.setdefault((model, layout, version, segment), set()).add(value)
        assert all(len(values) <= 4 for values in stored.values())
        assert positive == {(version, segment) for version in labelled_positive(records) for segment in OWN_SEGMENTS}


def segments(records: Records, models: Mapping[str, ModelConfig] = MODELS) -> set[str]:
    with played(records, None, models=models) as play:
        return {json.loads(line)[4] for line in play.dump()}


def test_the_histories_reach_every_segment() -> None:
    """Or the tests here would compare nothing with nothing; `find` fails where there is none."""
    generate = settings(max_examples=500, phases=[Phase.generate], database=None)
    wanted = {"all", "region", "device", *RESERVED_SEGMENTS}
    find(big_histories(2), lambda history: segments(named(history)) >= wanted, settings=generate)
    crowd = {"all", "city", "shop", *RESERVED_SEGMENTS}
    find(crowded(), lambda records: segments(records, CAPPED) >= crowd, settings=generate)


@given(order=st.permutations(range(40)), manner=MANNERS)
@settings(max_examples=10)
def test_every_version_splits_ids_alike(order: list[int], manner: Manner) -> None:
    """By the id alone: whatever else an event says, and whenever its label comes or is corrected."""
    records = []
    for number in order:
        for version in "12":
            head = {"prediction_id": f"e-{number}", "model": "m", "model_version": version}
            vector = {"a": 0.25, "b": 0.75} if version == "1" else {"a": 0.9, "b": 0.1}
            records.append(head | {"type": "prediction", "predicted_at": START_MS + number * MINUTE_MS, "probabilities": vector})
            for revision in range(1 + number % 3):
                label = {"type": "label", "labelled_at": START_MS + 1, "label": "ab"[revision % 2], "revision": revision}
                records.append(head | label)
    with played([("p0", json.dumps(record).encode()) for record in records], None, manner) as play:
        counts: dict[tuple[str, str], int] = {}
        for line in play.dump():
            _, _, _, version, segment, half, sums = json.loads(line)
            if segment == TEMPERATURE_SEGMENT:
                counts[version, half] = counts.get((version, half), 0) + int(dict(sums)[TEMPERATURE.scalar("labelled")])
    fitting = sum(fits(f"e-{number}") for number in range(40))
    assert counts == {(version, half): count for version in "12" for half, count in (("fit", fitting), ("report", 40 - fitting))}


OTHER_MODELS = {"m": ModelConfig(classes=CLASSES["m"], bins=7, groups=("device",)), "n": ModelConfig(edges=(0.0, 0.5, 0.9))}
"""Another layout for both listed models."""


@given(data=st.data(), history=big_histories(2), manner=MANNERS)
@settings(max_examples=35)
def test_a_new_layout_begins_an_epoch(data: st.DataObject, history: History, manner: Manner) -> None:
    """Predictions before the epoch stay in the old layout, however late their labels are; later ones are in the new one."""
    records = named(history)
    change = data.draw(st.integers(0, len(records)), label="records before the change")
    with quarantine_file() as quarantine:
        play = Play(make_config(DEFAULTS, MODELS, None, watched=WATCHED), records, quarantine, manner.now_ms)
        while play.fed < change:
            play.feed(min(manner.batches[0][0], change - play.fed))
        play.restart(make_config(DEFAULTS, OTHER_MODELS, None, watched=WATCHED))
        known = {model: [(epoch.start_ms, epoch.layout) for epoch in epochs] for model, epochs in play.engine.shard.epochs.items()}
        play.feed_all(manner.batches[0][0])
        changed = play.dump()
        assert all(known[model] == [(epoch.start_ms, epoch.layout) for epoch in play.engine.shard.epochs[model]] for model in known)
    with played(records, None) as old, played(records, None, models=OTHER_MODELS) as new:
        want = []
        for line in [*old.dump(), *new.dump()]:
            start_ms, model, layout, *_ = json.loads(line)
            if model in known:
                in_force = [fingerprint for begin, fingerprint in known[model] if begin <= start_ms][-1]
            else:
                in_force = new.engine.shard.epochs[model][-1].layout
            if layout == in_force and line not in want:
                want.append(line)
    assert sorted(changed) == sorted(want)


def cells(views: Sequence[WindowSums | None]) -> list[dict[SeriesKey, list[int]] | None]:
    """The sums of each window by series."""
    return [None if view is None else dict(zip(view.keys, [cell.tolist() for cell in view.cells], strict=True)) for view in views]


WALK = st.lists(
    st.tuples(
        st.sampled_from([0, 1, 4, 15]),
        st.sampled_from([1, MINUTE_MS, 30 * MINUTE_MS, HOUR_MS, 3 * HOUR_MS, 7 * HOUR_MS, DAY_MS, -MINUTE_MS, -5 * HOUR_MS, -2 * DAY_MS]),
        st.sampled_from([False, False, False, True]),
    ),
    min_size=1,
    max_size=15,
)


@pytest.mark.parametrize("capped", [False, True])
@given(data=st.data(), follow=st.booleans(), walk=WALK)
@settings(max_examples=25)
def test_a_running_window_is_the_sum_of_its_panes(
    data: st.DataObject, follow: bool, walk: list[tuple[int, int, bool]], capped: bool
) -> None:
    """Whatever entered, left, was corrected or evicted: the same as read afresh from the store."""
    records = data.draw(crowded() if capped else big_histories(2).map(named), label="records")
    horizon_ms = data.draw(st.sampled_from([None, HOUR_MS]), label="horizon")
    config = make_config(DEFAULTS, CAPPED if capped else MODELS, horizon_ms, WINDOWS, 4 * DAY_MS, WATCHED)
    with quarantine_file() as quarantine:
        begin_ms = START_MS + data.draw(st.sampled_from([0, HOUR_MS, DAY_MS, 3 * DAY_MS]), label="start")
        play = Play(config, records, quarantine, begin_ms, follow=follow)
        moments_ms = accumulate((step_ms for _, step_ms, _ in walk), initial=begin_ms)
        for (batch, _, restart), now_ms in zip(walk, moments_ms, strict=False):
            play.clock.set(now_ms)
            if batch:
                play.feed(batch)
            if restart:
                play.restart()
            running = cells(play.engine.shard.advance(now_ms, RESERVED_SEGMENTS)[0])
            anew = cells(play.twin(quarantine.with_name("twin.ndjson")).shard.advance(now_ms, RESERVED_SEGMENTS)[0])
            # From when on panes are kept is stored with the next batch, so one of the two may still have what the other has not.
            assert all(mine == other for mine, other in zip(running, anew, strict=True) if mine is not None and other is not None)


@st.composite
def streams(draw: st.DrawFn) -> list[tuple[str, bytes]]:
    """Predictions at an even pace for days, each labelled after the same delay, in order of arrival."""
    pace_ms = draw(st.sampled_from([HOUR_MS, 90 * MINUTE_MS, 3 * HOUR_MS]))
    delay_ms = draw(st.sampled_from([0, HOUR_MS, DAY_MS]))
    arrivals = []
    for number in range(60):
        at = START_MS + number * pace_ms
        head: dict[str, object] = {"prediction_id": str(number), "model": "m", "model_version": "1"}
        prediction = head | {"type": "prediction", "predicted_at": at, "confidence": 0.75, "predicted_class": "a"}
        label = head | {"type": "label", "labelled_at": at + delay_ms, "label": "ab"[number % 2]}
        arrivals += [(at, prediction), (at + delay_ms, label)]
    return [("p0", json.dumps(record).encode()) for _, record in sorted(arrivals, key=lambda arrival: arrival[0])]


STRIDES = st.lists(
    st.tuples(st.sampled_from([1, 3, 8]), st.sampled_from([True, True, False]), st.sampled_from([0, 0, HOUR_MS])), min_size=12, max_size=40
)


@given(records=streams(), strides=STRIDES)
@settings(max_examples=100)
def test_a_running_window_follows_a_stream(records: list[tuple[str, bytes]], strides: list[tuple[int, bool, int]]) -> None:
    """Minutes fold into hours, panes enter and leave, some ticks are missed: the same as read afresh from the store."""
    with quarantine_file() as quarantine:
        play = Play(make_config(DEFAULTS, MODELS, DAY_MS * 2, watched=WATCHED), records, quarantine, START_MS)
        for batch, ticks, ahead_ms in strides:
            ahead = json.loads(records[min(play.fed + batch, len(records)) - 1][1])
            now_ms = ahead.get("predicted_at", ahead.get("labelled_at")) + ahead_ms
            play.clock.set(now_ms)
            play.feed(batch)
            if ticks:
                running = cells(play.engine.shard.advance(now_ms, RESERVED_SEGMENTS)[0])
                assert running == cells(play.twin(quarantine.with_name("twin.ndjson")).shard.advance(now_ms, RESERVED_SEGMENTS)[0])
