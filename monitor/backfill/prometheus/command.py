"""`calmon backfill openmetrics` and `calmon backfill remote-write`: what each does, and what it says at the end."""

from __future__ import annotations

import argparse
import os

from monitor.backfill.prometheus.credentials import credentials
from monitor.backfill.prometheus.run import progress_bar, run_of, watched
from monitor.errors import ConfigError
from monitor.export.backfill_series import backfill_samples, count
from monitor.export.openmetrics import openmetrics
from monitor.export.publisher import Publisher
from monitor.history.answer import answered
from monitor.names import REVISIONS
from monitor.prometheus_address import Address, parse_address
from monitor.request.moment import COMMAND_LINE
from monitor.whole_file import output_file


def write_openmetrics(options: argparse.Namespace) -> str:
    """Write a file for promtool; what it holds.

    Raises:
        CalmonError: A word cannot be understood, the windows cannot be had, or the file cannot be written; it is then as it was.
    """
    run = run_of(options)
    if options.revision not in REVISIONS:
        raise ConfigError([f"--revision {options.revision}: must be {REVISIONS[0]} to {REVISIONS[-1]}"], COMMAND_LINE)
    with progress_bar() as bar, answered(run.question, run.config, run.state) as moments:
        samples, _ = backfill_samples(run.scope, watched(moments, run, bar))
    with output_file(options.output, binary=True) as file:
        file.writelines(openmetrics(samples, run.scope.gauges, options.revision))
    return f"{run}: {count(samples)} samples of {len(samples)} series as revision {options.revision} in {options.output}"


def write_remote(options: argparse.Namespace) -> str:
    """Write to a running Prometheus; what became of it.

    Raises:
        CalmonError: A word cannot be understood, the windows cannot be had, or Prometheus does not take them.
    """
    run = run_of(options)
    publisher = Publisher(
        _address(options.url), credentials(options.username, options.password_file, options.bearer_token_file, os.environ)
    )
    try:
        with progress_bar() as bar, answered(run.question, run.config, run.state) as moments:
            task = bar.add_task("samples written", total=None)
            published = publisher.publish(run.scope, watched(moments, run, bar), lambda samples: bar.advance(task, samples))
    finally:
        publisher.close()
    if published.written:
        done = f"{published.written} samples written and read back equal, {published.equal} were there"
    elif published.equal:
        done = f"nothing to write, all {published.equal} samples were there"
    else:
        return f"{run}: nothing to write, nothing was predicted there"
    return f"{run}: revision {published.revision}: {done}"


def _address(url: str) -> Address:
    try:
        return parse_address(url)
    except ValueError as error:
        shown = "" if "@" in url else f" {url}"  # what stands before an @ may be a password
        raise ConfigError([f"--url{shown}: {error}"], COMMAND_LINE) from error
