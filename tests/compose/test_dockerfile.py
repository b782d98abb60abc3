"""deploy/Dockerfile: its build steps run in a copy of what it copies, and what they install runs as the image would."""

from __future__ import annotations

import fnmatch
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.compose.project import ROOT, instructions, services

PREFIX = "/opt/calmon"


def copied(stage: int) -> list[str]:
    """What a stage copies from the repository."""
    found = [one.text.split() for one in instructions() if one.stage == stage and one.name == "COPY"]
    return [word for words in found for word in words[:-1] if not words[0].startswith("--from")]


def ignored(name: str) -> bool:
    """Whether .dockerignore keeps a file at the top from the build."""
    kept = True
    for line in (ROOT / ".dockerignore").read_text().splitlines():
        if line and not line.startswith("#") and fnmatch.fnmatch(name, line.removeprefix("!")):
            kept = line.startswith("!")
    return not kept


def test_the_build_gets_what_it_copies_and_nothing_else() -> None:
    assert [name for name in copied(0) if ignored(name)] == []
    assert copied(1) == []
    assert [name for name in os.listdir(ROOT) if not ignored(name) and name not in copied(0)] == []


def test_the_state_directory_belongs_to_the_user() -> None:
    (made,) = (one.text for one in instructions() if one.stage == 1 and one.name == "RUN")
    (user,) = (one.text for one in instructions() if one.name == "USER")
    (volume,) = (one.text for one in instructions() if one.name == "VOLUME")
    assert f"--uid {user.split(':')[0]} " in made
    assert volume in made


def test_it_runs_what_the_service_runs() -> None:
    (command,) = (one.words() for one in instructions() if one.name == "CMD")
    assert command == services()["calmon"]["command"]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The build stage, run here: its files in a folder of their own, its steps with another prefix."""
    context, prefix = tmp_path_factory.mktemp("context"), tmp_path_factory.mktemp("image") / "calmon"
    for name in copied(0):
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, context / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, context)
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    # The image has a `python`; a machine may have a `python3` alone.
    programs = tmp_path_factory.mktemp("programs")
    (programs / "python").symlink_to(Path(sys.base_prefix, "bin", "python3"))
    environment["PATH"] = f"{programs}:{environment['PATH']}"
    for step in (one for one in instructions() if one.stage == 0 and one.name == "RUN"):
        # Whoever builds an image has no cache; here it saves the load of everything at each run.
        command = step.text.replace(PREFIX, str(prefix)).replace("--no-cache-dir ", "")
        done = subprocess.run(
            ["sh", "-ec", command], cwd=context, env=environment, capture_output=True, text=True, timeout=280, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
    return prefix


@pytest.mark.soak
def test_what_is_built_runs(installed: Path, tmp_path: Path) -> None:
    (entry,) = (one.words() for one in instructions() if one.name == "ENTRYPOINT")
    program = installed / "bin" / entry[0]

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": f"{installed}/bin:/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"}
        return subprocess.run([program, *words], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, check=False)

    assert run("--version").returncode == 0
    data = next(installed.glob("lib/python3*/site-packages/monitor/demo/data"))
    evaluated = run("evaluate", str(data / "flights.ndjson.gz"), "--digest")
    assert evaluated.returncode == 0, evaluated.stderr
    config = ROOT / "deploy/compose/calmon.yaml"
    checked = run("check", "-c", str(config))
    assert f"{config}: valid" in checked.stdout


@pytest.mark.soak
def test_nothing_but_what_calmon_needs_is_installed(installed: Path) -> None:
    done = subprocess.run([installed / "bin/pip", "list", "--format=freeze"], capture_output=True, text=True, timeout=60, check=True)
    names = {line.partition("==")[0].lower() for line in done.stdout.splitlines()}
    assert {"calmon", "numpy", "kafka-python"} <= names
    assert names & {"pytest", "mypy", "ruff", "grafana_foundation_sdk", "check-jsonschema"} == set()
