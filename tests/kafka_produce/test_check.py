"""`calmon check` at a broker: what it shows, what it warns of, what it refuses; also with a login and TLS."""

from __future__ import annotations

from pathlib import Path

import pytest

from monitor.broker import open as broker_open
from monitor.broker.check import warnings
from monitor.cli import main
from tests.recovery.stream import START_MS, encode, prediction, write_lines
from tests.services.kafka import Kafka, KafkaBroker
from tests.services.kafka_settings import unsecured_token

DAY_MS = 86_400_000


def write(folder: Path, kafka: str, more: str = "") -> str:
    path = folder / "calmon.yaml"
    path.write_text(f"source: {{kafka: {{{kafka}}}}}\nwindows: [{{name: w, length: 1h}}]\n{more}", encoding="utf-8")
    return str(path)


def broker_lines(out: str) -> list[str]:
    lines = out.splitlines()
    return lines[next(number for number, line in enumerate(lines) if line.startswith("kafka: ")) :]


def test_topics_that_fit(kafka: Kafka, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = {"retention.ms": str(30 * DAY_MS), "message.timestamp.type": "LogAppendTime"}
    predictions, labels = kafka.new_topic("predictions", 2, settings), kafka.new_topic("labels", 2, {"retention.ms": "-1"})
    quarantine = kafka.new_topic("quarantine")
    keys = f"bootstrap_servers: [{kafka.bootstrap}], predictions: {predictions}, labels: {labels}"
    assert main(["check", "-c", write(tmp_path, keys, f"quarantine: {{topic: {quarantine}}}")]) == 0
    out, err = capsys.readouterr()
    assert "state: ./state, horizon 30d" in out
    assert f"sources: topics {predictions} and {labels} at {kafka.bootstrap}" in out
    assert broker_lines(out) == [
        f"kafka: {kafka.bootstrap} reached, 1 broker(s), group calmon",
        f"topic {predictions}: 2 partitions, kept 30d, timestamps LogAppendTime, cleanup delete",
        f"topic {labels}: 2 partitions, kept for ever, timestamps CreateTime, cleanup delete",
        f"topic {quarantine}: 1 partitions, kept for ever, timestamps CreateTime, cleanup delete",
        "shards: 2, co-partitioned (if the producers of both topics use the same partitioner)",
    ]
    assert err == ""


def test_topics_that_do_not_fit(kafka: Kafka, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    predictions = kafka.new_topic("predictions", 2, {"retention.ms": str(7 * DAY_MS), "retention.bytes": "1000000"})
    labels = kafka.new_topic("labels", 3, {"cleanup.policy": "compact"})
    keys = f"bootstrap_servers: [{kafka.bootstrap}], predictions: {predictions}, labels: {labels}"
    assert main(["check", "-c", write(tmp_path, keys, "quarantine: {topic: nowhere}")]) == 1
    out, err = capsys.readouterr()
    lines = broker_lines(out)
    assert (
        lines[1]
        == f"topic {predictions}: 2 partitions, kept 7d and at most 1000000 bytes a partition, timestamps CreateTime, cleanup delete"
    )
    assert lines[3].startswith(f"warning: topic {predictions}: records are kept 7d and may be needed 30d, for horizon and windows")
    assert lines[4].startswith(f"warning: topic {predictions}: the broker counts the 7d from the timestamp that the producer gave")
    assert lines[5].startswith(f"warning: topic {labels}: it is compacted")
    assert len(lines) == 6
    assert err == (
        f"calmon: kafka: topic nowhere does not exist at {kafka.bootstrap}, or may not be seen: create it; not co-partitioned: "
        f"{predictions} has 2 partitions and {labels} has 3, so that a label would not meet its prediction: give both the same count and "
        "partitioner, or set source.kafka.shards: one\n"
    )
    assert main(["check", "-c", write(tmp_path, keys + ", shards: one")]) == 0
    assert "shards: one, for all partitions" in capsys.readouterr().out


def test_warnings_ask_for_no_more_than_is_needed() -> None:
    settings = {"cleanup.policy": "delete", "retention.ms": str(7 * DAY_MS), "message.timestamp.type": "LogAppendTime"}
    assert warnings(settings, 7 * DAY_MS) == []
    assert len(warnings(settings, 8 * DAY_MS)) == 1
    assert "for ever" in warnings(settings, None)[0]
    assert warnings(settings | {"retention.ms": "-1"}, None) == []
    assert warnings({}, None) == []


def test_no_broker(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "-c", write(tmp_path, "bootstrap_servers: [127.0.0.1:1], start_timeout: 500ms")]) == 1
    out, err = capsys.readouterr()
    assert ": valid" in out
    assert err.startswith("calmon: kafka: cannot reach 127.0.0.1:1 within 0.5 s: connection refused")
    assert len(err.splitlines()) == 1


def test_logins(broker: KafkaBroker, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    right, wrong = tmp_path / "right", tmp_path / "wrong"
    right.write_text("hunter2\n")
    wrong.write_text("hunter3\n")
    monkeypatch.setattr(broker_open, "_TRY_S", 1.0)
    monkeypatch.setenv("PASSWORD", "hunter2")
    user = f"bootstrap_servers: [{broker.sasl_tls_bootstrap}], security_protocol: SASL_SSL, sasl_username: alice"
    trust = f"ssl_cafile: {broker.ca_file}"
    for name in ("predictions", "labels"):
        broker.create_topic(name)
    for login in (f"PLAIN, sasl_password_file: {right}", 'SCRAM-SHA-512, sasl_password: "${PASSWORD}"'):
        config = write(tmp_path, f"{user}, {trust}, sasl_mechanism: {login}")
        assert main(["check", "-c", config]) == 0
    token, junk = tmp_path / "token", tmp_path / "junk"
    token.write_text(unsecured_token("alice"))
    junk.write_text("hunter4")
    bearer = f"bootstrap_servers: [{broker.sasl_tls_bootstrap}], security_protocol: SASL_SSL, {trust}, sasl_mechanism: OAUTHBEARER"
    assert main(["check", "-c", write(tmp_path, f"{bearer}, sasl_token_file: {token}")]) == 0
    config = write(tmp_path, f"{user}, {trust}, sasl_mechanism: {login}")
    path = write_lines(tmp_path / "e", [encode(prediction("a", START_MS, 0.9))])
    assert main(["produce", str(path), "-c", config]) == 0
    out, _ = capsys.readouterr()
    assert "predictions: 1 records" in out
    refusals = {
        f"{user}, {trust}, sasl_mechanism: SCRAM-SHA-256, sasl_password_file: {wrong}": "the broker refuses the login",
        f"{bearer}, sasl_token_file: {junk}": "the broker refuses the login",
        f"{user}, sasl_mechanism: PLAIN, sasl_password_file: {right}": "TLS failed",
        f"{user}, {trust}, sasl_mechanism: PLAIN, sasl_password_file: {tmp_path / 'none'}": "none cannot be read: No such file",
    }
    for keys, said in refusals.items():
        assert main(["check", "-c", write(tmp_path, keys)]) in (1, 2)
        out, err = capsys.readouterr()
        assert said in err
        assert "hunter" not in out + err
