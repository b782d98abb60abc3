"""`calmon evaluate` on random streams against scikit-learn, scipy and statsmodels on the raw events.

What comes from ranks may be off by the bound that the product reports, everything else by rounding alone.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, fisher_exact
from sklearn.metrics import (
    average_precision_score,
    brier_score_loss,
    log_loss,
    precision_recall_fscore_support,
    roc_auc_score,
)
from statsmodels.stats.multitest import multipletests

from monitor.statistics.grid import graded_edges
from tests.golden.product import evaluate
from tests.oracle.random_stream import Event, Stream, event_lines, random_stream

SEEDS = range(36)
EXACT = 2e-9
LOGARITHM = 2e-7

Wanted = dict[str, float | None]


@cache
def streamed(seed: int, directory: Path) -> tuple[Stream, Mapping[str, Any]]:
    """A stream, and the product's metrics of it."""
    stream = random_stream(seed)
    file = directory / f"{seed}.ndjson"
    file.write_text("\n".join(stream.lines) + "\n", "utf-8")
    return stream, evaluate(file, stream.config, directory).models["m@1"]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("streams")


def compare(seed: int, got: Mapping[str, Any], want: Wanted, tolerance: float = EXACT) -> None:
    """Every wanted value: undefined where the libraries have none, else as near as the tolerance and the reported bound allow."""
    assert set(want) <= set(got), f"seed {seed}: {sorted(set(want) - set(got))}"
    wrong = {}
    for name, wanted in want.items():
        found, bound = got[name], got.get(f"{name}_bound") or 0.0
        if wanted is None or math.isnan(wanted):
            right = found is None
        else:
            right = found is not None and abs(found - wanted) <= bound + tolerance * max(1.0, abs(wanted))
        if not right:
            wrong[name] = (found, wanted, bound)
    assert wrong == {}, f"seed {seed}"


def over_seeds(test: Callable[[Stream, Mapping[str, Any]], None]) -> Callable[[int, Path], None]:
    """Run a test on every stream."""

    @pytest.mark.parametrize("seed", SEEDS)
    def each(seed: int, directory: Path) -> None:
        test(*streamed(seed, directory))

    return each


def places(values: Iterable[float], edges: Sequence[float]) -> list[int | None]:
    """Bins by comparison, the last one closed; None outside."""
    return [min(bisect_right(edges, value), len(edges) - 1) - 1 if edges[0] <= value <= edges[-1] else None for value in values]


def ece(pairs: Sequence[tuple[float, bool]], edges: Sequence[float], weights: Sequence[float] | None = None) -> float | None:
    """Sum over the bins of |sum of w (p - y)|, over the sum of w."""
    terms: dict[int, list[float]] = defaultdict(list)
    used: list[float] = []
    for place, (value, happened), weight in zip(places([p for p, _ in pairs], edges), pairs, weights or [1.0] * len(pairs), strict=True):
        if place is not None:
            terms[place] += [weight * value, -weight * happened]
            used.append(weight)
    return math.fsum(abs(math.fsum(term)) for term in terms.values()) / math.fsum(used) if used else None


def equal(bins: int) -> list[float]:
    return [k / bins for k in range(bins + 1)]


def auc(pairs: Sequence[tuple[float, bool]], weights: Sequence[float] | None = None) -> float | None:
    if len({happened for _, happened in pairs}) < 2:
        return None
    weights = None if weights is None else [max(weight, 0.0) for weight in weights]
    return float(roc_auc_score([y for _, y in pairs], [p for p, _ in pairs], sample_weight=weights))


def aurc(pairs: Sequence[tuple[float, bool]]) -> float | None:
    """Mean over k of the risk of the k most confident, ties spread evenly."""
    tied: dict[float, list[bool]] = defaultdict(list)
    for confidence, right in pairs:
        tied[confidence].append(right)
    before = failed = 0
    risks: list[float] = []
    for confidence in sorted(tied, reverse=True):
        count, wrong = len(tied[confidence]), tied[confidence].count(False)
        risks += [(failed + wrong * k / count) / (before + k) for k in range(1, count + 1)]
        before, failed = before + count, failed + wrong
    return math.fsum(risks) / len(risks) if risks else None


