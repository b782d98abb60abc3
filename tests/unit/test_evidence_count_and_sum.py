"""The count-and-sum e-process against a slow direct computation from events, and what its bets must be."""

from __future__ import annotations

import math
from fractions import Fraction
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.errors import CapacityError
from monitor.evidence.bets import Bets, Side, bets, log_threshold
from monitor.evidence.count_and_sum import ROWS_AT_ONCE, log_e_both, log_e_of_bets, log_e_over, log_e_under, log_mixture
from monitor.evidence.grid_sums import BINS, EDGES, GridSums, bin_centres
from monitor.statistics.fixed_point import F64, PROBABILITY_BITS, SAFE_EVENTS, fixed
from monitor.statistics.grid import bin_index

ONE = 1 << PROBABILITY_BITS
SIDES = [(Side.OVER, 0.0), (Side.OVER, 0.02), (Side.OVER, 0.3), (Side.UNDER, 0.0), (Side.UNDER, 0.02)]

Event = tuple[float, bool]
CLAIMS = st.one_of(
    st.floats(0.0, 1.0),
    st.sampled_from([0.0, 2.0**-20, 0.02, 0.5, 0.9, 1 - 2.0**-20, 1 - 2.0**-40, 1.0]),
    st.floats(0.0, 1e-6).map(lambda error: 1 - error),
)
EVENTS = st.lists(st.tuples(CLAIMS, st.booleans()), max_size=30)

every_side = pytest.mark.parametrize(("side", "tolerance"), SIDES)


def summed(events: list[Event]) -> GridSums:
    count, correct, confidence = (np.zeros(BINS, dtype=np.int64) for _ in range(3))
    if events:
        claims = np.array([claim for claim, _ in events])
        place = bin_index(EDGES, claims)
        np.add.at(count, place, 1)
        np.add.at(correct, place, np.array([int(right) for _, right in events]))
        np.add.at(confidence, place, fixed(claims, PROBABILITY_BITS))
    return GridSums.of(count, correct, confidence)


def one_bin(place: int, count: int, correct: int, confidence: int) -> GridSums:
    columns = np.zeros((3, BINS), dtype=np.int64)
    columns[:, place] = count, correct, confidence
    return GridSums.of(*columns)


def accuracy_bets(side: Side, claim: float) -> list[tuple[float, float]]:
    """(weight, accuracy that is betted on) of each bet, in the words of FORMULAS section 9."""
    odds = math.log(claim / (1 - claim))
    shapes = [(0.0, b) for b in (0.9, 0.75, 0.6, 0.45)] + [(-a, 1.0) for a in (0.1, 0.25, 0.5, 1.0)]
    if side is Side.UNDER:
        return [(1 / 8, max(claim, 1 / (1 + math.exp(a - odds / b)))) for a, b in shapes]
    tilts = [(1 / 16, min(claim, 1 / (1 + math.exp(-a - b * odds)))) for a, b in shapes]
    return tilts + [(1 / 10, (1 - share) * claim) for share in (0.002, 0.01, 0.03, 0.1, 0.3)]


def moved_centre(side: Side, tolerance: float, place: int) -> float:
    centre = float(bin_centres()[place])
    return max(centre - tolerance, centre / 2) if side is Side.OVER else min(centre + tolerance, (1 + centre) / 2)


def allowed(side: Side, tolerance: float, claim: float) -> float:
    """The accuracy at the border of H0."""
    return max(claim - tolerance, 0.0) if side is Side.OVER else min(claim + tolerance, 1.0)


def slow_formula(side: Side, tolerance: float, events: list[Event]) -> list[float]:
    """Logarithm of E of each bet, from fractions where sums are concerned and one bin after the other."""
    terms: dict[int, list[Event]] = {}
    for event in events:
        terms.setdefault(int(bin_index(EDGES, np.array([event[0]]))[0]), []).append(event)
    totals: list[list[float]] = [[] for _ in accuracy_bets(side, 0.5)]
    for place, inside in terms.items():
        centre = moved_centre(side, tolerance, place)
        mean = float(sum((Fraction(round(Fraction(claim) * ONE), ONE) for claim, _ in inside), Fraction(0)) / len(inside))
        border = allowed(side, tolerance, mean)
        for total, (_, accuracy) in zip(totals, accuracy_bets(side, centre), strict=True):
            right, wrong = accuracy / centre, (1 - accuracy) / (1 - centre)
            total += [math.log(right if correct else wrong) for _, correct in inside]
            total.append(-len(inside) * math.log(border * right + (1 - border) * wrong))
    return [math.fsum(total) for total in totals]


