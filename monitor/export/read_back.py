"""What a Prometheus holds of a backfill, sample by sample: a range of raw samples, never what lookback makes of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final
from urllib.parse import urlencode

import msgspec

from monitor.export.backfill_series import Samples, Scope, Series, series_name, series_of
from monitor.export.prometheus_http import PrometheusHttp, UnavailableError
from monitor.names import REVISION_LABEL, REVISIONS

PATH: Final = "/api/v1/query"
_FORM: Final = {"Content-Type": "application/x-www-form-urlencoded"}
MOST_SAMPLES: Final = 200_000
"""Samples that an answer may have, as far as it can be told before."""

_MARGIN_MS: Final = 5
"""Whether a range holds its ends is another matter from version to version; what is beyond the moments is left out here."""


class _Found(msgspec.Struct):
    metric: dict[str, str]
    values: list[tuple[float, str]] = []


class _Data(msgspec.Struct):
    result: list[_Found]


class _Answer(msgspec.Struct):
    data: _Data


def read_back(http: PrometheusHttp, scope: Scope, moments: Sequence[int], width: int) -> dict[int, Samples]:
    """Samples at the moments, by revision; revisions without any are left out.

    Args:
        http: The Prometheus.
        scope: Which series.
        moments: Ascending.
        width: How many series a moment has about.

    Raises:
        RefusedError: It cannot be asked.
    """
    found: dict[int, Samples] = {}
    wanted = frozenset(moments)
    step = max(1, MOST_SAMPLES // (max(1, width) * len(REVISIONS)))
    selector = _selector(scope)
    for first in range(0, len(moments), step):
        part = moments[first : first + step]
        for one in _ask(http, selector, part[0], part[-1]):
            revision, series = _series(one.metric)
            values = {at_ms: value for at_ms, value in _points(http, one) if at_ms in wanted}
            if values and revision in REVISIONS:
                found.setdefault(revision, {}).setdefault(series, {}).update(values)
    return found


def _ask(http: PrometheusHttp, selector: str, first_ms: int, last_ms: int) -> list[_Found]:
    at_ms, range_ms = last_ms + _MARGIN_MS, last_ms - first_ms + 2 * _MARGIN_MS
    # Seconds as a number would be cut to a millisecond less at times.
    at = datetime.fromtimestamp(at_ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S") + f".{at_ms % 1000:03d}Z"
    body = urlencode({"query": f"{selector}[{range_ms}ms]", "time": at}).encode()
    answer = http.post(PATH, body, _FORM)
    try:
        return msgspec.json.decode(answer, type=_Answer).data.result
    except (msgspec.DecodeError, RecursionError) as error:
        raise _strange(http, error) from error


def _points(http: PrometheusHttp, one: _Found) -> list[tuple[int, float]]:
    try:
        return [(round(at_s * 1000), float(value)) for at_s, value in one.values]
    except (ValueError, OverflowError) as error:
        raise _strange(http, error) from error


def _strange(http: PrometheusHttp, error: Exception) -> UnavailableError:
    return UnavailableError(f"{http.address}{PATH} answers what no Prometheus does: {error}")


def _selector(scope: Scope) -> str:
    names = "|".join(series_name(metric) for metric in scope.gauges)
    labels = {"model": scope.model, "model_version": scope.version, "window": scope.window}
    parts = [f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in labels.items()]
    return f'{{__name__=~"{names}",{",".join(parts)}}}'


def _series(labels: dict[str, str]) -> tuple[int, Series]:
    revision = labels.pop(REVISION_LABEL, "")
    return int(revision) if revision in map(str, REVISIONS) else 0, series_of(labels)
