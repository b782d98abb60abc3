"""Exactness where rows come and go: few ids, times on the edges of what may still meet, and topics that lag behind each other."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.events.contract import RecordKind
from tests.oracle.join import join_judged
from tests.oracle.strategies import START_MS
from tests.property.play import DAY_MS, HOUR_MS
from tests.property.test_integers import CLOCKS, MANNERS, Manner, counted, interleaved, judged, played, sums_of, wire

KINDS: dict[str, RecordKind] = {"p0": "prediction", "p1": "label"}
HORIZON_MS = DAY_MS
"""Labels score from 3 days before to 1 day after; a prediction is done after 4 days, a label after 6."""


@dataclass(frozen=True)
class Entry:
    """A record and when it was."""

    partition: str
    time_ms: int
    fields: dict[str, object]

    @property
    def line(self) -> tuple[str, bytes]:
        """As it is sent."""
        return self.partition, json.dumps(self.fields).encode()


LAGS_MS = (0, 0, 0, DAY_MS, 3 * DAY_MS - 1, 3 * DAY_MS, 3 * DAY_MS)
"""How far behind its partition's newest record one arrives; 3 days are the most that is accepted."""

TIMES = st.builds(lambda day, edge: START_MS + day * DAY_MS + edge, st.integers(0, 8), st.sampled_from([-1, 0, 0, 0, 1]))
IDS = st.sampled_from(["p", "p", "p", "q"])
SCOPES = st.sampled_from([{}, {}, {"model": "m"}, {"model": "m", "model_version": "1"}])


@st.composite
def predictions(draw: st.DrawFn) -> list[list[Entry]]:
    """A prediction, and sometimes a label of it that is as early or as late as may be."""
    at, prediction_id = draw(TIMES), draw(IDS)
    fields = {"prediction_id": prediction_id, "model": "m", "model_version": draw(st.sampled_from("112")), "predicted_at": at}
    domain = draw(st.sampled_from([None, None, "id"]))
    found = [[Entry("p0", at, fields | {"confidence": 0.75, "predicted_class": "a", "ood_score": 0.5, "domain": domain})]]
    delay_ms = draw(st.sampled_from([None, None, -3 * DAY_MS - 1, -3 * DAY_MS, 0, DAY_MS, DAY_MS, DAY_MS + 1]))
    if delay_ms is not None:
        label = {"prediction_id": prediction_id, "label": draw(st.sampled_from("ab")), "labelled_at": at + delay_ms}
        found.append([Entry("p1", at + delay_ms, label)])
    return found


@st.composite
def labels(draw: st.DrawFn) -> list[list[Entry]]:
    """A label, and sometimes another one of the same time, in a scope and of a revision that need not be the same."""
    at, prediction_id = draw(TIMES), draw(IDS)
    scope, revision = draw(SCOPES), draw(st.sampled_from([0, 0, 1]))
    found = []
    for _ in range(draw(st.sampled_from([1, 1, 2]))):
        fields = {"prediction_id": prediction_id, "label": draw(st.sampled_from(["a", "b", "c", None])), "labelled_at": at}
        domain = draw(st.sampled_from([None, None, "id", "camera"]))
        found.append(Entry("p1", at, fields | scope | {"revision": revision, "domain": domain}))
        scope = scope if draw(st.booleans()) else draw(SCOPES)
        revision += draw(st.sampled_from([0, 0, 1]))
    return [found]


def passing(partition: str, time_ms: int) -> Entry:
    """A record of another id, which moves its partition on."""
    name = str(time_ms)
    if partition == "p0":
        fields = {"prediction_id": name, "model": "m", "model_version": "1", "predicted_at": time_ms, "confidence": 0.5}
        return Entry("p0", time_ms, fields | {"predicted_class": "a"})
    return Entry("p1", time_ms, {"prediction_id": name, "label": "a", "labelled_at": time_ms})


@st.composite
def edges(draw: st.DrawFn) -> list[tuple[str, bytes]]:
    """Each partition in an order in which hardly anything is expired, but much is nearly so."""
    drawn = [found for group in draw(st.lists(st.one_of(predictions(), labels()), min_size=1, max_size=12)) for found in group]
    lags_ms = draw(st.lists(st.sampled_from(LAGS_MS), min_size=len(drawn), max_size=len(drawn)))
    arrivals = [(found[0].time_ms + lag_ms, lag_ms, found) for found, lag_ms in zip(drawn, lags_ms, strict=True)]
    lines = []
    for arrival_ms, lag_ms, found in sorted(arrivals, key=lambda arrival: arrival[0]):
        if lag_ms:
            lines.append(passing(found[0].partition, arrival_ms).line)
        lines += [entry.line for entry in found]
    return lines


