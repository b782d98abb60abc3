"""What the sums of one version recommend: a temperature, thresholds, and an accuracy without labels; each with what it rests on.

Source: FORMULAS sections 7 and 8.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from monitor.metrics.certified import STARTS, CertifiedThreshold, certified_threshold
from monitor.metrics.label_free import label_free_accuracy
from monitor.metrics.precision_recall import acceptance_threshold
from monitor.metrics.sums import divide
from monitor.metrics.temperature import best_temperature, nll_at
from monitor.metrics.version import Version
from monitor.statistics.fixed_point import F64, I64, LOG_BITS, PROBABILITY_BITS
from monitor.statistics.grid import CALIBRATION_STEPS, graded_edges
from monitor.statistics.layout import TEMPERED_BINS
from monitor.statistics.score_grid import score_edges
from monitor.statistics.segment import TEMPERATURE
from monitor.statistics.tempering import temperatures

_LOG = float(1 << LOG_BITS)
_ONE = float(1 << PROBABILITY_BITS)


@dataclass(frozen=True, slots=True)
class TemperatureAdvice:
    """A temperature fitted on one half of the ids, and its effect on the other.

    Attributes:
        temperature: Divides ln p before the softmax; above 1 flattens.
        at_the_end: Whether it is an end of the grid: the best one lies at or beyond it.
        fitted_on: Labelled events of the half that fits.
        reported_on: Those of the half that reports.
        nll: Mean NLL of the half that reports, before and after, nats; None without an event there.
        ece: Its ECE in 15 equal bins, before and after; None likewise.
        ece_temperature: Temperature of the grid at which the ECE after was summed: the nearest to the fitted one.
    """

    temperature: float
    at_the_end: bool
    fitted_on: int
    reported_on: int
    nll: tuple[float, float] | None
    ece: tuple[float, float] | None
    ece_temperature: float


@dataclass(frozen=True, slots=True)
class OodThresholdAdvice:
    """An OOD threshold that accepts a wanted share.

    Attributes:
        threshold: In the source's units.
        acceptance: Share that it accepts of the events below; at least the wanted one.
        bound: How far the tightest threshold with that property may be from this one.
        events: Scored predictions that it was chosen on.
        known_in_distribution: Whether these are those known to be in distribution, else all with a score.
    """

    threshold: float
    acceptance: float
    bound: float
    events: int
    known_in_distribution: bool


@dataclass(frozen=True, slots=True)
class ConfidenceThresholdAdvice:
    """A confidence threshold certified to keep a wanted risk.

    Attributes:
        certified: The threshold and what is seen there; None where none can be certified.
        labelled: Labelled events that it was chosen on.
        needed: Fewest labelled events at or above a threshold with which it can be certified, if none of them is wrong.
    """

    certified: CertifiedThreshold | None
    labelled: int
    needed: int


@dataclass(frozen=True, slots=True)
class AccuracyEstimate:
    """Accuracy of the predictions without a label, if confidences mean what they mean for those with one.

    Attributes:
        estimate: Estimated accuracy.
        sd: Its standard deviation, if so.
        unsupported_share: Share of these predictions in bins of confidence without a labelled one.
        unlabelled: Predictions without a label.
        labelled: Labelled ones, which the map is from.
    """

    estimate: float
    sd: float
    unsupported_share: float
    unlabelled: int
    labelled: int


def advise_temperature(version: Version) -> TemperatureAdvice | None:
    """The temperature with the smallest NLL on the half that fits; None where every temperature is as good, or there is no event."""
    grid = temperatures()
    fit, report = (version.halves.get(half) for half in ("fit", "report"))
    if fit is None:
        return None
    fitted = float(best_temperature(_by_temperature(fit, "nll").sum(axis=1)[None], grid)[0])
    if math.isnan(fitted):
        return None
    nearest = int(np.argmin(np.abs(np.log(grid) - math.log(fitted))))
    count = 0 if report is None else int(report[TEMPERATURE.scalar("labelled")])
    nll = ece = None
    if report is not None and count:
        sums = _by_temperature(report, "nll").sum(axis=1)
        one = len(grid) // 2
        nll = float(sums[one]) / _LOG / count, nll_at(sums, grid, fitted) / _LOG / count
        ece = _ece(report, one), _ece(report, nearest)
    events = int(fit[TEMPERATURE.scalar("labelled")])
    return TemperatureAdvice(fitted, fitted in (grid[0], grid[-1]), events, count, nll, ece, float(grid[nearest]))


def advise_ood_threshold(version: Version, acceptance: float, high_is_in: bool, minimum: int) -> OodThresholdAdvice | None:
    """The tightest edge of the score grid that accepts at least a share; None without a score, or where it lies in an open bin.

    Args:
        version: Its scores.
        acceptance: Wanted share, in (0, 1].
        high_is_in: Whether a high score means in distribution.
        minimum: Fewest predictions known to be in distribution to choose on; else all with a score are taken.
    """
    known = version.scores.get("id")
    in_distribution = known is not None and int(known.sum()) >= minimum
    counts = known if known is not None and in_distribution else sum(version.scores.values(), start=np.zeros(1, dtype=np.int64))
    total = int(counts.sum())
    if not total:
        return None
    # Where a low score means in distribution, the same is done from the other end.
    events = counts if high_is_in else counts[::-1]
    edges = score_edges() if high_is_in else -score_edges()[::-1]
    lowest, highest = np.append(-np.finfo(np.float64).max, edges), np.append(edges, np.finfo(np.float64).max)
    place = int(acceptance_threshold(events[None], acceptance, lowest, highest)[0][0, 0])
    if place in (0, len(events) - 1):
        return None
    accepted = int(events[place:].sum())
    # A bin holds its lower edge and not its upper one: from the other end, the last score of the bin is the one before that edge.
    threshold = float(lowest[place]) if high_is_in else float(np.nextafter(-lowest[place], -np.inf))
    return OodThresholdAdvice(threshold, accepted / total, float(highest[place] - lowest[place]), total, in_distribution)


def advise_confidence_threshold(version: Version, max_risk: float, delta: float) -> ConfidenceThresholdAdvice:
    """The lowest threshold certified to keep a risk, on the grid of confidences, from all labelled events.

    Args:
        version: Its labelled events.
        max_risk: Wanted risk, in (0, 1).
        delta: Probability with which the certificate may be wrong, in (0, 1).
    """
    everything = version.everything
    labelled = everything.fine("labelled")[0]
    errors = labelled - everything.fine("correct")[0]
    total = int(labelled.sum())
    found = certified_threshold(labelled, errors, everything.grid[:-1], max_risk, delta) if total else None
    return ConfidenceThresholdAdvice(found, total, math.ceil(math.log(delta / STARTS) / math.log1p(-max_risk)))


def estimate_accuracy(version: Version) -> AccuracyEstimate | None:
    """Accuracy of the predictions without a label by the map of the labelled ones; None where either are missing."""
    edges = graded_edges(CALIBRATION_STEPS)
    predictions, labelled, correct = (version.everything.merged(name, edges) for name in ("predictions", "labelled", "correct"))
    unlabelled = predictions - labelled
    if not labelled.sum() or not unlabelled.sum():
        return None
    found = label_free_accuracy(labelled, correct, unlabelled)
    values = (float(found.estimate[0]), float(found.sd[0]), float(found.unsupported_share[0]))
    return AccuracyEstimate(*values, int(unlabelled.sum()), int(labelled.sum()))


def _by_temperature(cell: I64, name: str) -> I64:
    """A sum by temperature and bin, shape (n_temperatures, n_bins)."""
    begin = len(TEMPERATURE.scalars) + TEMPERATURE.bin(name)
    return cell[begin :: len(TEMPERATURE.bins)].reshape(-1, TEMPERED_BINS)


def _ece(cell: I64, temperature: int) -> float:
    """ECE of the half that reports at a temperature of the grid."""
    labelled, correct, confidence = (_by_temperature(cell, name)[temperature] for name in ("labelled", "correct", "confidence"))
    gaps: F64 = np.abs(confidence - (correct << PROBABILITY_BITS)) / _ONE
    return float(divide(gaps.sum(keepdims=True), labelled.sum(keepdims=True))[0])
