"""Where labels go: a protocol with three adapters, in modules of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from monitor.backfill.labels.beside import Standing
from monitor.backfill.labels.sieve import Kept


class Destination(Protocol):
    """Takes labels in, batch by batch, and knows how far each label file has come.

    Attributes:
        paused_s: How long it waited for a service to keep up.
    """

    paused_s: float

    def standing(self, partition: str) -> Standing:
        """How far a label file has been taken in, by this run or an earlier one.

        Raises:
            StateError: That cannot be read.
        """
        ...

    def deliver(self, partition: str, kept: Sequence[Kept], standing: Standing, stopped: Callable[[], bool]) -> bool:
        """Take labels in for good, then note how far their file has come.

        Args:
            partition: The label file.
            kept: Labels; there may be none.
            standing: How far the file has come with them.
            stopped: Whether somebody asked for the end: nothing is waited for then that need not be.

        Returns:
            Whether all of them were; if not, they come again in the next run.

        Raises:
            CalmonError: They cannot be taken in; they come again in the next run.
        """
        ...
