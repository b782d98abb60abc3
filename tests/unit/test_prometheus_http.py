"""Addresses and credentials: what is taken, what is refused, and that no password is shown."""

from __future__ import annotations

import pytest

from monitor.export.backfill_series import Scope
from monitor.export.prometheus_http import Credentials, PrometheusHttp, RefusedError
from monitor.export.read_back import read_back
from monitor.metrics.catalogue import CATALOGUE
from monitor.prometheus_address import Address, check_username, parse_address


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
        ("http://a..b:9090", "1 to 63 characters"),
        ("https://.metrics.example", "1 to 63 characters"),
        (f"http://{'a' * 64}.example:9090", "1 to 63 characters"),
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


@pytest.mark.parametrize("name", ["", "a:b", "two\nlines", "\udcff"])
def test_names_that_cannot_be_sent_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"^must "):
        check_username(name)
    assert check_username("Aladín 阿") == "Aladín 阿"


@pytest.mark.parametrize(
    ("host", "credentials"),
    [
        ("127.0.0.1", Credentials("Bearer hidd€n")),
        ("127.0.0.1", Credentials("Bearer hidden\nX: y")),
        ("a..b", None),
    ],
)
def test_what_cannot_be_sent_is_a_refusal_that_shows_nothing(host: str, credentials: Credentials | None) -> None:
    """Whatever comes through the checks of the configuration: an error of another kind would end the service."""
    waited: list[float] = []
    http = PrometheusHttp(Address(False, host, 9, ""), credentials, wait=waited.append)
    with pytest.raises(RefusedError, match="cannot be asked") as refused:
        http.post("/api/v1/query", b"", {})
    assert waited == []
    assert "hidd" not in str(refused.value)
    assert refused.value.__suppress_context__


@pytest.mark.parametrize(
    "points",
    [b'[1,"none"]', b'[1e307,"1"]', b'[1,"1' + b"0" * 5000 + b'x"]', b'[1,"\xff"]', b"[" * 100_000],
)
def test_an_answer_of_something_else_is_a_refusal(points: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = b'{"data":{"result":[{"metric":{"revision":"1"},"values":[' + points + b"]}]}}"
    monkeypatch.setattr(PrometheusHttp, "post", lambda self, path, body, headers: answer)
    with pytest.raises(RefusedError, match="answers what no Prometheus does"):
        read_back(PrometheusHttp(parse_address("http://127.0.0.1:9")), Scope("m", "v", "w", CATALOGUE), [1000], 1)


def test_a_strange_revision_is_none_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = b'{"data":{"result":[{"metric":{"revision":"%b"},"values":[[1,"1"]]}]}}' % (b"9" * 5000)
    monkeypatch.setattr(PrometheusHttp, "post", lambda self, path, body, headers: answer)
    assert read_back(PrometheusHttp(parse_address("http://127.0.0.1:9")), Scope("m", "v", "w", CATALOGUE), [1000], 1) == {}
