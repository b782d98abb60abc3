"""A reference: the sums of one model version over a stretch of time, given a name to hold later windows against."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from monitor.names import ALL_VALUE, CLASS_SEGMENT, RESERVED_PREFIX, SCORE_SEGMENT
from monitor.statistics.fixed_point import I64
from monitor.statistics.layout import Layout
from monitor.statistics.segment import ALL
from monitor.statistics.series import SeriesKey

_KEPT = (ALL_VALUE, CLASS_SEGMENT, SCORE_SEGMENT)


@dataclass(frozen=True)
class Reference:
    """Sums with what they are of.

    Attributes:
        name: Given by a person.
        number: Its version; setting a name again makes the next one.
        model: Whose predictions they are of.
        version: Of which version of it.
        layout: What the sums mean.
        start_ms: First event time of the stretch.
        end_ms: Excluded.
        created_ms: When it was made.
        source: Where the sums came from, in words.
        cells: By series; of segment `all`, classes, scores and group values.
    """

    name: str
    number: int
    model: str
    version: str
    layout: Layout
    start_ms: int
    end_ms: int
    created_ms: int
    source: str
    cells: Mapping[SeriesKey, I64]

    @property
    def label(self) -> str:
        """NAME@NUMBER, as in a configuration."""
        return f"{self.name}@{self.number}"

    @property
    def whole(self) -> I64:
        """The cell of segment `all`."""
        return self.cells[SeriesKey(self.model, self.layout.fingerprint, self.version, ALL_VALUE, ALL_VALUE)]

    @property
    def counts(self) -> dict[str, int]:
        """What it rests on: predictions, those with a label, those with an OOD score, those accepted or rejected."""
        scored = [name for name in ALL.scalars if name.startswith("scored_")]
        names = {"predictions": ["predictions"], "labelled": ["labelled"], "scored": scored, "decided": ["decided"]}
        return {name: sum(int(self.whole[ALL.scalar(one)]) for one in parts) for name, parts in names.items()}


def referable(cells: Mapping[SeriesKey, I64], model: str, version: str) -> dict[SeriesKey, I64]:
    """The cells of a version that a reference keeps: what drift is told from."""

    def kept(key: SeriesKey) -> bool:
        return (key.model, key.version) == (model, version) and (key.segment in _KEPT or not key.segment.startswith(RESERVED_PREFIX))

    return {key: cell for key, cell in cells.items() if kept(key)}
