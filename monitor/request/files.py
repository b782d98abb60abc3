"""Event files read whole, into a state that is gone afterwards."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn

from monitor.app import Engine
from monitor.clock import ManualClock
from monitor.config import Config, QuarantineConfig, SourceConfig, StateConfig, WindowConfig
from monitor.statistics.pane import MINUTE
from monitor.windows.running import WindowSpec


@contextmanager
def engine_of_files(base: Config, files: Sequence[str], window: WindowSpec | None, at_ms: int) -> Iterator[Engine]:
    """An engine that has read files to their end under a configuration's models; nothing expires.

    Args:
        base: The configuration.
        files: In the order to read them.
        window: What it will be asked for: panes are kept by the minute as far as this needs them. None for everything.
        at_ms: The moment of the window.

    Raises:
        CalmonError: A file cannot be read.
    """
    directory = tempfile.mkdtemp(prefix="calmon-evaluate-")
    try:
        config = base.model_copy(
            update={
                "source": SourceConfig(files=tuple(files)),
                "state": StateConfig(directory=str(Path(directory) / "state"), horizon_ms=None),
                "windows": _windows_of_minutes(window),
                "quarantine": QuarantineConfig(),
            }
        )
        engine = Engine(config, ManualClock(at_ms), references_at=base.state.directory, weigh=False)
        try:
            _read_all(engine)
            yield engine
        finally:
            engine.close()
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _windows_of_minutes(window: WindowSpec | None) -> tuple[WindowConfig, ...]:
    if window is None or window.level is not MINUTE:
        return ()
    return (WindowConfig(name=window.name, length_ms=window.length_ms, lag_ms=window.lag_ms),)


def _read_all(engine: Engine) -> None:
    engine.runner.start()
    columns = (SpinnerColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task("reading")
        while not engine.source.exhausted:
            if engine.runner.step():
                progress.update(task, description=f"{engine.shard.account.consumed:,} records read")
