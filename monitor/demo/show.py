"""`calmon demo`: the packaged streams through the real service, on a scaled clock, with a summary in the terminal."""

from __future__ import annotations

import logging
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from monitor.app import Engine
from monitor.clock import ScaledClock
from monitor.config import Config
from monitor.config_file import load_config
from monitor.demo.replay import HoldingClock, Recording, ReplaySource, read_recording
from monitor.demo.summary import latest_windows, lesson, progress_line, summary_lines, summary_rows, summary_table
from monitor.duration import DAY_MS, HOUR_MS, SECOND_MS, format_duration
from monitor.errors import CalmonError, SourceError
from monitor.service import Service

DATA = Path(__file__).parent / "data"
CONFIG = DATA / "demo.yaml"
DEFAULT_RATE_MS = 3 * HOUR_MS
"""Simulated time in a real second: slow enough for people, fast enough for a week's window to fill within a minute."""

_REDRAW_S = 0.5
_PLAIN_S = 10.0
_FIRST_PLAIN_S = 3.0
_LONG_S = 120.0
_PLAIN_LINES = 10
"""Lines of a plain summary: the rows of two windows."""
_LINES_AROUND = 8
"""Lines of the live summary besides the rows."""

Ended = Callable[[float], bool]
"""Waits at most so many seconds; whether the demo is to end."""


class Demo:
    """One replay: built, not started.

    Args:
        directory: For the state; whoever made it removes it.
        config: The demo's configuration.
        rate_ms: Simulated milliseconds in a real second.
        console: Where the summary goes.
    """

    def __init__(self, directory: Path, config: Config, rate_ms: int, console: Console) -> None:
        recordings = [read_recording(CONFIG.parent / file) for file in config.source.files]
        self._start_ms, end_ms = _span(recordings)
        self._records = sum(len(recording.lines) for recording in recordings)
        self._directory = directory
        self._http = config.http
        self._rate_ms = rate_ms
        self._span_ms = end_ms - self._start_ms
        self._console = console
        state = config.state.model_copy(update={"directory": str(directory / "state")})
        config = config.model_copy(update={"state": state})
        clock = HoldingClock(ScaledClock(self._start_ms, rate_ms / SECOND_MS), end_ms)
        self._engine = Engine(config, clock, ReplaySource(recordings, clock))
        self.service = Service(config, self._engine)

    def run(self, ended: Ended) -> None:
        """Serve and show until it is to end.

        Raises:
            CalmonError: The port is taken, or what the service ended with.
        """
        self._start()
        try:
            self._introduce()
            if self._console.is_terminal and not self._console.is_dumb_terminal:
                self._show_live(ended)
            else:
                self._show_plain(ended)
        finally:
            self.service.close()
        self._say(f"calmon demo: ended after {self.service.snapshot.account.consumed:,} records; nothing is left behind.")

    def discard(self) -> None:
        """Leave no trace when the process is about to end at once: no state, and a terminal with a cursor."""
        self._console.show_cursor()
        shutil.rmtree(self._directory, ignore_errors=True)

    def _start(self) -> None:
        try:
            self.service.start()
        except CalmonError as error:
            self._engine.close()
            if isinstance(error, SourceError):
                raise
            where = f"{self._http.address}:{self._http.port}"
            reason = getattr(error.__cause__, "strerror", None) or error
            raise CalmonError(f"cannot serve on {where}: {reason}; `calmon demo --port 0` takes a free port") from error

    def _introduce(self) -> None:
        address = f"http://{self.service.address}"
        rate, days = format_duration(self._rate_ms), -(-self._span_ms // DAY_MS)
        day_s, all_s = DAY_MS / self._rate_ms, self._span_ms / self._rate_ms
        whole = f"{all_s / 60:.0f} min" if all_s >= _LONG_S else f"{all_s:.0f} s"
        for line in (
            "calmon demo: real predictions of two models, two versions each, and late labels",
            f"  gauges    {address}/metrics",
            f"  page      {address}/",
            f"  clock     1 s is {rate}: a day takes {day_s:.3g} s, all {days} days {whole} (--rate changes it)",
            f"  settings  {CONFIG}",
            "  look at   lab (share of labelled predictions) rising, and with it accuracy,",
            "            over (mean confidence minus accuracy), ECE and CSR moving",
            "  also      OOD: accepted as in distribution; rej: rejected for low confidence",
        ):
            self._say(line)

    def _show_live(self, ended: Ended) -> None:
        with Live(console=self._console, auto_refresh=False, vertical_overflow="crop") as live, _logging_above_it():
            live.update(self._screen(), refresh=True)
            while not ended(_REDRAW_S):
                live.update(self._screen(), refresh=True)

    def _screen(self) -> Group:
        rows = latest_windows(summary_rows(self.service.snapshot), self._console.height - _LINES_AROUND)
        return Group(
            "",
            Text(self._progress(), style="bold"),
            Text(f"http://{self.service.address}/metrics, page at http://{self.service.address}/, Ctrl-C ends it"),
            summary_table(rows),
            Text(self._footer(), style="cyan"),
        )

    def _show_plain(self, ended: Ended) -> None:
        pause_s, told_end = _FIRST_PLAIN_S, False
        while not ended(pause_s):
            pause_s = _PLAIN_S
            if told_end:
                continue
            told_end = self._at_end
            self._say(self._progress())
            for line in summary_lines(latest_windows(summary_rows(self.service.snapshot), _PLAIN_LINES)):
                self._say(line)
            self._say(self._footer())

    @property
    def _at_end(self) -> bool:
        return self.service.snapshot.account.consumed == self._records

    def _progress(self) -> str:
        return progress_line(self.service.snapshot, self._start_ms, self._span_ms, self._records)

    def _footer(self) -> str:
        rows = summary_rows(self.service.snapshot)
        shows = lesson([row for row in rows if row.window == rows[-1].window])
        if not self._at_end:
            return shows
        address = f"http://{self.service.address}/metrics"
        return f"{shows}\nThe replay is at its end: the clock stands still, and {address} serves the last state until Ctrl-C."

    def _say(self, line: str) -> None:
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)


@contextmanager
def demo(port: int | None, rate_ms: int) -> Iterator[Demo]:
    """A demo whose state lies in a temporary directory that is removed at the end.

    Args:
        port: Where to serve; None for the configured port, 0 for a free one.
        rate_ms: Simulated milliseconds in a real second.

    Raises:
        CalmonError: It cannot be built.
    """
    config = load_config(CONFIG)
    if port is not None:
        config = config.model_copy(update={"http": config.http.model_copy(update={"port": port})})
    directory = Path(tempfile.mkdtemp(prefix="calmon-demo-"))
    try:
        yield Demo(directory, config, rate_ms, Console())
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _span(recordings: Sequence[Recording]) -> tuple[int, int]:
    times = [int(time_ms) for one in recordings for time_ms in (*one.arrival_ms[:1], *one.arrival_ms[-1:])]
    if not times:
        raise SourceError("there is nothing to replay: source.files hold no records")
    return min(times), max(times)


@contextmanager
def _logging_above_it() -> Iterator[None]:
    """While a live display holds the terminal, let log lines go through it instead of across it."""
    handlers = [handler for handler in logging.getLogger().handlers if isinstance(handler, logging.StreamHandler)]
    before = [handler.setStream(sys.stderr) for handler in handlers]
    try:
        yield
    finally:
        for handler, stream in zip(handlers, before, strict=True):
            if stream is not None:
                handler.setStream(stream)
