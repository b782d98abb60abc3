"""Values of many attributes side by side, so that a test over all of them is one call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from monitor.metrics.group import GroupCalibration, GroupDecisions
from monitor.metrics.sums import Sums
from monitor.names import OTHER_VALUE
from monitor.statistics.fixed_point import I64


@dataclass(frozen=True)
class GroupTable:
    """Attributes of versions that share settings and a number of report bins.

    Attributes:
        names: Values of each attribute, `__other__` left out: it is a mixture and no group.
        sums: Sums of each attribute's values, in the order of its names.
        version_used: Used labelled events of each attribute's version.
    """

    names: Sequence[Sequence[str]]
    sums: Sequence[Sums]
    version_used: Sequence[int]

    @classmethod
    def of(cls, attributes: Sequence[tuple[Sums, int]]) -> GroupTable:
        """From the sums of each attribute, with its version's used events."""
        named = [[name for name in sums.names if name != OTHER_VALUE] for sums, _ in attributes]
        return cls(named, [sums for sums, _ in attributes], [used for _, used in attributes])

    @cached_property
    def decisions(self) -> GroupDecisions:
        """Decisions by value, shorter rows filled with zeros."""
        decided, accepted = (self._padded([sums.count(name) for sums in self.sums]) for name in ("decided", "accepted"))
        return GroupDecisions(decided, accepted, self.sums[0].settings.min_group_count)

    @cached_property
    def calibration(self) -> GroupCalibration:
        """Calibration by value and bin, shorter rows filled with zeros."""
        parts = (self._padded([sums.bins(name) for sums in self.sums]) for name in ("labelled", "correct", "confidence"))
        labelled, correct, confidence = parts
        used = np.array(self.version_used, dtype=np.int64)
        return GroupCalibration(labelled, correct, confidence, used, self.sums[0].settings.min_group_count)

    def _padded(self, parts: Sequence[I64]) -> I64:
        widest = max(1, *(len(names) for names in self.names))
        padded = np.zeros((len(parts), widest, *parts[0].shape[1:]), dtype=np.int64)
        for row, (part, names, sums) in enumerate(zip(parts, self.names, self.sums, strict=True)):
            chosen = [place for place, name in enumerate(sums.names) if name != OTHER_VALUE]
            padded[row, : len(names)] = part[chosen]
        return padded
