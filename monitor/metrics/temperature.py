"""Temperature scaling: softmax(z/T), chosen on one half of the events and reported on the other.

Logarithms of probabilities serve as logits. Source: Guo et al., ICML 2017; FORMULAS section 8.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import log_softmax, softmax

from monitor.statistics.fixed_point import F64, I64, LOG_FLOOR
from monitor.statistics.split import fits
from monitor.statistics.tempering import HIGHEST_TEMPERATURE

_OFFSETS = np.arange(-2, 3)
_QUARTIC = np.array([[2, -16, 0, 16, -2], [-1, 16, -30, 16, -1], [-2, 4, 0, -4, 2], [1, -4, 6, -4, 1]]) / 24
"""From the values at -2..2 to the coefficients of x, x^2, x^3 and x^4 of the polynomial through them."""

_NEWTON_STEPS = 8


def softmax_t(logits: F64, temperature: float) -> F64:
    """Softmax of logits/temperature over the last axis.

    Args:
        logits: Shape (..., n_classes).
        temperature: Above 0; above 1 flattens.
    """
    return np.asarray(softmax(logits / temperature, axis=-1))


def select_temperature(calibration_nll: Sequence[float], test_nll: Sequence[float]) -> tuple[int, float]:
    """Choose on the calibration split, report on the test split.

    Args:
        calibration_nll: NLL of each candidate on the calibration split; the first of the smallest is chosen.
        test_nll: NLL of each candidate on the test split.

    Returns:
        Index of the chosen candidate and its NLL on the test split, which need not be the smallest there.
    """
    chosen = int(np.argmin(calibration_nll))
    return chosen, float(test_nll[chosen])


def tempered_nll(probabilities: F64, labels: I64, temperatures: F64) -> F64:
    """-ln of the true class's probability after scaling, in nats.

    Args:
        probabilities: Shape (n_events, n_classes); below 1e-12 they count as 1e-12.
        labels: Index of the true class of each event.
        temperatures: Shape (n_temperatures,).

    Returns:
        Shape (n_events, n_temperatures).
    """
    scaled = _logits(probabilities)[:, None, :] / temperatures[None, :, None]
    return np.asarray(-np.take_along_axis(log_softmax(scaled, axis=-1), labels[:, None, None], axis=-1)[..., 0])


def best_temperature(nll: I64 | F64, temperatures: F64) -> F64:
    """The temperature of the smallest NLL, from sums of NLL at a grid: the minimum of a quartic in ln T through five of them.

    A parabola through three sums is off by up to 2e-3 in ln T on the same grid; the quartic costs as little.

    Args:
        nll: Sums at each temperature of the grid, any scale; shape (n, n_temperatures), at least five temperatures.
        temperatures: As of `tempering.temperatures`; 61 of them find the minimum to 8e-4 in ln T.

    Returns:
        Shape (n,). An end of the grid where the smallest sum is there: the minimum lies at or beyond it. NaN where all sums
        are equal: without an event, or where all probabilities are equal.
    """
    last = len(temperatures) - 1
    smallest = np.argmin(nll, axis=-1)
    centre = np.clip(smallest, 2, last - 2)
    around = np.take_along_axis(nll, centre[..., None] + _OFFSETS, axis=-1)
    slope, square, cube, fourth = np.moveaxis((around - around.min(axis=-1, keepdims=True)) @ _QUARTIC.T, -1, 0)
    start = (smallest - centre).astype(np.float64)
    place = start.copy()
    for _ in range(_NEWTON_STEPS):
        first = slope + place * (2 * square + place * (3 * cube + place * 4 * fourth))
        second = 2 * square + place * (6 * cube + place * 12 * fourth)
        move = np.divide(first, second, out=np.zeros_like(first), where=second > 0)
        place = np.clip(place - move, start - 1, start + 1)  # the sums fall towards the smallest and rise after it
    step = np.log(temperatures[1] / temperatures[0])
    inside = (smallest > 0) & (smallest < last)
    found = np.where(inside, temperatures[centre] * np.exp(place * step), temperatures[smallest])
    return np.where(np.max(nll, axis=-1) == np.min(nll, axis=-1), np.nan, found)


def nll_at(nll: I64 | F64, temperatures: F64, temperature: float) -> float:
    """NLL of one series at a temperature between those of the grid, by a cubic spline in ln T.

    Args:
        nll: Sums at each temperature of the grid, any scale; shape (n_temperatures,).
        temperatures: As of `tempering.temperatures`.
        temperature: Inside the grid.

    Returns:
        On the scale of the sums.
    """
    from scipy.interpolate import CubicSpline  # noqa: PLC0415 - a third of a second that every command would wait

    return float(CubicSpline(np.log(temperatures), nll)(np.log(temperature)))


def fit_temperature(probabilities: F64, labels: I64) -> float:
    """The temperature of the smallest NLL, from raw events: the root of the derivative, which is monotone in 1/T.

    Args:
        probabilities: Shape (n_events, n_classes); below 1e-12 they count as 1e-12.
        labels: Index of the true class of each event.

    Returns:
        In [1/8, 8], an end of it where the minimum lies at or beyond it. NaN where every temperature is as good: without an
        event, or where all probabilities are equal.
    """
    from scipy.optimize import brentq  # noqa: PLC0415 - as above

    logits = _logits(probabilities)
    true = np.take_along_axis(logits, labels[:, None], axis=-1)[:, 0]

    def slope(inverse: float) -> float:
        """Derivative of the summed NLL by 1/T."""
        return float(((softmax(logits * inverse, axis=-1) * logits).sum(axis=-1) - true).sum())

    if not (logits != logits[:, :1]).any():
        return float("nan")
    coldest, hottest = HIGHEST_TEMPERATURE, 1 / HIGHEST_TEMPERATURE
    if slope(coldest) <= 0:
        return 1 / HIGHEST_TEMPERATURE
    if slope(hottest) >= 0:
        return HIGHEST_TEMPERATURE
    return 1 / float(brentq(slope, hottest, coldest, xtol=1e-14))


def split_of(ids: Sequence[str], salt: str, fraction: float) -> list[str]:
    """The half that each id belongs to, the same in every version, process and replay: "cal" to fit on, "eval" to report.

    Args:
        ids: Prediction ids.
        salt: Names the split.
        fraction: Share of ids to fit on, in [0, 1].

    Source: FORMULAS section 8; `statistics.split`.
    """
    return ["cal" if fits(name, salt, fraction) else "eval" for name in ids]


def _logits(probabilities: F64) -> F64:
    return np.log(np.maximum(probabilities, LOG_FLOOR))
