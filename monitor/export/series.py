"""Which series a metric's values are: one rule of labels for the page and for what is written back."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from monitor.metrics.evaluation import Block
from monitor.metrics.metric import Metric, Subject
from monitor.names import ALL_VALUE
from monitor.statistics.fixed_point import F64


def defined_values(metric: Metric, window: str, blocks: Sequence[Block]) -> Iterator[tuple[list[str], float]]:
    """Each series of a metric in a window: values of `metric.subject.labels`, and its value; an undefined one is left out."""
    for block in blocks:
        if metric not in block.values:
            continue
        rows = zip(_labels(window, block), block.values[metric].tolist(), strict=True)
        if block.subject is Subject.BIN:
            names = bin_names(block.edges)
            for labels, row in rows:
                yield from (([*labels, name], value) for name, value in zip(names, row, strict=True) if not math.isnan(value))
        else:
            yield from ((labels, value) for labels, value in rows if not math.isnan(value))


def bin_names(edges: F64) -> list[str]:
    """Values of the `bin` label: LO-HI, edges to six digits."""
    return [f"{low:.6g}-{high:.6g}" for low, high in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)]


def _labels(window: str, block: Block) -> Iterator[list[str]]:
    for key in block.keys:
        if block.subject in (Subject.CLASS, Subject.OWN):
            yield [key.model, key.version, window, ALL_VALUE, ALL_VALUE, key.value]
        else:
            yield [key.model, key.version, window, key.segment, key.value]
