"""The list of what is not built yet says no more and no less than the truth."""

from __future__ import annotations

from fnmatch import filter as matching

import pytest

from tests.golden.case import load_case
from tests.golden.comparison import Tolerance, compare, family
from tests.golden.conftest import found
from tests.golden.stream import EXPECT, WINDOWS, load_expectation, load_moments


def test_nothing_that_calmon_has_is_listed(default_run: bool, not_yet: list[str], known: frozenset[str]) -> None:
    if not default_run:
        pytest.skip("the list is about the cases and streams that are checked in")
    assert {pattern: matching(known, pattern) for pattern in not_yet if matching(known, pattern)} == {}


def test_everything_listed_is_asked_for(default_run: bool, not_yet: list[str], pytestconfig: pytest.Config) -> None:
    if not default_run:
        pytest.skip("the list is about the cases and streams that are checked in")
    asked: set[str] = set()
    for path in found(pytestconfig, "case"):
        case = load_case(path)
        asked |= {family(key, case.models) for key in case.want}
    for path in found(pytestconfig, EXPECT):
        expectation = load_expectation(path)
        asked |= {family(key, expectation.models) for key in expectation.want}
    for path in found(pytestconfig, WINDOWS):
        asked |= {family(key, check.models.keys()) for check in load_moments(path).checks for key in check.want}
    assert [pattern for pattern in not_yet if not matching(asked, pattern)] == []


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
