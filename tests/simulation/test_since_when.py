"""The detector that tells since when, and the bound that tells how bad at least."""

from __future__ import annotations

import numpy as np
import pytest

from monitor.evidence.bets import Side, bets
from monitor.evidence.detector import LOG_RUN_LENGTH, Detector, estimated_start, fold
from monitor.evidence.lower_bound import fold_maxima, lower_bound
from monitor.evidence.path import NEVER, first_crossing
from tests.simulation.streams import PANE_EVENTS, PERFECT, SEEDS, Streams, batches, draw, mature_panes, most_by_chance

ALPHA = 0.05
GOOD_PANES = 400
BAD_PANES = 20

with_seeds = pytest.mark.parametrize("seed", SEEDS)


def joined(before: Streams, after: Streams) -> Streams:
    return Streams(
        np.hstack((before.confidence, after.confidence)),
        np.hstack((before.correct, after.correct)),
        np.hstack((before.labelled, after.labelled)),
    )


@with_seeds
@pytest.mark.parametrize("confidences", ["uniform", "tail"])
def test_alarms_of_a_perfect_model_are_as_rare_as_the_run_length_promises(seed: int, confidences: str) -> None:
    """R_k has mean k at most and R is a submartingale at most: within k panes, R reaches A with probability k/A at most."""
    panes, run_length, count = 40, 400, 0
    for rng, n_streams in batches(seed, 400):
        streams = draw(rng, confidences, PERFECT, (n_streams, panes * PANE_EVENTS))
        side = bets(Side.OVER)
        _, log_r = fold(side, Detector.empty(side, (n_streams,)), mature_panes(streams), np.arange(panes))
        count += int((first_crossing(log_r, np.log(run_length)) != NEVER).sum())
    assert count <= most_by_chance(400, panes / run_length)


@with_seeds
@pytest.mark.parametrize(("truth", "median_panes"), [("1-sqrt(1-c)", 2), ("c^2", 3)])
def test_a_change_after_400_good_panes_is_found_at_once_and_dated(seed: int, truth: str, median_panes: int) -> None:
    rng, n_streams = np.random.default_rng(seed), 50
    good = draw(rng, "uniform", PERFECT, (n_streams, GOOD_PANES * PANE_EVENTS))
    bad = draw(rng, "uniform", truth, (n_streams, BAD_PANES * PANE_EVENTS))
    side = bets(Side.OVER)
    state, log_r = fold(side, Detector.empty(side, (n_streams,)), mature_panes(joined(good, bad)), np.arange(GOOD_PANES + BAD_PANES))
    late = log_r[:, GOOD_PANES:]
    quiet = (log_r[:, :GOOD_PANES] < LOG_RUN_LENGTH).all(axis=1)
    assert quiet.mean() > 0.5, "the median run without a change is about 1100 panes"
    place = first_crossing(late[quiet], LOG_RUN_LENGTH)
    assert np.median(np.where(place == NEVER, np.inf, place + 1.0)) <= 1.3 * median_panes + 1
    assert np.median(np.abs(estimated_start(side, state) - GOOD_PANES)) <= 1


@with_seeds
@pytest.mark.parametrize(("truth", "worst", "at_least"), [("1-sqrt(1-c)", 0.25, 0.15), ("c^2", 0.25, 0.075), (PERFECT, 0.0, 0.0)])
def test_the_bound_of_the_worst_overconfidence_stays_below_it_and_comes_near(seed: int, truth: str, worst: float, at_least: float) -> None:
    n_streams = 60
    streams = draw(np.random.default_rng(seed), "uniform", truth, (n_streams, 2000))
    bound = lower_bound(fold_maxima(mature_panes(streams)), ALPHA)
    assert (bound > worst).sum() <= most_by_chance(n_streams, ALPHA)
    assert np.median(bound) >= at_least
