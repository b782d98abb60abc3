"""Options of the golden runner, its parameters, and the line that says how much it covered."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.golden.comparison import Outcome
from tests.golden.product import known_families
from tests.golden.stream import EXPECT, WINDOWS, load_moments

HERE = Path(__file__).parent
DEFAULT_FOLDERS = (HERE / "cases", HERE / "streams")
OUTCOMES = pytest.StashKey[dict[str, Outcome]]()

Verdict = Callable[[Outcome], None]


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("golden", "golden cases and real streams")
    group.addoption(
        "--golden-dir",
        action="append",
        metavar="DIR",
        help="folder of cases (*.json) and streams (NAME.ndjson.gz with NAME.expect.json, NAME.windows.json); may be repeated; "
        "default: the ones here",
    )
    group.addoption("--allow-missing", action="store_true", help="do not fail for keys that calmon has no metric for")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[OUTCOMES] = {}
    for folder in other_folders(config):
        if not any(folder.glob("*.json")):
            raise pytest.UsageError(f"--golden-dir {folder}: no golden case and no stream's expectation is there")


def other_folders(config: pytest.Config) -> list[Path]:
    """Folders given on the command line; the option is unknown where pytest meets this file only while it collects."""
    return [Path(folder) for folder in config.getoption("golden_dir", default=None) or ()]


def found(config: pytest.Config, kind: str) -> list[Path]:
    """Files of a kind (`case`, EXPECT or WINDOWS) in the folders of this run."""
    files = [path for folder in other_folders(config) or DEFAULT_FOLDERS for path in sorted(folder.glob("*.json"))]
    if kind != "case":
        return [path for path in files if path.name.endswith(kind)]
    return [path for path in files if not path.name.endswith((EXPECT, WINDOWS))]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    for fixture, kind in (("case_path", "case"), ("expect_path", EXPECT), ("windows_path", WINDOWS)):
        if fixture in metafunc.fixturenames:
            paths = found(metafunc.config, kind)
            if "check_number" not in metafunc.fixturenames:
                metafunc.parametrize(fixture, [pytest.param(path, id=path.name.removesuffix(".json")) for path in paths])
                continue
            checks = [
                pytest.param(path, number, id=f"{path.name.removesuffix(WINDOWS)}-{check.name}")
                for path in paths
                for number, check in enumerate(load_moments(path).checks)
            ]
            metafunc.parametrize((fixture, "check_number"), checks)


@pytest.fixture(scope="session")
def default_run(pytestconfig: pytest.Config) -> bool:
    """Whether this run is about the cases and streams that are checked in."""
    return not other_folders(pytestconfig) and not pytestconfig.getoption("allow_missing", default=False)


@pytest.fixture(scope="session")
def known(tmp_path_factory: pytest.TempPathFactory) -> frozenset[str]:
    """Families of the metrics that the product has."""
    return known_families(tmp_path_factory.mktemp("known"))


@pytest.fixture
def verdict(request: pytest.FixtureRequest) -> Verdict:
    """Judges and reports what a test compared."""

    def judge(outcome: Outcome) -> None:
        request.config.stash[OUTCOMES][request.node.name] = outcome
        request.node.add_report_section("call", "golden", str(outcome))
        assert dict(outcome.wrong) == {}
        if not request.config.getoption("allow_missing", default=False):
            assert list(outcome.missing) == [], "calmon has no metric for these keys"

    return judge


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    outcomes = config.stash[OUTCOMES]
    if not outcomes:
        return
    total = Outcome(
        sum(outcome.total for outcome in outcomes.values()),
        {f"{name} {key}": family for name, outcome in outcomes.items() for key, family in outcome.missing.items()},
        {},
    )
    terminalreporter.section("golden cases and streams")
    if other_folders(config) or config.get_verbosity() > 0:
        for name, outcome in outcomes.items():
            terminalreporter.line(f"{name}: {outcome}")
    terminalreporter.line(f"together: {total}")
