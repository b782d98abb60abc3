"""A version's course: its tests over panes in their one order, each pane as it was known when it matured.

What it takes to go on is carried, so that a pane is folded in once and never looked at again: a course in many parts has the
same bits as a course in one. Corrections do not change it; see FORMULAS section 9, rules 3 and 4.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from monitor.evidence.bets import Side, bets, log_threshold
from monitor.evidence.blocks import STAKES, log_e_blocks_path, log_mean_over_stakes
from monitor.evidence.cell import WIDTH, parts, side_sums
from monitor.evidence.count_and_sum import log_e_both, log_e_of_bets, log_mixture
from monitor.evidence.detector import LOG_RUN_LENGTH, Detector, fold
from monitor.evidence.grid_sums import GridSums
from monitor.evidence.lower_bound import TOLERANCES as BOUND_TOLERANCES
from monitor.evidence.lower_bound import fold_maxima
from monitor.evidence.path import NEVER, log_e_path
from monitor.statistics.fixed_point import F64, I64

TOLERANCES = (0.0, 0.02)
"""0 says what there is, 0.02 is for alarms: so much can come of wrong labels."""

BOTH = "both"

E_PROCESS, BLOCK, RUN_LENGTH = "e_process", "block", "run_length"


class Alarm(NamedTuple):
    """Something that can cross its threshold.

    Attributes:
        statistic: `e_process`, `block` (one bet a pane) or `run_length` (the detector).
        side: `over`, `under` or `both`.
        tolerance: How much miscalibration is put up with.
    """

    statistic: str
    side: str
    tolerance: float


E_ALARMS = tuple(Alarm(E_PROCESS, side, tolerance) for tolerance in TOLERANCES for side in (*(one.value for one in Side), BOTH))
BLOCK_ALARM = Alarm(BLOCK, Side.OVER.value, 0.0)
DETECTORS = tuple((side, tolerance) for tolerance in TOLERANCES for side in Side)
DETECTOR_ALARMS = tuple(Alarm(RUN_LENGTH, side.value, tolerance) for side, tolerance in DETECTORS)
ALARMS = (*E_ALARMS, BLOCK_ALARM, *DETECTOR_ALARMS)
"""All of them, in the order of every array that has one number an alarm."""


def thresholds(alpha: float) -> F64:
    """Logarithms at which the alarms cross, shape (11,)."""
    return np.array([LOG_RUN_LENGTH if test.statistic == RUN_LENGTH else log_threshold(alpha) for test in ALARMS])


@dataclass(frozen=True, slots=True, eq=False)
class Course:
    """State after some panes.

    Attributes:
        first_pane: Number of the first pane with a prediction; `NEVER` before it.
        last_pane: Number of the last one; `NEVER` before the first.
        cell: Sums of all panes as they matured, shape (WIDTH,).
        maxima: Largest logarithm of each alarm so far, at least 0, shape (11,).
        detectors: One of each of `DETECTORS`.
        blocks: ln E of the block bets by stake, shape (4,).
        bound: Largest ln E of each tolerance of the lower bound, shape (12,).
    """

    first_pane: int
    last_pane: int
    cell: I64
    maxima: F64
    detectors: tuple[Detector, ...]
    blocks: F64
    bound: F64

    @classmethod
    def empty(cls) -> Course:
        """Before the first pane."""
        return cls(
            NEVER,
            NEVER,
            np.zeros(WIDTH, dtype=np.int64),
            np.zeros(len(ALARMS)),
            tuple(Detector.empty(bets(side, tolerance)) for side, tolerance in DETECTORS),
            np.zeros(len(STAKES)),
            np.zeros(len(BOUND_TOLERANCES)),
        )

    def fits(self, other: Course) -> bool:
        """Whether both are of the same tests: arrays of equal shapes."""
        return [array.shape for array in self._arrays()] == [array.shape for array in other._arrays()]

    def _arrays(self) -> list[F64 | I64]:
        states = [array for one in self.detectors for array in (one.log_r, one.log_best, one.start)]
        return [self.cell, self.maxima, *states, self.blocks, self.bound]

    @property
    def block_log_e(self) -> float:
        """Logarithm of E of the block bets."""
        return float(log_mean_over_stakes(self.blocks))

    @property
    def log_run_length(self) -> F64:
        """Logarithm of R of each detector, shape (4,)."""
        states = zip(DETECTORS, self.detectors, strict=True)
        return np.array([log_mixture(bets(side, tolerance), state.log_r) for (side, tolerance), state in states])


def extend(course: Course, numbers: I64, cells: I64) -> tuple[Course, F64]:
    """Let more panes mature.

    Args:
        course: Before them.
        numbers: Numbers of the panes, ascending, shape (n,); only panes with predictions.
        cells: Their sums, shape (n, WIDTH).

    Returns:
        The course after them, and each alarm's logarithm at each pane's close, shape (11, n).

    Raises:
        CapacityError: More predictions than the sums can hold.
    """
    panes = {side: side_sums(side, cells) for side in Side}
    carried = {side: side_sums(side, course.cell) for side in Side}
    rows = []
    for tolerance in TOLERANCES:
        over, under = (log_e_path(bets(side, tolerance), panes[side], carried[side]) for side in Side)
        rows += [over, under, log_e_both(over, under)]
    block_path, blocks = _blocks(cells, course.blocks)
    detectors = []
    run_lengths = []
    for (side, tolerance), state in zip(DETECTORS, course.detectors, strict=True):
        after, path = fold(bets(side, tolerance), state, panes[side], numbers)
        detectors.append(after)
        run_lengths.append(path)
    values = np.stack([*rows, block_path, *run_lengths])
    after_all = Course(
        int(numbers[0]) if course.first_pane == NEVER else course.first_pane,
        int(numbers[-1]),
        course.cell + cells.sum(axis=0),
        np.maximum(course.maxima, values.max(axis=1)),
        tuple(detectors),
        blocks,
        fold_maxima(panes[Side.OVER], carried[Side.OVER], course.bound),
    )
    return after_all, values


def log_e_now(cells: I64) -> F64:
    """Logarithm of each e-process of sums as they are known now.

    Args:
        cells: Shape (..., WIDTH).

    Returns:
        Shape (6, ...), in the order of `E_ALARMS`.
    """
    rows: list[F64] = []
    for tolerance in TOLERANCES:
        over, under = (_log_e(side, tolerance, side_sums(side, cells)) for side in Side)
        rows += [over, under, log_e_both(over, under)]
    return np.stack(rows)


def _log_e(side: Side, tolerance: float, sums: GridSums) -> F64:
    table = bets(side, tolerance)
    return log_mixture(table, log_e_of_bets(table, sums, guarded=True))


def _blocks(cells: I64, carried: F64) -> tuple[F64, F64]:
    """Each pane is a block; a missing label counts as correct."""
    predictions, confidence, labelled, correct = (part.sum(axis=-1) for part in parts(cells))
    return log_e_blocks_path(predictions, labelled - correct, confidence, carried)
