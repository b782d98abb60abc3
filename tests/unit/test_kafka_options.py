"""What kafka-python is told of security: secrets from files, never shown; missing files named."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from monitor.config_kafka import KafkaConfig
from monitor.errors import ConfigError
from monitor.kafka_options import TokenFile, client_options
from monitor.secret_file import HiddenText

SERVERS = ("a:1",)


def secured(**keys: Any) -> KafkaConfig:
    return KafkaConfig(bootstrap_servers=SERVERS, security_protocol="SASL_SSL", **keys)


def password(**keys: Any) -> KafkaConfig:
    return secured(sasl_mechanism="PLAIN", sasl_username="me", **keys)


def test_without_security() -> None:
    assert client_options(KafkaConfig(bootstrap_servers=SERVERS)) == {"security_protocol": "PLAINTEXT"}


def test_everything(tmp_path: Path) -> None:
    for name, content in {"password": "hunter2 \u00fc\r\n", "ca": "x", "cert": "x", "key": "x"}.items():
        (tmp_path / name).write_text(content, encoding="utf-8", newline="")
    kafka = password(
        sasl_password_file=str(tmp_path / "password"),
        ssl_cafile=str(tmp_path / "ca"),
        ssl_certfile=str(tmp_path / "cert"),
        ssl_keyfile=str(tmp_path / "key"),
        ssl_key_password=SecretStr("hunter2"),
    )
    options = client_options(kafka)
    assert options == {
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": "me",
        "sasl_plain_password": "hunter2 \u00fc",
        "ssl_cafile": str(tmp_path / "ca"),
        "ssl_certfile": str(tmp_path / "cert"),
        "ssl_keyfile": str(tmp_path / "key"),
        "ssl_password": "hunter2",
    }
    assert "hunter2" not in repr(options)
    assert "hunter2" not in f"{options}"


def test_a_hidden_text_is_a_text() -> None:
    assert "\0".join(["a", HiddenText("b")]).encode() == b"a\0b"
    assert repr([HiddenText("b")]) == "['...']"


def test_a_token_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("first\n")
    options = client_options(secured(sasl_mechanism="OAUTHBEARER", sasl_token_file=str(path)))
    provider = options["sasl_oauth_token_provider"]
    assert isinstance(provider, TokenFile)
    assert provider.token() == "first"
    path.write_text("second")
    assert provider.token() == "second"
    path.unlink()
    with pytest.raises(ConfigError, match=r"sasl_token_file: the file .*token cannot be read: No such file"):
        provider.token()
    with pytest.raises(ConfigError, match="sasl_token_file"):
        client_options(secured(sasl_mechanism="OAUTHBEARER", sasl_token_file=str(path)))


def test_every_missing_file_is_named(tmp_path: Path) -> None:
    kafka = password(
        sasl_password_file=str(tmp_path / "password"),
        ssl_cafile=str(tmp_path / "ca"),
        ssl_certfile=str(tmp_path / "cert"),
        ssl_key_password_file=str(tmp_path),
    )
    with pytest.raises(ConfigError) as caught:
        client_options(kafka)
    assert caught.value.faults == [
        f"source.kafka.ssl_cafile: the file {tmp_path / 'ca'} cannot be read: No such file or directory",
        f"source.kafka.ssl_certfile: the file {tmp_path / 'cert'} cannot be read: No such file or directory",
        f"source.kafka.sasl_password_file: the file {tmp_path / 'password'} cannot be read: No such file or directory",
        f"source.kafka.ssl_key_password_file: the file {tmp_path} cannot be read: Is a directory",
    ]


@pytest.mark.parametrize(
    ("content", "problem"),
    [(b"", "is empty"), (b"\n", "is empty"), (b"a\nb\n", "holds more than one line of text"), (b"\xff", "is no UTF-8 text")],
)
def test_a_file_that_holds_no_secret(tmp_path: Path, content: bytes, problem: str) -> None:
    path = tmp_path / "password"
    path.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        client_options(password(sasl_password_file=os.fspath(path)))
    assert caught.value.faults == [f"source.kafka.sasl_password_file: the file {path} {problem}"]
