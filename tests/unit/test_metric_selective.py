"""Cost and risk bound of an operating point."""

from __future__ import annotations

import numpy as np
import pytest

from monitor.metrics.interval import clopper_pearson_upper
from monitor.metrics.selective import cost_per_event, selective_risk_cp_upper
from monitor.metrics.settings import Settings
from tests.doubles.raw_sums import RawSums


def decisions(decided: list[int], accepted: list[int], errors: list[int], settings: Settings | None = None) -> RawSums:
    names = ("labelled_decided", "labelled_accepted", "labelled_accepted_errors")
    counts = {name: np.array(values, dtype=np.int64) for name, values in zip(names, (decided, accepted, errors), strict=True)}
    return RawSums([], [0.0, 1.0], counts, settings)


def test_cost_by_hand() -> None:
    # 2 errors at 10; 4 hand-offs at 1 each, of which people get 2 % wrong at 10: (20 + 4.8)/20.
    costs = Settings(error_cost=10.0, handoff_cost=1.0, human_error=0.02)
    assert cost_per_event(decisions([20], [16], [2], costs))[0] == pytest.approx(1.24)
    assert cost_per_event(decisions([5, 5, 0], [5, 0, 0], [5, 0, 0], costs)) == pytest.approx([10.0, 1.2, np.nan], nan_ok=True)


def test_without_configured_costs_an_error_costs_1() -> None:
    assert cost_per_event(decisions([20], [16], [2])).tolist() == [0.1]


@pytest.mark.parametrize("seed", range(3))
def test_cost_is_the_mean_over_events(seed: int) -> None:
    rng = np.random.default_rng(seed)
    error, handoff, human_error = rng.random(3) * [100, 5, 1]
    accepted, correct = rng.random((2, 500)) < 0.7
    each = np.where(accepted, error * ~correct, handoff + error * human_error)
    sums = decisions([500], [accepted.sum()], [(accepted & ~correct).sum()], Settings(error, handoff, human_error))
    assert cost_per_event(sums)[0] == pytest.approx(each.mean())


def test_risk_bound() -> None:
    sums = decisions([9, 9, 9], [3, 4, 0], [1, 4, 0])
    np.testing.assert_allclose(selective_risk_cp_upper(sums), clopper_pearson_upper(np.array([1, 4, 0]), np.array([3, 4, 0])))
    # 3x^2 - 2x^3 is the chance of at least two errors in three: 0.95 at the bound.
    x = float(selective_risk_cp_upper(sums)[0])
    assert 3 * x**2 - 2 * x**3 == pytest.approx(0.95)
