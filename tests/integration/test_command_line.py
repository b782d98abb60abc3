"""The command as a shell has it: pipes, the installed script, and a schema that real events satisfy."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from tests.integration.running import CALMON, PATIENCE_S, ROOT, RunningCalmon, calmon, report, write_config
from tests.recovery.stream import encode, make_stream, prediction, write_lines

LINES = [line.value for line in make_stream(dense=200, sparse=100)]


def test_evaluate_and_run_come_to_the_same_digest_from_any_source(tmp_path: Path) -> None:
    events = write_lines(tmp_path / "events.ndjson", LINES)
    with RunningCalmon(write_config(tmp_path, [events], follow=False)) as running:
        running.wait_for("calmon_records_consumed_total", len(LINES))
        assert running.stop() == 0
    digest = calmon("state", "digest", tmp_path / "state").stdout.strip()
    halves = [write_lines(tmp_path / "first.ndjson", LINES[:400]), tmp_path / "second.ndjson.gz"]
    halves[1].write_bytes(gzip.compress(b"\n".join(LINES[400:])))
    dumped = tmp_path / "dump"
    for result in (
        calmon("evaluate", *halves, "--digest", "--dump", dumped),
        calmon("evaluate", "-", "--digest", stdin=events.read_bytes()),
        calmon("evaluate", halves[0], "-", "--digest", stdin=b"\n".join(LINES[400:])),
    ):
        assert result.returncode == 0, result.stderr
        assert result.stdout.splitlines()[-1] == digest
    assert hashlib.sha256(dumped.read_bytes()).hexdigest() == digest


def test_the_account_of_evaluate_is_that_of_a_run(tmp_path: Path) -> None:
    events = write_lines(tmp_path / "events.ndjson", LINES)
    account = report(calmon("evaluate", events, "--format", "json"))["account"]
    with RunningCalmon(write_config(tmp_path, [events])) as running:
        running.wait_for("calmon_records_consumed_total", account["records"])
        samples = running.samples()
    outcomes = {
        dict(labels)["kind"] + "." + dict(labels)["outcome"]: v for (name, labels), v in samples.items() if name == "calmon_records_total"
    }
    assert outcomes == account["outcomes"]
    refused: dict[str, float] = {}
    for (name, labels), value in samples.items():
        if name == "calmon_refused_total":
            refused[dict(labels)["reason"]] = refused.get(dict(labels)["reason"], 0) + value
    assert refused == account["rejected"]


def test_output_that_nobody_reads_to_the_end_is_no_traceback(tmp_path: Path) -> None:
    many = [encode(prediction(f"p{number}", 1_780_272_000_000, 0.9, f"v{number}")) for number in range(200)]
    events = write_lines(tmp_path / "events.ndjson", many)
    command = [*CALMON, "evaluate", str(events), "--format", "json"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        errors = process.stderr.read().decode()
        assert process.wait(PATIENCE_S) == 1
    assert errors == ""


@pytest.mark.parametrize("words", [["--help"], ["schema"], ["metrics"], ["check", "-c", "{config}"], ["evaluate", "{events}"]])
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_output_to_a_full_disk_is_one_line(tmp_path: Path, words: list[str], unbuffered: str) -> None:
    events = write_lines(tmp_path / "events.ndjson", LINES)
    given = [word.format(events=events, config=write_config(tmp_path, [events])) for word in words]
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    with Path("/dev/full").open("wb") as full:
        result = subprocess.run([*CALMON, *given], cwd=ROOT, stdout=full, stderr=subprocess.PIPE, env=environment, check=False)
    assert (result.returncode, result.stderr) == (1, b"calmon: cannot write standard output: No space left on device\n")


def test_ctrl_c_while_modules_are_imported_is_no_traceback() -> None:
    for module in ("argparse", "scipy", "numpy.linalg", "monitor.service"):
        program = (
            "import os, signal, sys\n"
            "class Finder:\n"
            "    def find_spec(self, name, path, target=None):\n"
            f"        if name == {module!r}: os.kill(os.getpid(), signal.SIGINT)\n"
            "sys.meta_path.insert(0, Finder())\n"
            "from monitor.__main__ import main\n"
            "sys.argv = ['calmon', 'schema']\n"
            "sys.exit(main())"
        )
        result = calmon(command=[sys.executable, "-c", program])
        assert (result.returncode, result.stdout, result.stderr) == (130, "", "calmon: interrupted\n"), module


def test_the_installed_script_is_the_same_command() -> None:
    script = Path(sys.executable).parent / "calmon"
    result = calmon("--version", command=[str(script)])
    assert re.fullmatch(r"calmon \d+\.\d+\.\d+\n", result.stdout)
    assert calmon("--version").stdout == result.stdout


def test_the_example_configuration_is_valid() -> None:
    result = calmon("check", "-c", ROOT / "docs" / "calmon.example.yaml")
    assert result.returncode == 0, result.stderr
    assert "valid" in result.stdout


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    """What `calmon schema` prints."""
    found: dict[str, Any] = report(calmon("schema"))
    return found


KNOWN = frozenset(
    """$schema $defs $ref title description type anyOf enum const properties required items additionalProperties default propertyNames
    discriminator minLength maxLength minimum maximum minItems maxItems minProperties maxProperties""".split()  # noqa: SIM905 - a list of words
)
TYPES: Mapping[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "number": (int, float),
    "integer": int,
    "boolean": bool,
    "null": type(None),
}


def fault(value: Any, rule: Mapping[str, Any], root: Mapping[str, Any]) -> str | None:
    """What of a value is against a JSON Schema, as far as ours goes; None if nothing is.

    Raises:
        AssertionError: The schema has a word that is not known here.
    """
    assert set(rule) <= KNOWN, set(rule) - KNOWN
    if "$ref" in rule:
        return fault(value, root["$defs"][rule["$ref"].rpartition("/")[2]], root)
    if "anyOf" in rule:
        faults = [fault(value, one, root) for one in rule["anyOf"]]
        return None if None in faults else " and ".join(map(str, faults))
    if "enum" in rule and value not in rule["enum"]:
        return f"{value!r} is none of {rule['enum']}"
    if "const" in rule and value != rule["const"]:
        return f"{value!r} is not {rule['const']!r}"
    kinds = rule.get("type", list(TYPES))
    matching = [kind for kind in ([kinds] if isinstance(kinds, str) else kinds) if isinstance(value, TYPES[kind])]
    if not matching or (isinstance(value, bool) and "boolean" not in matching):
        return f"{value!r} is no {kinds}"
    return _fault_of_size(value, rule) or _fault_inside(value, rule, root)


def _fault_of_size(value: Any, rule: Mapping[str, Any]) -> str | None:
    words: dict[type, str] = {str: "Length", list: "Items", dict: "Properties", int: "imum", float: "imum"}
    word = words.get(type(value))
    if word is None:
        return None
    size = value if word == "imum" else len(value)
    within = rule.get(f"min{word}", size) <= size <= rule.get(f"max{word}", size)
    return None if within else f"{value!r} is out of range"


def _fault_inside(value: Any, rule: Mapping[str, Any], root: Mapping[str, Any]) -> str | None:
    if isinstance(value, list):
        return next((found for one in value if (found := fault(one, rule.get("items", {}), root))), None)
    if not isinstance(value, dict):
        return None
    missing = set(rule.get("required", ())) - set(value)
    if missing:
        return f"without {missing}"
    properties, others = rule.get("properties", {}), rule.get("additionalProperties", {})
    for key, one in value.items():
        found = fault(key, rule.get("propertyNames", {}), root) or fault(one, properties.get(key, others or {}), root)
        if found:
            return f"{key}: {found}"
    return None


@pytest.mark.parametrize("name", ["flights", "employment"])
def test_real_events_satisfy_the_schema(schema: dict[str, Any], name: str, tmp_path: Path) -> None:
    data = files("monitor.demo").joinpath("data", f"{name}.ndjson.gz").read_bytes()
    lines = gzip.decompress(data).splitlines()[:6000]
    rejected = report(calmon("evaluate", write_lines(tmp_path / "events.ndjson", lines), "--format", "json"))["account"]["rejected"]
    wrong = [line for line in lines if not _is_object(line) or fault(json.loads(line), schema, schema)]
    # The schema cannot say that probabilities sum to 1, so it may pass what is refused; never the other way round.
    assert len(wrong) <= sum(rejected.values())
    assert len(lines) == 6000


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


@pytest.mark.parametrize(
    "changed",
    [
        {"type": "guess"},
        {"prediction_id": ""},
        {"prediction_id": 7},
        {"model": None},
        {"probabilities": {"yes": 1.5, "no": 0}},
        {"probabilities": {"yes": 1}},
        {"probabilities": [0.5, "0.5"]},
        {"ood_score": "high"},
        {"accepted": 1},
        {"groups": {"region": 3}},
        {"domain": ["id"]},
        {"predicted_at": None},
    ],
)
def test_the_schema_refuses_what_the_decoder_refuses(schema: dict[str, Any], changed: dict[str, object], tmp_path: Path) -> None:
    event = prediction("p", 1_780_272_000_000, 0.9)
    assert fault(event, schema, schema) is None
    wrong = {**event, **changed}
    assert fault(wrong, schema, schema) is not None
    account = report(calmon("evaluate", write_lines(tmp_path / "e.ndjson", [encode(event), encode(wrong)]), "--format", "json"))["account"]
    assert (account["predictions"], account["rejected_total"]) == (1, 1)