def mean(values: Iterable[float | None]) -> float | None:
    kept = [value for value in values if value is not None and not math.isnan(value)]
    return math.fsum(kept) / len(kept) if kept else None


def with_vectors(events: Sequence[Event]) -> list[tuple[Event, Mapping[str, float]]]:
    return [(event, event.vector) for event in events if event.vector is not None]


def own(stream: Stream, name: str) -> list[tuple[float, bool]]:
    return [(vector[name], event.label == name) for event, vector in with_vectors(stream.labelled)]


def ranks(stream: Stream, got: Mapping[str, Any]) -> None:
    pairs = [(event.confidence, event.correct) for event in stream.labelled]
    weights = [event.confidence for event, _ in with_vectors(stream.labelled)]
    plain, weighted = auc(own(stream, "a")), auc(own(stream, "a"), weights)
    want: Wanted = {"error_auroc": auc(pairs), "aurc": aurc(pairs), "auc": plain, "cw_auc": weighted}
    want["auc_calibration_gain"] = None if plain is None or weighted is None else weighted - plain
    rows = {row["class"]: row for row in got["class_ranks"]}
    watched = stream.classes if with_vectors(stream.labelled) else ()
    assert set(rows) == set(watched), f"seed {stream.seed}"
    for name in watched:
        chosen = [(event.confidence, event.correct) for event, _ in with_vectors(stream.labelled) if event.predicted == name]
        of_class = {"auc": auc(own(stream, name)), "cw_auc": auc(own(stream, name), weights), "aurc": aurc(chosen)}
        compare(stream.seed, rows[name], of_class)
    want["auc_macro"] = mean(auc(own(stream, name)) for name in watched)
    want["cw_auc_macro"] = mean(auc(own(stream, name), weights) for name in watched)
    compare(stream.seed, got, want)
    for point in got["rc"]:
        accepted = [right for confidence, right in pairs if confidence >= point["threshold"]]
        assert point["coverage"] == len(accepted) / len(pairs), f"seed {stream.seed}"
        assert point["risk"] == accepted.count(False) / len(accepted), f"seed {stream.seed}"


test_ranks = over_seeds(ranks)


def classes(stream: Stream, got: Mapping[str, Any]) -> None:
    labelled = stream.used
    true, predicted = [str(event.label) for event in labelled], [event.predicted for event in labelled]
    weights = [event.confidence for event in labelled]
    want: Wanted = {}
    names = sorted({*true, *predicted})
    shown: dict[str, float] = {}
    for prefix, sample_weight in (("class", None), ("cw", weights)):
        if not names:
            break
        precision, recall, f1, _ = precision_recall_fscore_support(
            true, predicted, labels=names, sample_weight=sample_weight, zero_division=np.nan
        )
        for number, name in enumerate(names):
            want |= {f"{prefix}_precision[{name}]": precision[number], f"{prefix}_recall[{name}]": recall[number]}
            if prefix == "cw":
                want[f"cw_f1[{name}]"] = shown[str(name)] = f1[number]
    want["cw_f1_macro"] = mean(shown.values())
    edges = stream.edges
    of_own = {name: ece(own(stream, name), edges) for name in stream.classes} if with_vectors(stream.labelled) else {}
    want |= {f"classwise_ece[{name}]": value for name, value in of_own.items()}
    want["classwise_ece_mean"] = mean(of_own.values())
    compare(stream.seed, got, want)
    for name in names:
        assert got[f"class_predicted[{name}]"] == sum(event.predicted == name for event in stream.events), f"seed {stream.seed}"


test_classes = over_seeds(classes)


def scores(stream: Stream, got: Mapping[str, Any]) -> None:
    known = [(event, vector) for event, vector in with_vectors(stream.used) if event.label in vector]
    outside = [vector for event, vector in with_vectors(stream.used) if event.label not in vector]
    count = len(known) + len(outside)
    want: Wanted = {"brier_multi": None, "nll_multi": None}
    if count:
        squares = math.fsum(1 + math.fsum(p * p for p in vector.values()) for vector in outside)
        loss = len(outside) * -math.log(1e-12)
        if known:
            labels = [event.label for event, _ in known]
            vectors = np.array([list(vector.values()) for _, vector in known])
            names = list(stream.classes)
            squares += len(known) * float(brier_score_loss(labels, vectors, labels=names, scale_by_half=False))
            clipped = np.maximum(vectors, 1e-12)
            loss += len(known) * float(log_loss(labels, clipped / clipped.sum(axis=1, keepdims=True), labels=names))
        want = {"brier_multi": squares / count, "nll_multi": loss / count}
    compare(stream.seed, got, want, LOGARITHM)
    assert got["unknown_class"] == len(outside), f"seed {stream.seed}"


