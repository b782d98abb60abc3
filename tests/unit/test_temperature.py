"""Temperature: worked examples, scipy's minimiser on random data, and a split that is compared exactly."""

from __future__ import annotations

import hashlib
import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from monitor.metrics.temperature import (
    best_temperature,
    fit_temperature,
    nll_at,
    select_temperature,
    softmax_t,
    split_of,
    tempered_nll,
)
from monitor.statistics.fixed_point import F64, I64
from monitor.statistics.tempering import temperatures

CASES = Path(__file__).parents[1] / "golden" / "cases"


def outcomes(seed: int) -> tuple[F64, I64, float]:
    """Probabilities of 2 to 10 classes, labels drawn after scaling by a temperature between 0.4 and 2.5, that temperature."""
    rng = np.random.default_rng(seed)
    classes, size, true = int(rng.integers(2, 11)), int(rng.integers(500, 3000)), float(np.exp(rng.uniform(-0.9, 0.9)))
    probabilities = softmax_t(rng.normal(0, float(rng.uniform(1, 3)), (size, classes)), 1.0)
    cumulative = np.cumsum(softmax_t(np.log(probabilities), true), axis=1)
    labels = np.minimum((cumulative < rng.random((size, 1))).sum(axis=1), classes - 1)
    return probabilities, labels, true


def minimiser(probabilities: F64, labels: I64) -> float:
    """Find ln T of the smallest NLL by scipy's bounded search."""
    found = minimize_scalar(
        lambda log_t: float(tempered_nll(probabilities, labels, np.array([math.exp(log_t)])).sum()),
        bounds=(-math.log(8), math.log(8)),
        method="bounded",
        options={"xatol": 1e-9},
    )
    return float(found.x)


def test_example_4_of_the_source() -> None:
    logits = np.array([[3.0, 1.0, 0.0]])
    for temperature, first, nll in ((1.0, 0.8437947344813395, 0.16984601955628564), (2.0, 0.6285317192117624, 0.4643687841079449)):
        weights = [math.exp(z / temperature) for z in (3, 1, 0)]
        found = softmax_t(logits, temperature)
        assert found[0] == pytest.approx([weight / sum(weights) for weight in weights], abs=1e-15)
        assert found[0, 0] == pytest.approx(first, abs=1e-12)
        assert tempered_nll(softmax_t(logits, 1.0), np.array([0]), np.array([temperature]))[0, 0] == pytest.approx(nll, abs=1e-12)


def test_example_5_of_the_source() -> None:
    assert select_temperature([0.48, 0.42, 0.45], [0.47, 0.50, 0.46]) == (1, 0.50)


def test_the_grid_is_geometric_around_one() -> None:
    grid = temperatures()
    assert (len(grid), grid[0], grid[30], grid[-1]) == (61, 0.125, 1.0, 8.0)
    assert np.diff(np.log(grid)) == pytest.approx(np.full(60, math.log(64) / 60), abs=1e-12)
    assert len(temperatures(121)) == 121
    assert temperatures(121)[::2] == pytest.approx(grid, rel=1e-14)


def test_tempered_nll_is_its_definition() -> None:
    probabilities, labels = np.array([[0.2, 0.8], [1.0, 0.0]]), np.array([0, 1])
    found = tempered_nll(probabilities, labels, np.array([1.0, 2.0]))
    root = math.sqrt(0.2) / (math.sqrt(0.2) + math.sqrt(0.8))
    assert found == pytest.approx(
        np.array([[-math.log(0.2), -math.log(root)], [math.log1p(1e-12) - math.log(1e-12), math.log1p(1e-6) - math.log(1e-6)]])
    )


@pytest.mark.parametrize("seed", range(25))
def test_the_quartic_and_the_root_find_scipys_minimum(seed: int) -> None:
    probabilities, labels, true = outcomes(seed)
    want = minimiser(probabilities, labels)
    grid = temperatures()
    sums = tempered_nll(probabilities, labels, grid).sum(axis=0)
    from_sums = float(best_temperature(sums[None], grid)[0])
    assert abs(math.log(from_sums) - want) <= 8e-4, seed
    at_minimum, found = tempered_nll(probabilities, labels, np.array([math.exp(want), from_sums])).mean(axis=0).tolist()
    assert found - at_minimum <= 3e-7, seed
    assert nll_at(sums, grid, from_sums) / len(labels) == pytest.approx(found, abs=1e-6), seed
    finer = temperatures(121)
    from_finer = best_temperature(tempered_nll(probabilities, labels, finer).sum(axis=0)[None], finer)
    assert abs(math.log(from_finer[0]) - want) <= 2e-4, seed
    assert math.log(fit_temperature(probabilities, labels)) == pytest.approx(want, abs=1e-6), seed
    assert math.log(fit_temperature(probabilities, labels)) == pytest.approx(math.log(true), abs=0.35), seed


