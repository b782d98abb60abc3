"""The account: what became of every record, and what is waiting; part of every checkpoint."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import msgspec
import numpy as np

_KeyT = TypeVar("_KeyT")

DELAY_BOUNDS_S = (0, 60, 600, 3_600, 6 * 3_600, 86_400, 2 * 86_400, 4 * 86_400, 7 * 86_400, 14 * 86_400, 30 * 86_400, 60 * 86_400)
"""Upper bounds of the label-delay histogram's buckets, seconds; a negative delay is in the first."""

_BOUNDS_MS = np.array(DELAY_BOUNDS_S, dtype=np.int64) * 1000


class Version(NamedTuple):
    """A model and one of its versions."""

    model: str
    version: str


class Account(msgspec.Struct):
    """Counts since the state began.

    Attributes:
        consumed: Records read.
        outcomes: By (kind, outcome); kinds are prediction, label and unknown. They add up to `consumed`.
        refused: By (kind, reason).
        ineligible: Pairs of a label and a prediction that could not be joined, by `late` or `early`.
        pending: Predictions that no label scores.
        waiting: Scopes of labels whose id nobody has predicted.
        delays: Per version: counts by bucket of `DELAY_BOUNDS_S` and above; first labels only.
        delay_sums_ms: Per version: sum of the delays.
        newest_ms: Newest event time by kind.
        folded: Group values that lost their own series.
        first_ms: By (model, version): smallest event time of any prediction that was not refused.
    """

    consumed: int = 0
    outcomes: dict[tuple[str, str], int] = {}
    refused: dict[tuple[str, str], int] = {}
    ineligible: dict[str, int] = {}
    pending: int = 0
    waiting: int = 0
    delays: dict[Version, list[int]] = {}
    delay_sums_ms: dict[Version, int] = {}
    newest_ms: dict[str, int] = {}
    folded: int = 0
    first_ms: dict[tuple[str, str], int] = {}

    def count(self, kind: str, outcome: str, records: int = 1) -> None:
        """Records of a kind came to an outcome."""
        key = (kind, outcome)
        self.outcomes[key] = self.outcomes.get(key, 0) + records

    def refuse(self, kind: str, reason: str) -> None:
        """One record was refused."""
        self.count(kind, "refused")
        key = (kind, reason)
        self.refused[key] = self.refused.get(key, 0) + 1

    def not_eligible(self, side: str) -> None:
        """A label and a prediction of one id were too far apart in time."""
        self.ineligible[side] = self.ineligible.get(side, 0) + 1

    def delay(self, model: str, version: str, delays_ms: Sequence[int]) -> None:
        """A version got its first labels for some ids."""
        key = Version(model, version)
        bucket = np.searchsorted(_BOUNDS_MS, delays_ms, side="left")
        counts = np.bincount(bucket, minlength=len(DELAY_BOUNDS_S) + 1).tolist()
        known = self.delays.get(key, [0] * len(counts))
        self.delays[key] = [old + new for old, new in zip(known, counts, strict=True)]
        self.delay_sums_ms[key] = self.delay_sums_ms.get(key, 0) + sum(delays_ms)

    def saw(self, kind: str, event_time_ms: int) -> None:
        """An event time of a kind was accepted."""
        if event_time_ms > self.newest_ms.get(kind, 0):
            self.newest_ms[kind] = event_time_ms

    def saw_version(self, model: str, version: str, event_time_ms: int) -> None:
        """A prediction of a version was accepted."""
        self.first_ms[model, version] = min(event_time_ms, self.first_ms.get((model, version), event_time_ms))

    def copy(self) -> Account:
        """An account that no longer changes with this one."""
        return Account(
            self.consumed,
            dict(self.outcomes),
            dict(self.refused),
            dict(self.ineligible),
            self.pending,
            self.waiting,
            {version: list(counts) for version, counts in self.delays.items()},
            dict(self.delay_sums_ms),
            dict(self.newest_ms),
            self.folded,
            dict(self.first_ms),
        )

    def to_bytes(self) -> bytes:
        """The stored form."""
        return msgspec.msgpack.encode(
            [
                self.consumed,
                list(self.outcomes.items()),
                list(self.refused.items()),
                self.ineligible,
                self.pending,
                self.waiting,
                list(self.delays.items()),
                list(self.delay_sums_ms.items()),
                self.newest_ms,
                self.folded,
                list(self.first_ms.items()),
            ]
        )

    @classmethod
    def from_bytes(cls, data: bytes) -> Account:
        """The account that `to_bytes` wrote."""
        stored = msgspec.msgpack.decode(data, type=_Stored)
        return cls(
            stored.consumed,
            dict(stored.outcomes),
            dict(stored.refused),
            stored.ineligible,
            stored.pending,
            stored.waiting,
            dict(stored.delays),
            dict(stored.delay_sums_ms),
            stored.newest_ms,
            stored.folded,
            dict(stored.first_ms),
        )


def merge_accounts(accounts: Sequence[Account]) -> Account:
    """The account of several shards together."""
    total = Account()
    for one in accounts:
        total.consumed += one.consumed
        total.pending += one.pending
        total.waiting += one.waiting
        total.folded += one.folded
        _add(total.outcomes, one.outcomes)
        _add(total.refused, one.refused)
        _add(total.ineligible, one.ineligible)
        _add(total.delay_sums_ms, one.delay_sums_ms)
        for version, counts in one.delays.items():
            known = total.delays.get(version, [0] * len(counts))
            total.delays[version] = [mine + other for mine, other in zip(known, counts, strict=True)]
        for kind, newest in one.newest_ms.items():
            total.saw(kind, newest)
        for name, first_ms in one.first_ms.items():
            total.saw_version(*name, first_ms)
    return total


def _add(total: dict[_KeyT, int], part: dict[_KeyT, int]) -> None:
    for key, count in part.items():
        total[key] = total.get(key, 0) + count


_Counts = list[tuple[tuple[str, str], int]]


class _Stored(msgspec.Struct, array_like=True):
    """Fields of an account in stored order; those at the end that an older calmon did not write have defaults."""

    consumed: int
    outcomes: _Counts
    refused: _Counts
    ineligible: dict[str, int]
    pending: int
    waiting: int
    delays: list[tuple[Version, list[int]]]
    delay_sums_ms: list[tuple[Version, int]]
    newest_ms: dict[str, int]
    folded: int
    first_ms: list[tuple[tuple[str, str], int]] = []
