"""What became of labels: counts by reason, and the same by model version."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

SENT = "sent"
"""Outcome of a label that was handed to a service: the service counts what becomes of it."""


class Tally:
    """Counts that can be kept beside a position.

    Attributes:
        rows: Rows read.
        labels: By outcome or reason; they add up to the rows.
        versions: By (model, version) and outcome; a label counts under every version that it covers, and where it reaches none of
            them under none.
    """

    def __init__(self) -> None:
        self.rows = 0
        self.labels: Counter[str] = Counter()
        self.versions: dict[tuple[str, str], Counter[str]] = {}

    def add(self, outcome: str, versions: Mapping[tuple[str, str], str]) -> None:
        """Count one label."""
        self.rows += 1
        self.labels[outcome] += 1
        for version, its_outcome in versions.items():
            self.versions.setdefault(version, Counter())[its_outcome] += 1

    def merge(self, other: Tally) -> None:
        """Take other counts in."""
        self.rows += other.rows
        self.labels += other.labels
        for version, counts in other.versions.items():
            self.versions.setdefault(version, Counter()).update(counts)

    def report(self) -> dict[str, Any]:
        """The counts as JSON has them."""
        return {
            "rows": self.rows,
            "labels": dict(sorted(self.labels.items())),
            "versions": {f"{model}@{version}": dict(sorted(counts.items())) for (model, version), counts in sorted(self.versions.items())},
        }

    def to_text(self) -> str:
        """The form that is kept beside a position."""
        return json.dumps(
            [self.rows, self.labels, [[*version, counts] for version, counts in self.versions.items()]], separators=(",", ":")
        )

    @classmethod
    def from_text(cls, text: str) -> Tally:
        """The counts that `to_text` wrote."""
        tally = cls()
        rows, labels, versions = json.loads(text)
        tally.rows, tally.labels = rows, Counter(labels)
        tally.versions = {(model, version): Counter(counts) for model, version, counts in versions}
        return tally
