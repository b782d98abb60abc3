"""Fixtures: the past, made once; and servers that hold what calmon showed then."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from pathlib import Path

import pytest

from monitor.clock import SystemClock
from monitor.export.backfill_series import Samples
from monitor.export.prometheus_http import Credentials, PrometheusHttp
from monitor.export.publisher import Publisher
from monitor.export.remote_write import remote_write
from monitor.prometheus_address import parse_address
from tests.rules.promtool import promtool
from tests.services.prometheus import PrometheusServer
from tests.two_truths.front import Front
from tests.two_truths.past import Page, Past, late_labels

RECEIVES = "--web.enable-remote-write-receiver"
AGE = "30d"
"""How far back a server takes samples: further than the past of these tests lies."""

Served = Callable[..., AbstractContextManager[PrometheusServer]]
Known = dict[int, Page]
Publishers = Callable[..., Publisher]


@pytest.fixture(scope="session")
def past(tmp_path_factory: pytest.TempPathFactory) -> Past:
    """A service's state after all late labels have come; tests must not change it."""
    found = Past(tmp_path_factory.mktemp("past"))
    found.read(late_labels())
    return found


@pytest.fixture(scope="session")
def known(past: Past) -> Known:
    """What such a service would show now at each moment."""
    return past.known_now()


@pytest.fixture(scope="session")
def shown(past: Past, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Blocks of what the service showed then."""
    blocks = tmp_path_factory.mktemp("shown") / "blocks"
    make_blocks(past.shown, blocks)
    return blocks


@pytest.fixture
def served(shown: Path, tmp_path: Path) -> Served:
    """A server with a copy of these blocks."""

    @contextmanager
    def start(*options: str, out_of_order: str = "") -> Iterator[PrometheusServer]:
        blocks = Path(shutil.copytree(shown, tmp_path / "served", dirs_exist_ok=True))
        with PrometheusServer([], blocks=blocks, options=options, out_of_order=out_of_order) as prometheus:
            yield prometheus

    return start


@pytest.fixture
def prometheus(served: Served) -> Iterator[PrometheusServer]:
    """A server that takes what is as old as the past, and has a sample of now, as one has that scrapes."""
    with served(RECEIVES, out_of_order=AGE) as running:
        write_now(running)
        yield running


@pytest.fixture
def publisher() -> Iterator[Publishers]:
    """Makes publishers that wait for nothing."""
    with ExitStack() as stack:

        def make(server: PrometheusServer | Front, credentials: Credentials | None = None) -> Publisher:
            made = Publisher(parse_address(server.url), credentials, pauses_s=(0.0,) * 4)
            stack.callback(made.close)
            return made

        yield make


def write_now(server: PrometheusServer) -> None:
    """Let a server have a sample of this moment."""
    write(server, {(("__name__", "now"),): {SystemClock().now_ms(): 1.0}})


def write(server: PrometheusServer, samples: Samples) -> None:
    """Write samples of one moment, and their markers, whatever is there."""
    with closing(PrometheusHttp(parse_address(server.url))) as http:
        (at_ms,) = {at_ms for values in samples.values() for at_ms in values}
        remote_write(http, samples, samples, [at_ms], 1, lambda written: None)


def make_blocks(text: Path, blocks: Path) -> None:
    """Import OpenMetrics text; in one block, for by default each two hours would read the whole text once more."""
    promtool("tsdb", "create-blocks-from", "--max-block-duration=2000h", "openmetrics", text, blocks)
