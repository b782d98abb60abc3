"""What is shown of the tests: the standing of each version, and which versions e-BH reports."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from monitor.evidence.bets import bets
from monitor.evidence.cell import parts
from monitor.evidence.course import DETECTOR_ALARMS, DETECTORS, E_ALARMS, Course, log_e_now
from monitor.evidence.detector import LOG_RUN_LENGTH, estimated_start
from monitor.evidence.lower_bound import lower_bound
from monitor.evidence.many import e_bh
from monitor.evidence.standing import Evidence, Standing
from monitor.pipeline.evidence.book import Book
from monitor.statistics.fixed_point import I64
from monitor.statistics.pane import HOUR
from monitor.windows.matured import VersionKey


def standings(cells: Mapping[VersionKey, I64], book: Book, alpha: float) -> dict[VersionKey, Standing]:
    """Standing of some versions.

    Args:
        cells: Their matured panes as known now.
        book: Their courses, and what has crossed.
        alpha: The level.
    """
    if not cells:
        return {}
    log_e = log_e_now(np.stack(list(cells.values())))
    crossings = book.crossings(alpha)
    found = {}
    for place, (version, cell) in enumerate(cells.items()):
        course = book.courses[version]
        predictions, _, labelled, _ = parts(cell)
        run_length = dict(zip(DETECTOR_ALARMS, course.log_run_length.tolist(), strict=True))
        starts = {
            alarm: int(estimated_start(bets(*detector), state)) * HOUR.pane_ms
            for alarm, detector, state in zip(DETECTOR_ALARMS, DETECTORS, course.detectors, strict=True)
            if run_length[alarm] >= LOG_RUN_LENGTH
        }
        found[version] = Standing(
            *version,
            since_ms=course.first_pane * HOUR.pane_ms,
            predictions=int(predictions.sum()),
            labelled=int(labelled.sum()),
            log_e=dict(zip(E_ALARMS, log_e[:, place].tolist(), strict=True)),
            log_run_length=run_length,
            change_start_ms=starts,
            block_log_e=course.block_log_e,
            overconfidence_lower=float(lower_bound(course.bound, alpha)),
            restated=not np.array_equal(cell, course.cell),
            crossings=crossings.get(version, {}),
        )
    return found


def show(
    known: Mapping[VersionKey, Standing], courses: Mapping[VersionKey, Course], until_pane: int, shown_ms: int, alpha: float
) -> Evidence:
    """All versions that are watched.

    Args:
        known: Standings.
        courses: Of the same versions.
        until_pane: Panes before it have entered.
        shown_ms: How long after its last matured prediction a version is watched; then it is retired.
        alpha: The level of e-BH.
    """
    retired = until_pane - shown_ms // HOUR.pane_ms
    watched = tuple(standing for version, standing in sorted(known.items()) if courses[version].last_pane >= retired)
    selected = {alarm: e_bh(np.array([one.log_e[alarm] for one in watched]), alpha).tolist() for alarm in E_ALARMS}
    return Evidence(watched, selected, until_pane * HOUR.pane_ms if known else None)
