"""A source in trouble is waited for, and not for ever; what was read before is kept."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from monitor.backfill.replay.archive import Archive
from monitor.backfill.replay.run import replay
from monitor.backfill.replay.scratch import scratch_config
from monitor.config_file import parse_config
from monitor.errors import CalmonError, SourceError
from monitor.sources.protocol import Slice, SourceStatus, never
from monitor.state.origin import OfFiles
from tests.doubles.list_source import ListSource
from tests.recovery.stream import START_MS, encode, prediction

RECORDS = [("all", encode(prediction(f"p{number}", START_MS, 0.9))) for number in range(30)]


class Faltering(ListSource):
    """Delivers ten records, then is in trouble for a while, or for ever."""

    def __init__(self, trouble_s: float) -> None:
        super().__init__(RECORDS)
        self._trouble_s = trouble_s
        self._delivered = 0
        self._since_s: float | None = None

    @property
    def _troubled(self) -> bool:
        if self._delivered < 10:
            return False
        self._since_s = self._since_s or time.monotonic()
        return time.monotonic() - self._since_s < self._trouble_s

    def poll(self, max_records: int, timeout_s: float) -> Sequence[Slice]:
        if self._troubled:
            time.sleep(0.01)
            return []
        slices = super().poll(min(max_records, 5), timeout_s)
        self._delivered += sum(len(part.values) for part in slices)
        return slices

    def status(self) -> SourceStatus:
        return SourceStatus(trouble="no connection to the broker" if self._troubled else None)


def archive(source: ListSource, patience_s: float, failure: str | None = None) -> Archive:
    return Archive(source, OfFiles([]), len(RECORDS), lambda positions: 0, (), patience_s, lambda: failure)


def test_trouble_that_ends_in_time_is_waited_for_and_longer_trouble_is_told(tmp_path: Path) -> None:
    text = json.dumps({"state": {"directory": str(tmp_path / "live"), "horizon": "none"}})
    config = scratch_config(parse_config(text, "test", {}), tmp_path / "scratch", files=True)
    with pytest.raises(SourceError, match=r"no connection to the broker, for 0\.3 s; what was read is kept: run the same command again"):
        replay(config, archive(Faltering(trouble_s=60), 0.3), never)
    outcome = replay(config, archive(Faltering(trouble_s=0.3), 60), never)
    assert (outcome.records, outcome.account.consumed) == (20, 30)


def test_an_archive_of_which_a_part_was_read_no_further_is_not_whole(tmp_path: Path) -> None:
    text = json.dumps({"state": {"directory": str(tmp_path / "live"), "horizon": "none"}})
    config = scratch_config(parse_config(text, "test", {}), tmp_path / "scratch", files=True)
    with pytest.raises(CalmonError, match="the replay is not whole: shard 1 stops"):
        replay(config, archive(ListSource(RECORDS), 1, "shard 1 stops"), never)