def martingale(side: Bets, events: list[Event]) -> F64:
    """Logarithm of the exact test martingale of each bet: every event has its own mean factor."""
    total = np.zeros(len(side.log_weight))
    for claim, correct in events:
        place = int(bin_index(EDGES, np.array([claim]))[0])
        factor = side.log_right[:, place] if correct else side.log_wrong[:, place]
        mean_factor = 1 + (allowed(side.side, side.tolerance, claim) - side.centre[place]) * side.slope[:, place]
        total += factor - np.log(mean_factor)
    return total


@every_side
@given(events=EVENTS)
def test_evidence_is_the_formula(side: Side, tolerance: float, events: list[Event]) -> None:
    got = log_e_of_bets(bets(side, tolerance), summed(events), guarded=False)
    np.testing.assert_allclose(got, slow_formula(side, tolerance, events), rtol=1e-9, atol=1e-9)


@every_side
@given(events=EVENTS)
def test_evidence_of_an_alarm_never_exceeds_the_exact_martingale(side: Side, tolerance: float, events: list[Event]) -> None:
    table = bets(side, tolerance)
    guarded = log_e_of_bets(table, summed(events), guarded=True)
    assert np.all(guarded <= martingale(table, events) + 1e-12)
    assert np.all(guarded <= log_e_of_bets(table, summed(events), guarded=False))


def test_one_event_a_bin_is_the_martingale_itself() -> None:
    events = [(0.5, False), (0.75, True), (0.90625, False), (0.25, True)]
    table = bets(Side.OVER)
    np.testing.assert_allclose(log_e_of_bets(table, summed(events), guarded=False), martingale(table, events), rtol=1e-12)


@given(EVENTS, st.randoms(use_true_random=False), st.integers(0, 30))
def test_order_and_partition_of_events_change_nothing(events: list[Event], random: Random, cut: int) -> None:
    shuffled = list(events)
    random.shuffle(shuffled)
    parts = summed(shuffled[:cut]).merge(summed(shuffled[cut:]))
    assert log_e_over(parts) == log_e_over(summed(events))
    assert log_e_under(parts, 0.02) == log_e_under(summed(events), 0.02)


@every_side
def test_a_row_does_not_depend_on_the_rows_beside_it(side: Side, tolerance: float) -> None:
    rng = np.random.default_rng(7)
    count = rng.poisson(rng.choice([0.0, 0.05, 3.0], size=(2 * ROWS_AT_ONCE + 7, 1)), (2 * ROWS_AT_ONCE + 7, BINS))
    excess = (count * rng.uniform(0, 1, count.shape) * np.diff(EDGES) * ONE).astype(np.int64)
    sums = GridSums(count, rng.binomial(count, 0.7), excess)
    table = bets(side, tolerance)
    together = log_e_of_bets(table, sums, guarded=True)
    alone = [log_e_of_bets(table, sums.rows(slice(row, row + 1)), guarded=True)[0] for row in range(len(count))]
    assert np.array_equal(together, np.array(alone))
    two_axes = GridSums(*(array[:-1].reshape(2, -1, BINS) for array in (sums.count, sums.correct, sums.excess)))
    assert np.array_equal(log_e_of_bets(table, two_axes, guarded=True).reshape(-1, together.shape[1]), together[:-1])


@every_side
def test_a_bet_has_mean_one_at_the_centre_and_the_shares_sum_to_one(side: Side, tolerance: float) -> None:
    table = bets(side, tolerance)
    right, wrong = np.exp(table.log_right), np.exp(table.log_wrong)
    np.testing.assert_allclose(table.centre * right + (1 - table.centre) * wrong, 1.0, rtol=1e-12)
    np.testing.assert_allclose(right - wrong, table.slope, rtol=1e-6, atol=1e-9)
    assert math.isclose(math.fsum(np.exp(table.log_weight)), 1.0)
    assert np.all(table.slope <= 0 if side is Side.OVER else table.slope >= 0)
    assert np.all((table.centre > 0) & (table.centre < 1))


def test_tables_are_shared_and_cannot_be_written_to() -> None:
    assert bets(Side.OVER, 0.02) is bets(Side.OVER, 0.02)
    with pytest.raises(ValueError, match="read-only"):
        bets(Side.OVER).log_right[0, 0] = 1.0


