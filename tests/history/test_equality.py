"""`calmon history` says of a window what `calmon evaluate --at` says, to the last bit, whatever is evaluated beside it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.history.service import MINUTE_MS, Stopped, evaluate, history, stopped

WHOLE_HOURS = {
    "24h": ("2026-06-07T16:00:00Z", "2026-06-07T18:00:00Z", "1h"),
    "7d:48h": ("2026-06-14T00:00:00Z", "2026-06-15T00:00:00Z", "24h"),
    "5h:24h": ("2026-06-05T18:00:00Z", "2026-06-05T20:00:00Z", "1h"),
}
"""Windows, and the moments that are asked; the last one is compared."""

MINUTES = {"90m:17m": "7m", "1h": "30m"}


@pytest.fixture(scope="module", params=["employment", "flights"])
def service(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Stopped:
    """A stopped service of each stream."""
    return stopped(tmp_path_factory.mktemp("service"), request.param)


def compare(service: Stopped, window: str, times: tuple[str, str, str]) -> None:
    """See that the last moment is what `evaluate` says of it, for both versions, in all they have."""
    wanted: dict[str, dict[str, Any]] = {}
    for version in ("iso", "raw"):
        found: dict[str, Any] = {}
        for segment in ("all", "group"):
            moments = history(service, version, window, times, "--segment", segment)
            last = moments[-1]
            wanted = wanted or evaluate(service, last["at"], window)
            found |= last["metrics"]
        of_evaluate = wanted[f"{service.model}@{version}"]
        assert found.keys() == of_evaluate.keys()
        differing = {name: (found[name], value) for name, value in of_evaluate.items() if found[name] != value}
        assert differing == {}
        assert last["predictions"] == of_evaluate["predictions"] > 0
        assert last["completeness"] == of_evaluate["completeness"]
    assert len(of_evaluate) > 150


@pytest.mark.parametrize("window", WHOLE_HOURS)
def test_windows_of_hours(service: Stopped, window: str) -> None:
    compare(service, window, WHOLE_HOURS[window])


def test_a_moment_among_many(service: Stopped) -> None:
    moments = history(service, "raw", "24h:5h", ("2026-06-05T01:00:00Z", "2026-06-07T20:00:00Z", "1h"))  # more than are evaluated in one go
    for last in moments[-1:-30:-20]:
        of_evaluate = evaluate(service, last["at"], "24h:5h")[f"{service.model}@raw"]
        assert {name: of_evaluate[name] for name in last["metrics"]} == last["metrics"]
        assert last["metrics"]["labelled"] > 100


@pytest.mark.parametrize("window", MINUTES)
def test_windows_of_minutes(service: Stopped, window: str) -> None:
    at = str(service.newest_ms // MINUTE_MS * MINUTE_MS)
    compare(service, window, (at, at, MINUTES[window]))
