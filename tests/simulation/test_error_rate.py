"""A perfect model, watched at every pane: how often it is accused, by the product's rules and by rules that are known to fail."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from monitor.evidence.bets import Side, bets, log_threshold
from monitor.evidence.missing import Missing
from monitor.evidence.path import first_crossing, log_e_path
from tests.simulation.streams import PANE_EVENTS, PERFECT, SEEDS, Mask, Streams, batches, draw, label_late, mature_panes, most_by_chance

ALPHA = 0.05
STREAMS = 400
EVENTS = 2000
DISTRIBUTIONS = ("uniform", "whole range", "tail", "confident", "three values")

with_seeds = pytest.mark.parametrize("seed", SEEDS)
with_distributions = pytest.mark.parametrize("confidences", DISTRIBUTIONS)


def evidence_crosses(streams: Streams, side: Side = Side.OVER, missing: Missing = Missing.COUNT) -> Mask:
    path = log_e_path(bets(side), mature_panes(streams, missing, side))
    return first_crossing(path, log_threshold(ALPHA)) >= 0


def z_test_crosses(streams: Streams) -> Mask:
    """The one-sided z-test at 5 %, repeated at every pane's close: valid once, not many times."""
    surplus = np.cumsum(streams.confidence - streams.correct, axis=1)
    variance = np.cumsum(streams.confidence * (1 - streams.confidence), axis=1)
    closes = slice(PANE_EVENTS - 1, None, PANE_EVENTS)
    z = surplus[:, closes] / np.sqrt(variance[:, closes])
    return np.asarray((z > 1.6448536269514722).any(axis=1))


def accused(seed: int, confidences: str, late: bool, crosses: Callable[[Streams], Mask]) -> int:
    """How many of 400 perfect streams cross."""
    count = 0
    for rng, n_streams in batches(seed, STREAMS):
        streams = draw(rng, confidences, PERFECT, (n_streams, EVENTS))
        count += int(crosses(label_late(rng, streams) if late else streams).sum())
    return count


@with_seeds
@with_distributions
@pytest.mark.parametrize("late", [False, True], ids=["labels at once", "errors sooner, correct missing"])
def test_a_perfect_model_is_accused_no_more_often_than_alpha(seed: int, confidences: str, late: bool) -> None:
    assert accused(seed, confidences, late, evidence_crosses) <= most_by_chance(STREAMS, ALPHA)


@with_seeds
@pytest.mark.parametrize("late", [False, True], ids=["labels at once", "errors sooner, correct missing"])
def test_a_perfect_model_is_not_called_underconfident_more_often_than_alpha(seed: int, late: bool) -> None:
    assert accused(seed, "uniform", late, lambda streams: evidence_crosses(streams, Side.UNDER)) <= most_by_chance(STREAMS, ALPHA)


@with_seeds
def test_the_harness_finds_a_test_that_does_not_survive_peeking(seed: int) -> None:
    assert accused(seed, "uniform", False, z_test_crosses) > 2 * most_by_chance(STREAMS, ALPHA)


@with_seeds
def test_the_harness_finds_that_leaving_missing_labels_out_breaks_the_test(seed: int) -> None:
    assert accused(seed, "uniform", True, lambda streams: evidence_crosses(streams, missing=Missing.IGNORE)) > 0.9 * STREAMS
