"""The runner itself: it has something to compare, and sees what is missing or wrong."""

from __future__ import annotations

import pytest

from tests.golden.comparison import Tolerance, compare
from tests.golden.conftest import found
from tests.golden.stream import EXPECT, WINDOWS, load_moments


def test_there_is_something_to_compare_with(default_run: bool, pytestconfig: pytest.Config) -> None:
    if not default_run:
        pytest.skip("the counts are those of the cases and streams that are checked in")
    assert len(found(pytestconfig, "case")) >= 31
    assert len(found(pytestconfig, EXPECT)) >= 2
    assert sum(len(load_moments(path).checks) for path in found(pytestconfig, WINDOWS)) >= 20


def test_a_key_without_a_metric_is_missing_even_where_nothing_is_wanted() -> None:
    outcome = compare({"m@1.new": None, "m@1.old": None, "m@1.old[a]": 1.0}, {"m@1.old": None}, ["m@1"], {"old"}, Tolerance(0.1))
    assert outcome.missing == {"m@1.new": "new"}
    assert outcome.wrong == {"m@1.old[a]": (None, 1.0)}
    assert str(outcome) == "covered 2 of 3 keys; no metric for: new"


def test_the_first_tolerance_that_fits_holds() -> None:
    tolerance = Tolerance(1e-9, (("csr", 1e-3), ("csr_z", 1.0)))
    assert tolerance.allows("m@1.csr_z", 1000.9, 1000.0)
    assert not tolerance.allows("m@1.csr_z", 1001.1, 1000.0)
    assert not tolerance.allows("m@1.ece", 0.1001, 0.1)
    assert not tolerance.allows("m@1.ece", None, 0.0)
    assert not tolerance.allows("account.duplicates", 10_000_000.001, 10_000_000)
