"""Raw scores put into bins, with what is known of each bin: which are tied, and between which scores its events lie."""

from __future__ import annotations

import numpy as np

from monitor.statistics.fixed_point import F64, I64
from monitor.statistics.grid import bin_index


def spans(edges: F64, scores: F64) -> tuple[np.ndarray[tuple[int], np.dtype[np.bool_]], F64, F64]:
    """Tied bins, and the lowest and highest score that a bin can hold."""
    place = bin_index(edges, scores)
    lowest, highest = edges[:-1].copy(), edges[1:].copy()
    tied = np.zeros(len(edges) - 1, dtype=np.bool_)
    for number in set(place.tolist()):
        values = set(scores[place == number].tolist())
        if len(values) == 1:
            tied[number] = True
            lowest[number] = highest[number] = values.pop()
    return tied, lowest, highest


def arrays(events: list[tuple[float, bool]]) -> tuple[F64, I64]:
    """Scores, and 1 where an event is what its flag says."""
    return np.array([e[0] for e in events]), np.array([int(e[1]) for e in events])
