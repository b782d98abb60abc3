"""How far an exact implementation in fixed point may be from the oracle's doubles, gauge by gauge.

FORMULAS.md section 1 gives the rounding of one event: 2^-33 for probabilities and their products, 2^-21 for 1/(1-c) and its kin,
2^-25 for logarithms. Means stay within that. Roots, quotients and tests of small sums magnify it: their formulas are evaluated
again with every sum moved by the rounding of all its events.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping

from tests.oracle.gauges import BIN_GAUGES, GaugeKey, Series, Window, gauges, series_at
from tests.oracle.join import Scored
from tests.oracle.log_e import log_e
from tests.oracle.metrics import CSR_EPSILON, ModelConfig, bin_index, bin_sums, bin_variances, csr_sums, csr_test, metrics, noise_floor

PROBABILITY_STEP = 2.0**-33
ODDS_STEP = 2.0**-21
RELATIVE = 1e-9
LOGARITHM = 1e-7


def tolerances(
    scored: Iterable[Scored],
    models: Mapping[str, ModelConfig],
    defaults: ModelConfig,
    now_ms: int,
    windows: Iterable[Window],
) -> dict[GaugeKey, float]:
    """The largest absolute difference that rounding explains, for every key of `gauges` with the same arguments.

    Not for equal-mass bins, whose edges an implementation on sums only approximates.
    """
    allowed: dict[GaugeKey, float] = {}
    events, windows = list(scored), list(windows)
    for series in series_at(events, models, defaults, now_ms, windows):
        found = metrics(series.events, series.config, series.edges)
        magnified = _magnified(series, found) | _moved_evidence(series, found)
        for metric, number in found.items():
            if metric in series.families:
                base = LOGARITHM if metric.startswith("nll") else RELATIVE
                allowed[series.key(metric)] = base * max(1.0, abs(number)) + magnified.get(metric, 0.0)
        if series.segment == "all":
            for low, high, sums in bin_sums(series.events, series.edges):
                for name, number in zip(BIN_GAUGES, sums, strict=True):
                    allowed[series.bin_key(name, low, high)] = RELATIVE * max(1.0, abs(number))
    # What compares groups comes from counts alone.
    compared = [key for key in gauges(events, models, defaults, now_ms, windows) if key not in allowed]
    return allowed | dict.fromkeys(compared, RELATIVE)


def _moved_evidence(series: Series, found: Mapping[str, float]) -> dict[str, float]:
    """What rounding does to evidence: it rises or falls with every bin's mean confidence alike, so both ends are enough."""
    labelled = [event for event in series.events if event.label is not None]
    ends = [log_e(labelled, shift) for shift in (-PROBABILITY_STEP, PROBABILITY_STEP)]
    return {name: max(abs(end[name] - found[name]) for end in ends) for name in ends[0]}


def _magnified(series: Series, found: Mapping[str, float]) -> dict[str, float]:
    """What is added for the metrics of a series that magnify rounding."""
    used = [
        event for event in series.events if event.label is not None and bin_index(event.prediction.confidence, series.edges) is not None
    ]
    if not used:
        return {}
    n = len(used)
    clipped = sum(1 - event.prediction.confidence < CSR_EPSILON for event in used)
    added = {"csr_null_mean": clipped / n * PROBABILITY_STEP / CSR_EPSILON}
    if found["confidence_sum"] > 0:
        added["cw_accuracy"] = 2 * n * PROBABILITY_STEP / found["confidence_sum"]

    # c(1-c) is kept as the difference of c and c*c: two roundings an event.
    variances, ece = bin_variances(used, series.edges), found["ece"]
    floors = [
        noise_floor(n, max(0.0, ece + a * PROBABILITY_STEP), [max(0.0, v + b * 2 * n * PROBABILITY_STEP) if v else v for v in variances])
        for a, b in _signs(2)
    ]
    # Clipped events are counted apart and c = 0 adds nothing but whole numbers: both are exact.
    moved = sum(event.prediction.confidence > 0 for event in used if 1 - event.prediction.confidence >= CSR_EPSILON) * ODDS_STEP
    size, variance, third = csr_sums(used)
    tests = [csr_test(n, size + a * moved, max(0.0, variance + b * moved), third + c * moved) for a, b, c in _signs(3)]
    for corner in [*floors, *tests]:
        for metric, number in corner.items():
            # A test that is undefined at a corner divides by nearly nothing: anything may come out.
            away = abs(number - found[metric]) if number is not None and metric in found else math.inf
            added[metric] = max(added.get(metric, 0.0), away)
    for metric in ("ece_z", "csr_z", "csr_skew", "p_risk", "p_risk_gaussian_ok"):
        if any(corner.get(metric) is None for corner in (floors if metric == "ece_z" else tests)):
            added[metric] = math.inf
    return added


def _signs(count: int) -> Iterator[tuple[int, ...]]:
    """All corners of a box."""
    return itertools.product((-1, 1), repeat=count)
