"""The HTTP server over raw sockets: what a scraper, a browser and a nuisance get."""

from __future__ import annotations

import gzip
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

import pytest

from monitor.errors import CalmonError
from monitor.export.http import MAX_HEAD_BYTES, MetricsServer, Pages

METRICS = b"# HELP calmon_up Is it up.\n# TYPE calmon_up gauge\ncalmon_up 1\n" * 100


@dataclass
class Product:
    """Stands in for the product behind the pages."""

    metrics_body: bytes = METRICS
    ready: tuple[bool, str] = (True, "ready")
    calls: list[str] = field(default_factory=list)

    def metrics(self) -> bytes:
        self.calls.append("metrics")
        return self.metrics_body

    def status_page(self) -> bytes:
        raise RuntimeError("secret detail")

    def pages(self) -> Pages:
        return Pages(metrics=self.metrics, status_page=self.status_page, ready=lambda: self.ready, healthy=lambda: (True, "alive"))


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes


@contextmanager
def serving(product: Product, address: str = "127.0.0.1", max_connections: int = 64, timeout_s: float = 10.0) -> Iterator[MetricsServer]:
    server = MetricsServer(address, 0, product.pages(), max_connections=max_connections, timeout_s=timeout_s)
    server.start()
    try:
        yield server
    finally:
        server.close()


@pytest.fixture
def product() -> Product:
    return Product()


@pytest.fixture
def server(product: Product) -> Iterator[MetricsServer]:
    with serving(product) as started:
        yield started


def connect(port: int, address: str = "127.0.0.1") -> socket.socket:
    return socket.create_connection((address, port), timeout=20)


def read_all(connection: socket.socket) -> bytes:
    chunks = []
    while chunk := connection.recv(65536):
        chunks.append(chunk)
    return b"".join(chunks)


def exchange(port: int, request: bytes, address: str = "127.0.0.1") -> Answer:
    with connect(port, address) as connection:
        connection.sendall(request)
        return parse(read_all(connection))


def parse(raw: bytes) -> Answer:
    head, _, body = raw.partition(b"\r\n\r\n")
    status_line, *lines = head.decode("ascii").split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    return Answer(int(status_line.split()[1]), headers, body)


def get(port: int, path: str = "/metrics", method: str = "GET", headers: str = "") -> Answer:
    return exchange(port, f"{method} {path} HTTP/1.1\r\nHost: calmon\r\n{headers}\r\n".encode())


def test_metrics_come_with_a_complete_and_anonymous_head(server: MetricsServer) -> None:
    answer = get(server.port)
    assert answer.status == 200
    assert answer.body == METRICS
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert answer.headers["content-length"] == str(len(METRICS))
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["vary"] == "Accept-Encoding"
    assert "date" in answer.headers
    assert "server" not in answer.headers
    assert "content-encoding" not in answer.headers


def test_query_string_does_not_change_the_page(server: MetricsServer) -> None:
    assert get(server.port, "/metrics?name[]=x").body == METRICS


def test_head_has_the_same_head_and_no_body(server: MetricsServer) -> None:
    answer = get(server.port, method="HEAD")
    assert (answer.status, answer.body) == (200, b"")
    assert answer.headers["content-length"] == str(len(METRICS))


def test_gzip_on_request_compressed_once_for_each_snapshot(
    server: MetricsServer, product: Product, monkeypatch: pytest.MonkeyPatch
) -> None:
    compressed: list[bytes] = []
    original = gzip.compress

    def counting(data: bytes, compresslevel: int = 9, *, mtime: float | None = None) -> bytes:
        compressed.append(data)
        return original(data, compresslevel, mtime=mtime)

    monkeypatch.setattr(gzip, "compress", counting)
    for _ in range(3):
        answer = get(server.port, headers="Accept-Encoding: gzip, deflate\r\n")
        assert answer.headers["content-encoding"] == "gzip"
        assert answer.headers["content-length"] == str(len(answer.body))
        assert gzip.decompress(answer.body) == METRICS
    assert len(compressed) == 1

    product.metrics_body = METRICS + b"calmon_other 2\n"
    assert gzip.decompress(get(server.port, headers="Accept-Encoding: gzip\r\n").body) == product.metrics_body
    assert len(compressed) == 2
    assert get(server.port, headers="Accept-Encoding: gzip;q=0\r\n").body == product.metrics_body


@pytest.mark.parametrize("path", ["/metric", "/metrics/", "/-/", "/favicon.ico", "/../metrics", "/%2e"])
def test_other_paths_are_not_found(server: MetricsServer, path: str) -> None:
    answer = get(server.port, path)
    assert (answer.status, answer.body) == (404, b"Not Found\n")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "send_error"])
def test_other_methods_are_not_allowed(server: MetricsServer, product: Product, method: str) -> None:
    answer = exchange(server.port, f"{method} /metrics HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello".encode())
    assert answer.status == 405
    assert answer.headers["allow"] == "GET, HEAD"
    assert product.calls == []


