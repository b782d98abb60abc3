"""Likelihoods at a grid of temperatures: softmax(ln p / T) for 61 T, summed so that the best T can be found later.

The fit half of the ids adds its NLL; the report half also its confidences, so that a temperature's effect on ECE is
measured on events that did not choose it. Every integer is correctly rounded: where a double is too near to a
half-integer or to an edge of a bin to tell, decimals decide. Source: FORMULAS sections 1 and 8.
"""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Context, Decimal, localcontext
from functools import cache, lru_cache
from itertools import chain

import numpy as np

from monitor.statistics.addition import Additions
from monitor.statistics.fixed_point import F64, I64, LOG_BITS, LOG_FLOOR, PROBABILITY_BITS
from monitor.statistics.grid import bin_index, equal_edges
from monitor.statistics.layout import TEMPERED_BINS
from monitor.statistics.segment import TEMPERATURE, TEMPERATURES

HIGHEST_TEMPERATURE = 8.0
"""The last temperature of the grid; the first one is 1 over it."""

_PRECISION = Context(prec=50, rounding=ROUND_HALF_EVEN)
# Errors of the doubles below are some 1e-15 of the value: these margins are a thousand times as wide.
_NLL_MARGIN = 2.0**-14
_CONFIDENCE_MARGIN = 2.0**-12
_EDGE_MARGIN = 1e-12
_TIE = Decimal("1e-40")
_REMEMBERED_CLASSES = 32


@cache
def temperatures(points: int = TEMPERATURES) -> F64:
    """The grid: temperatures in geometric steps from 1/8 to 8, correctly rounded doubles; the middle one of an odd number is 1."""
    steps = points - 1
    with localcontext(_PRECISION):
        grid = np.array([float(Decimal(HIGHEST_TEMPERATURE) ** (Decimal(2 * k - steps) / steps)) for k in range(points)])
    grid.setflags(write=False)
    return grid


class VectorBuffer:
    """Labelled events with a vector that holds the label, collected one by one."""

    def __init__(self) -> None:
        self._rows: list[tuple[int, int, int, bool, int, int]] = []
        self._vectors: list[list[float]] = []

    def __len__(self) -> int:
        return len(self._rows)

    def append(self, row: tuple[int, int, int, bool, int, int], vector: list[float]) -> None:
        """Take (slot, event time ms, labelled weight, whether it reports, index of the label, index of the predicted class) and p."""
        self._rows.append(row)
        self._vectors.append(vector)

    def take(self) -> Additions:
        """What the events so far add, one row an event and temperature; and start anew."""
        rows = np.array(self._rows, dtype=np.int64).T
        made = _tempered(rows, self._vectors)
        self._rows, self._vectors = [], []
        return made


def _tempered(rows: I64, vectors: list[list[float]]) -> Additions:
    slot, event_time_ms, weight, reports, label, predicted = rows
    lengths = np.array([len(vector) for vector in vectors])
    logits = np.full((len(vectors), int(lengths.max())), -np.inf)
    flat = np.maximum(np.fromiter(chain.from_iterable(vectors), np.float64, int(lengths.sum())), LOG_FLOOR)
    logits[np.arange(logits.shape[1]) < lengths[:, None]] = np.log(flat)
    nll, confidence, place = _at_temperatures(logits, vectors, label, predicted)
    each = np.repeat(weight, TEMPERATURES)
    reporting = each * np.repeat(reports, TEMPERATURES)
    first = np.tile(np.arange(TEMPERATURES) == 0, len(vectors))
    bins = {
        "labelled": reporting,
        "correct": reporting * np.repeat(label == predicted, TEMPERATURES),
        "confidence": reporting * confidence.ravel(),
        "nll": each * nll.ravel(),
    }
    bin_of = np.tile(np.arange(TEMPERATURES) * TEMPERED_BINS, len(vectors)) + place.ravel()
    times, slots = np.repeat(event_time_ms, TEMPERATURES), np.repeat(slot, TEMPERATURES)
    return Additions.of(TEMPERATURE, times, slots, bin_of, {"labelled": each * first}, bins)


def _at_temperatures(logits: F64, vectors: list[list[float]], label: I64, predicted: I64) -> tuple[I64, I64, I64]:
    """NLL of the label, confidence of the predicted class (both scaled) and its bin, each of shape (n, 61)."""
    edges = equal_edges(TEMPERED_BINS)
    event = np.arange(len(vectors))
    nll = np.empty((len(vectors), TEMPERATURES), dtype=np.int64)
    confidence, place = np.empty_like(nll), np.empty_like(nll)
    shifted = logits - logits.max(axis=1, keepdims=True)
    for number, temperature in enumerate(temperatures().tolist()):
        powers = shifted / temperature
        weights = np.exp(powers)
        total = weights.sum(axis=1)
        loss = (np.log(total) - powers[event, label]) * float(1 << LOG_BITS)
        share = weights[event, predicted] / total
        scaled = share * float(1 << PROBABILITY_BITS)
        nll[:, number], confidence[:, number] = np.rint(loss), np.rint(scaled)
        place[:, number] = np.minimum(bin_index(edges, np.minimum(share, 1.0)), TEMPERED_BINS - 1)
        nearest = np.abs(edges[None, 1:-1] - share[:, None]).min(axis=1)  # no share is below the first edge or above the last
        doubtful = _near_half(loss, _NLL_MARGIN) | _near_half(scaled, _CONFIDENCE_MARGIN) | (nearest < _EDGE_MARGIN)
        for one in np.flatnonzero(doubtful).tolist():
            exact = _decided(vectors[one], temperature, int(label[one]), int(predicted[one]))
            nll[one, number], confidence[one, number], place[one, number] = exact
    return nll, confidence, place


def _near_half(scaled: F64, margin: float) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    return np.asarray(np.abs(scaled - np.floor(scaled) - 0.5) <= margin)


def _decided(vector: list[float], temperature: float, label: int, predicted: int) -> tuple[int, int, int]:
    """What decimals say; remembered, for vectors of equal shares lie on edges at every temperature, and such vectors repeat."""
    if max(vector) == min(vector):
        temperature, label, predicted = 1.0, 0, 0  # nothing depends on them
    exact = _exact if len(vector) <= _REMEMBERED_CLASSES else _exact.__wrapped__
    return exact(tuple(vector), temperature, label, predicted)


@lru_cache(maxsize=4096)
def _exact(vector: tuple[float, ...], temperature: float, label: int, predicted: int) -> tuple[int, int, int]:
    with localcontext(_PRECISION):
        logs = [Decimal(max(probability, LOG_FLOOR)).ln() / Decimal(temperature) for probability in vector]
        powers = [one.exp() for one in logs]
        total = sum(powers, Decimal(0))
        loss, share = total.ln() - logs[label], powers[predicted] / total
        # A share that is an edge but for the last of the fifty digits is on it, as below for half-integers.
        place = max(number for number, edge in enumerate(equal_edges(TEMPERED_BINS)[:-1].tolist()) if Decimal(edge) - share <= _TIE)
        return _rounded(loss * (1 << LOG_BITS)), _rounded(share * (1 << PROBABILITY_BITS)), place


def _rounded(value: Decimal) -> int:
    # Twenty places less than the arithmetic has: a value that is a half-integer but for its last digits is one.
    return int(value.quantize(Decimal("1e-20")).to_integral_value())
