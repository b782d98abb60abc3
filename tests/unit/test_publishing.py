"""Publishing: what one window is refused for holds up no other, and a Prometheus that is away, or an end, holds up nothing."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping

import pytest

from monitor.app import Engine
from monitor.clock import SystemClock
from monitor.config_file import parse_config
from monitor.duration import DAY_MS
from monitor.errors import ConfigError
from monitor.export.backfill_series import Scope, SeenMoment
from monitor.export.prometheus_http import PrometheusHttp, RefusedError, UnavailableError
from monitor.export.publisher import Published, Publisher, PublishError, RevisionsTakenError
from monitor.metrics.settings import Settings
from monitor.pipeline.revisions.journal import Journal, Revision
from monitor.pipeline.revisions.publishing import Publishing
from monitor.pipeline.revisions.reviser import Reviser, RevisionRules
from monitor.prometheus_address import parse_address
from monitor.service import Service
from monitor.sources.protocol import never
from monitor.windows.running import WindowSpec
from tests.doubles.list_source import ListSource
from tests.doubles.memory_store import MemoryStore
from tests.integration.running import wait_until
from tests.two_truths.front import Front

AWAY = UnavailableError("http://p: cannot be reached")
OLD = RefusedError("http://p answers 400: too old sample")
DIFFERS = PublishError("1 of 9 samples are not what was written")
TAKEN = RevisionsTakenError("revisions 1 to 8 are all taken")
WINDOWS = [WindowSpec(name, DAY_MS, 0, by_hours=True) for name in ("24h", "7d")]


class Told(Publisher):
    """Takes what it has no answer for; notes the versions that it was told."""

    def __init__(self, answers: Mapping[str, Exception]) -> None:
        super().__init__(parse_address("http://127.0.0.1:1"))
        self.answers = dict(answers)
        self.versions: list[str] = []

    def publish(self, scope: Scope, moments: Iterable[SeenMoment], wrote: Callable[[int], object] = lambda samples: None) -> Published:
        self.versions.append(scope.version)
        if scope.version in self.answers:
            raise self.answers[scope.version]
        return Published(1, 9, 0)


def journal_of(*versions: str, window: str = "24h") -> Journal:
    journal = Journal(MemoryStore(), publishes=True)
    at = DAY_MS * 20_000
    moved = {window: [(at, at)]}
    journal.commit({"all": 1}, [Revision(number, 0, "m", version, 0, 1, [], [], moved) for number, version in enumerate(versions)])
    return journal


def publishing(journal: Journal, publisher: Publisher) -> Publishing:
    rules = RevisionRules(WINDOWS, 0.0, lambda model: Settings())
    return Publishing(Reviser(dict, journal, rules, lambda point: None), WINDOWS, [], lambda stopped: publisher)


def published(journal: Journal) -> dict[str, int | None]:
    return {entry.version: entry.published.get("24h") for entry in journal.entries}


@pytest.mark.parametrize("refusal", [OLD, DIFFERS], ids=["too old", "read back otherwise"])
def test_a_window_that_is_refused_holds_up_no_other_and_is_tried_again(refusal: Exception, caplog: pytest.LogCaptureFixture) -> None:
    journal, told = journal_of("old", "older", "new"), Told({"old": refusal, "older": refusal})
    one = publishing(journal, told)
    with caplog.at_level(logging.WARNING):
        one.run()
        one.run()
    assert published(journal) == {"old": None, "older": None, "new": 1}
    assert told.versions == ["old", "older", "new", "old", "older"]
    assert caplog.messages == [f"2 moved windows are not in Prometheus yet: 2 are refused, first window 24h of revision 0: {refusal}"]
    told.answers.clear()
    one.run()
    assert published(journal) == {"old": 1, "older": 1, "new": 1}


def test_a_prometheus_that_is_away_is_asked_once_a_look(caplog: pytest.LogCaptureFixture) -> None:
    journal, told = journal_of("a", "b", "c"), Told({"b": AWAY, "c": AWAY})
    one = publishing(journal, told)
    one.run()
    assert told.versions == ["a", "b"]
    assert caplog.messages == ["2 moved windows are not in Prometheus yet: http://p: cannot be reached"]
    told.answers.clear()
    one.run()
    assert published(journal) == {"a": 1, "b": 1, "c": 1}


def test_what_can_never_be_written_waits_no_longer(caplog: pytest.LogCaptureFixture) -> None:
    journal = journal_of("full", "new")
    publishing(journal, Told({"full": TAKEN})).run()
    assert published(journal) == {"full": 0, "new": 1}
    journal = journal_of("a", window="gone")
    publishing(journal, Told({})).run()
    assert journal.entries[0].published == {"gone": 0}
    assert caplog.messages == [
        f"revision 0, window 24h: {TAKEN}",
        "revision 0, window gone: nothing is written, for it is not configured any more",
    ]


def test_nobody_is_asked_where_nothing_waits(caplog: pytest.LogCaptureFixture) -> None:
    def connect(stopped: Callable[[], bool]) -> Publisher:
        raise ConfigError(["password_file: cannot be read"], "test")

    rules = RevisionRules(WINDOWS, 0.0, lambda model: Settings())
    for journal, lines in ((journal_of(), 0), (journal_of("a"), 1)):
        Publishing(Reviser(dict, journal, rules, lambda point: None), WINDOWS, [], connect).run()
        assert len(caplog.messages) == lines


def test_it_ends_when_nobody_waits_for_it(caplog: pytest.LogCaptureFixture) -> None:
    journal, told = journal_of("a", "b", "c"), Told({})
    publishing(journal, told).run(lambda: bool(told.versions))
    assert published(journal) == {"a": 1, "b": None, "c": None}
    assert caplog.messages == []


class Endless(Publishing):
    """Goes on until it is stopped, or nobody has stopped it for long."""

    def __init__(self) -> None:
        rules = RevisionRules(WINDOWS, 0.0, lambda model: Settings())
        super().__init__(Reviser(dict, journal_of(), rules, lambda point: None), WINDOWS, [], lambda stopped: Told({}))
        self.begun, self.was_stopped = threading.Event(), False

    def run(self, stopped: Callable[[], bool] = never) -> None:
        self.begun.set()
        until_s = time.monotonic() + 20
        while time.monotonic() < until_s and not self.was_stopped:
            self.was_stopped = stopped()
            time.sleep(0.01)


def started(publishing: Publishing) -> Service:
    """A service that publishes every second."""
    text = "state: {directory: unused}\nhttp: {port: 0}\nrevisions: {every: 1s}\nquarantine: {file: /dev/null}\n"
    config = parse_config(text, "test", {})
    engine = Engine(config, SystemClock(), source=ListSource([], follow=True), store=MemoryStore())
    engine.publishing = publishing
    service = Service(config, engine)
    service.start()
    return service


def test_a_service_that_ends_stops_it() -> None:
    service = started(endless := Endless())
    assert endless.begun.wait(30)
    service.close()
    assert endless.was_stopped


class Broken(Publishing):
    """One that fails whenever it is run."""

    def __init__(self) -> None:
        self.runs = 0

    def run(self, stopped: Callable[[], bool] = never) -> None:
        del stopped
        self.runs += 1
        raise ZeroDivisionError


def test_a_look_that_fails_is_told_and_ends_no_service(caplog: pytest.LogCaptureFixture) -> None:
    service = started(broken := Broken())
    wait_until(lambda: broken.runs >= 2, "it is looked again")
    assert not service.wait(0)
    service.close()
    assert "revisions could not be looked for; the next look tries again" in caplog.text


def test_after_the_request_in_work_no_other_is_sent() -> None:
    given_up = False
    with Front("http://127.0.0.1:1", [503] * 9) as front:

        def waits(seconds: float) -> None:
            nonlocal given_up
            given_up = True

        http = PrometheusHttp(parse_address(front.url), wait=waits, given_up=lambda: given_up)
        with pytest.raises(UnavailableError, match="given up"):
            http.post("/api/v1/write", b"", {})
        http.close()
        assert front.writes == 1


@pytest.mark.parametrize("status", [400, 413, 422, 307, 401, 403, 404, 429, 503])
def test_whether_it_is_this_window_or_any(status: int) -> None:
    with Front("http://127.0.0.1:1", [status] * 2) as front:
        http = PrometheusHttp(parse_address(front.url), pauses_s=())
        with pytest.raises(RefusedError, match=f"answers {status}") as refused:
            http.post("/api/v1/write", b"", {})
        http.close()
    assert isinstance(refused.value, UnavailableError) == (status not in (400, 413, 422))
