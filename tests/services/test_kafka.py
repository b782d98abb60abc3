"""The test broker's own promises: what it keeps, how it fails, that it ends; and that kafka-python gets along with it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaError, KafkaTimeoutError, OffsetOutOfRangeError, TopicAlreadyExistsError
from kafka.net.sasl.oauth import AbstractTokenProvider

from tests.services import kafka_process
from tests.services.kafka import Kafka, KafkaBroker, open_client, shared_kafka
from tests.services.kafka_container import environment, image
from tests.services.kafka_settings import Listeners, pick_ports, settings_of, unsecured_token

PATIENCE_MS = 20_000


def produce(bootstrap: str, topic: str, values: list[bytes], **options: Any) -> None:
    with closing(open_client(KafkaProducer, bootstrap_servers=bootstrap, acks="all", **options)) as producer:
        for value in values:
            producer.send(topic, key=b"k", value=value, partition=0, timestamp_ms=1_370_000_000_000)
        producer.flush(timeout=30)


def consume(bootstrap: str, topic: str, count: int, start: int = 0, **options: Any) -> list[Any]:
    """Up to `count` records of partition 0; fewer when they do not come."""
    partition = TopicPartition(topic, 0)
    with closing(open_client(KafkaConsumer, bootstrap_servers=bootstrap, auto_offset_reset="none", **options)) as consumer:
        consumer.assign([partition])
        consumer.seek(partition, start)
        records: list[Any] = []
        deadline_s = time.monotonic() + PATIENCE_MS / 1000
        while len(records) < count and time.monotonic() < deadline_s:
            records += consumer.poll(timeout_ms=500).get(partition, [])
        return records


@pytest.fixture(scope="module")
def broker() -> Iterator[KafkaBroker]:
    """One that these tests may break, if they mend it."""
    with KafkaBroker() as running:
        yield running


@pytest.mark.parametrize("codec", [None, "gzip", "snappy", "lz4", "zstd"])
def test_records_come_back_as_they_went(kafka: Kafka, codec: str | None) -> None:
    topic = kafka.new_topic()
    values = [b"\x00\xff" + str(number).encode() * 100 for number in range(300)]
    produce(kafka.bootstrap, topic, values, compression_type=codec, linger_ms=20)
    records = consume(kafka.bootstrap, topic, len(values))
    assert [record.value for record in records] == values
    assert [record.offset for record in records] == list(range(300))
    assert {(record.key, record.timestamp, record.timestamp_type) for record in records} == {(b"k", 1_370_000_000_000, 0)}


def test_topics_are_made_grown_and_deleted(kafka: Kafka) -> None:
    kafka = Kafka(kafka.bootstrap)  # of its own: others' topics stay
    name = kafka.new_topic("grown", partitions=2, config={"retention.ms": "86400000"})
    with pytest.raises(TopicAlreadyExistsError, match=name):
        kafka.create_topic(name)
    kafka.add_partitions(name, 3)
    with kafka.admin() as admin:
        (described,) = admin.describe_topics([name])
        assert [partition["error_code"] for partition in described["partitions"]] == [0, 0, 0]
    kafka.delete_topic(name)
    kafka.create_topic(name)
    with kafka.admin() as admin:
        (again,) = admin.describe_topics([name])
    assert again["topic_id"] != described["topic_id"]
    kafka.delete_new_topics()
    with kafka.admin() as admin:
        assert name not in admin.list_topics()


def test_deleted_records_move_the_start_of_the_log(kafka: Kafka) -> None:
    topic = kafka.new_topic()
    partition = TopicPartition(topic, 0)
    produce(kafka.bootstrap, topic, [b"%d" % number for number in range(10)])
    kafka.delete_records(topic, 0, before_offset=7)
    with closing(open_client(KafkaConsumer, bootstrap_servers=kafka.bootstrap)) as consumer:
        assert consumer.beginning_offsets([partition]) == {partition: 7}
        assert consumer.end_offsets([partition]) == {partition: 10}
    assert [record.value for record in consume(kafka.bootstrap, topic, 3, start=7)] == [b"7", b"8", b"9"]
    with pytest.raises(OffsetOutOfRangeError):
        consume(kafka.bootstrap, topic, 1, start=3)


def test_killed_broker_comes_back_with_its_data_on_its_ports(broker: KafkaBroker) -> None:
    topic = broker.new_topic()
    produce(broker.bootstrap, topic, [b"before"])
    broker.kill()
    with pytest.raises(KafkaError):
        produce(broker.bootstrap, topic, [b"lost"], bootstrap_timeout_ms=500)
    broker.restart()
    produce(broker.bootstrap, topic, [b"after"])
    broker.stop()
    broker.restart()
    assert [record.value for record in consume(broker.bootstrap, topic, 2)] == [b"before", b"after"]


def test_frozen_broker_answers_nothing_until_thawed(broker: KafkaBroker) -> None:
    topic = broker.new_topic()
    broker.freeze()
    try:
        with pytest.raises(KafkaTimeoutError):
            produce(broker.bootstrap, topic, [b"nobody hears"], bootstrap_timeout_ms=1000)
    finally:
        broker.thaw()
    produce(broker.bootstrap, topic, [b"heard"])
    assert [record.value for record in consume(broker.bootstrap, topic, 1)] == [b"heard"]


class Token(AbstractTokenProvider):  # type: ignore[misc] # kafka-python ships no types
    def token(self) -> str:
        return unsecured_token("alice")


def test_users_and_tls() -> None:
    with KafkaBroker(users={"alice": "right"}, tls=True) as secured:
        topic = secured.new_topic()
        trust = {"ssl_cafile": str(secured.ca_file)}
        ways: list[tuple[str, dict[str, Any]]] = [(secured.tls_bootstrap, {"security_protocol": "SSL", **trust})]
        for mechanism in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"):
            login = {"sasl_mechanism": mechanism, "sasl_plain_username": "alice", "sasl_plain_password": "right"}
            ways.append((secured.sasl_bootstrap, {"security_protocol": "SASL_PLAINTEXT", **login}))
            with pytest.raises(KafkaError):
                produce(ways[-1][0], topic, [b"refused"], bootstrap_timeout_ms=1000, **{**ways[-1][1], "sasl_plain_password": "wrong"})
        ways.append((secured.sasl_tls_bootstrap, {**ways[1][1], "security_protocol": "SASL_SSL", **trust}))
        token = {"sasl_mechanism": "OAUTHBEARER", "sasl_oauth_token_provider": Token()}
        ways.append((secured.sasl_bootstrap, {"security_protocol": "SASL_PLAINTEXT", **token}))
        for number, (bootstrap, options) in enumerate(ways):
            produce(bootstrap, topic, [b"%d" % number], **options)
            assert [record.value for record in consume(bootstrap, topic, 1, start=number, **options)] == [b"%d" % number]
        with pytest.raises(KafkaError):  # no trust, no connection
            produce(secured.tls_bootstrap, topic, [b"refused"], security_protocol="SSL", bootstrap_timeout_ms=1000)


def test_the_broker_that_the_environment_names_comes_first(kafka: Kafka, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALMON_TEST_KAFKA", kafka.bootstrap)
    with shared_kafka() as found:
        assert not isinstance(found, KafkaBroker)
        topic = found.new_topic()
        produce(found.bootstrap, topic, [b"here"])
    with kafka.admin() as admin:
        assert topic not in admin.list_topics()


def test_make_kafka_starts_a_broker_and_ends_it_with_ctrl_c(tmp_path: Path) -> None:
    port = pick_ports(("broker",))["broker"]
    root = kafka_process.START_SCRIPT.parents[3]
    state_home = {**os.environ, "XDG_STATE_HOME": str(tmp_path)}
    # Whoever runs the tests in the background may have them ignore Ctrl-C.
    command = ["env", "--default-signal=INT", "make", "--no-print-directory", "kafka", f"PORT={port}"]
    with subprocess.Popen(command, cwd=root, env=state_home, stdout=subprocess.PIPE, text=True, start_new_session=True) as make:
        assert make.stdout is not None
        try:
            said = iter(make.stdout)
            assert next(said).startswith(f"kafka: broker at 127.0.0.1:{port} (data in {tmp_path}/calmon/kafka)")
            assert any("Kafka Server started" in line for line in said)
            Kafka(f"127.0.0.1:{port}").create_topic("made")
        finally:
            os.killpg(make.pid, signal.SIGINT)  # what a terminal does: to all of the session that was made for it
            make.stdout.read()
    assert make.returncode in (0, -signal.SIGINT)


def test_missing_java_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr("tests.services.kafka.docker_answers", lambda: False)
    with pytest.raises(AssertionError, match=r"Java 17 or newer is missing .*install-services\.sh"), KafkaBroker():
        pass


def test_a_local_broker_dies_with_its_tests(tmp_path: Path) -> None:
    """Not a container: testcontainers ends those."""
    code = f"""
