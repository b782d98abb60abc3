"""How versions stand in the evidence tests at one moment: what is shown, and the entries of the journal of crossings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from monitor.evidence.course import Alarm


@dataclass(frozen=True, slots=True)
class Crossing:
    """The first time that an alarm of a version was at its threshold or above; never changed afterwards.

    Attributes:
        model: Of the version.
        version: Its name.
        alarm: What crossed.
        alpha: The level in force.
        threshold: In logarithms.
        pane_end_ms: End of the pane at whose close it crossed.
        noted_ms: What the clock showed when the pane entered.
        value: The alarm's logarithm then.
        predictions: Of all panes until then.
        labelled: Those with a label when their pane entered.
        change_start_ms: For a detector, start of the pane where the trouble most likely began; else None.
    """

    model: str
    version: str
    alarm: Alarm
    alpha: float
    threshold: float
    pane_end_ms: int
    noted_ms: int
    value: float
    predictions: int
    labelled: int
    change_start_ms: int | None

    def told(self) -> str:
        """The entry in a line."""
        return (
            f"{self.model} {self.version}: {self.alarm.statistic} {self.alarm.side} at tolerance {self.alarm.tolerance:g} crossed "
            f"{self.threshold:.3f} with {self.value:.3f}, after {self.predictions} predictions of which {self.labelled} are labelled"
        )


@dataclass(frozen=True, slots=True)
class Standing:
    """One version.

    Attributes:
        model: Of the version.
        version: Its name.
        since_ms: Start of its first matured pane.
        predictions: Of all matured panes, as known now.
        labelled: Those with a label, as known now.
        log_e: Logarithm of each e-process from the labels as known now.
        log_run_length: Logarithm of each detector's R.
        change_start_ms: Where the trouble most likely began, for each detector at its threshold or above.
        block_log_e: Logarithm of E of the block bets.
        overconfidence_lower: Lower bound of the worst over-confidence.
        restated: Whether the matured panes have changed since they entered: what is shown and what was judged differ.
        crossings: What has crossed at the present level, ever.
    """

    model: str
    version: str
    since_ms: int
    predictions: int
    labelled: int
    log_e: Mapping[Alarm, float]
    log_run_length: Mapping[Alarm, float]
    change_start_ms: Mapping[Alarm, int]
    block_log_e: float
    overconfidence_lower: float
    restated: bool
    crossings: Mapping[Alarm, Crossing]


@dataclass(frozen=True, slots=True)
class Evidence:
    """All versions that are watched.

    Attributes:
        standings: By model and version.
        selected: For each e-process, which of them e-BH reports at the level; in the same order.
        matured_until_ms: Predictions before it have entered; None before any has.
    """

    standings: Sequence[Standing] = ()
    selected: Mapping[Alarm, Sequence[bool]] = field(default_factory=dict)
    matured_until_ms: int | None = None
