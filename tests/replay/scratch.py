"""Scratch states from outside: the command that makes them, and all that is in them."""

from __future__ import annotations

import io
import json
import re
import signal
import zlib
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

from monitor.cli import main
from monitor.config_file import load_config
from monitor.pipeline.account import merge_accounts
from monitor.pipeline.configured import settings_of
from monitor.pipeline.digest import digest, dump
from monitor.pipeline.references import ConfiguredReferences
from monitor.pipeline.report import models_report, report_blocks
from monitor.request.state import opened_shards
from monitor.state.references import References


class Held(NamedTuple):
    """What a scratch state holds."""

    digest: str
    outcomes: dict[tuple[str, str], int]
    refused: dict[tuple[str, str], int]
    consumed: int
    quarantine: list[bytes]


def said(*words: str | Path) -> tuple[int, str, str]:
    """Run a command in this process: its exit code, and what it wrote."""
    out, err = io.StringIO(), io.StringIO()
    handlers = [(number, signal.getsignal(number)) for number in (signal.SIGINT, signal.SIGTERM)]
    with redirect_stdout(out), redirect_stderr(err):
        code = main([str(word) for word in words])
    for number, handler in handlers:
        signal.signal(number, handler)
    return code, out.getvalue(), err.getvalue()


def replayed(config: Path, into: Path, *words: str | Path) -> str:
    """What `calmon backfill replay` says when all goes well."""
    code, out, err = said("backfill", "replay", "-c", config, "--into", into, *words)
    assert code == 0, err
    return out


def held(into: Path) -> Held:
    """Read everything out of a scratch state."""
    with opened_shards(str(into)) as shards:
        account = merge_accounts([shard.account for shard in shards])
        lines = [line for path in sorted(into.rglob("quarantine.ndjson")) for line in path.read_bytes().splitlines()]
        return Held(digest(dump(shards)), account.outcomes, account.refused, account.consumed, sorted(lines))


def metrics(into: Path, config: Path) -> Any:
    """Every metric over everything in a scratch state, as `calmon evaluate` says it."""
    settings = settings_of(load_config(config))
    with opened_shards(str(into)) as shards:
        blocks = report_blocks(shards, settings, ConfiguredReferences(References(into), {}, settings), None, 0)
        return json.loads(json.dumps(models_report(blocks)))


def evaluated(config: Path, *files: str | Path) -> tuple[Any, str]:
    """Every metric and the digest, by `calmon evaluate`."""
    code, out, err = said("evaluate", *files, "-c", config, "--format", "json", "--digest")
    assert code == 0, err
    text, _, found = out.rstrip().rpartition("\n")
    return json.loads(text)["models"], found


def configure(folder: Path, defaults: dict[str, Any], **sections: Any) -> Path:
    """Write a configuration; nothing of it is running."""
    path = folder / "calmon.yaml"
    folder.mkdir(parents=True, exist_ok=True)
    state = {"directory": str(folder / "live"), "horizon": "none", **sections.pop("state", {})}
    path.write_text(json.dumps({"state": state, "windows": [{"name": "24h", "length": "24h"}], "defaults": defaults, **sections}))
    return path


def differing(first: Any, second: Any) -> set[str]:
    """Names of the metrics that two reports tell differently."""
    return {name for model in first for name in first[model] if first[model][name] != second[model].get(name)}


def held_back(lines: Sequence[bytes], share: float, salt: bytes) -> tuple[list[bytes], list[bytes]]:
    """Lines without all labels of a share of the ids, and those labels: of labels that contradict each other the first one stays."""
    kept: list[bytes] = []
    back: list[bytes] = []
    for line in lines:
        found = re.search(rb'"type":"label","prediction_id":"([^"]*)"', line)
        late = found is not None and zlib.crc32(salt + found[1]) < share * 2**32
        (back if late else kept).append(line)
    return kept, back
