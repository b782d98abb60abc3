"""Security of a Kafka connection as kafka-python's clients want it; the files with secrets are read here."""

from __future__ import annotations

from pathlib import Path

from kafka.net.sasl.oauth import AbstractTokenProvider
from pydantic import SecretStr

from monitor.config_kafka import KafkaConfig
from monitor.errors import ConfigError
from monitor.secret_file import ORIGIN, HiddenText, file_fault, read_secret


class TokenFile(AbstractTokenProvider):  # type: ignore[misc] # kafka-python ships no types
    """Gives a file's content as the token, read at every login, so that whoever renews it needs not tell us.

    Args:
        path: The file.

    Raises:
        ConfigError: There is no token in it.
    """

    def __init__(self, path: str) -> None:
        super().__init__()
        self._path = path
        self.token()

    def token(self) -> str:
        """The token as it is now.

        Raises:
            ConfigError: The file cannot be read, or holds none.
        """
        return read_secret("source.kafka.sasl_token_file", self._path)


def client_options(kafka: KafkaConfig) -> dict[str, object]:
    """Options of kafka-python's clients that say how to connect: security, certificates, login.

    Args:
        kafka: The configuration; brokers, topics and timeouts are left to the caller.

    Returns:
        Options that any of the clients takes; secrets in them are `HiddenText`.

    Raises:
        ConfigError: A file that is named cannot be read; it names every one.
    """
    options: dict[str, object] = {"security_protocol": kafka.security_protocol}
    faults: list[str] = []
    for key in ("ssl_cafile", "ssl_certfile", "ssl_keyfile"):
        path = getattr(kafka, key)
        if path is not None:
            faults += _unreadable(key, path)
            options[key] = path
    try:
        options |= _login(kafka)
    except ConfigError as error:
        faults += error.faults
    try:
        password = _secret(kafka.ssl_key_password, "ssl_key_password_file", kafka.ssl_key_password_file)
        if password is not None:
            options["ssl_password"] = password
    except ConfigError as error:
        faults += error.faults
    if faults:
        raise ConfigError(faults, ORIGIN)
    return options


def _login(kafka: KafkaConfig) -> dict[str, object]:
    if kafka.sasl_token_file is not None:
        return {"sasl_mechanism": kafka.sasl_mechanism, "sasl_oauth_token_provider": TokenFile(kafka.sasl_token_file)}
    if not kafka.sasl:
        return {}
    return {
        "sasl_mechanism": kafka.sasl_mechanism,
        "sasl_plain_username": kafka.sasl_username,
        "sasl_plain_password": _secret(kafka.sasl_password, "sasl_password_file", kafka.sasl_password_file),
    }


def _secret(given: SecretStr | None, key: str, path: str | None) -> HiddenText | None:
    if given is not None:
        return HiddenText(given.get_secret_value())
    return None if path is None else read_secret(f"source.kafka.{key}", path)


def _unreadable(key: str, path: str) -> list[str]:
    try:
        with Path(path).open("rb"):
            return []
    except OSError as error:
        return file_fault(f"source.kafka.{key}", path, f"cannot be read: {error.strerror or error}").faults
