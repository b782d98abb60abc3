"""The Kafka part of the configuration: what goes together, what it says when it does not, and that secrets stay secret."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.config import SECRETS, Config, SourceConfig
from monitor.config_file import parse_config
from monitor.config_kafka import KafkaConfig
from monitor.errors import ConfigError

SECRET = "hunter2-" * 3


def kafka_text(**keys: object) -> str:
    """A configuration with keys of `source.kafka` on line 1."""
    return json.dumps({"source": {"kafka": {"bootstrap_servers": ["a:9092"], **keys}}})


def faults_of(text: str, environ: Mapping[str, str] | None = None) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parse_config(text, "calmon.yaml", environ or {})
    assert "hunter2" not in str(caught.value)
    return caught.value.faults


def kafka_of(text: str, environ: Mapping[str, str] | None = None) -> KafkaConfig:
    kafka = parse_config(text, "calmon.yaml", environ or {}).source.kafka
    assert kafka is not None
    return kafka


def test_defaults() -> None:
    kafka = kafka_of(kafka_text())
    assert kafka == KafkaConfig(bootstrap_servers=("a:9092",))
    assert (kafka.group_id, kafka.predictions, kafka.labels, kafka.shards) == ("calmon", "predictions", "labels", "partitions")
    assert (kafka.start_timeout_ms, kafka.poll_watchdog_ms) == (60_000, 60_000)
    assert (kafka.security_protocol, kafka.sasl, kafka.tls) == ("PLAINTEXT", False, False)
    assert SourceConfig().kafka is None
    assert Config().quarantine.topic is None


def test_everything_of_a_secured_cluster() -> None:
    text = """
source:
  kafka:
    bootstrap_servers: [b1.example.org:9093, "[::1]:9093", 10.0.0.1:1]
    shards: one
    start_timeout: 5m
    security_protocol: SASL_SSL
    sasl_mechanism: SCRAM-SHA-256
    sasl_username: calmon
    sasl_password: ${PASSWORD}
    ssl_cafile: ca.pem
    ssl_certfile: own.pem
    ssl_keyfile: own.key
    ssl_key_password: ${PASSWORD}