@pytest.mark.parametrize("horizon_ms", [None, HORIZON_MS])
@given(data=st.data(), records=edges(), manner=MANNERS)
@settings(max_examples=200)
def test_topics_may_lag(data: st.DataObject, records: list[tuple[str, bytes]], manner: Manner, horizon_ms: int | None) -> None:
    other = data.draw(interleaved(records), label="other order")
    with played(records, horizon_ms, kinds=KINDS) as first, played(other, horizon_ms, manner, KINDS) as second:
        assert second.dump() == first.dump()
        expires = horizon_ms is not None
        assert counted(second.engine.shard.account, expires) == counted(first.engine.shard.account, expires)


@pytest.mark.parametrize("horizon_ms", [None, HORIZON_MS])
@given(data=st.data(), records=edges(), manner=MANNERS)
@settings(max_examples=200)
def test_each_prediction_has_its_label(
    data: st.DataObject, records: list[tuple[str, bytes]], manner: Manner, horizon_ms: int | None
) -> None:
    other = data.draw(interleaved(records), label="order")
    typed = [(name, json.dumps({"type": KINDS[name]} | json.loads(record)).encode()) for name, record in other]
    final = join_judged(judged(typed), horizon_ms).scored
    fresh = [line for number, event in enumerate(final) for line in wire(number, event)]
    assert sums_of(typed, horizon_ms, manner) == sums_of(fresh, None)


ONE_BY_ONE = Manner([(1, False)], CLOCKS[0], True)


def sent(prediction_id: str, version: int, predicted_at: int) -> tuple[str, bytes]:
    head = {"prediction_id": prediction_id, "model": "m", "model_version": str(version), "predicted_at": predicted_at}
    return "p0", json.dumps(head | {"confidence": 0.5, "predicted_class": "a"}).encode()


def known(labelled_at: int, prediction_id: str = "other", label: str | None = "a", revision: int = 0) -> tuple[str, bytes]:
    fields = {"prediction_id": prediction_id, "label": label, "labelled_at": labelled_at, "revision": revision}
    return "p1", json.dumps(fields).encode()


def outcome(records: list[tuple[str, bytes]], horizon_ms: int) -> tuple[list[bytes], dict[str, object]]:
    with played(records, horizon_ms, ONE_BY_ONE, KINDS) as play:
        return play.dump(), counted(play.engine.shard.account, True)


def test_the_cap_of_versions_looks_no_further_back_than_a_partition() -> None:
    """Whether old predictions of an id are still stored depends on the slowest partition; the outcome may not."""
    many = [sent("p", version, START_MS) for version in range(64)] + [sent("q", 1, START_MS + 9 * DAY_MS)]
    last, far = [sent("p", 64, START_MS + 10 * DAY_MS)], [known(START_MS + 20 * DAY_MS)]
    assert outcome([*many, *far, *last], HOUR_MS) == outcome([*many, *last, *far], HOUR_MS)


def test_the_first_label_that_may_score_counts_its_delay() -> None:
    """Also where it was withdrawn at once, and an earlier label of its scope may not score."""
    at = START_MS + 5 * DAY_MS
    named = [known(START_MS, "p"), known(at, "p"), known(at, "p", None, 1)]
    prediction = [sent("p", 1, at)]
    found = outcome([*named, *prediction], HORIZON_MS)
    assert found == outcome([*prediction, *named], HORIZON_MS)
    assert list(found[1]["delay_sums_ms"].values()) == [0]  # type: ignore[attr-defined]


def test_a_row_waits_to_the_last_millisecond() -> None:
    """For the latest label there may be to a prediction, and the latest prediction to a label."""
    at = START_MS
    for first, last in (
        ([sent("p", 1, at), known(at + 4 * DAY_MS)], [sent("q", 1, at + 4 * DAY_MS), known(at + DAY_MS, "p")]),
        ([known(at, "p"), sent("q", 1, at + 6 * DAY_MS)], [known(at + 6 * DAY_MS), sent("p", 1, at + 3 * DAY_MS)]),
    ):
        _, account = outcome([*first, *last], HORIZON_MS)
        assert sum(account["delay_sums_ms"].values()) in (DAY_MS, -3 * DAY_MS)  # type: ignore[attr-defined]