def test_ready_and_healthy_say_why(server: MetricsServer, product: Product) -> None:
    assert get(server.port, "/-/healthy") == get(server.port, "/-/healthy")
    assert get(server.port, "/-/ready").body == b"ready\n"
    product.ready = (False, "reading the stored panes")
    answer = get(server.port, "/-/ready")
    assert (answer.status, answer.body) == (503, b"reading the stored panes\n")
    assert get(server.port, "/-/healthy").body == b"alive\n"


def test_failing_page_is_one_line_logged_once_and_leaves_the_others(server: MetricsServer, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(2):
        answer = get(server.port, "/")
        assert (answer.status, answer.body) == (500, b"/ failed: RuntimeError\n")
    assert get(server.port).status == 200
    assert [record.getMessage() for record in caplog.records] == ["page failed: /: RuntimeError: secret detail"]


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),  # a TLS client
        (b"garbage\r\n\r\n", 400),
        (b"GET /metrics HTTP/9.9\r\n\r\n", 505),
        (b"GET /metrics SPDY/1\r\n\r\n", 400),
        (b"GET /" + b"a" * MAX_HEAD_BYTES + b" HTTP/1.1\r\n\r\n", 431),
        (b"GET /metrics HTTP/1.1\r\n" + b"X-Pad: aaaaaaaaaaaaaaaaaaaaaaaaaa\r\n" * 1000 + b"\r\n", 431),
        (b"GET /metrics HTTP/1.1\r\n" + b"X: a\r\n" * 200 + b"\r\n", 431),
    ],
)
def test_garbage_gets_an_error_with_a_head(server: MetricsServer, request_bytes: bytes, status: int) -> None:
    answer = exchange(server.port, request_bytes)
    assert answer.status == status
    assert answer.headers["content-length"] == str(len(answer.body))
    assert b"garbage" not in answer.body
    assert get(server.port).status == 200


def test_idle_and_dripping_connections_do_not_delay_a_scrape_and_are_cut(product: Product) -> None:
    with serving(product, timeout_s=3.0) as server, ExitStack() as stack:
        idle = [stack.enter_context(connect(server.port)) for _ in range(30)]
        dripping = stack.enter_context(connect(server.port))
        began = time.monotonic()
        assert get(server.port).body == METRICS
        assert time.monotonic() - began < 2.5
        # A byte every now and then must not buy time: the deadline is for the whole head.
        dripping.settimeout(0.1)
        cut = False
        while not cut and time.monotonic() - began < 15:
            try:
                dripping.send(b"G")
                cut = dripping.recv(1) == b""
            except TimeoutError:
                continue
            except ConnectionError:
                cut = True
        assert cut
        assert [connection.recv(1) for connection in idle] == [b""] * len(idle)


def test_client_that_takes_no_answer_is_cut(product: Product) -> None:
    product.metrics_body = b"x" * 50_000_000
    with serving(product, max_connections=1, timeout_s=0.5) as server, connect(server.port) as greedy:
        greedy.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
        deadline = time.monotonic() + 10
        while (answer := get(server.port, "/-/healthy")).status != 200:
            assert answer.status == 503
            assert time.monotonic() < deadline
            time.sleep(0.05)


def test_connections_over_the_cap_are_refused_at_once(product: Product) -> None:
    with serving(product, max_connections=2) as server:
        with connect(server.port), connect(server.port), connect(server.port) as third:
            answer = parse(read_all(third))
            assert (answer.status, answer.body) == (503, b"too many connections\n")
            assert answer.headers["content-length"] == str(len(answer.body))
        deadline = time.monotonic() + 10
        while get(server.port).status != 200:
            assert time.monotonic() < deadline


def test_200_parallel_scrapes_are_all_whole(product: Product) -> None:
    product.metrics_body = METRICS * 20
    barrier = threading.Barrier(200)

    def scrape(port: int, number: int) -> bytes:
        barrier.wait(30)
        answer = get(port, headers="Accept-Encoding: gzip\r\n" if number % 2 else "")
        assert answer.status == 200
        return gzip.decompress(answer.body) if number % 2 else answer.body

    with serving(product, max_connections=200) as server, ThreadPoolExecutor(200) as pool:
        assert set(pool.map(scrape, [server.port] * 200, range(200))) == {product.metrics_body}


def test_taken_port_and_bad_addresses_are_one_clear_line(server: MetricsServer, product: Product) -> None:
    for address, port, reason in [
        ("127.0.0.1", server.port, "Address already in use"),
        ("192.0.2.1", 0, "Cannot assign requested address"),
        ("no such host", 0, ""),
        ("127.0.0.1", 70_000, ""),
    ]:
        with pytest.raises(CalmonError, match=f"cannot listen on {address}:{port}: {reason}") as caught:
            MetricsServer(address, port, product.pages()).start()
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("address", ["::1", "[::1]"])
def test_ipv6(product: Product, address: str) -> None:
    with serving(product, address) as server:
        assert exchange(server.port, b"GET /metrics HTTP/1.1\r\n\r\n", "::1").body == METRICS


def test_close_frees_the_port_and_may_come_twice_or_first(product: Product) -> None:
    with serving(product) as server:
        port = server.port
        server.close()
        with pytest.raises(ConnectionRefusedError):
            connect(port)
    again = MetricsServer("127.0.0.1", port, product.pages())
    again.close()
    again.start()
    assert get(port).status == 200
    again.close()
