"""Labels of a block that share a shock: the count-and-sum test is not made for them, one bet per block is."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr

from monitor.evidence.bets import Side, bets, log_threshold
from monitor.evidence.blocks import log_e_blocks_path
from monitor.evidence.path import NEVER, first_crossing, log_e_path
from monitor.statistics.fixed_point import I64, PROBABILITY_BITS, fixed
from tests.simulation.streams import SEEDS, Streams, batches, draw, mature_panes, most_by_chance

ALPHA = 0.05
STREAMS = 400
BLOCK = 100
BLOCKS = 40
LATENT_CORRELATION = 0.1

with_seeds = pytest.mark.parametrize("seed", SEEDS)


def draw_shocked(rng: np.random.Generator, n_streams: int) -> Streams:
    """A perfect model whose outcomes in a block lean to one side together."""
    claims = draw(rng, "uniform", "perfect", (n_streams, BLOCKS * BLOCK))
    shape = (n_streams, BLOCKS, BLOCK)
    shock = rng.normal(size=(n_streams, BLOCKS, 1))
    latent = np.sqrt(LATENT_CORRELATION) * shock + np.sqrt(1 - LATENT_CORRELATION) * rng.normal(size=shape)
    return Streams(claims.confidence, ndtr(latent).reshape(claims.correct.shape) < claims.confidence, claims.labelled)


def block_crossing(streams: Streams) -> I64:
    """Place of the block where the test with one bet per block rejects."""
    shape = (len(streams.confidence), -1, BLOCK)
    confidence = fixed(streams.confidence, PROBABILITY_BITS).reshape(shape).sum(axis=-1)
    errors = (~streams.correct & streams.labelled).reshape(shape).sum(axis=-1)
    path, _ = log_e_blocks_path(np.full(errors.shape, BLOCK), errors, confidence)
    return first_crossing(path, log_threshold(ALPHA))


@with_seeds
def test_a_shared_shock_breaks_single_bets_and_not_block_bets(seed: int) -> None:
    single = blocks = 0
    for rng, n_streams in batches(seed, STREAMS):
        streams = draw_shocked(rng, n_streams)
        path = log_e_path(bets(Side.OVER), mature_panes(streams))
        single += int((first_crossing(path, log_threshold(ALPHA)) != NEVER).sum())
        blocks += int((block_crossing(streams) != NEVER).sum())
    assert blocks <= most_by_chance(STREAMS, ALPHA)
    assert single > 2 * most_by_chance(STREAMS, ALPHA)


@with_seeds
@pytest.mark.parametrize(("truth", "median_blocks"), [("1-sqrt(1-c)", 9), ("c^2", 11)])
def test_block_bets_find_gross_overconfidence(seed: int, truth: str, median_blocks: int) -> None:
    rng = np.random.default_rng(seed)
    place = block_crossing(draw(rng, "uniform", truth, (200, 40 * BLOCK)))
    assert np.median(np.where(place == NEVER, np.inf, place + 1.0)) <= 1.3 * median_blocks + 1
