"""Sorts the rows of a label file: what goes on to the state, and what is held back, each with its reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from monitor.backfill.labels.join_rows import Found, JoinRows
from monitor.backfill.labels.label_file import LabelRow
from monitor.backfill.labels.tally import SENT, Tally
from monitor.clock import Clock
from monitor.events.contract import FUTURE_SLACK_MS, LATEST_MS
from monitor.events.decode import Decoder
from monitor.events.record import HeadTable, Label, Record, Refusal
from monitor.join.horizon import Horizon
from monitor.join.verdict import EARLY, HELD_BACK, LATE, Verdict, judge, with_verdict

BAD_ROW = "bad_row"
"""Reason of a row that no event can be made of."""

NO_STATE = -1


class Kept(NamedTuple):
    """A label that goes on.

    Attributes:
        number: Of its row.
        event: The label as an event, in the one form that all formats come to.
        label: What it says.
        shard: Which of the state's shards holds its id; `NO_STATE` where that cannot be told.
    """

    number: int
    event: bytes
    label: Label
    shard: int


class Held(NamedTuple):
    """A row that does not go on: its number, its bytes and why."""

    number: int
    event: bytes
    refusal: Refusal


@dataclass(slots=True)
class Sorted:
    """A batch of rows after sorting; the tally is of these rows alone."""

    kept: list[Kept] = field(default_factory=list)
    held: list[Held] = field(default_factory=list)
    tally: Tally = field(default_factory=Tally)


@dataclass(frozen=True, slots=True)
class Arrival:
    """How labels come into a state that is read here, where what becomes of them is told exactly.

    Attributes:
        partition: The partition that a label of an id in a shard comes in.
        newest_ms: Newest time that a shard has accepted of a partition.
    """

    partition: Callable[[int, str], str]
    newest_ms: Callable[[int, str], int]


class Sieve:
    """Judges rows.

    Args:
        horizon: The waiting rules.
        rows: The state's join rows; None where there is no state to be read: then only the decoder judges.
        arrival: How labels come into the state; None where they are sent and a service decides.
        clock: Tells what is of the future, where that is refused; None where it is not.
    """

    def __init__(self, horizon: Horizon, rows: JoinRows | None, arrival: Arrival | None, clock: Clock | None = None) -> None:
        self._heads = HeadTable()
        self._decoder = Decoder(lambda model: None, self._heads)  # classes matter to predictions alone
        self._horizon = horizon
        self._rows = rows
        self._arrival = arrival
        self._clock = clock

    def sort(self, batch: Sequence[LabelRow]) -> Sorted:
        """Sort a batch, in its order.

        Raises:
            StateError: The state cannot be read.
        """
        latest_ms = LATEST_MS if self._clock is None else self._clock.now_ms() + FUTURE_SLACK_MS
        records = [self._read(row, latest_ms) for row in batch]
        ids = list({record.prediction_id: None for record in records if isinstance(record, Label)})
        found = {} if self._rows is None else self._rows.of(ids)
        newest: dict[tuple[int, str], int] = {}
        result = Sorted()
        for row, record in zip(batch, records, strict=True):
            if isinstance(record, Label):
                verdict, shard = self._judge(record, found, newest)
                if verdict.outcome in HELD_BACK:
                    result.held.append(Held(row.number, row.event, Refusal(verdict.outcome, "label", _words(verdict))))
                else:
                    result.kept.append(Kept(row.number, event_of(record), record, shard))
                result.tally.add(verdict.outcome, verdict.versions)
            elif isinstance(record, Refusal):
                result.held.append(Held(row.number, row.event, record))
                result.tally.add(record.reason, {})
        return result

    def _read(self, row: LabelRow, latest_ms: int) -> Record:
        if row.fault:
            return Refusal(BAD_ROW, "label", row.fault)
        record = self._decoder.decode(row.event, "label")
        if isinstance(record, Label) and record.labelled_at > latest_ms:
            return Refusal("future_time", "label", f"{record.labelled_at} ms; the limit is {latest_ms} ms")
        return record

    def _judge(self, label: Label, found: Mapping[str, Found], newest: dict[tuple[int, str], int]) -> tuple[Verdict, int]:
        if self._rows is None:
            return Verdict(SENT, {}), NO_STATE
        shard, row = found.get(label.prediction_id, (NO_STATE, None))
        if self._arrival is None or row is None:
            verdict = judge(row, label, self._horizon.accepts_since(0), self._heads.unpack, self._horizon)
            return (verdict if verdict.outcome in HELD_BACK else _sent(verdict)), shard
        partition = self._arrival.partition(shard, label.prediction_id)
        place = (shard, partition)
        if place not in newest:
            newest[place] = self._arrival.newest_ms(shard, partition)
        newest_ms = max(newest[place], label.labelled_at)
        verdict = judge(row, label, self._horizon.accepts_since(newest_ms), self._heads.unpack, self._horizon)
        if verdict.outcome not in HELD_BACK:
            # What is held back is never seen by the partition.
            newest[place] = newest_ms
            with_verdict(row, label, verdict, self._horizon)
        return verdict, shard


def event_of(label: Label) -> bytes:
    """A label as an event: the keys that it needs, its time in milliseconds."""
    fields: dict[str, object] = {"type": "label", "prediction_id": label.prediction_id, "label": label.label}
    fields["labelled_at"] = label.labelled_at
    if label.revision:
        fields["revision"] = label.revision
    scope = {"model": label.model, "model_version": label.version, "domain": label.domain}
    return msgspec.json.encode(fields | {key: value for key, value in scope.items() if value is not None})


def _sent(verdict: Verdict) -> Verdict:
    """The verdict of a label that somebody else takes in."""
    return Verdict(SENT, {version: outcome if outcome in (LATE, EARLY) else SENT for version, outcome in verdict.versions.items()})


def _words(verdict: Verdict) -> str:
    return ", ".join(f"{model}@{version}" for model, version in verdict.versions)