test_scores = over_seeds(scores)


def positive_class(stream: Stream, got: Mapping[str, Any]) -> None:
    edges = stream.config["positive_edges"]
    pairs = [(p, y) for p, y in own(stream, "a") if edges[0] <= p <= edges[-1]]
    if "positive_ece" not in got:
        assert not with_vectors(stream.labelled), f"seed {stream.seed}"
        return
    assert got["positive_labelled_used"] == len(pairs), f"seed {stream.seed}"
    want: Wanted = {"positive_ece": ece(pairs, edges), "positive_brier": None, "positive_nll": None, "positive_mean_confidence": None}
    if pairs:
        p, y = np.array([p for p, _ in pairs]), np.array([y for _, y in pairs])
        want["positive_brier"] = brier_score_loss(y, p, labels=[False, True])
        both = np.maximum(np.stack((1 - p, p), axis=1), 1e-12)
        want["positive_nll"] = log_loss(y, both / both.sum(axis=1, keepdims=True), labels=[False, True])
        want["positive_mean_confidence"] = float(p.mean())
    compare(stream.seed, got, want, LOGARITHM)


test_positive_class = over_seeds(positive_class)


def prior(stream: Stream, got: Mapping[str, Any]) -> None:
    """Every event weighs its class's share under the prior over the events of that class."""
    share = stream.config["target_prior"]
    counts = {name: sum(event.label == name for event in stream.used) for name in share}
    want: Wanted = dict.fromkeys(("prior_accuracy", "prior_mean_confidence", "prior_overconfidence"))
    if all(counts.values()):
        kept = [(event, share[event.label] / counts[event.label]) for event in stream.used if event.label in share]
        weights = [weight for _, weight in kept]
        accuracy = np.average([event.correct for event, _ in kept], weights=weights)
        confidence = np.average([event.confidence for event, _ in kept], weights=weights)
        want = {"prior_accuracy": accuracy, "prior_mean_confidence": confidence, "prior_overconfidence": confidence - accuracy}
    edges = stream.config["positive_edges"]
    pairs = [(p, y) for p, y in own(stream, "a") if edges[0] <= p <= edges[-1]]
    positives = sum(y for _, y in pairs)
    want["positive_prior_ece"] = None
    if 0 < positives < len(pairs):
        of_class = {True: share["a"] / positives, False: (1 - share["a"]) / (len(pairs) - positives)}
        want["positive_prior_ece"] = ece(pairs, edges, [of_class[y] for _, y in pairs])
    compare(stream.seed, got, want)


test_prior = over_seeds(prior)


