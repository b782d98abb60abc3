"""How soon each kind of over-confidence is found, against the count-and-sum column of FORMULAS section 9."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.stats import binom

from monitor.evidence.bets import Side, bets, log_threshold
from monitor.evidence.path import first_crossing, log_e_path
from monitor.statistics.fixed_point import F64
from tests.simulation.streams import PANE_EVENTS, SEEDS, batches, draw, label_late, mature_panes

ALPHA = 0.05
SLACK = 1.3


@dataclass(frozen=True, slots=True)
class Regime:
    """A row of the table: its median number of events until the alarm."""

    confidences: str
    truth: str
    median_events: float

    @property
    def latest(self) -> float:
        """What the median may be here."""
        return SLACK * self.median_events + PANE_EVENTS

    @property
    def panes(self) -> int:
        """Panes after which the outcome is clear."""
        return math.ceil(self.latest / PANE_EVENTS)


REGIMES = [
    Regime("uniform", "1-sqrt(1-c)", 50),
    Regime("uniform", "c^2", 100),
    Regime("uniform", "0.97c", 1075),
    Regime("uniform", "T=1.2", 1050),
    Regime("tail", "c^2", 250),
    Regime("tail", "0.97c", 150),
    Regime("tail", "c-0.02 above 0.98", 225),
]

with_seeds = pytest.mark.parametrize("seed", SEEDS)


def delays(seed: int, confidences: str, truth: str, shape: tuple[int, int], late: bool = False) -> F64:
    """Events until the alarm at a pane's close, +inf where there is none; shape (n_streams,)."""
    found = []
    for rng, n_streams in batches(seed, shape[0]):
        streams = draw(rng, confidences, truth, (n_streams, shape[1]))
        path = log_e_path(bets(Side.OVER), mature_panes(label_late(rng, streams) if late else streams))
        place = first_crossing(path, log_threshold(ALPHA))
        found.append(np.where(place < 0, np.inf, (place + 1.0) * PANE_EVENTS))
    return np.concatenate(found)


@with_seeds
@pytest.mark.parametrize("regime", REGIMES, ids=lambda regime: f"{regime.confidences}, {regime.truth}")
def test_a_regime_is_found_in_time(seed: int, regime: Regime) -> None:
    shape = (200, regime.panes * PANE_EVENTS)
    assert np.median(delays(seed, regime.confidences, regime.truth, shape)) <= regime.latest


@with_seeds
def test_a_fault_in_one_of_25_events_is_found_within_10000_as_often_as_the_table_says(seed: int) -> None:
    found = np.isfinite(delays(seed, "uniform", "c-0.02 above 0.98", (100, 10_000))).sum()
    assert found >= binom.ppf(0.001, 100, 0.4)


@with_seeds
@pytest.mark.parametrize("truth", ["1-sqrt(1-c)", "c^2"])
def test_gross_overconfidence_is_found_although_missing_labels_count_as_correct(seed: int, truth: str) -> None:
    assert np.median(delays(seed, "uniform", truth, (200, 1000), late=True)) <= 500


@with_seeds
def test_a_median_delay_is_not_short_because_everything_is_accused(seed: int) -> None:
    assert np.isinf(np.median(delays(seed, "uniform", "perfect", (200, 1000))))
