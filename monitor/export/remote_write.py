"""Remote write 1.0: samples to a running Prometheus, in requests of a bounded size, each taken whole or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from monitor.duration import MINUTE_MS
from monitor.export.backfill_series import Samples, Series
from monitor.export.prometheus_http import PrometheusHttp
from monitor.export.remote_write_message import Point, write_request
from monitor.names import REVISION_LABEL
from monitor.prometheus_address import WRITE_PATH

MOST_SAMPLES: Final = 5_000
"""Samples of a request; with their labels some hundred kilobytes before compression."""

LOOKBACK_MS: Final = 5 * MINUTE_MS
"""How far a query looks back for a sample, unless Prometheus is told otherwise (`query.lookback-delta`)."""

_HEADERS: Final = {
    "Content-Type": "application/x-protobuf",
    "Content-Encoding": "snappy",
    "X-Prometheus-Remote-Write-Version": "0.1.0",
}

Packet = dict[Series, list[Point]]


def remote_write(
    http: PrometheusHttp, samples: Samples, lacking: Samples, moments: Sequence[int], revision: int, written: Callable[[int], object]
) -> None:
    """Write what a revision lacks, in the order of time: where it ends, what is there is whole moments.

    Args:
        http: The Prometheus.
        samples: All samples of the run, which say where each series goes on.
        lacking: Those to be written.
        moments: The run's moments, ascending.
        revision: Of which revision they are.
        written: Told how many were written with each request.

    Raises:
        RefusedError: The server does not take them; what it took before stays.
    """
    for packet in packets(samples, lacking, moments):
        named = {tuple(sorted((*series, (REVISION_LABEL, str(revision))))): points for series, points in packet.items()}
        http.post(WRITE_PATH, write_request(named), _HEADERS)
        written(sum(value is not None for points in packet.values() for _, value in points))


def packets(samples: Samples, lacking: Samples, moments: Sequence[int]) -> Iterator[Packet]:
    """The requests: whole moments together as far as they fit, each sample with the marker that ends it where it does not go on.

    It goes on to the run's next moment if that has a sample of the series, at most as far away as a query looks back. Else the
    marker comes a millisecond later, so that no query finds the value beyond its moment.
    """
    by_moment: dict[int, list[Series]] = {}
    for series, values in lacking.items():
        for at_ms in values:
            by_moment.setdefault(at_ms, []).append(series)
    packet: Packet = {}
    size = 0
    for at_ms, next_ms in zip(moments, [*moments[1:], -1], strict=True):
        found = by_moment.get(at_ms, [])
        if packet and size + len(found) > MOST_SAMPLES:
            yield packet
            packet, size = {}, 0
        for series in found:
            if size >= MOST_SAMPLES:
                yield packet
                packet, size = {}, 0
            points = packet.setdefault(series, [])
            points.append((at_ms, samples[series][at_ms]))
            if next_ms not in samples[series] or next_ms - at_ms > LOOKBACK_MS:
                points.append((at_ms + 1, None))
            size += 1
    if packet:
        yield packet
