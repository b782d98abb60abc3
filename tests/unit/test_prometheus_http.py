"""Addresses and credentials: what is taken, what is refused, and that no password is shown."""

from __future__ import annotations

import pytest

from monitor.export.prometheus_http import Credentials
from monitor.prometheus_address import parse_address


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:9090", "https://metrics.example", "http://[::1]:9090", "https://metrics.example:8443/prometheus"]
)
def test_addresses_are_kept(url: str) -> None:
    assert str(parse_address(url)) == url
    assert str(parse_address(url + "/")) == url


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("127.0.0.1:9090", "http:// or https://"),
        ("ftp://metrics.example", "http:// or https://"),
        ("file:///etc/passwd", "http:// or https://"),
        ("http://", "a host"),
        ("http://metrics.example:port", "an address such as"),
        ("http://metrics.example:70000", "an address such as"),
        ("http://metrics.example/?x=1", "without ?"),
        ("http://metrics.example/#x", "without ?"),
        ("http://metrics.example/a b", "blanks"),
        ("http://metrics.example/\r\nX: y", "blanks"),
        ("http://metrics.example/api/v1/write", "Prometheus itself"),
        ("http://me:hidden@metrics.example", "user or password"),
    ],
)
def test_other_addresses_are_refused(url: str, reason: str) -> None:
    with pytest.raises(ValueError, match=r"^must ") as refused:
        parse_address(url)
    assert reason in str(refused.value)
    assert "hidden" not in str(refused.value)


def test_credentials_are_not_shown() -> None:
    for one in (Credentials.basic("me", "hidden"), Credentials.bearer("hidden")):
        assert "hidden" not in f"{one!r}{one}"
        assert "aGlkZGVu" not in f"{one!r}"
    assert Credentials.basic("Aladdin", "open sesame").header == "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="  # RFC 7617's own example
    assert Credentials.bearer("mF_9.B5f-4.1JqM").header == "Bearer mF_9.B5f-4.1JqM"  # RFC 6750's
