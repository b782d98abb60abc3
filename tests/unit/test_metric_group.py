"""Groups against raw loops, scipy and statsmodels; what is undefined, and what takes no part."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests

from monitor.metrics import group
from monitor.metrics.exact import binomial_p
from monitor.metrics.group import GroupCalibration, GroupDecisions
from monitor.statistics.fixed_point import I64

ONE = 1 << 32
SEEDS = range(3)
COUNT = st.integers(0, 60).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n)))
DECISION_METRICS = (group.groups_used, group.rejection_rate_spread, group.group_acceptance_ratio, group.rejection_disparity_p)
CALIBRATION_METRICS = (
    group.multicalibration_groups,
    group.multicalibration_cells,
    group.group_overconfidence_max,
    group.group_ece_max,
    group.multicalibration_max_gap,
    group.multicalibration_max_weighted_gap,
    group.multicalibration_p_holm,
)


def decisions(*rows: list[tuple[int, int]], min_count: int = 30) -> GroupDecisions:
    """From (decided, accepted) of each value."""
    counts = np.array(rows, dtype=np.int64)
    return GroupDecisions(counts[..., 0], counts[..., 1], min_count)


def random_decisions(seed: int) -> tuple[I64, I64]:
    rng = np.random.default_rng(seed)
    decided = rng.integers(0, rng.choice([20, 100, 3000], (6, 6)))
    return decided, rng.binomial(decided, rng.choice([0.0, 0.6, 0.7, 1.0], (6, 6)))


@pytest.mark.parametrize("seed", SEEDS)
def test_decisions_against_loops(seed: int) -> None:
    decided, accepted = random_decisions(seed)
    groups = GroupDecisions(decided, accepted, 15)
    found = [function(groups) for function in DECISION_METRICS]
    p_holm = group.rejection_rate_p_holm(groups)
    for row, pairs in enumerate(zip(decided.tolist(), accepted.tolist(), strict=True)):
        used = [(place, n, n - a) for place, (n, a) in enumerate(zip(*pairs, strict=True)) if n >= 15]
        assert found[0][row] == len(used)
        if len(used) < 2:
            assert np.isnan([values[row] for values in found[1:]]).all()
            assert np.isnan(p_holm[row]).all()
            continue
        rates = [rejected / n for _, n, rejected in used]
        assert found[1][row] == pytest.approx(max(rates) - min(rates), abs=1e-15)
        most = 1 - min(rates)
        assert found[2][row] == pytest.approx((1 - max(rates)) / most if most else math.nan, nan_ok=True)
        n, rejected = (sum(one[part] for one in used) for part in (1, 2))
        raw = [stats.fisher_exact(np.array([[r, k - r], [rejected - r, (n - k) - (rejected - r)]]))[1] for _, k, r in used]
        want = multipletests(raw, method="holm")[1]
        assert p_holm[row][[place for place, _, _ in used]] == pytest.approx(want, rel=1e-8)
        assert np.isnan(p_holm[row]).sum() == 6 - len(used)
        assert found[3][row] == pytest.approx(want.min(), rel=1e-8)


def test_a_small_group_enters_nothing() -> None:
    groups = decisions([(100, 60), (100, 90), (10, 1)], [(100, 60), (100, 90), (0, 0)])
    for function in DECISION_METRICS:
        first, second = function(groups).tolist()
        assert first == second, function
    assert np.isnan(group.rejection_rate_p_holm(groups)[:, 2]).all()
    assert group.rejection_rate_spread(groups)[0] == pytest.approx(0.3)
    assert group.group_acceptance_ratio(groups)[0] == pytest.approx(2 / 3)


def test_fewer_than_two_groups_cannot_differ() -> None:
    groups = decisions([(100, 60), (29, 0)], [(0, 0), (0, 0)], [(30, 0), (30, 0)])
    assert group.groups_used(groups).tolist() == [1, 0, 2]
    np.testing.assert_array_equal(group.rejection_rate_spread(groups), [np.nan, np.nan, 0.0])
    np.testing.assert_array_equal(group.group_acceptance_ratio(groups), [np.nan, np.nan, np.nan])
    np.testing.assert_array_equal(group.rejection_disparity_p(groups), [np.nan, np.nan, 1.0])


@given(counts=st.lists(COUNT, min_size=1, max_size=6), order=st.randoms(use_true_random=False))
def test_neither_order_nor_filling_matters(counts: list[tuple[int, int]], order: object) -> None:
    shuffled = list(counts)
    order.shuffle(shuffled)  # type: ignore[attr-defined]
    for function in DECISION_METRICS:
        np.testing.assert_allclose(
            function(decisions(counts, min_count=5)), function(decisions([*shuffled, (0, 0), (0, 0)], min_count=5)), rtol=1e-12
        )


def random_cells(seed: int) -> GroupCalibration:
    rng = np.random.default_rng(seed)
    labelled = rng.integers(0, rng.choice([10, 60, 400], (8, 4, 3)))
    claim = rng.random((8, 4, 3))
    correct = rng.binomial(labelled, np.clip(claim + rng.normal(0, 0.05, claim.shape), 0, 1))
    confidence = np.rint(labelled * claim * ONE).astype(np.int64)
    return GroupCalibration(labelled, correct, confidence, labelled.sum(axis=(1, 2)) + rng.integers(0, 50, 8), 25)


@pytest.mark.parametrize("seed", SEEDS)
def test_calibration_against_loops(seed: int) -> None:
    groups = random_cells(seed)
    found = [function(groups) for function in CALIBRATION_METRICS]
    for row in range(8):
        gaps = groups.confidence[row] / ONE - groups.correct[row]
        counts = groups.labelled[row]
        values = [place for place in range(4) if counts[place].sum() >= 25]
        cells = [(value, place) for value in values for place in range(3) if counts[value, place] >= 25]
        raw = [float(binomial_p(groups.labelled[row, v], groups.correct[row, v], groups.confidence[row, v])[b]) for v, b in cells]
        want = [
            len(values),
            len(cells),
            max(abs(gaps[value].sum()) / counts[value].sum() for value in values),
            max(np.abs(gaps[value]).sum() / counts[value].sum() for value in values),
            max(abs(gaps[cell]) / counts[cell] for cell in cells),
            max(abs(gaps[cell]) for cell in cells) / groups.version_used[row],
            multipletests(raw, method="holm")[1].min(),
        ]
        assert [values[row] for values in found] == pytest.approx(want, rel=1e-12, abs=1e-12)


def test_always_one_half() -> None:
    # Right in 20 % and 80 %: calibrated together, 0.3 off in each; p = 2 P(X <= 2 of 10), two cells.
    ten, five = np.array([[[10], [10]]]), np.array([[[5 * ONE], [5 * ONE]]])
    groups = GroupCalibration(ten, np.array([[[2], [8]]]), five, np.array([20]), 10)
    assert [float(function(groups)[0]) for function in CALIBRATION_METRICS] == pytest.approx([2, 2, 0.3, 0.3, 0.3, 0.15, 4 * 56 / 1024])


def test_a_group_may_have_enough_where_none_of_its_cells_has() -> None:
    groups = GroupCalibration(np.array([[[20, 20]]]), np.array([[[20, 0]]]), np.array([[[10 * ONE, 10 * ONE]]]), np.array([40]), 30)
    assert [function(groups).tolist() for function in CALIBRATION_METRICS[:4]] == [[1], [0], [0.0], [0.5]]
    assert np.isnan([function(groups) for function in CALIBRATION_METRICS[4:]]).all()


def test_no_rows_give_no_values() -> None:
    nothing = np.zeros((0, 4, 3), dtype=np.int64)
    groups = GroupCalibration(nothing, nothing, nothing, np.zeros(0, dtype=np.int64), 30)
    assert [function(groups).shape for function in CALIBRATION_METRICS] == [(0,)] * 7
    undecided = GroupDecisions(nothing[:, :, 0], nothing[:, :, 0], 30)
    assert [function(undecided).shape for function in DECISION_METRICS] == [(0,)] * 4


def test_without_an_event_or_a_value_nothing_is_defined() -> None:
    for values in (0, 2):
        nothing = np.zeros((1, values, 3), dtype=np.int64)
        groups = GroupCalibration(nothing, nothing, nothing, np.array([0]), 1)
        assert [function(groups).tolist() for function in CALIBRATION_METRICS[:2]] == [[0], [0]]
        assert np.isnan([function(groups) for function in CALIBRATION_METRICS[2:]]).all()
        undecided = GroupDecisions(nothing[:, :, 0], nothing[:, :, 0], 1)
        assert group.groups_used(undecided).tolist() == [0]
        assert np.isnan([function(undecided) for function in DECISION_METRICS[1:]]).all()
