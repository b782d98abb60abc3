"""How long things wait for each other: which label may score which prediction, and when a row has no future.

None of these rules asks a clock or how partitions interleave; that keeps the state a function of what was read.
"""

from __future__ import annotations

from dataclasses import dataclass

from monitor.duration import DAY_MS

GRACE_MS = 2 * DAY_MS
"""What a record may lie behind its partition beyond the horizon."""

_ALWAYS = -(1 << 62)


@dataclass(frozen=True, slots=True)
class Horizon:
    """The waiting rules.

    Attributes:
        horizon_ms: How long a prediction waits for its label, or None for ever.
        expires: Whether anything goes, and records that are too old for what is gone are refused; not while labels are backfilled.
    """

    horizon_ms: int | None
    expires: bool = True

    @property
    def earliest_ms(self) -> int:
        """Smallest `labelled_at - predicted_at` of a label that may score."""
        return _ALWAYS if self.horizon_ms is None else -self.horizon_ms - GRACE_MS

    @property
    def latest_ms(self) -> int:
        """Largest `labelled_at - predicted_at` of a label that may score."""
        return -_ALWAYS if self.horizon_ms is None else self.horizon_ms

    def accepts_since(self, newest_ms: int) -> int:
        """Oldest time that a partition still accepts once it has accepted `newest_ms`; older records are expired.

        Stored entries older than this decide no outcome any more: whether they are still there depends on other
        partitions, and must not matter.
        """
        return _ALWAYS if self.horizon_ms is None or not self.expires else newest_ms - self.horizon_ms - GRACE_MS

    def late(self, predicted_at: int, labelled_at: int) -> bool:
        """Whether the label came after the prediction's horizon."""
        return labelled_at - predicted_at > self.latest_ms

    def early(self, predicted_at: int, labelled_at: int) -> bool:
        """Whether the label is so much older than the prediction that its row may be gone."""
        return labelled_at - predicted_at < self.earliest_ms

    def eligible(self, predicted_at: int, labelled_at: int) -> bool:
        """Whether the label may score the prediction."""
        return self.earliest_ms <= labelled_at - predicted_at <= self.latest_ms

    def prediction_done_ms(self, predicted_at: int) -> int | None:
        """Once every partition has passed this time, no record can meet the prediction any more.

        An eligible label is at most `predicted_at + horizon`, and is accepted up to `horizon + grace` later.
        """
        return None if self.horizon_ms is None else predicted_at + 2 * self.horizon_ms + GRACE_MS

    def label_done_ms(self, labelled_at: int) -> int | None:
        """The same for a label: an eligible prediction is at most `labelled_at + horizon + grace`."""
        return None if self.horizon_ms is None else labelled_at + 2 * (self.horizon_ms + GRACE_MS)
