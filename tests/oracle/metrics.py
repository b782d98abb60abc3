"""The metrics of one series from its raw events: lists, comparisons and `math.fsum`, no stored sums.

They carry the golden cases' names. A metric that is not defined for the events is left out; counts and sums are always defined.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TypeAlias

from tests.oracle.join import Scored
from tests.oracle.log_e import log_e

Z_95 = 1.959963984540054
CSR_EPSILON = 1e-6
LOG_EPSILON = 1e-12

Metrics: TypeAlias = dict[str, float]


@dataclass(frozen=True)
class ModelConfig:
    """A model's configuration, as far as a gauge depends on it."""

    bins: int = 15
    edges: tuple[float, ...] | None = None
    scheme: str = "width"
    classes: tuple[str, ...] = ()
    ood_threshold: float | None = None
    ood_high_is: str = "in_distribution"
    confidence_threshold: float | None = None
    groups: tuple[str, ...] = ()
    max_group_values: int = 50
    min_group_count: int = 30
    selective_risk_budget: float | None = None


def report_edges(events: Sequence[Scored], config: ModelConfig) -> tuple[float, ...]:
    """The edges of the report bins; for equal mass those of the labelled events, from their sorted confidences."""
    if config.edges is not None:
        return config.edges
    if config.scheme == "width":
        return tuple(k / config.bins for k in range(config.bins + 1))
    confidences = sorted(event.prediction.confidence for event in events if event.label is not None)
    inner = [confidences[k * len(confidences) // config.bins] for k in range(1, config.bins)] if confidences else []
    return tuple(sorted({0.0, *inner, 1.0}))


def bin_index(confidence: float, edges: Sequence[float]) -> int | None:
    """The bin `[edge, next edge)`, the last one closed; None outside all of them."""
    if not edges[0] <= confidence <= edges[-1]:
        return None
    return min(bisect_right(edges, confidence), len(edges) - 1) - 1


def bin_sums(events: Sequence[Scored], edges: Sequence[float]) -> list[tuple[float, float, tuple[float, float, float, float]]]:
    """Per report bin its edges and (predictions, labelled, correct, confidence sum of the labelled)."""
    members: list[list[Scored]] = [[] for _ in edges[1:]]
    for event in events:
        index = bin_index(event.prediction.confidence, edges)
        if index is not None:
            members[index].append(event)
    rows = []
    for low, high, in_bin in zip(edges, edges[1:], members, strict=False):
        labelled = [event for event in in_bin if event.label is not None]
        correct = sum(event.correct for event in labelled)
        confidence_sum = math.fsum(event.prediction.confidence for event in labelled)
        rows.append((low, high, (float(len(in_bin)), float(len(labelled)), float(correct), confidence_sum)))
    return rows


def metrics(events: Sequence[Scored], config: ModelConfig, edges: Sequence[float]) -> Metrics:
    """All metrics of one series under their golden names, the undefined ones left out."""
    labelled = [event for event in events if event.label is not None]
    used = [event for event in labelled if bin_index(event.prediction.confidence, edges) is not None]
    correct = sum(event.correct for event in used)
    confidence_sum = math.fsum(event.prediction.confidence for event in used)
    return defined(
        {
            "predictions": len(events),
            "labelled": len(labelled),
            "labelled_used": len(used),
            "correct": correct,
            "confidence_sum": confidence_sum,
            "completeness": ratio(len(labelled), len(events)),
            "confidence_only_predictions": sum(event.prediction.probabilities is None for event in events),
            "accuracy": ratio(correct, len(used)),
            "mean_confidence": ratio(confidence_sum, len(used)),
            "overconfidence": ratio(confidence_sum - correct, len(used)),
            "cw_accuracy": ratio(math.fsum(event.prediction.confidence for event in used if event.correct), confidence_sum),
        }
        | calibration(used, edges)
        | _scores(used)
        | _vector_scores(used)
        | csr(used)
        | _selective(events, config)
        | _ood(events, config)
        | log_e(labelled)
    )


def calibration(used: Sequence[Scored], edges: Sequence[float]) -> dict[str, float | None]:
    """ECE and its parts over the report bins, and its noise floor (FORMULAS.md section 3)."""
    n = len(used)
    if n == 0:
        return {}
    members: dict[int | None, list[Scored]] = defaultdict(list)
    for event in used:
        members[bin_index(event.prediction.confidence, edges)].append(event)
    gaps = [
        (len(in_bin), math.fsum([*(event.prediction.confidence for event in in_bin), -sum(event.correct for event in in_bin)]))
        for in_bin in members.values()
    ]
    ece = math.fsum(abs(gap) for _, gap in gaps) / n
    return {
        "ece": ece,
        "ece_over": math.fsum(max(gap, 0.0) for _, gap in gaps) / n,
        "ece_under": math.fsum(max(-gap, 0.0) for _, gap in gaps) / n,
        "mce": max(abs(gap) / count for count, gap in gaps),
    } | noise_floor(n, ece, bin_variances(used, edges))


def bin_variances(used: Sequence[Scored], edges: Sequence[float]) -> list[float]:
    """The sum of c(1-c) of each report bin: the variance of its number of right answers, if the confidences are true."""
    members: dict[int | None, list[float]] = defaultdict(list)
    for event in used:
        members[bin_index(event.prediction.confidence, edges)].append(event.prediction.confidence)
    return [math.fsum(confidence * (1 - confidence) for confidence in in_bin) for in_bin in members.values()]


def noise_floor(n: int, ece: float, variances: Sequence[float]) -> dict[str, float | None]:
    """What ECE would be by chance, from the sums of c(1-c) of the bins."""
    floor = math.fsum(math.sqrt(2 * variance / math.pi) for variance in variances) / n
    sd = math.sqrt((1 - 2 / math.pi) * math.fsum(variances)) / n
    return {
        "ece_floor": floor,
        "ece_floor_error_bound": sum(variance > 0 for variance in variances) / n,
        "ece_floor_sd": sd,
        "ece_z": ratio(ece - floor, sd),
    }


def _scores(used: Sequence[Scored]) -> dict[str, float | None]:
    """Brier and logarithmic score of the event "the predicted class is right"."""
    squares = [(event.prediction.confidence - event.correct) ** 2 for event in used]
    true = [event.prediction.confidence if event.correct else 1 - event.prediction.confidence for event in used]
    return {
        "brier": ratio(math.fsum(squares), len(used)),
        "nll": ratio(math.fsum(-math.log(max(p, LOG_EPSILON)) for p in true), len(used)),
        "nll_clipped": sum(p < LOG_EPSILON for p in true),
    }


def _vector_scores(used: Sequence[Scored]) -> dict[str, float | None]:
    """Brier and logarithmic score of the whole vector, over the events that have one."""
    squares: list[float] = []
    true: list[float] = []
    unknown = 0
    for event in used:
        if event.prediction.probabilities is None or event.label is None:
            continue
        vector = dict(event.prediction.probabilities)
        # A label outside the vector has probability 0 and adds the 1 that no class of the vector gets.
        squares.append(math.fsum((p - (name == event.label)) ** 2 for name, p in vector.items()) + (event.label not in vector))
        true.append(vector.get(event.label, 0.0))
        unknown += event.label not in vector
    return {
        "brier_multi": ratio(math.fsum(squares), len(squares)),
        "nll_multi": ratio(math.fsum(-math.log(max(p, LOG_EPSILON)) for p in true), len(true)),
        "nll_multi_clipped": sum(p < LOG_EPSILON for p in true),
        "unknown_class": unknown,
    }


def csr(used: Sequence[Scored]) -> dict[str, float | None]:
    """The calibrated size ratio and its test (FORMULAS.md section 5)."""
    clipped = [event for event in used if 1 - event.prediction.confidence < CSR_EPSILON]
    counts: dict[str, float | None] = {
        "csr_clipped": len(clipped),
        "csr_clipped_errors": sum(not event.correct for event in clipped),
    }
    n = len(used)
    if n == 0:
        return counts
    true_mean = math.fsum((1 - event.prediction.confidence) / CSR_EPSILON for event in clipped)
    return counts | {"csr_null_mean": 1 - (len(clipped) - true_mean) / n} | csr_test(n, *csr_sums(used))


def csr_sums(used: Sequence[Scored]) -> tuple[float, float, float]:
    """The sums of wrong/q, (1-q)/q and (1-q)(1-2q)/q^2."""
    claims = [(max(1 - event.prediction.confidence, CSR_EPSILON), event.correct) for event in used]
    return (
        math.fsum(1 / q for q, correct in claims if not correct),
        math.fsum((1 - q) / q for q, _ in claims),
        math.fsum((1 - q) * (1 - 2 * q) / q**2 for q, _ in claims),
    )


def csr_test(n: int, size: float, variance: float, third: float) -> dict[str, float | None]:
    """The ratio and its test from the number of events and their `csr_sums`."""
    found_ratio = size / n
    sigma = math.sqrt(variance) / n
    found: dict[str, float | None] = {"csr": found_ratio, "csr_sigma": sigma}
    if sigma > 0:
        z = (found_ratio - 1) / sigma
        skew = third / (n * sigma) ** 3
        found |= {"csr_z": z, "csr_skew": skew, "p_risk": NormalDist().cdf(z), "p_risk_gaussian_ok": float(skew <= 0.5)}
    return found


def acceptance(event: Scored, config: ModelConfig) -> bool | None:
    """Whether the prediction was acted upon: what the service said, else the configured threshold, else undecided."""
    if event.prediction.accepted is not None:
        return event.prediction.accepted
    if config.confidence_threshold is None:
        return None
    return event.prediction.confidence >= config.confidence_threshold


def _selective(events: Sequence[Scored], config: ModelConfig) -> dict[str, float | None]:
    """Coverage and rejection over all decided predictions; selective risk over the labelled ones."""
    decisions = [(event, acceptance(event, config)) for event in events]
    decided = [(event, decision) for event, decision in decisions if decision is not None]
    accepted = sum(decision for _, decision in decided)
    labelled = [(event, decision) for event, decision in decided if event.label is not None]
    kept = [event for event, decision in labelled if decision]
    errors = sum(not event.correct for event in kept)
    return (
        {
            "decided": len(decided),
            "accepted": accepted,
            "labelled_accepted": len(kept),
            "selective_risk_budget": config.selective_risk_budget,
            "coverage": ratio(accepted, len(decided)),
            "labelled_coverage": ratio(len(kept), len(labelled)),
        }
        | _with_bounds("selective_risk", errors, len(kept))
        | _with_bounds("rejection_rate", len(decided) - accepted, len(decided))
    )


def _ood(events: Sequence[Scored], config: ModelConfig) -> dict[str, float | None]:
    """Acceptance by the OOD score, of all scored predictions and by effective domain."""
    scored = [(event.prediction.ood_score, event.domain) for event in events if event.prediction.ood_score is not None]
    found: dict[str, float | None] = {"ood_scored": len(scored)}
    threshold = config.ood_threshold
    if threshold is None:
        return found
    high_is_in = config.ood_high_is == "in_distribution"
    decisions = [(score >= threshold if high_is_in else score <= threshold, domain) for score, domain in scored]
    inside = [accepted for accepted, domain in decisions if domain == "id"]
    outside = [accepted for accepted, domain in decisions if domain is not None and domain != "id"]
    return (
        found
        | _with_bounds("ood_acceptance_rate", sum(accepted for accepted, _ in decisions), len(decisions))
        | {
            "id_acceptance_rate": ratio(sum(inside), len(inside)),
            "ood_false_acceptance_rate": ratio(sum(outside), len(outside)),
            "ood_false_acceptance_rate_lower": wilson(sum(outside), len(outside))[0] if outside else None,
        }
    )


def wilson(hits: int, n: int) -> tuple[float, float]:
    """The 95 % Wilson interval of a share; [0, 1] without events, the ends exact at none and at all."""
    if n == 0:
        return 0.0, 1.0
    share, z2 = hits / n, Z_95**2
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = Z_95 / (1 + z2 / n) * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    return (0.0 if hits == 0 else centre - half), (1.0 if hits == n else centre + half)


def _with_bounds(name: str, hits: int, n: int) -> dict[str, float | None]:
    """A share and its interval, all undefined without events."""
    lower, upper = wilson(hits, n)
    return {name: ratio(hits, n), f"{name}_lower": lower if n else None, f"{name}_upper": upper if n else None}


def ratio(numerator: float, denominator: float) -> float | None:
    """A quotient, undefined over zero."""
    return numerator / denominator if denominator else None


def defined(found: Mapping[str, float | None]) -> Metrics:
    """Only what is defined."""
    return {name: float(number) for name, number in found.items() if number is not None}
