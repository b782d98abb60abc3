"""A backfill that is stopped at any row goes on with the next one, also where rows of a CSV file have several lines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from monitor.backfill.labels.beside import Standing
from monitor.backfill.labels.label_file import open_label_file, partition_name
from monitor.backfill.labels.run import Backfill, Input
from monitor.backfill.labels.sieve import Kept, Sieve
from monitor.join.horizon import Horizon
from tests.recovery.stream import START_MS


class Noted:
    """A destination that remembers what it was given."""

    paused_s = 0.0

    def __init__(self) -> None:
        self.standings: dict[str, Standing] = {}
        self.ids: list[str] = []
        self.batches = 0

    def standing(self, partition: str) -> Standing:
        return self.standings.get(partition, Standing())

    def deliver(self, partition: str, kept: Sequence[Kept], standing: Standing, stopped: Callable[[], bool]) -> bool:
        del stopped
        self.ids += [one.label.prediction_id for one in kept]
        self.standings[partition] = standing
        self.batches += 1
        return True

    def reached(self, batches: int) -> Callable[[], bool]:
        """Asks for the end once so many batches have come."""
        return lambda: self.batches >= batches


def test_rows_of_several_lines_are_each_taken_in_once_whatever_row_it_stops_at(tmp_path: Path) -> None:
    notes = ['"of\ntwo"', "", '"\n\n\n"', '""', '"of\r\ntwo"', ""]
    text = "".join(f"{number},yes,{START_MS},{note}\n" + "\n" * (number % 3) for number, note in enumerate(notes))
    path = str(tmp_path / "l.csv")
    Path(path).write_bytes(("prediction_id,label,labelled_at,note\n" + text + f'"broken\n",yes,{START_MS},\n').encode())
    for batch_records in (1, 2, 3):
        noted = Noted()
        while True:
            before = noted.batches
            backfill = Backfill(Sieve(Horizon(None), None, None), noted, None, None, noted.reached(before + 1), batch_records)
            (outcome,) = backfill.run([Input(open_label_file(path, {}), partition_name(path, {}))])
            if noted.batches == before:
                break
        assert noted.ids == [str(number) for number in range(len(notes))]
        assert (outcome.before, outcome.tally.rows, outcome.tally.labels["bad_row"]) == (7, 7, 1)
