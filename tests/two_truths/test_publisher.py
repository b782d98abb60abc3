"""What is known now, by remote write into a Prometheus that holds what was known then."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from monitor.clock import SystemClock
from monitor.export.backfill_series import Scope, series_of
from monitor.export.prometheus_http import Credentials, PrometheusHttp, RefusedError
from monitor.export.publisher import Published, PublishError
from monitor.metrics.catalogue import CATALOGUE
from monitor.metrics.evaluation import Block
from monitor.metrics.metric import Subject
from monitor.prometheus_address import parse_address
from monitor.statistics.series import SeriesKey
from tests.recovery.stream import HOUR_MS, MINUTE_MS
from tests.services.prometheus import PrometheusServer
from tests.two_truths.conftest import AGE, RECEIVES, Known, Publishers, Served, write, write_now
from tests.two_truths.front import CUT, LOST, PASS, Front
from tests.two_truths.past import BEGIN_MS, MODEL, MOMENTS, VERSION, WINDOW, Page, Past, corrections, late_labels

END_MS = MOMENTS[-1] + HOUR_MS
SOME = MOMENTS[24:36]
LIVE = '{__name__=~"calmon_.+",__name__!~"calmon_backfill_.+"}'
BACKFILLED = '{__name__=~"calmon_backfill_.+"}'
ACCURACY, PREDICTIONS = ({metric.gauge: metric for metric in CATALOGUE}[name] for name in ("accuracy_ratio", "predictions"))


def at_each_step(server: PrometheusServer, revision: int, moments: Sequence[int] = MOMENTS) -> dict[int, Page]:
    """Samples of a revision as a range query has them, without the label of the revision."""
    found: dict[int, Page] = {at_ms: {} for at_ms in moments}
    selector = f'{{__name__=~"calmon_backfill_.+",revision="{revision}"}}'
    for labels, points in server.query_range(selector, moments[0] / 1000, moments[-1] / 1000, (moments[1] - moments[0]) / 1000):
        del labels["revision"]
        for at_s, value in points:
            found[round(at_s * 1000)][tuple(sorted(labels.items()))] = value
    return found


def test_published_beside_what_was_shown(past: Past, known: Known, prometheus: PrometheusServer, publisher: Publishers) -> None:
    before = prometheus.raw(LIVE, BEGIN_MS, END_MS)
    one = publisher(prometheus)
    published = one.publish(past.scope, past.moments())
    total = sum(map(len, known.values()))
    assert published == Published(1, total, 0)
    assert total > 3000
    assert at_each_step(prometheus, 1) == known

    # What was shown then is another truth, and is still there to the byte.
    assert prometheus.raw(LIVE, BEGIN_MS, END_MS) == before
    at_s = MOMENTS[20] / 1000
    completeness = f'completeness_ratio{{model_version="{VERSION}",segment="all"}}'
    (then,), (now,) = (prometheus.query(f"calmon_{prefix}{completeness} @ {at_s}") for prefix in ("", "backfill_"))
    assert then[1] < now[1] == 1.0

    # Twice is once.
    stored = prometheus.raw(BACKFILLED, BEGIN_MS, END_MS)
    assert one.publish(past.scope, past.moments()) == Published(1, 0, total)
    assert prometheus.raw(BACKFILLED, BEGIN_MS, END_MS) == stored


def test_nothing_bleeds_beyond_a_moment(past: Past, known: Known, prometheus: PrometheusServer, publisher: Publishers) -> None:
    publisher(prometheus).publish(past.scope, past.moments())
    for at_ms in MOMENTS:
        there, after = (
            {tuple(sorted((name, value) for name, value in labels.items() if name != "revision")) for labels, _ in found}
            for found in (prometheus.query(f"{BACKFILLED} @ {(at_ms + wait_ms) / 1000:.3f}") for wait_ms in (0, 1))
        )
        assert there == known[at_ms].keys()
        assert after == set()


def test_corrections_are_a_revision_of_their_own(prometheus: PrometheusServer, publisher: Publishers, tmp_path: Path) -> None:
    past = Past(tmp_path)
    past.read(late_labels())
    one = publisher(prometheus)
    total = one.publish(past.scope, past.moments(SOME)).written
    first, live = at_each_step(prometheus, 1, SOME), prometheus.raw(LIVE, BEGIN_MS, END_MS)
    past.read(corrections())
    known = past.known_now(SOME)
    assert known != first
    assert one.publish(past.scope, past.moments(SOME)) == Published(2, total, 0)
    assert one.publish(past.scope, past.moments(SOME)) == Published(2, 0, total)
    assert at_each_step(prometheus, 1, SOME) == first
    assert at_each_step(prometheus, 2, SOME) == known
    assert prometheus.raw(LIVE, BEGIN_MS, END_MS) == live


def test_a_busy_server_is_asked_again(past: Past, known: Known, prometheus: PrometheusServer, publisher: Publishers) -> None:
    total = sum(map(len, known.values()))
    with Front(prometheus.url, [503, 429, CUT, LOST]) as front:
        published = publisher(front).publish(past.scope, past.moments())
    assert published == Published(1, total, 0)
    assert at_each_step(prometheus, 1) == known


@pytest.mark.parametrize(("faults", "writes"), [([PASS] * 3 + [CUT] * 9, 8), ([PASS] * 3 + [LOST] * 9, 8), ([PASS] * 3 + [400], 4)])
def test_a_run_that_was_torn_is_completed(
    past: Past,
    known: Known,
    prometheus: PrometheusServer,
    publisher: Publishers,
    monkeypatch: pytest.MonkeyPatch,
    faults: list[str | int],
    writes: int,
) -> None:
    monkeypatch.setattr("monitor.export.remote_write.MOST_SAMPLES", 500)
    monkeypatch.setattr("monitor.export.read_back.MOST_SAMPLES", 10_000)
    total = sum(map(len, known.values()))
    with Front(prometheus.url, faults) as front:
        with pytest.raises(RefusedError, match=r"cannot be reached|answers 400"):
            publisher(front).publish(past.scope, past.moments())
        assert front.writes == writes
    # Whole moments from the first on, and nothing of the others.
    stored = at_each_step(prometheus, 1)
    whole = [at_ms for at_ms in MOMENTS if stored[at_ms] == known[at_ms] != {}]
    assert whole
    assert stored == {at_ms: known[at_ms] if at_ms <= whole[-1] else {} for at_ms in MOMENTS}
    there = sum(map(len, stored.values()))
    assert publisher(prometheus).publish(past.scope, past.moments()) == Published(1, total - there, there)
    assert at_each_step(prometheus, 1) == known


def test_the_server_says_how_long_to_wait() -> None:
    waited: list[float] = []
    with Front("http://127.0.0.1:1", [429] * 9, retry_after="7") as front:
        http = PrometheusHttp(parse_address(front.url), pauses_s=(0.5, 10.0), wait=waited.append)
        with closing(http), pytest.raises(RefusedError, match="answers 429"):
            http.post("/api/v1/write", b"", {})
    assert waited == [7.0, 10.0]


def test_no_redirect_is_followed() -> None:
    with Front("http://127.0.0.1:1", [307]) as front, closing(PrometheusHttp(parse_address(front.url))) as http:
        with pytest.raises(RefusedError, match=r"answers 307: .*; it sends elsewhere: name the address that it leads to"):
            http.post("/api/v1/write", b"", {})
        assert front.writes == 1


def test_a_server_that_is_not_there(publisher: Publishers) -> None:
    with Front("http://127.0.0.1:1") as front:
        one = publisher(front)
    with pytest.raises(RefusedError, match=r"^http://127\.0\.0\.1:\d+: cannot be reached: ConnectionRefusedError"):
        one.publish(SCOPE, made(0.1))


def test_credentials(prometheus: PrometheusServer, publisher: Publishers) -> None:
    with Front(prometheus.url, authorization=Credentials.basic("me", "hidden").header) as front:
        for wrong in (None, Credentials.basic("me", "other"), Credentials.bearer("hidden")):
            with pytest.raises(RefusedError, match=r"answers 401: .*; name the user or the token that may"):
                publisher(front, wrong).publish(SCOPE, made(0.1))
        assert publisher(front, Credentials.basic("me", "hidden")).publish(SCOPE, made(0.1)) == Published(1, 2, 0)


@dataclass(frozen=True)
class Made:
    """A window of ten predictions, and one metric as a test wants it; None is undefined. Without predictions there is nothing."""

    at_ms: int
    value: float | None
    predictions: int = 10

    @property
    def blocks(self) -> list[Block]:
        if not self.predictions:
            return []
        values = {ACCURACY: np.array([np.nan if self.value is None else self.value]), PREDICTIONS: np.array([self.predictions])}
        return [Block(Subject.SERIES, [SeriesKey(MODEL, "layout", VERSION, "all", "all")], np.array([0.0, 1.0]), values)]


SCOPE = Scope(MODEL, VERSION, WINDOW, [ACCURACY])


def made(*values: float | None, first_ms: int = BEGIN_MS) -> list[Made]:
    return [Made(first_ms + number * MINUTE_MS, value) for number, value in enumerate(values)]


def test_revisions(prometheus: PrometheusServer, publisher: Publishers) -> None:
    one = publisher(prometheus)
    assert one.publish(SCOPE, []) == Published(1, 0, 0)
    assert one.publish(SCOPE, [Made(BEGIN_MS, None, 0)]) == Published(1, 0, 0)
    assert one.publish(SCOPE, made(None, None)) == Published(1, 2, 0)
    assert one.publish(SCOPE, made(0.1, None, 0.3)) == Published(1, 3, 2)
    assert one.publish(SCOPE, made(0.1, None, 0.3, 0.4)) == Published(1, 2, 5), "a longer run goes on where it was"
    assert one.publish(SCOPE, made(None, None, 0.3)) == Published(2, 4, 0), "what is undefined now must not stay"
    assert one.publish(SCOPE, made(0.1, None, 0.3, 0.4)) == Published(2, 3, 4), "the newest revision speaks, not an older one that is equal"
    assert one.publish(replace(SCOPE, window="other"), made(0.5)) == Published(1, 2, 0)
    assert one.publish(SCOPE, made(0.7, first_ms=BEGIN_MS + HOUR_MS)) == Published(1, 2, 0), "other moments have revisions of their own"
    for revision in range(3, 9):
        assert one.publish(SCOPE, made(0.1 * revision)) == Published(revision, 2, 0)
    stored = prometheus.raw(BACKFILLED, BEGIN_MS, END_MS)
    with pytest.raises(PublishError, match=r"nothing is written: revisions 1 to 8 are all taken .* is 0\.9 here and 0\.8 there"):
        one.publish(SCOPE, made(0.9))
    assert prometheus.raw(BACKFILLED, BEGIN_MS, END_MS) == stored


def test_the_highest_revision_is_what_is_known_at_each_moment(prometheus: PrometheusServer, publisher: Publishers) -> None:
    """Also of the moments of which nothing is defined any more, alone or all of them."""
    one = publisher(prometheus)
    for revision, values in ((1, (0.1, 0.2)), (2, (0.1, None)), (3, (None, None)), (3, (None, 0.2)), (4, (None, 0.3))):
        assert one.publish(SCOPE, made(*values)).revision == revision
        for moment in made(*values):
            found = [(int(labels["revision"]), value) for labels, value in prometheus.query(f"{BACKFILLED} @ {moment.at_ms / 1000}")]
            newest = [value for number, value in found if number == max(found)[0]]
            assert set(newest) == {10.0, moment.value} - {None}
        assert one.publish(SCOPE, made(*values)).written == 0


def test_moments_without_predictions_are_not_left_at_an_older_revision(prometheus: PrometheusServer, publisher: Publishers) -> None:
    """Another state may hold less; no revision can say of a moment that nothing was predicted."""
    one = publisher(prometheus)
    one.publish(SCOPE, made(0.1, 0.2))
    stored = prometheus.raw(BACKFILLED, BEGIN_MS, END_MS)
    first, second = made(0.5, 0.2)
    with pytest.raises(PublishError, match="nothing is written: 1 moments have samples of an earlier backfill and no prediction now"):
        one.publish(SCOPE, [first, replace(second, predictions=0)])
    assert prometheus.raw(BACKFILLED, BEGIN_MS, END_MS) == stored


def test_steps_below_lookback(prometheus: PrometheusServer, publisher: Publishers) -> None:
    """Minute by minute a series is whole, and it ends where it is undefined."""
    publisher(prometheus).publish(SCOPE, made(0.1, 0.2, None, 0.4))
    found = prometheus.query_range("calmon_backfill_accuracy_ratio", BEGIN_MS / 1000, BEGIN_MS / 1000 + 600, 30)
    assert [[(at_s - BEGIN_MS / 1000, value) for at_s, value in points] for _, points in found] == [
        [(0, 0.1), (30, 0.1), (60, 0.2), (180, 0.4)]
    ]


def test_recent_moments_need_no_setting_for_their_age(served: Served, publisher: Publishers) -> None:
    with served(RECEIVES) as prometheus:
        write_now(prometheus)
        recent = made(0.1, 0.2, first_ms=SystemClock().now_ms() - 30 * MINUTE_MS)
        assert publisher(prometheus).publish(SCOPE, recent) == Published(1, 4, 0)


def test_what_is_dropped_in_silence_is_noticed(prometheus: PrometheusServer, publisher: Publishers) -> None:
    """A staleness marker that is there already hides from every question, and wins over the sample that comes later."""
    labels = {"__name__": "calmon_backfill_accuracy_ratio", "model": MODEL, "model_version": VERSION, "window": WINDOW}
    write(prometheus, {series_of({**labels, "segment": "all", "value": "all"}): {BEGIN_MS - 1: 0.5}})
    with pytest.raises(PublishError, match=r"1 of 2 samples of revision 1 are not what was written: .* is 0\.1 here and no sample there"):
        publisher(prometheus).publish(SCOPE, made(0.1))


@pytest.mark.parametrize(
    ("options", "out_of_order", "status", "setting"),
    [
        ((), AGE, 404, "start Prometheus with --web.enable-remote-write-receiver"),
        ((RECEIVES,), "", 400, "storage.tsdb.out_of_order_time_window"),
        ((RECEIVES,), "2h", 500, "storage.tsdb.out_of_order_time_window"),
    ],
    ids=["no receiver", "nothing out of order", "too old"],
)
def test_refusals_name_the_setting(
    served: Served, publisher: Publishers, options: tuple[str, ...], out_of_order: str, status: int, setting: str
) -> None:
    with served(*options, out_of_order=out_of_order) as prometheus:
        if options:
            write_now(prometheus)
        with pytest.raises(RefusedError) as refused:
            publisher(prometheus).publish(SCOPE, made(0.1, 0.2))
        assert f"/api/v1/write answers {status}: " in str(refused.value)
        assert setting in str(refused.value)
        assert prometheus.raw(BACKFILLED, BEGIN_MS, END_MS) == prometheus.raw('{__name__="no_such_series"}', BEGIN_MS, END_MS)