def resolution(stream: Stream, got: Mapping[str, Any]) -> None:
    pairs = [(event.confidence, event.correct) for event in stream.labelled]
    cuts = (2, 4, 8, 16, 32, 64)
    want = {f"ece_{bins}_bins": ece(pairs, equal(bins)) for bins in cuts} | {"ece": ece(pairs, stream.edges)}
    # The last report bin is closed, so where it ends below 1 the grid has a bin for this edge alone.
    grid = sorted({*stream.edges, math.nextafter(stream.edges[-1], 1.0), *graded_edges(32).tolist()})
    ranked = sorted(confidence for confidence, _ in pairs)
    inner = [grid[min(bisect_right(grid, ranked[k * len(ranked) // 15]), len(grid) - 1) - 1] for k in range(1, 15)] if ranked else []
    want["ece_mass"] = ece(pairs, sorted({0.0, *inner, 1.0}))
    in_bins = places(ranked, grid)
    want["ece_mass_tolerance"] = max(map(in_bins.count, in_bins)) / len(ranked) if ranked else None
    compare(stream.seed, got, want)
    found = [got[f"ece_{bins}_bins"] for bins in cuts]
    if ranked:
        # Each of these cuts is a refinement of the one before, and merging bins never raises ECE.
        assert all(coarse <= fine + 1e-15 for coarse, fine in pairwise(found)), f"seed {stream.seed}"
        of_one_bin = ece(pairs, [0.0, 1.0])
        assert of_one_bin is not None
        assert of_one_bin <= found[0] + EXACT, f"seed {stream.seed}"


test_resolution = over_seeds(resolution)


def ood(stream: Stream, got: Mapping[str, Any]) -> None:
    sign = 1.0 if stream.config["ood_high_is"] == "in_distribution" else -1.0
    scored = [(sign * event.score, event.domain == "id") for event in stream.events if event.score is not None and event.domain is not None]
    inside = sorted((score for score, is_in in scored if is_in), reverse=True)
    outside = [score for score, is_in in scored if not is_in]
    want: Wanted = dict.fromkeys(("ood_auroc", "ood_aupr_id", "ood_aupr_ood", "fpr_at_95tpr", "fpr_at_95tpr_threshold"))
    if inside and outside:
        # The libraries add up scores, which may be too large for that; ranks have the same order and ties.
        y, s = np.array([is_in for _, is_in in scored]), np.unique([score for score, _ in scored], return_inverse=True)[1]
        needed = next(k for k in range(1, len(inside) + 1) if k / len(inside) >= 0.95)
        threshold = inside[needed - 1]
        want = {
            "ood_auroc": roc_auc_score(y, s),
            "ood_aupr_id": average_precision_score(y, s),
            "ood_aupr_ood": average_precision_score(~y, -s),
            "fpr_at_95tpr": sum(score >= threshold for score in outside) / len(outside),
            "fpr_at_95tpr_threshold": sign * threshold,
        }
    compare(stream.seed, got, want)
    if inside and outside and len(scored) > 300:
        assert got["ood_auroc_bound"] < 0.02, f"seed {stream.seed}"
    threshold = sign * stream.config["ood_threshold"]
    passed = [sign * event.score >= threshold for event in stream.events if event.score is not None]
    assert got["ood_scored"] == len(passed), f"seed {stream.seed}"
    compare(stream.seed, got, {"ood_acceptance_rate": sum(passed) / len(passed) if passed else None})


test_ood = over_seeds(ood)


HARD_SCORES = (
    0.0,
    -0.0,
    5e-324,
    -5e-324,
    2.0**-30,
    -(2.0**-30),
    2.0**30,
    1e12,
    -1e12,
    1e305,
    -1e305,
    1.7976931348623157e308,
    -1.7976931348623157e308,
)


@pytest.mark.parametrize("high_is", ["in_distribution", "out_of_distribution"])
@pytest.mark.parametrize("seed", range(4))
def test_scores_of_any_size(seed: int, high_is: str, tmp_path: Path) -> None:
    """Beyond the last octaves and next to 0 a bin is wide: its bound says how wide."""
    rng = np.random.default_rng(seed)
    stream = Stream(seed, ("a", "b"), config={"ood_high_is": high_is, "ood_threshold": 0.0})
    for number in range(30):
        score, domain = float(rng.choice(HARD_SCORES)), str(rng.choice(["id", "camera-7"]))
        event = Event(None, "a", 0.5, None, score, domain, None, None)
        stream.events.append(event)
        stream.lines.extend(event_lines(event, number, domain, None))
    file = tmp_path / "stream.ndjson"
    file.write_text("\n".join(stream.lines) + "\n", "utf-8")
    ood(stream, evaluate(file, stream.config, tmp_path).models["m@1"])


def holm(p: Sequence[float]) -> list[float]:
    return [float(value) for value in multipletests(p, method="holm")[1]] if p else []


def rejection(stream: Stream, got: Mapping[str, Any]) -> None:
    decisions: dict[str, list[bool]] = defaultdict(list)
    for event in stream.events:
        decision = stream.accepted(event)
        if event.group is not None and decision is not None:
            decisions[event.group].append(decision)
    names = [name for name in sorted(decisions) if len(decisions[name]) >= stream.config["min_group_count"]]
    if not any(event.group for event in stream.events):
        assert "groups_used" not in got, f"seed {stream.seed}"
        return
    rejected = [decisions[name].count(False) for name in names]
    accepted = [decisions[name].count(True) for name in names]
    want: Wanted = {"groups_used": len(names), "rejection_rate_spread": None, "rejection_disparity_p": None}
    if len(names) > 1:
        tables = [[[r, a], [sum(rejected) - r, sum(accepted) - a]] for r, a in zip(rejected, accepted, strict=True)]
        corrected = holm([float(fisher_exact(np.array(table)).pvalue) for table in tables])
        want |= {f"rejection_rate_p_holm[{name}]": p for name, p in zip(names, corrected, strict=True)}
        want["rejection_disparity_p"] = min(corrected)
        rates = [r / (r + a) for r, a in zip(rejected, accepted, strict=True)]
        want["rejection_rate_spread"] = max(rates) - min(rates)
    compare(stream.seed, got, want)


test_rejection = over_seeds(rejection)


def cell_p(pairs: Sequence[tuple[float, bool]]) -> float:
    """Two-sided, from the binomial whose tails Hoeffding's theorem bounds; a tail is 1 where it does not reach."""
    n, hits, expected = len(pairs), sum(y for _, y in pairs), math.fsum(p for p, _ in pairs)
    lower = float(binom.cdf(hits, n, expected / n)) if hits <= expected - 1 else 1.0
    upper = float(binom.sf(hits - 1, n, expected / n)) if hits >= expected + 1 else 1.0
    return min(1.0, 2 * min(lower, upper))


def multicalibration(stream: Stream, got: Mapping[str, Any]) -> None:
    if not any(event.group for event in stream.events):
        return
    edges, least = stream.edges, stream.config["min_group_count"]
    groups: dict[str, list[tuple[float, bool]]] = defaultdict(list)
    in_cells: dict[tuple[str, int | None], list[tuple[float, bool]]] = defaultdict(list)
    for event in stream.used:
        if event.group is not None:
            groups[event.group].append((event.confidence, event.correct))
            in_cells[event.group, places([event.confidence], edges)[0]].append((event.confidence, event.correct))
    large = [pairs for pairs in groups.values() if len(pairs) >= least]
    cells = [pairs for pairs in in_cells.values() if len(pairs) >= least]
    gaps = [abs(math.fsum([*(p for p, _ in pairs), -sum(y for _, y in pairs)])) for pairs in cells]
    whole = [abs(math.fsum([*(p for p, _ in pairs), -sum(y for _, y in pairs)])) / len(pairs) for pairs in large]
    want: Wanted = {
        "multicalibration_groups": len(large),
        "multicalibration_cells": len(cells),
        "group_overconfidence_max": max(whole, default=None),
        "group_ece_max": max((value for pairs in large if (value := ece(pairs, edges)) is not None), default=None),
        "multicalibration_max_gap": max((gap / len(pairs) for gap, pairs in zip(gaps, cells, strict=True)), default=None),
        "multicalibration_max_weighted_gap": max((gap / len(stream.used) for gap in gaps), default=None),
        "multicalibration_p_holm": min(holm([cell_p(pairs) for pairs in cells]), default=None),
    }
    compare(stream.seed, got, want, 1e-7)


test_multicalibration = over_seeds(multicalibration)


def test_the_streams_have_what_they_are_for() -> None:
    """Ties, edges, 0 and 1, one class, one event, labels outside the vector, confidences alone, domains that labels overrule."""
    streams = [random_stream(seed) for seed in SEEDS]
    events = [event for stream in streams for event in stream.events]
    assert {0.0, 1.0, 1 / 15, 14 / 15} <= {event.confidence for event in events} | {p for e in events for p in (e.vector or {}).values()}
    assert any(len(stream.events) == 1 for stream in streams)
    assert any({event.label for event in stream.labelled} <= {"a", "nowhere"} for stream in streams if len(stream.events) > 100)
    assert any(event.label == "nowhere" for event in events)
    assert any(event.vector is None and event.label is not None for event in events)
    assert {None, "id", "camera-7", "camera-8"} == {event.domain for event in events}
    assert any(len({event.confidence for event in stream.events}) < 10 < len(stream.events) for stream in streams)
