"""A broker that is not there, will not let us in, stands still, dies and comes back."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaConsumer

from monitor.errors import SourceError, StoppedError
from monitor.kafka_options import TokenFile
from monitor.sources.kafka import KafkaSource
from monitor.sources.kafka_reader import Reader
from monitor.sources.kafka_settings import KafkaSettings
from monitor.sources.kafka_watchdog import EXIT_CODE, Watchdog
from tests.kafka.topics import Topics, poll_until, positions_after, read, rows
from tests.services.kafka import KafkaBroker
from tests.services.kafka_settings import pick_ports, unsecured_token
from tests.services.left_sockets import LEAVES_SOCKETS

pytestmark = LEAVES_SOCKETS


@pytest.fixture(scope="module")
def broker() -> Iterator[KafkaBroker]:
    """One that these tests may break, if they mend it."""
    with KafkaBroker() as running:
        yield running


def client_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if "kafka" in thread.name.lower()]


def test_refused_at_the_start() -> None:
    port = pick_ports(("nobody",))["nobody"]
    before = client_threads()
    source = KafkaSource(KafkaSettings((f"127.0.0.1:{port}",), start_timeout_s=1.0))
    began = time.monotonic()
    with pytest.raises(SourceError, match=rf"cannot reach 127\.0\.0\.1:{port} within 1 s: connection refused"):
        source.start({})
    assert time.monotonic() - began < 5
    source.close()
    assert client_threads() == before


def test_waits_at_the_start_for_a_broker_that_comes(broker: KafkaBroker) -> None:
    topics = Topics(broker)
    topics.append(topics.predictions, 0, [b"{}"])
    broker.stop()
    # Not in a thread: the kernel would end the broker with it.
    source = topics.source()
    starting = threading.Thread(target=source.start, args=({},))
    starting.start()
    broker.restart()
    starting.join(timeout=30)
    assert rows(read(source, 1), f"{topics.predictions}-0") == [(0, b"{}")]
    source.close()


def test_logins_and_certificates_that_are_refused(tmp_path: Path) -> None:
    with KafkaBroker(users={"alice": "right"}, tls=True) as secured:
        topics = Topics(secured)
        topics.append(topics.predictions, 0, [b"{}"])
        before = client_threads()
        login = {"security_protocol": "SASL_SSL", "sasl_plain_username": "alice", "ssl_cafile": str(secured.ca_file)}
        for mechanism in ("PLAIN", "SCRAM-SHA-512"):
            options = {**login, "sasl_mechanism": mechanism, "sasl_plain_password": "wrong"}
            with pytest.raises(SourceError, match="refuses the login: check sasl_mechanism, user name and password"):
                topics.source(bootstrap_servers=(secured.sasl_tls_bootstrap,), options=options).start({})
            options["sasl_plain_password"] = "right"  # noqa: S105 - of a broker that lives for seconds
            with topics.started(bootstrap_servers=(secured.sasl_tls_bootstrap,), options=options) as source:
                assert len(read(source, 1)) == 1
        token = tmp_path / "token"
        token.write_text("no token of this broker's")
        options = {**login, "sasl_mechanism": "OAUTHBEARER", "sasl_oauth_token_provider": TokenFile(str(token))}
        with pytest.raises(SourceError, match="refuses the login"):
            topics.source(bootstrap_servers=(secured.sasl_tls_bootstrap,), options=options).start({})
        token.write_text(unsecured_token("alice"))
        with topics.started(bootstrap_servers=(secured.sasl_tls_bootstrap,), options=options) as source:
            assert len(read(source, 1)) == 1
        with pytest.raises(SourceError, match="TLS failed: check security_protocol, ssl_cafile"):
            topics.source(bootstrap_servers=(secured.tls_bootstrap,), options={"security_protocol": "SSL"}).start({})
        with pytest.raises(SourceError, match="cannot read a file that the settings name: check ssl_cafile"):
            topics.source(options={"security_protocol": "SSL", "ssl_cafile": "/nowhere"}).start({})
        with pytest.raises(SourceError, match="sasl_mecanism"):
            topics.source(options={"sasl_mecanism": "PLAIN"}).start({})
        with pytest.raises(SourceError, match="within 2 s: check the address, and whether security_protocol"):
            topics.source(bootstrap_servers=(secured.tls_bootstrap,), start_timeout_s=2.0).start({})
        assert client_threads() == before


@pytest.mark.parametrize("moment", ["connect", "lay_out"])
def test_a_start_whose_broker_stands_still_midway_can_be_given_up(
    broker: KafkaBroker, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = sys.modules[KafkaSource.__module__ if moment == "connect" else Reader.__module__]
    step = getattr(module, moment)
    given_up = threading.Event()

    def then_freeze(*arguments: object) -> object:
        done = step(*arguments)
        broker.freeze()
        given_up.set()
        return done

    monkeypatch.setattr(module, moment, then_freeze)
    before = client_threads()
    source = Topics(broker).source()
    try:
        began = time.monotonic()
        with pytest.raises(StoppedError, match="stopped before anything was read; kafka: no connection to"):
            source.start({}, given_up.is_set)
        assert time.monotonic() - began < 6
    finally:
        broker.thaw()
    source.close()
    assert client_threads() == before


@pytest.mark.parametrize("way", ["frozen", "killed"])
def test_goes_on_by_itself(broker: KafkaBroker, way: str) -> None:
    topics = Topics(broker)
    name = f"{topics.predictions}-0"
    topics.append(topics.predictions, 0, [b"before"] * 10)
    with topics.started(options={"request_timeout_ms": 2000}) as source:
        slices = read(source, 4, max_records=4)
        source.committed(positions_after(slices))
        slices += read(source, 6)
        (broker.freeze if way == "frozen" else broker.kill)()
        away = time.monotonic() + 4
        longest_s = 0.0
        troubles = set()
        while time.monotonic() < away:
            began = time.monotonic()
            assert not source.poll(100, 0.2)
            source.committed(positions_after(slices))
            longest_s = max(longest_s, time.monotonic() - began)
            troubles.add(source.trouble)
        assert longest_s < 1
        assert any("no connection to" in str(trouble) for trouble in troubles)
        assert not source.connected
        (broker.thaw if way == "frozen" else broker.restart)()
        topics.append(topics.predictions, 0, [b"after"] * 10)
        slices += read(source, 10)
        poll_until(source, lambda: source.trouble is None, "well again")
        assert not source.poll(100, 0.2)
        assert not source.failures
    assert rows(slices, name) == [(offset, b"before" if offset < 10 else b"after") for offset in range(20)]


def test_closing_does_not_wait_for_a_broker_that_is_away(broker: KafkaBroker) -> None:
    topics = Topics(broker)
    topics.append(topics.predictions, 0, [b"{}"])
    before = client_threads()
    source = topics.source()
    source.start({})
    positions = positions_after(read(source, 1))
    broker.freeze()
    try:
        source.committed(positions)
        began = time.monotonic()
        source.close()
        assert time.monotonic() - began < 6
    finally:
        broker.thaw()
    assert client_threads() == before


def test_the_watchdog_tells_of_a_call_that_does_not_return() -> None:
    told: list[str] = []
    watchdog = Watchdog(0.1, told.append)
    watchdog.start()
    with watchdog.watching(0.1):
        time.sleep(0.05)
    time.sleep(0.3)
    assert not told
    with watchdog.watching(0.1):
        time.sleep(0.6)
    watchdog.close()
    assert told == ["kafka: poll has overrun its timeout by 0.1 s: the client is stuck"]


def test_a_poll_that_does_not_return_is_told(broker: KafkaBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    source = KafkaSource(Topics(broker).settings(poll_watchdog_s=0.2), on_stuck=told.append)
    source.start({})
    poll = KafkaConsumer.poll

    def stuck(consumer: Any, *arguments: Any, **options: Any) -> Any:
        time.sleep(1.0)
        return poll(consumer, *arguments, **options)

    monkeypatch.setattr(KafkaConsumer, "poll", stuck)
    source.poll(1, 0.1)
    source.close()
    assert told == ["kafka: poll has overrun its timeout by 0.2 s: the client is stuck"]


def test_a_process_that_is_stuck_ends_and_says_where() -> None:
    code = "import time; from monitor.sources.kafka_watchdog import *; w = Watchdog(0.1, fail_process); w.start()\n"
    code += "def spin():\n    with w.watching(0.1):\n        time.sleep(600)\nspin()"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=False)
    assert result.returncode == EXIT_CODE
    assert "the client is stuck" in result.stderr
    assert "in spin" in result.stderr
