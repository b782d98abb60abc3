"""Streams of claims and outcomes with a known truth, many at once, summed into panes as the product sums them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from monitor.evidence.bets import Side
from monitor.evidence.grid_sums import BINS, EDGES, GridSums
from monitor.evidence.missing import Missing, matured
from monitor.statistics.fixed_point import F64, I64, PROBABILITY_BITS, fixed
from monitor.statistics.grid import bin_index

Mask = NDArray[np.bool_]

SEEDS = (20260601, 20260602, 20260603)

BATCH = 100
"""Streams that are in memory together."""

PANE_EVENTS = 50

HORIZON_DAYS = 6.0

CORRECT_LABEL_DAYS = 1.65
"""Median delay of the label of a correct prediction."""

ERROR_LABEL_DAYS = 0.37
"""Median delay of the label of an error: those are noticed sooner."""

NEVER_LABELLED = 0.2
"""Share of the correct predictions that never get a label."""

CONFIDENCES: dict[str, Callable[[np.random.Generator, tuple[int, int]], F64]] = {
    "uniform": lambda rng, shape: rng.uniform(0.5, 1.0, shape),
    "whole range": lambda rng, shape: rng.uniform(0.0, 1.0, shape),
    "tail": lambda rng, shape: 1 - 10 ** rng.uniform(-4.0, 0.0, shape),
    "bimodal": lambda rng, shape: rng.beta(0.5, 0.5, shape),
    "confident": lambda rng, shape: rng.beta(20.0, 1.0, shape),
    "three values": lambda rng, shape: rng.choice([0.6, 0.9, 0.999], shape),
}

PERFECT = "perfect"

TRUTHS: dict[str, Callable[[F64], F64]] = {
    PERFECT: lambda c: c,
    "1-sqrt(1-c)": lambda c: 1 - np.sqrt(1 - c),
    "c^2": lambda c: c * c,
    "0.97c": lambda c: 0.97 * c,
    "T=1.2": lambda c: 1 / (1 + ((1 - c) / c) ** (1 / 1.2)),
    "c-0.02 above 0.98": lambda c: np.where(c > 0.98, c - 0.02, c),
}


@dataclass(frozen=True, slots=True, eq=False)
class Streams:
    """Predictions of many streams in the order of their time, shape (n_streams, n_events).

    Attributes:
        confidence: What the model claims.
        correct: What came out.
        labelled: Whether the label is there when the pane is mature.
    """

    confidence: F64
    correct: Mask
    labelled: Mask


def batches(seed: int, n_streams: int) -> Iterator[tuple[np.random.Generator, int]]:
    """A generator and a number of streams for each batch."""
    rng = np.random.default_rng(seed)
    for first in range(0, n_streams, BATCH):
        yield rng, min(BATCH, n_streams - first)


def most_by_chance(n_streams: int, share: float) -> int:
    """99.9 % quantile of how many streams cross where each does with probability `share`."""
    return int(binom.ppf(0.999, n_streams, share))


def draw(rng: np.random.Generator, confidences: str, truth: str, shape: tuple[int, int]) -> Streams:
    """Streams whose labels are all there in time."""
    confidence = CONFIDENCES[confidences](rng, shape)
    correct = rng.uniform(size=shape) < TRUTHS[truth](confidence)
    return Streams(confidence, correct, np.ones(shape, dtype=np.bool_))


def label_late(rng: np.random.Generator, streams: Streams) -> Streams:
    """Errors are labelled sooner, some correct predictions never; what comes after the horizon is not there at maturity."""
    shape = streams.correct.shape
    median = np.where(streams.correct, CORRECT_LABEL_DAYS, ERROR_LABEL_DAYS)
    delay = rng.exponential(median / np.log(2.0))
    never = streams.correct & (rng.uniform(size=shape) < NEVER_LABELLED)
    return Streams(streams.confidence, streams.correct, (delay <= HORIZON_DAYS) & ~never)


def mature_panes(streams: Streams, missing: Missing = Missing.COUNT, side: Side = Side.OVER) -> GridSums:
    """Panes of 50 predictions as a test takes them, shape (n_streams, n_panes, 306)."""
    n_streams, n_events = streams.confidence.shape
    panes = n_events // PANE_EVENTS
    place = np.arange(n_streams)[:, None] * panes + np.arange(n_events) // PANE_EVENTS
    cell = place * BINS + bin_index(EDGES, streams.confidence)
    scaled = fixed(streams.confidence, PROBABILITY_BITS)
    shape = (n_streams, panes, BINS)

    def summed(chosen: Mask, values: I64 | None = None) -> I64:
        # At most 50 x 2^32 in a cell: far below 2^53, so float weights are exact.
        weights = None if values is None else values[chosen]
        return np.bincount(cell[chosen], weights, minlength=n_streams * panes * BINS).astype(np.int64).reshape(shape)

    labelled = GridSums.of(summed(streams.labelled), summed(streams.labelled & streams.correct), summed(streams.labelled, scaled))
    everything = np.ones_like(streams.labelled)
    return matured(side, missing, labelled, summed(everything), summed(everything, scaled))
