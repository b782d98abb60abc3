"""Many series: the mean of e-values, and e-BH against its definition."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.evidence.many import e_bh, log_mean_e

LOG_E = st.lists(st.one_of(st.floats(-20, 20), st.sampled_from([0.0, 3.0, 4.0, np.inf, -np.inf])), max_size=12)


def reported_by_definition(log_e: list[float], alpha: float) -> list[int]:
    """The largest k with k hypotheses of E >= n/(alpha k), and those hypotheses."""
    for k in range(len(log_e), 0, -1):
        chosen = [place for place, value in enumerate(log_e) if value >= math.log(len(log_e)) - math.log(alpha) - math.log(k)]
        if len(chosen) >= k:
            return chosen
    return []


@given(LOG_E, st.sampled_from([0.01, 0.05, 0.2]))
def test_e_bh_is_its_definition(log_e: list[float], alpha: float) -> None:
    assert np.flatnonzero(e_bh(np.array(log_e), alpha)).tolist() == reported_by_definition(log_e, alpha)


def test_one_hypothesis_is_the_plain_test() -> None:
    assert e_bh(np.array([math.log(20.1)]), 0.05).tolist() == [True]
    assert e_bh(np.array([math.log(19.9)]), 0.05).tolist() == [False]


def test_the_mean_of_e_values() -> None:
    assert float(log_mean_e(np.log([1.0, 3.0, 8.0]))) == pytest.approx(math.log(4))
    rows = log_mean_e(np.array([[9000.0, 0.0], [-np.inf, 0.0], [np.inf, 0.0]]))
    assert rows.tolist() == pytest.approx([9000 - math.log(2), -math.log(2), math.inf])
    assert log_mean_e(np.zeros((3, 0))).tolist() == [0, 0, 0]