@pytest.mark.parametrize("tolerance", [-0.01, 1.0, math.nan])
def test_a_tolerance_out_of_range_is_refused(tolerance: float) -> None:
    with pytest.raises(ValueError, match="a tolerance is in"):
        bets(Side.OVER, tolerance)


def test_no_event_is_no_evidence() -> None:
    for shape in ((), (3,), (2, 3), (0,)):
        assert np.array_equal(log_e_over(GridSums.empty(shape)), np.zeros(shape))
        assert np.array_equal(log_e_under(GridSums.empty(shape), 0.02), np.zeros(shape))


@every_side
@pytest.mark.parametrize("count", [1, SAFE_EVENTS])
@pytest.mark.parametrize("claim", [0, 1])
@pytest.mark.parametrize("correct", [0, 1])
@pytest.mark.parametrize("guarded", [False, True])
def test_claims_of_0_and_1_give_finite_evidence(side: Side, tolerance: float, count: int, claim: int, correct: int, guarded: bool) -> None:
    sums = one_bin(BINS - 1 if claim else 0, count, correct * count, claim * count * ONE)
    got = log_e_of_bets(bets(side, tolerance), sums, guarded=guarded)
    assert np.isfinite(got).all()
    against = correct < claim if side is Side.OVER else correct > claim
    if against:
        assert log_mixture(bets(side, tolerance), got) > 0.1


def test_an_error_after_a_claim_of_one_by_hand() -> None:
    """With 1-r = 2^-21: contaminations pay 2^21 l/(1-l) + 1, shifts e^a, slopes (2^21-1)^(1-b)."""
    void = [2**21 * share / (1 - share) + 1 for share in (0.002, 0.01, 0.03, 0.1, 0.3)]
    tilts = [math.exp(shift) for shift in (0.1, 0.25, 0.5, 1.0)] + [(2**21 - 1) ** (1 - slope) for slope in (0.9, 0.75, 0.6, 0.45)]
    expected = math.log(math.fsum(void) / 10 + math.fsum(tilts) / 16)
    assert float(log_e_over(one_bin(BINS - 1, 1, 0, ONE))) == pytest.approx(expected, rel=1e-9)


def test_two_sided_evidence_is_the_mean_of_both_sides() -> None:
    over, under = np.array([2.0, -3.0, 5000.0]), np.array([1.0, -3.0, -9000.0])
    expected = [math.log((math.exp(2) + math.exp(1)) / 2), -3.0, 5000 - math.log(2)]
    np.testing.assert_allclose(log_e_both(over, under), expected, rtol=1e-14)


def test_the_threshold_is_the_inverse_of_alpha() -> None:
    assert log_threshold(0.05) == pytest.approx(math.log(20))


def test_more_tolerance_finds_less_where_everything_is_too_confident() -> None:
    sums = summed([(0.9, False), (0.9, True)] * 200)
    falling = [float(log_e_over(sums, tolerance)) for tolerance in (0.0, 0.02, 0.1, 0.3, 0.39, 0.5)]
    assert falling == sorted(falling, reverse=True)
    assert falling[3] > log_threshold(0.05) > falling[4]


def test_a_sum_that_no_integer_holds_is_refused() -> None:
    full = GridSums.empty().excess.copy()
    full[200] = 2**62
    huge = GridSums(full, full, full)
    with pytest.raises(CapacityError, match="evidence record"):
        huge.merge(huge)
    two = GridSums(*(np.stack([full, full]) for _ in range(3)))
    for combined in (two.cumulative, two.total):
        with pytest.raises(CapacityError, match="evidence record"):
            combined()


def test_a_long_life_of_a_version_fits_into_a_record() -> None:
    """2^35 events with the largest excess that there is: 1/32 each, in the bin below 1/2."""
    place = int(bin_index(EDGES, np.array([0.49]))[0])
    pane = one_bin(place, SAFE_EVENTS, SAFE_EVENTS // 2, SAFE_EVENTS * (ONE // 2 - 1))
    panes = GridSums(*(np.broadcast_to(array, (32, BINS)) for array in (pane.count, pane.correct, pane.excess)))
    total = panes.total()
    assert total.events == 2**35
    assert np.array_equal(total.excess, panes.cumulative().excess[-1])
    assert np.isfinite(log_e_over(total))