import time
from pathlib import Path
from tests.services.kafka_process import BrokerProcess
from tests.services.kafka_settings import pick_ports
broker = BrokerProcess(Path({str(tmp_path)!r}), pick_ports(("CONTROLLER", "PLAINTEXT")), {{}})
broker.start()
while "Kafka Server started" not in broker.log():
    time.sleep(0.1)
broker.freeze()
print(broker._process.pid, flush=True)
time.sleep(600)
"""
    root = kafka_process.START_SCRIPT.parents[3]
    with subprocess.Popen([sys.executable, "-c", code], cwd=root, stdout=subprocess.PIPE) as tests:
        assert tests.stdout is not None
        pid = int(tests.stdout.readline())
        os.kill(pid, 0)
        tests.send_signal(signal.SIGKILL)
    deadline_s = time.monotonic() + 10
    while Path(f"/proc/{pid}").exists() and b"Z" not in Path(f"/proc/{pid}/stat").read_bytes().split(b") ")[-1][:1]:
        assert time.monotonic() < deadline_s, "the broker outlived the process that started it"
        time.sleep(0.05)


def test_a_container_gets_the_same_settings() -> None:
    listeners = Listeners(sasl=True)
    ports = {name: 20_000 + number for number, name in enumerate(listeners.names)}
    settings = environment(ports, settings_of(listeners, {"alice": "right"}, None))
    assert settings["KAFKA_AUTO_CREATE_TOPICS_ENABLE"] == "false"
    assert settings["KAFKA_LISTENERS"] == "CONTROLLER://0.0.0.0:20000,PLAINTEXT://0.0.0.0:20001,SASL://0.0.0.0:20002"
    assert settings["KAFKA_ADVERTISED_LISTENERS"] == "PLAINTEXT://127.0.0.1:20001,SASL://127.0.0.1:20002"
    assert 'user_alice="right"' in settings["KAFKA_LISTENER_NAME_SASL_PLAIN_SASL_JAAS_CONFIG"]
    assert "KAFKA_LISTENER_NAME_SASL_SCRAM___SHA___256_SASL_JAAS_CONFIG" in settings
    assert image().startswith("apache/kafka:4.")
