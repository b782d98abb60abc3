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
from monitor.config import Config, EvaluationConfig, QuarantineConfig, SourceConfig, StateConfig, WindowConfig
from monitor.metrics.catalogue import FAMILIES


@contextmanager
def engine_of_files(base: Config, files: Sequence[str], window: WindowConfig | None, at_ms: int) -> Iterator[Engine]:
    """An engine that has read files to their end under a configuration's models, with one window or none; nothing expires.

    Raises:
        CalmonError: A file cannot be read.
    """
    directory = tempfile.mkdtemp(prefix="calmon-evaluate-")
    try:
        config = base.model_copy(
            update={
                "source": SourceConfig(files=tuple(files)),
                "state": StateConfig(directory=str(Path(directory) / "state"), horizon_ms=None),
                "windows": () if window is None else (window,),
                "quarantine": QuarantineConfig(),
                "evaluation": EvaluationConfig(families=tuple(family.name for family in FAMILIES)),
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


def _read_all(engine: Engine) -> None:
    engine.runner.start()
    columns = (SpinnerColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task("reading")
        while not engine.source.exhausted:
            if engine.runner.step():
                progress.update(task, description=f"{engine.shard.account.consumed:,} records read")
