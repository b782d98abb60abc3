"""`calmon history`: from its words to what is written."""

from __future__ import annotations

import argparse
import sys
from contextlib import nullcontext
from typing import Any

from monitor.errors import ConfigError
from monitor.history.answer import answered
from monitor.history.choice import chosen
from monitor.history.parquet import pyarrow, write_parquet
from monitor.history.question import asked
from monitor.history.text import write_csv, write_json, write_table
from monitor.request.moment import COMMAND_LINE
from monitor.request.sums import configuration
from monitor.whole_file import output_file

PARQUET = "parquet"
FORMATS = {"table": write_table, "json": write_json, "csv": write_csv, PARQUET: write_parquet}


def history(options: argparse.Namespace) -> None:
    """Answer the question of a command line and write the answer; see `calmon history --help`.

    Raises:
        CalmonError: What is wrong with it, or why it cannot be answered; a named file is then as it was.
    """
    question = asked(options, chosen(options.metrics, options.segment, tables=options.format == "json"))
    if options.format == PARQUET:
        pyarrow()
        if options.output is None:
            raise ConfigError(["--format parquet: it is no text for a terminal: name a file with -o FILE"], COMMAND_LINE)
    config, directory = configuration(options)
    write: Any = FORMATS[options.format]
    target = nullcontext(sys.stdout) if options.output is None else output_file(options.output, options.format == PARQUET)
    with answered(question, config, directory) as moments, target as file:
        write(moments, question, file)
