"""A test broker's settings: listeners, users, certificate, ports."""

from __future__ import annotations

import base64
import json
import random
import shutil
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tests.services.prometheus import ServiceMissingError

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
_LOGIN_MODULE = "org.apache.kafka.common.security"
_PROTOCOLS = {"CONTROLLER": "PLAINTEXT", "PLAINTEXT": "PLAINTEXT", "SASL": "SASL_PLAINTEXT", "TLS": "SSL", "SASLTLS": "SASL_SSL"}


@dataclass(frozen=True, slots=True)
class Listeners:
    """Which listeners a broker has beside the plain one and the controller's."""

    sasl: bool = False
    tls: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """Their names; none ends in ``SSL``, for the container image then asks for key stores in files."""
        wanted = {"SASL": self.sasl, "TLS": self.tls, "SASLTLS": self.sasl and self.tls}
        return ("CONTROLLER", "PLAINTEXT", *(name for name, here in wanted.items() if here))


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate for 127.0.0.1 and its key, PEM."""

    certificate: str
    key: str

    @classmethod
    def make(cls, directory: Path) -> Self:
        """Make one with openssl, and leave it as ``certificate.pem`` in a directory.

        Raises:
            ServiceMissingError: There is no openssl.
        """
        if shutil.which("openssl") is None:
            raise ServiceMissingError("openssl is not on PATH: run deploy/local/install-services.sh as root on Debian, or install it")
        certificate, key = directory / "certificate.pem", directory / "key.pem"
        command = ["openssl", "req", "-x509", "-nodes", "-days", "2", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
        command += ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)]
        subprocess.run(command, check=True, capture_output=True, timeout=60)
        return cls(certificate.read_text(), key.read_text())


def unsecured_token(user: str, seconds: int = 600) -> str:
    """A token as the OAUTHBEARER listeners take them: signed by nobody."""
    now_s = int(time.time())
    parts = ({"alg": "none"}, {"sub": user, "iat": now_s, "exp": now_s + seconds})
    encoded = (base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts)
    return ".".join(encoded) + "."


def settings_of(listeners: Listeners, users: Mapping[str, str], certificate: Certificate | None) -> dict[str, str]:
    """The settings that make a broker have listeners, beside their addresses."""
    settings = {"listener.security.protocol.map": ",".join(f"{name}:{_PROTOCOLS[name]}" for name in listeners.names)}
    for name in listeners.names:
        prefix = f"listener.name.{name.lower()}"
        if name.startswith("SASL"):
            settings[f"{prefix}.sasl.enabled.mechanisms"] = ",".join(MECHANISMS)
            for mechanism in MECHANISMS:
                settings[f"{prefix}.{mechanism.lower()}.sasl.jaas.config"] = _login(mechanism, users)
        if name.endswith("TLS"):
            assert certificate is not None, "a TLS listener needs a certificate"
            settings[f"{prefix}.ssl.keystore.type"] = "PEM"
            settings[f"{prefix}.ssl.keystore.certificate.chain"] = certificate.certificate
            settings[f"{prefix}.ssl.keystore.key"] = certificate.key
    return settings


def addresses(ports: Mapping[str, int], host: str, names: Sequence[str]) -> str:
    """Listeners as the broker's settings have them."""
    return ",".join(f"{name}://{host}:{ports[name]}" for name in names)


def properties(settings: Mapping[str, str]) -> str:
    """Settings in the syntax of a properties file."""
    return "".join(f"{key}={escaped(value)}\n" for key, value in settings.items())


def escaped(value: str) -> str:
    """A value as a properties file has it."""
    return value.replace("\\", "\\\\").replace("\n", "\\n")


def pick_ports(names: Sequence[str]) -> dict[str, int]:
    """A free port of 127.0.0.1 for each name.

    They are below those that the kernel gives to clients, so that a broker that is down finds them free when it comes back.
    """
    ports: dict[str, int] = {}
    while len(ports) < len(names):
        port = random.randrange(15_000, 32_000)  # noqa: S311 - no secret
        with socket.socket() as probe:
            if port not in ports.values() and probe.connect_ex(("127.0.0.1", port)) != 0:
                ports[names[len(ports)]] = port
    return ports


def _login(mechanism: str, users: Mapping[str, str]) -> str:
    if mechanism == "PLAIN":
        known = " ".join(f'user_{user}="{password}"' for user, password in users.items())
        return f"{_LOGIN_MODULE}.plain.PlainLoginModule required {known};"
    if mechanism == "OAUTHBEARER":
        return f"{_LOGIN_MODULE}.oauthbearer.OAuthBearerLoginModule required;"
    return f"{_LOGIN_MODULE}.scram.ScramLoginModule required;"
