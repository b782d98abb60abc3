"""What questions about past moments ask of a shard, or of a copy of a part of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from monitor.pipeline.account import Account
from monitor.statistics.layout import Layout
from monitor.statistics.pane import PaneLevel, PaneSums
from monitor.statistics.series import SeriesTable
from monitor.statistics.track import Epoch


class Panes(Protocol):
    """What a shard, or a copy of a part of it, tells of its panes."""

    @property
    def series(self) -> SeriesTable:
        """Slots of its series."""
        ...

    @property
    def layouts(self) -> Mapping[str, Layout]:
        """Layouts by fingerprint."""
        ...

    @property
    def epochs(self) -> Mapping[str, Sequence[Epoch]]:
        """Epochs by model, ascending."""
        ...

    @property
    def account(self) -> Account:
        """What became of its records."""
        ...

    def scan(self, level: PaneLevel, first_chunk: int, end_chunk: int, wanted: NDArray[np.bool_]) -> Iterator[tuple[int, PaneSums]]:
        """Sums of the wanted slots by chunk in [first, end), ascending; chunks of which nothing is stored are left out."""
        ...

    def kept_from_ms(self, level: PaneLevel) -> int:
        """Event time from which on panes of a level are kept."""
        ...
