"""Rows of numbers, collected one by one and taken as columns: the only per-event code of the statistics."""

from __future__ import annotations

from itertools import chain

import numpy as np

from monitor.statistics.fixed_point import F64


class RowBuffer:
    """Rows of one layout.

    Args:
        columns: Numbers in a row.

    Attributes:
        append: Takes a row; whole numbers in it stay exact below 2^53.
    """

    def __init__(self, columns: int) -> None:
        self._columns = columns
        self._rows: list[tuple[float, ...]] = []
        # One conversion at the end costs half of what as many conversions of a row do.
        self.append = self._rows.append

    def __len__(self) -> int:
        return len(self._rows)

    def take(self) -> F64:
        """The rows so far, shape (columns, n); and start anew."""
        numbers = np.fromiter(chain.from_iterable(self._rows), np.float64, len(self._rows) * self._columns)
        self._rows.clear()
        return np.array(numbers.reshape(-1, self._columns).T, order="C")