@pytest.mark.parametrize("seed", range(3))
def test_the_fitted_temperature_keeps_the_predicted_class(seed: int) -> None:
    probabilities, labels, _ = outcomes(seed)
    scaled = softmax_t(np.log(probabilities), fit_temperature(probabilities, labels))
    assert (scaled.argmax(axis=1) == probabilities.argmax(axis=1)).all(), seed


def test_sums_scaled_to_integers_give_the_same_temperature() -> None:
    probabilities, labels, _ = outcomes(1)
    grid = temperatures()
    nll = tempered_nll(probabilities, labels, grid)
    whole = np.rint(nll * 2**24).astype(np.int64).sum(axis=0)
    assert best_temperature(whole[None], grid) == pytest.approx(best_temperature(nll.sum(axis=0)[None], grid), rel=1e-6)
    assert best_temperature(whole[None] << 25, grid) == pytest.approx(best_temperature(whole[None], grid), rel=1e-12)


def test_the_minimum_of_a_quartic_is_exact() -> None:
    grid = temperatures()
    for vertex in (-2.03, -1.99, -0.3, 0.0, 0.011, 1.9, 2.03):
        distance = np.log(grid) - vertex
        sums = 3.0 + 5.0 * distance**2 + 0.4 * distance**3 + 0.7 * distance**4
        assert np.log(best_temperature(sums[None], grid)) == pytest.approx([vertex], abs=1e-12)


@given(around=st.lists(st.integers(0, 1000), min_size=5, max_size=5), first=st.integers(0, 56))
@example(around=[81, 2, 0, 5, 28], first=28)
@example(around=[69, 13, 1, 0, 1], first=56)
def test_the_minimum_lies_beside_the_smallest_sum(around: list[int], first: int) -> None:
    """Whatever the sums: Newton's steps leave it in both examples if nothing holds them."""
    grid = temperatures()
    sums = [10_000] * first + around + [10_000] * (56 - first)
    found = best_temperature(np.array([sums]), grid)[0]
    smallest = int(np.argmin(sums))
    assert grid[max(smallest - 1, 0)] * (1 - 1e-12) <= found <= grid[min(smallest + 1, 60)] * (1 + 1e-12)


def test_a_minimum_beyond_the_grid_gives_its_end() -> None:
    probabilities, right = np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([0, 1])
    grid = temperatures()
    for labels, end in ((right, 0.125), (1 - right, 8.0)):
        sums = tempered_nll(probabilities, labels, grid).sum(axis=0)
        assert best_temperature(sums[None], grid).tolist() == [end]
        assert fit_temperature(probabilities, labels) == end


def test_undefined_where_every_temperature_is_as_good() -> None:
    grid = temperatures()
    assert np.isnan(best_temperature(np.zeros((2, 61), dtype=np.int64), grid)).all()
    assert math.isnan(fit_temperature(np.empty((0, 3)), np.empty(0, dtype=np.int64)))
    assert math.isnan(fit_temperature(np.full((4, 2), 0.5), np.array([0, 1, 1, 1])))


def test_golden_split() -> None:
    case = json.loads((CASES / "p28_split.json").read_text("utf-8"))
    assert split_of(**case["args"]) == case["expect"]["split"]


@given(name=st.text(st.characters(exclude_categories=["Cs"])), salt=st.text("abc"), fraction=st.floats(0, 1), off=st.integers(-1, 1))
def test_the_split_is_compared_exactly(name: str, salt: str, fraction: float, off: int) -> None:
    digest = hashlib.sha256(salt.encode() + b"\x1f" + name.encode()).hexdigest()
    share = Fraction(int(digest[:16], 16), 2**64)
    close = float(np.nextafter(float(share), float(share) + off))
    for wanted in (fraction, close):
        assert split_of([name], salt, wanted) == ["cal" if share < Fraction(wanted) else "eval"]


def test_an_id_at_the_fraction_is_not_below_it() -> None:
    """An id whose hash a double can hold exactly."""
    digests = ((f"event-{n}", hashlib.sha256(f"salt\x1fevent-{n}".encode()).hexdigest()[:16]) for n in range(100_000))
    name, share = next((name, int(digest, 16)) for name, digest in digests if int(digest, 16) % 2**11 == 0)
    at = share / 2**64
    assert [split_of([name], "salt", fraction) for fraction in (at, math.nextafter(at, 1.0))] == [["eval"], ["cal"]]


def test_the_split_has_the_wanted_share() -> None:
    ids = [f"event-{number}" for number in range(4000)]
    for fraction in (0.0, 0.3, 1.0):
        assert split_of(ids, "salt", fraction).count("cal") / 4000 == pytest.approx(fraction, abs=0.03 * (0 < fraction < 1))
    assert split_of(ids, "salt", 0.5) != split_of(ids, "other", 0.5)
