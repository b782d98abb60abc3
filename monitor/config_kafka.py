"""The keys of `source.kafka`: which broker, which topics, and how calmon proves who it is.

Keys are named as in Kafka's own clients. Secrets stay `SecretStr`, so that no representation shows them; files are read
by `monitor.kafka_options` when a client is made.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, Field, Strict, model_validator

from monitor.config_value import PathText, PositiveMs, Secret, Section, Text, report_faults, unique
from monitor.duration import MINUTE_MS

MAX_SERVERS: Final = 64
HIGHEST_PORT: Final = 65_535

_SERVER: Final = re.compile(r"(?:[A-Za-z0-9._-]{1,255}|\[[0-9A-Fa-f:.%]{2,64}\]):([0-9]{1,5})")
_TOPIC: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")


def _check_server(value: str) -> str:
    match = _SERVER.fullmatch(value)
    if match is None or not 1 <= int(match[1]) <= HIGHEST_PORT:
        raise ValueError("must be host:port, such as broker-1:9092")
    return value


def _check_servers(servers: tuple[str, ...]) -> tuple[str, ...]:
    if not 1 <= len(servers) <= MAX_SERVERS:
        raise ValueError(f"must be 1 to {MAX_SERVERS} servers, {len(servers)} are given")
    return servers


def _check_topic(value: str) -> str:
    if not _TOPIC.fullmatch(value) or value in (".", ".."):
        raise ValueError("must be a topic's name: 1 to 249 of the characters A-Z a-z 0-9 . _ -")
    return value


Server = Annotated[str, Strict(), AfterValidator(_check_server)]
Topic = Annotated[str, Strict(), AfterValidator(_check_topic)]


class KafkaConfig(Section):
    """A pair of topics on a Kafka cluster; `shards` "one" keeps a single shard, for topics that are not co-partitioned."""

    bootstrap_servers: Annotated[tuple[Server, ...], AfterValidator(_check_servers), AfterValidator(unique("the server"))]
    group_id: Text = "calmon"
    predictions: Topic = "predictions"
    labels: Topic = "labels"
    shards: Literal["partitions", "one"] = "partitions"
    start_timeout_ms: PositiveMs = Field(default=MINUTE_MS, validation_alias="start_timeout")
    poll_watchdog_ms: PositiveMs = Field(default=MINUTE_MS, validation_alias="poll_watchdog")
    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"] | None = None
    sasl_username: Text | None = None
    sasl_password: Secret | None = None
    sasl_password_file: PathText | None = None
    sasl_token_file: PathText | None = None
    ssl_cafile: PathText | None = None
    ssl_certfile: PathText | None = None
    ssl_keyfile: PathText | None = None
    ssl_key_password: Secret | None = None
    ssl_key_password_file: PathText | None = None

    @property
    def sasl(self) -> bool:
        """Whether calmon logs in."""
        return self.security_protocol.startswith("SASL_")

    @property
    def tls(self) -> bool:
        """Whether the connection is encrypted."""
        return self.security_protocol.endswith("SSL")

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        found = [*self._topic_faults(), *self._login_faults(), *self._tls_faults()]
        report_faults(((key,), text) for key, text in found)
        return self

    def _topic_faults(self) -> Iterator[tuple[str, str]]:
        if self.labels == self.predictions:
            yield "labels", "must be another topic than that of the predictions"

    def _login_faults(self) -> Iterator[tuple[str, str]]:
        if self.sasl and self.sasl_mechanism is None:
            yield "sasl_mechanism", f"this key is needed with security_protocol {self.security_protocol}"
        if self.sasl_mechanism is not None and not self.sasl:
            yield "sasl_mechanism", f"needs security_protocol SASL_SSL or SASL_PLAINTEXT, which is {self.security_protocol}"
        by_token = self.sasl_mechanism == "OAUTHBEARER"
        by_password = self.sasl_mechanism is not None and not by_token
        if by_token and self.sasl_token_file is None:
            yield "sasl_token_file", "this key is needed with sasl_mechanism OAUTHBEARER"
        if by_password and self.sasl_username is None:
            yield "sasl_username", f"this key is needed with sasl_mechanism {self.sasl_mechanism}"
        if by_password and self.sasl_password is None and self.sasl_password_file is None:
            yield "sasl_password_file", f"this key, or sasl_password, is needed with sasl_mechanism {self.sasl_mechanism}"
        if self.sasl_password is not None and self.sasl_password_file is not None:
            yield "sasl_password_file", "cannot stand beside sasl_password: leave one of the two out"
        if not by_token and self.sasl_token_file is not None:
            yield "sasl_token_file", "needs sasl_mechanism OAUTHBEARER"
        if not by_password:
            for key in ("sasl_username", "sasl_password", "sasl_password_file"):
                if getattr(self, key) is not None:
                    yield key, "needs sasl_mechanism PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512"

    def _tls_faults(self) -> Iterator[tuple[str, str]]:
        if not self.tls:
            for key in ("ssl_cafile", "ssl_certfile", "ssl_keyfile", "ssl_key_password", "ssl_key_password_file"):
                if getattr(self, key) is not None:
                    yield key, f"needs security_protocol SSL or SASL_SSL, which is {self.security_protocol}"
            return
        if self.ssl_certfile is None:
            for key in ("ssl_keyfile", "ssl_key_password", "ssl_key_password_file"):
                if getattr(self, key) is not None:
                    yield key, "needs ssl_certfile, the certificate that the key is of"
        if self.ssl_key_password is not None and self.ssl_key_password_file is not None:
            yield "ssl_key_password_file", "cannot stand beside ssl_key_password: leave one of the two out"
