"""Evidence against the golden answers: cases joined by the slow oracle, then through integer sums."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from monitor.evidence.blocks import log_e_blocks
from monitor.evidence.count_and_sum import log_e_over, log_e_under
from monitor.evidence.grid_sums import BINS, EDGES, GridSums
from monitor.evidence.many import e_bh
from monitor.statistics.fixed_point import F64, PROBABILITY_BITS, fixed
from monitor.statistics.grid import bin_index, graded_edges
from tests.golden.case import load_case
from tests.oracle.join import join

GOLDEN = Path(__file__).parents[1] / "golden"
CASES = sorted(path for path in (GOLDEN / "cases").glob("*.json") if "log_e_over" in path.read_text("utf-8"))
TOLERANCE = 1e-6

VALUES: dict[str, Callable[[GridSums], F64]] = {
    "log_e_over": log_e_over,
    "log_e_under": log_e_under,
    "log_e_over_tolerance_0.02": lambda sums: log_e_over(sums, 0.02),
}


def summed(confidence: list[float], correct: list[bool]) -> GridSums:
    claims = np.array(confidence)
    place = bin_index(EDGES, claims)
    count, hits, confidences = (np.zeros(BINS, dtype=np.int64) for _ in range(3))
    np.add.at(count, place, 1)
    np.add.at(hits, place, np.array(correct, dtype=np.int64))
    np.add.at(confidences, place, fixed(claims, PROBABILITY_BITS))
    return GridSums.of(count, hits, confidences)


def sums_of(lines: list[bytes]) -> dict[str, GridSums]:
    """Labelled predictions of every `model@version`."""
    events: dict[str, tuple[list[float], list[bool]]] = defaultdict(lambda: ([], []))
    for scored in join(((0, line.rstrip(b"\n")) for line in lines), None).scored:
        if scored.label is not None:
            confidence, correct = events[f"{scored.prediction.model}@{scored.prediction.model_version}"]
            confidence.append(scored.prediction.confidence)
            correct.append(scored.correct)
    return {key: summed(*pair) for key, pair in events.items()}


def compared(sums: dict[str, GridSums], want: dict[str, Any]) -> int:
    """How many expected values there are; each is compared."""
    found = 0
    for key, expected in want.items():
        model, _, name = key.partition(".log_e_")
        if name:
            got = float(VALUES[f"log_e_{name}"](sums[model]))
            assert abs(got - expected) <= TOLERANCE * max(1, abs(expected)), f"{key}: {got} is not {expected}"
            found += 1
    return found


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_a_case_has_the_golden_evidence(path: Path) -> None:
    case = load_case(path)
    assert compared(sums_of(case.lines().splitlines()), dict(case.want)) >= 3


def function_case(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    content = json.loads((GOLDEN / "cases" / f"{name}.json").read_text("utf-8"))
    return content["args"], content["expect"]


def test_block_bets_have_the_golden_value() -> None:
    args, expect = function_case("p29_block_e_value")
    count, correct, confidence = (np.array(column) for column in zip(*args["blocks"], strict=True))
    got = log_e_blocks(count, count - correct, fixed(confidence, PROBABILITY_BITS))
    assert float(got) == pytest.approx(expect["log_e"], rel=TOLERANCE)


def test_e_bh_reports_the_golden_hypotheses() -> None:
    args, expect = function_case("p30_e_bh")
    assert np.flatnonzero(e_bh(np.array(args["log_e"]), args["alpha"])).tolist() == expect["reported"]


def test_the_grid_is_the_golden_one() -> None:
    args, expect = function_case("p31_graded_grid")
    edges = graded_edges(args["sub"])
    assert len(edges) - 1 == expect["bins"] == BINS
    assert edges[:4].tolist() == expect["first"]
    assert edges[-4:].tolist() == expect["last"]
    assert expect["middle"][0] in edges.tolist()
    assert edges.sum() == expect["sum"]
    assert np.array_equal(edges, EDGES)
