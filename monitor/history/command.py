"""`calmon history`: from its words to what is written."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from monitor.errors import CalmonError, ConfigError
from monitor.history.answer import answer
from monitor.history.parquet import pyarrow, write_parquet
from monitor.history.question import asked
from monitor.history.text import write_csv, write_json, write_table
from monitor.pipeline.configured import references_of, settings_of
from monitor.pipeline.references import ConfiguredReferences
from monitor.request.moment import COMMAND_LINE
from monitor.request.state import opened_shards
from monitor.request.sums import configuration
from monitor.state.references import References

PARQUET = "parquet"
FORMATS = {"table": write_table, "json": write_json, "csv": write_csv, PARQUET: write_parquet}


def history(options: argparse.Namespace) -> None:
    """Answer the question of a command line and write the answer; see `calmon history --help`.

    Raises:
        CalmonError: What is wrong with it, or why it cannot be answered; a named file is then as it was.
    """
    question = asked(options)
    if options.format == PARQUET:
        pyarrow()
        if options.output is None:
            raise ConfigError(["--format parquet: it is no text for a terminal: name a file with -o FILE"], COMMAND_LINE)
    config, directory = configuration(options)
    settings = settings_of(config)
    references = ConfiguredReferences(References(Path(directory)), references_of(config), settings)
    write: Any = FORMATS[options.format]
    with opened_shards(directory, list({question.window(at_ms) for at_ms in question.moments})) as shards:
        moments = answer(shards, question, settings, references)
        with _target(options.output, options.format == PARQUET) as file:
            write(moments, question, file)


@contextlib.contextmanager
def _target(path: str | None, binary: bool) -> Iterator[IO[Any]]:
    """Standard output, or a file that is there only once it is whole."""
    if path is None:
        yield sys.stdout
        return
    part = Path(f"{path}.part")
    try:
        try:
            with part.open("wb") if binary else part.open("w", encoding="utf-8", newline="") as file:
                yield file
            os.replace(part, path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise CalmonError(f"cannot write {path}: {error.strerror or error}") from error
