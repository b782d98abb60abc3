"""Where a Prometheus is, and the name to log in with there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

WRITE_PATH: Final = "/api/v1/write"


@dataclass(frozen=True, slots=True)
class Address:
    """Where a Prometheus is.

    Attributes:
        secure: Whether it speaks https.
        host: Name or IP address.
        port: TCP port; None for the scheme's own.
        prefix: What its paths begin with; empty where it is at the root.
    """

    secure: bool
    host: str
    port: int | None
    prefix: str

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http{'s' * self.secure}://{host}{'' if self.port is None else f':{self.port}'}{self.prefix}"


def parse_address(url: str) -> Address:
    """Read the URL of a Prometheus.

    Raises:
        ValueError: It cannot be one; the message reads after the name of what was set, and shows no password.

    >>> str(parse_address("https://metrics.example:9090/prometheus/"))
    'https://metrics.example:9090/prometheus'
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ValueError("must be an address such as http://127.0.0.1:9090") from error
    if parts.username is not None or parts.password is not None:
        raise ValueError("must not hold a user or password: everyone could read them in the list of processes")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("must begin with http:// or https:// and a host")
    if parts.query or parts.fragment or any(character <= " " or character > "~" for character in url):
        raise ValueError("must be an address alone, without ?, # or blanks")
    if parts.path.rstrip("/").endswith(WRITE_PATH):
        raise ValueError(f"must be the address of Prometheus itself, without {WRITE_PATH}")
    try:
        parts.hostname.encode("idna")  # as the resolver is asked
    except UnicodeError as error:
        raise ValueError("must name a host whose parts between dots have 1 to 63 characters") from error
    return Address(parts.scheme == "https", parts.hostname, port, parts.path.rstrip("/"))


def check_username(name: str) -> str:
    """A name to log in with, as it was given.

    Raises:
        ValueError: None can be sent (RFC 7617); the message reads after the name of what was set.
    """
    if not name or ":" in name or not name.isprintable():
        raise ValueError("must be one line of text without a colon, which would end the name")
    return name
