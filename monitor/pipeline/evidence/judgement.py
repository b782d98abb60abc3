"""A judgement: a version's course through more panes, and what crosses its threshold on the way for the first time."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from monitor.evidence.bets import bets
from monitor.evidence.cell import parts, side_sums
from monitor.evidence.course import ALARMS, DETECTOR_ALARMS, DETECTORS, Alarm, Course, extend, thresholds
from monitor.evidence.detector import estimated_start, fold
from monitor.evidence.standing import Crossing
from monitor.statistics.fixed_point import I64
from monitor.statistics.pane import HOUR
from monitor.windows.matured import VersionKey


def judge(
    version: VersionKey, course: Course, panes: tuple[I64, I64], alpha: float, now_ms: int, noted: Collection[tuple[VersionKey, Alarm]]
) -> tuple[Course, list[Crossing]]:
    """Let panes of a version enter.

    Args:
        version: Whose.
        course: Before them.
        panes: Their numbers, ascending, shape (n,), and cells, shape (n, WIDTH).
        alpha: The level.
        now_ms: What the clock shows.
        noted: What has crossed before.

    Returns:
        The course after them, and what crossed.

    Raises:
        CapacityError: More predictions than the sums can hold.
    """
    numbers, cells = panes
    after, values = extend(course, numbers, cells)
    # After a change of the level a maximum of long ago may be above it: that shows at the next pane's close.
    highest = np.maximum(np.maximum.accumulate(values, axis=1), course.maxima[:, None])
    needed = thresholds(alpha)
    crossings = []
    for row in np.flatnonzero(highest[:, -1] >= needed).tolist():
        alarm = ALARMS[row]
        if (version, alarm) not in noted:
            place = int(np.argmax(highest[row] >= needed[row]))
            until = course.cell + cells[: place + 1].sum(axis=0)
            predictions, _, labelled, _ = parts(until)
            crossings.append(
                Crossing(
                    *version,
                    alarm,
                    alpha,
                    float(needed[row]),
                    (int(numbers[place]) + 1) * HOUR.pane_ms,
                    now_ms,
                    float(highest[row, place]),
                    int(predictions.sum()),
                    int(labelled.sum()),
                    _start_ms(course, alarm, numbers[: place + 1], cells[: place + 1]),
                )
            )
    return after, crossings


def _start_ms(course: Course, alarm: Alarm, numbers: I64, cells: I64) -> int | None:
    """Where the trouble most likely began, as a detector sees it at the close of the last of these panes."""
    if alarm not in DETECTOR_ALARMS:
        return None
    place = DETECTOR_ALARMS.index(alarm)
    side = bets(*DETECTORS[place])
    state, _ = fold(side, course.detectors[place], side_sums(side.side, cells), numbers)
    return int(estimated_start(side, state)) * HOUR.pane_ms
