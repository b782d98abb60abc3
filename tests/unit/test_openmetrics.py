"""OpenMetrics text of backfilled samples: what a strict reader finds in it is what was given, to the millisecond."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from monitor.events.contract import EARLIEST_MS, LATEST_MS
from monitor.export.backfill_series import Samples, Series, series_name, series_of
from monitor.export.openmetrics import openmetrics, timestamp
from monitor.metrics.catalogue import CATALOGUE
from monitor.metrics.metric import Subject

GAUGES = [metric for metric in CATALOGUE if metric.subject is not Subject.TABLE]
STAMPS = st.integers(EARLIEST_MS, LATEST_MS - 1)
# Line ends that only Python's reader of the text takes for one are left out.
TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]) | st.just("\n"), max_size=8)


@st.composite
def series(draw: st.DrawFn) -> Series:
    labels = {"model": draw(TEXTS), "value": draw(TEXTS), "__name__": series_name(draw(st.sampled_from(GAUGES[:5])))}
    return series_of(labels)


@given(
    st.dictionaries(series(), st.dictionaries(STAMPS, st.floats(allow_nan=False), min_size=1, max_size=4), max_size=6), st.integers(1, 8)
)
def test_what_is_read_is_what_was_given(given_samples: Samples, revision: int) -> None:
    samples = {one: dict(sorted(values.items())) for one, values in given_samples.items()}
    text = b"".join(openmetrics(samples, GAUGES, revision)).decode()
    assert text.endswith("# EOF\n")
    assert text.count("# EOF") == 1
    found: Samples = {}
    for family in text_string_to_metric_families(text):  # type: ignore[no-untyped-call] # of prometheus-client
        assert family.type == "gauge"
        assert family.documentation
        for sample in family.samples:
            labels = {"__name__": sample.name, **sample.labels}
            assert labels.pop("revision") == str(revision)
            assert sample.timestamp is not None
            found.setdefault(series_of(labels), {})[int(float(sample.timestamp) * 1000)] = sample.value
    assert found == samples


@given(STAMPS)
def test_times_are_the_very_millisecond_whether_cut_or_rounded(at_ms: int) -> None:
    seconds = float(str(timestamp(at_ms)))
    assert int(seconds * 1000) == at_ms
    assert round(seconds * 1000) == at_ms
