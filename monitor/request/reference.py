"""`calmon reference set|list|show`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from monitor.clock import Clock
from monitor.config import Config
from monitor.config_value import parse_reference
from monitor.errors import CalmonError, ConfigError, StateError
from monitor.events.instant import instant
from monitor.metrics.comparable import REASONS, differences
from monitor.pipeline.configured import layouts_of, references_of
from monitor.request.moment import COMMAND_LINE
from monitor.request.sums import configuration, gather
from monitor.state.references import References
from monitor.statistics.reference import Reference, referable


def set_reference(options: argparse.Namespace, clock: Clock) -> str:
    """Store the sums of a version under a name; says what was stored.

    Raises:
        CalmonError: There are no such sums, or they cannot be stored.
    """
    name, number = _name(options.name)
    if number is not None:
        raise ConfigError([f"NAME {options.name}: leave @{number} out, setting a name again makes its next version"], COMMAND_LINE)
    directory = configuration(options)[1]
    gathered = gather(options)
    key = gathered.version(options.model, options.model_version)
    made = Reference(
        name,
        0,
        key.model,
        key.version,
        gathered.layouts[key.layout],
        gathered.start_ms,
        gathered.end_ms,
        clock.now_ms(),
        gathered.source,
        referable(gathered.cells, key.model, key.version),
    )
    stored = References(Path(directory)).save(made)
    older = gathered.older.get((key.model, key.version), 0)
    left_out = f"; {older} predictions of an older layout are left out" if older else ""
    return f"{_line(stored)}{left_out}\nuse it in the configuration: models: {{{json.dumps(key.model)}: {{reference: {name}}}}}"


def list_references(options: argparse.Namespace) -> Iterator[str]:
    """Every stored reference.

    Raises:
        StateError: After all that can be read: which cannot.
    """
    references = References(Path(configuration(options)[1]))
    sound, faults = [], []
    for name, numbers in references.names().items():
        for number in numbers:
            try:
                sound.append(references.load(name, number))
            except StateError as error:
                faults.append(str(error))
    if options.format == "json":
        yield json.dumps([summary(one) for one in sound], indent=1)
    else:
        yield from (_line(one) for one in sound)
        if not sound and not faults:
            yield "no reference is set: calmon reference set --help says how"
    if faults:
        raise StateError("; ".join(faults))


def show_reference(options: argparse.Namespace) -> str:
    """What a reference is of.

    Raises:
        CalmonError: There is none of this name, or it cannot be read.
    """
    _name(options.name)
    references = References(Path(configuration(options)[1]))
    found = references.resolve(options.name)
    if found is None:
        known = ", ".join(f"{name}@{number}" for name, numbers in references.names().items() for number in numbers)
        raise CalmonError(f"there is no reference {options.name}; " + (f"there are {known}" if known else "none is set"))
    reference = references.load(*found)
    if options.format == "json":
        return json.dumps(summary(reference) | {"layout": reference.layout.to_json()}, indent=1)
    lines = [
        _line(reference),
        f"layout {reference.layout.fingerprint}:",
        *(f"  {key}: {json.dumps(value)}" for key, value in reference.layout.to_json().items()),
    ]
    return "\n".join(lines)


def check_references(config: Config) -> Iterator[str]:
    """How each configured reference stands, for `calmon check`.

    Raises:
        CalmonError: After all of them: which cannot be used.
    """
    faults = []
    layout_of, references = layouts_of(config), References(Path(config.state.directory))
    for model, name in references_of(config).items():
        where = f"models.{model}.reference {name}"
        try:
            found = references.resolve(name)
            reference = None if found is None else references.load(*found)
        except StateError as error:
            faults.append(f"{where}: {error}")
            continue
        if reference is None:
            yield f"{where}: not set yet, see calmon reference set --help"
        elif reference.model != model:
            faults.append(f"{where}: {reference.label} is of model {reference.model}")
        else:
            refused = [REASONS[reason] for reason in differences(reference.layout, layout_of(model)[0])]
            yield "; ".join([f"{where}: {_line(reference)}", *refused])
    if faults:
        raise CalmonError("; ".join(faults))


def summary(reference: Reference) -> dict[str, Any]:
    """A reference in a few words, for programs."""
    return {
        "name": reference.name,
        "number": reference.number,
        "model": reference.model,
        "model_version": reference.version,
        "start_ms": reference.start_ms,
        "end_ms": reference.end_ms,
        "created_ms": reference.created_ms,
        "source": reference.source,
        "layout_fingerprint": reference.layout.fingerprint,
        **reference.counts,
    }


def _name(text: str) -> tuple[str, int | None]:
    try:
        return parse_reference(text)
    except ValueError as error:
        raise ConfigError([f"NAME {text}: {error}"], COMMAND_LINE) from error


def _line(reference: Reference) -> str:
    counts = reference.counts
    return (
        f"reference {reference.label}: model {reference.model} version {reference.version}, "
        f"{instant(reference.start_ms)} to {instant(reference.end_ms)}, {counts['predictions']} predictions "
        f"({counts['labelled']} labelled, {counts['scored']} with an OOD score); "
        f"made {instant(reference.created_ms)} from {reference.source}"
    )