quarantine: {topic: calmon.quarantine}
"""
    config = parse_config(text, "calmon.yaml", {"PASSWORD": SECRET})
    kafka = config.source.kafka
    assert kafka is not None
    assert kafka.sasl_password is not None
    assert kafka.ssl_key_password is not None
    assert kafka.sasl_password.get_secret_value() == kafka.ssl_key_password.get_secret_value() == SECRET
    assert (kafka.start_timeout_ms, kafka.shards, config.quarantine.topic) == (300_000, "one", "calmon.quarantine")
    for shown in (repr(config), str(config), config.model_dump_json(), f"{kafka.sasl_password}", repr(config.model_dump())):
        assert "hunter2" not in shown


def test_keys_come_from_the_environment() -> None:
    environ = {
        "CALMON__SOURCE__KAFKA__BOOTSTRAP_SERVERS": "[b:9092, c:9092]",
        "CALMON__SOURCE__KAFKA__POLL_WATCHDOG": "30s",
        "CALMON__SOURCE__KAFKA__SECURITY_PROTOCOL": "SASL_PLAINTEXT",
        "CALMON__SOURCE__KAFKA__SASL_MECHANISM": "PLAIN",
        "CALMON__SOURCE__KAFKA__SASL_USERNAME": "me",
        "CALMON__SOURCE__KAFKA__SASL_PASSWORD": SECRET,
    }
    for text in ("{}", "source:", "source: {kafka: }", kafka_text(group_id="calmon", poll_watchdog="1s")):
        kafka = kafka_of(text, environ)
        assert (kafka.bootstrap_servers, kafka.poll_watchdog_ms, kafka.group_id) == (("b:9092", "c:9092"), 30_000, "calmon")
        assert kafka.sasl_password is not None
        assert kafka.sasl_password.get_secret_value() == SECRET


SASL: dict[str, object] = {"security_protocol": "SASL_SSL", "sasl_mechanism": "PLAIN", "sasl_username": "me", "sasl_password_file": "f"}
TLS: dict[str, object] = {"security_protocol": "SSL"}

ONE_FAULT: list[tuple[dict[str, Any], str]] = [
    ({"bootstrap_servers": []}, "bootstrap_servers: must be 1 to 64 servers, 0 are given"),
    ({"bootstrap_servers": ["a"]}, 'bootstrap_servers[0]: must be host:port, such as broker-1:9092, got "a"'),
    ({"bootstrap_servers": ["a:0"]}, 'bootstrap_servers[0]: must be host:port, such as broker-1:9092, got "a:0"'),
    (
        {"bootstrap_servers": ["a:1", "kafka://a:65536"]},
        'bootstrap_servers[1]: must be host:port, such as broker-1:9092, got "kafka://a:65536"',
    ),
    ({"bootstrap_servers": ["a:1", "a:1"]}, "bootstrap_servers[1]: the server is given twice"),
    ({"bootstrap_servers": "a:1"}, 'bootstrap_servers: must be a list, got "a:1"'),
    ({"bootstrap.servers": ["a:1"]}, '"bootstrap.servers": unknown key; did you mean bootstrap_servers?'),
    ({"predictions": "a b"}, 'predictions: must be a topic\'s name: 1 to 249 of the characters A-Z a-z 0-9 . _ -, got "a b"'),
    ({"labels": ".."}, 'labels: must be a topic\'s name: 1 to 249 of the characters A-Z a-z 0-9 . _ -, got ".."'),
    ({"labels": "predictions"}, 'labels: must be another topic than that of the predictions, got "predictions"'),
    ({"shards": "all"}, 'shards: must be partitions or one, got "all"'),
    ({"start_timeout": 60}, "start_timeout: must have a unit: 60s, 60m, 60h or 60d, got 60"),
    ({"poll_watchdog": "0s"}, 'poll_watchdog: must be longer than 0, got "0s"'),
    ({"security_protocol": "TLS"}, 'security_protocol: must be PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL, got "TLS"'),
    ({"security_protocol": "SASL_SSL"}, "sasl_mechanism: this key is needed with security_protocol SASL_SSL"),
    ({**SASL, "security_protocol": "PLAINTEXT"}, "sasl_mechanism: needs security_protocol SASL_SSL or SASL_PLAINTEXT, which is PLAINTEXT"),
    (
        {**SASL, "sasl_mechanism": "SCRAM-SHA-512", "sasl_username": None},
        "sasl_username: this key is needed with sasl_mechanism SCRAM-SHA-512",
    ),
    ({**SASL, "sasl_password_file": None}, "sasl_password_file: this key, or sasl_password, is needed with sasl_mechanism PLAIN"),
    ({**SASL, "sasl_password": SECRET}, "sasl_password_file: cannot stand beside sasl_password: leave one of the two out"),
    ({**SASL, "sasl_token_file": "f"}, "sasl_token_file: needs sasl_mechanism OAUTHBEARER"),
    (
        {"security_protocol": "SASL_SSL", "sasl_mechanism": "OAUTHBEARER"},
        "sasl_token_file: this key is needed with sasl_mechanism OAUTHBEARER",
    ),
    ({"sasl_password": SECRET}, "sasl_password: needs sasl_mechanism PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512"),
    ({"ssl_cafile": "ca.pem"}, "ssl_cafile: needs security_protocol SSL or SASL_SSL, which is PLAINTEXT"),
    ({**TLS, "ssl_keyfile": "key.pem"}, "ssl_keyfile: needs ssl_certfile, the certificate that the key is of"),
    (
        {**TLS, "ssl_certfile": "c", "ssl_key_password": SECRET, "ssl_key_password_file": "f"},
        "ssl_key_password_file: cannot stand beside ssl_key_password: leave one of the two out",
    ),
    ({**SASL, "sasl_password": ""}, "sasl_password: must not be empty or hold control characters"),
    ({**SASL, "sasl_password": "hunter2\n"}, "sasl_password: must not be empty or hold control characters"),
    ({**SASL, "sasl_password": 12}, "sasl_password: must be a text"),
    ({**SASL, "sasl_password": {"hunter2": 1}}, "sasl_password: must be a text"),
    ({**SASL, "sasl_password": "${hunter2 x}"}, "sasl_password: ... names no environment variable; write $${ for ${ itself"),
]


@pytest.mark.parametrize(("keys", "fault"), ONE_FAULT, ids=[fault[:50] for _, fault in ONE_FAULT])
def test_each_fault_has_its_words(keys: dict[str, Any], fault: str) -> None:
    assert faults_of(kafka_text(**keys)) == [f"source.kafka.{fault} (line 1)"]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("source: {kafka: }", "source.kafka.bootstrap_servers: this key is needed (line 1)"),
        ("source: {kafka: a}", "source.kafka: must be a mapping of keys, got a (line 1)"),
        (
            "source: {kafka: {bootstrap_servers: [a:1]}, files: [f]}",
            "source.kafka: cannot stand beside files: leave one of the two out (line 1)",
        ),
        (
            "source: {kafka: {bootstrap_servers: [a:1]}, follow: true}",
            "source.kafka: cannot stand beside follow, which is for files: a topic is always followed (line 1)",
        ),
        ("source: {kafk: {}}", "source.kafk: unknown key; did you mean kafka? (line 1)"),
        ("quarantine: {topic: q}", "quarantine.topic: needs source.kafka, the broker that the topic is on (line 1)"),
        (
            "source: {kafka: {bootstrap_servers: [a:1]}}\nquarantine: {topic: labels}",
            "quarantine.topic: must be another topic than those that are read, got labels (line 2)",
        ),
        (
            "source: {kafka: {bootstrap_servers: [a:1]}}\nquarantine: {topic: q, file: f}",
            "quarantine.topic: cannot stand beside file: leave one of the two out (line 2)",
        ),
    ],
)
def test_what_does_not_go_together(text: str, fault: str) -> None:
    assert faults_of(text) == [fault]


@pytest.mark.parametrize(
    "value",
    ["*hunter2", "&hunter2 x", "!hunter2 x", "{hunter2}", "{hunter2: [1, hunter2, *hunter2]}", "[hunter2, yes]", "'${hunter2'", "{no: 1}"],
)
def test_a_password_that_yaml_takes_for_something_else_is_not_shown(value: str) -> None:
    text = (
        "source:\n  kafka:\n    bootstrap_servers: [a:1]\n    security_protocol: SASL_SSL\n    sasl_mechanism: PLAIN\n"
        f"    sasl_username: me\n    sasl_password: {value}\n"
    )
    assert {fault.partition(": ")[0] for fault in faults_of(text)} == {"source.kafka.sasl_password"}


def test_a_password_in_a_variable_that_is_no_yaml_is_not_shown() -> None:
    for value in ("!hunter2!x", "*hunter2", "[hunter2", "hunter2: x", "12345"):
        environ = {"CALMON__SOURCE__KAFKA__SASL_PASSWORD": value}
        fault = faults_of(kafka_text(**{**SASL, "sasl_password_file": None}), environ)[-1]
        assert fault.startswith("source.kafka.sasl_password: ")
        assert "12345" not in fault


@given(st.text(), st.text())
def test_no_password_is_ever_shown(before: str, after: str) -> None:
    environ = {"CALMON__SOURCE__KAFKA__SASL_PASSWORD": f"{before}hunter2{after}"}
    try:
        shown = repr(parse_config(kafka_text(**{**SASL, "sasl_password_file": None}), "calmon.yaml", environ))
    except ConfigError as error:
        shown = str(error)
    assert "hunter2" not in shown


def test_secrets_are_known_by_their_type() -> None:
    assert {("source", "kafka", "sasl_password"), ("source", "kafka", "ssl_key_password")} == SECRETS
