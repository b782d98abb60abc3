"""Carrying out a plan of kills."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.integration.running import ROOT


def replay_killed(folder: Path, batch: int, kills: Sequence[Mapping[str, Any]], **options: Any) -> list[dict[str, Any]]:
    """Replay again and again, each attempt but the last one killed; what they noted.

    Args:
        folder: Takes plan and log.
        batch: Records in a batch.
        kills: `point` and `nth`, or `batches` and `then_s`.
        options: Those of the command.
    """
    log = folder / "log"
    (folder / "plan.json").write_text(json.dumps({"options": options, "batch": batch, "kills": kills, "log": str(log)}))
    command = [sys.executable, "-m", "tests.replay.victim", str(folder / "plan.json")]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280, check=False)
    assert result.returncode == 0, result.stderr
    return [json.loads(line) for line in log.read_text().splitlines()]
