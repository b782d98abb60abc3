"""Backfilled samples as OpenMetrics text, for `promtool tsdb create-blocks-from openmetrics`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.openmetrics.exposition import generate_latest
from prometheus_client.samples import Timestamp

from monitor.export.backfill_series import Samples, series_name
from monitor.export.exposition import registry_of
from monitor.metrics.metric import Metric
from monitor.names import REVISION_LABEL

END = b"# EOF\n"


def openmetrics(samples: Samples, metrics: Sequence[Metric], revision: int) -> Iterator[bytes]:
    """The text, a family after the other, each series' samples together and ascending in time."""
    helps = {series_name(metric): metric.help for metric in metrics}
    for name, group in groupby(sorted(samples), key=lambda series: dict(series)["__name__"]):
        family = GaugeMetricFamily(name, f"As known later: {helps[name]}")
        for series in group:
            labels = {**dict(series[1:]), REVISION_LABEL: str(revision)}
            for at_ms, value in samples[series].items():
                family.add_sample(name, labels, value, timestamp(at_ms))
        text: bytes = generate_latest(registry_of([family]))  # type: ignore[no-untyped-call] # of prometheus-client
        yield text.removesuffix(END)
    yield END


def timestamp(at_ms: int) -> Timestamp:
    """A time in seconds that is read as the very millisecond, by whoever rounds and by whoever cuts.

    Prometheus multiplies the double by 1000 and cuts, which takes a millisecond from some; a microsecond more keeps them on
    their side. Whole seconds are exact as they are.

    >>> int(2185294647.069 * 1000), str(timestamp(2_185_294_647_069)), int(2185294647.069001 * 1000)
    (2185294647068, '2185294647.069001000', 2185294647069)
    """
    seconds, rest_ms = divmod(at_ms, 1000)
    return Timestamp(seconds, rest_ms * 1_000_000 + (1_000 if rest_ms else 0))
