"""docker-compose.yml and deploy/Dockerfile, read."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

ROOT = Path(__file__).parents[2]
FILE = ROOT / "docker-compose.yml"
DOCKERFILE = ROOT / "deploy/Dockerfile"


class Instruction(NamedTuple):
    """One instruction of a Dockerfile, with the stage that it is in, from 0."""

    stage: int
    name: str
    text: str

    def words(self) -> list[str]:
        """Its arguments in the form of a JSON list."""
        found: list[str] = json.loads(self.text[self.text.index("[") :])
        return found


def project() -> dict[str, Any]:
    """The whole file, its anchors filled in."""
    loaded: dict[str, Any] = yaml.safe_load(FILE.read_text())
    return loaded


def services() -> Mapping[str, dict[str, Any]]:
    """Services by name."""
    found: dict[str, dict[str, Any]] = project()["services"]
    return found


def instructions() -> list[Instruction]:
    """The Dockerfile's instructions, without comments, one line each."""
    text = re.sub(r"^#.*\n", "", DOCKERFILE.read_text(), flags=re.MULTILINE)
    found, stage = [], -1
    for line in re.sub(r"\s*\\\n\s*", " ", text).splitlines():
        if line.strip():
            name, _, rest = line.partition(" ")
            stage += name == "FROM"
            found.append(Instruction(stage, name, rest))
    return found


def health_check(name: str) -> list[str]:
    """What a service's health check runs: its own, or that of the image which is built here."""
    own: list[str] | None = services()[name].get("healthcheck", {}).get("test")
    if own is None:
        assert "build" in services()[name], name
        (check,) = (one for one in instructions() if one.name == "HEALTHCHECK")
        return check.words()
    assert own[0] == "CMD"
    return own[1:]


def bind_mounts(name: str) -> dict[str, Path]:
    """What of this repository a service has, by its place in the container."""
    parts = [volume.split(":") for volume in services()[name].get("volumes", [])]
    return {part[1]: ROOT / part[0] for part in parts if part[0].startswith(".")}
