"""Cases of the alerts on calmon itself."""

from __future__ import annotations

from tests.rules.case import CLOCK, MATURED, SCRAPED, Firing, Series, Silent, of_process, series

_PARTITION = {**SCRAPED, "partition": "labels-3"}
_NOW = "2026-06-04 00:00:00 +0000 UTC"


def _up(value: float) -> Series:
    return {**series("up", SCRAPED, value), **of_process(clock_seconds=CLOCK)}


def _ticking(step: float, errors: float = 0) -> Series:
    return {**series("calmon_clock_seconds", SCRAPED, CLOCK, step=step), **series("calmon_tick_errors_total", SCRAPED, 0, step=errors)}


def _reading(age: float, lag: float) -> Series:
    return {
        **of_process(clock_seconds=CLOCK),
        **series("calmon_source_read_until_timestamp_seconds", _PARTITION, CLOCK - age),
        **series("calmon_source_lag_records", _PARTITION, lag),
    }


def _maturing(behind: float) -> Series:
    matured = MATURED - behind
    return of_process(clock_seconds=CLOCK, evidence_matured_until_timestamp_seconds=matured, evidence_maturity_seconds=48 * 3600)


CASES = (
    Firing(
        "CalmonTargetDown",
        _up(0),
        "5m",
        SCRAPED,
        "calmon cannot be scraped",
        f"Prometheus cannot scrape a:9779, or knows no target of the job calmon. The last tick that it saw was of {_NOW}. No model is "
        "watched meanwhile; nothing is lost as long as the log is kept.",
    ),
    Firing(
        "CalmonTargetDown",
        series("up", {"job": "other", "instance": "b"}, 1),
        "5m",
        {"job": "calmon"},
        "calmon cannot be scraped",
        "Prometheus cannot scrape , or knows no target of the job calmon. The last tick that it saw was of unknown. No model is watched "
        "meanwhile; nothing is lost as long as the log is kept.",
    ),
    Silent("CalmonTargetDown", "up", _up(1)),
    Silent("CalmonTargetDown", "a restart", {"up" + _labels: "1x5 0 0 1x1440" for _labels in ('{job="calmon",instance="a:9779"}',)}),
    Firing(
        "CalmonTickStalled",
        _ticking(0),
        "10m",
        SCRAPED,
        "calmon serves gauges that are not computed any more",
        f"The clock of a:9779 has stood at {_NOW} for 5 minutes, or a tick could not evaluate a window: 0 errors in 10 minutes. Its gauges "
        "are stale or missing, and alerts on them cannot be trusted.",
    ),
    Firing(
        "CalmonTickStalled",
        _ticking(60, errors=1),
        "20m",
        SCRAPED,
        "calmon serves gauges that are not computed any more",
        "The clock of a:9779 has stood at 2026-06-04 00:20:00 +0000 UTC for 5 minutes, or a tick could not evaluate a window: 10 errors in "
        "10 minutes. Its gauges are stale or missing, and alerts on them cannot be trusted.",
    ),
    Silent("CalmonTickStalled", "ticking", _ticking(60), at=("4m", "30m")),
    Silent("CalmonTickStalled", "a fresh start", _ticking(0), at=("4m",)),
    Firing(
        "CalmonShardMissing",
        {**_reading(0, 40), **of_process(source_ok=0)},
        "15m",
        SCRAPED,
        "a part of the log is not read",
        "a:9779 does not read everything that it should (calmon_source_ok is 0, bound: 1); its status page says why. Clock: "
        f"{_NOW}; 40 records are still to be read.",
    ),
    Silent("CalmonShardMissing", "all is read", of_process(source_ok=1)),
    Firing(
        "CalmonEventTimeLag",
        _reading(1800, 40),
        "20m",
        SCRAPED,
        "calmon is behind",
        "a:9779 is 30m 0s behind in event time (bounds: 15m in reading, 6h in what has matured); 40 records are still to be read. Clock: "
        f"{_NOW}.",
    ),
    Firing(
        "CalmonEventTimeLag",
        _maturing(7 * 3600),
        "20m",
        SCRAPED,
        "calmon is behind",
        "a:9779 is 7h 0m 0s behind in event time (bounds: 15m in reading, 6h in what has matured); unknown records are still to be read. "
        f"Clock: {_NOW}.",
    ),
    Silent("CalmonEventTimeLag", "a little", _reading(800, 40)),
    Silent("CalmonEventTimeLag", "a topic in which nothing is written", _reading(90_000, 0)),
    Silent("CalmonEventTimeLag", "maturing as it should", _maturing(3600)),
    Firing(
        "CalmonStateDisk",
        of_process(clock_seconds=CLOCK, state_disk_free_bytes=5e9, state_disk_size_bytes=1e11),
        "15m",
        SCRAPED,
        "the disk with the state is almost full",
        f"5% of the disk with the state of a:9779 is free (bound: 10%): 5000000000 bytes. Clock: {_NOW}. When it is full, calmon ends "
        "rather than go on without a checkpoint.",
    ),
    Silent("CalmonStateDisk", "enough", of_process(state_disk_free_bytes=1.1e10, state_disk_size_bytes=1e11)),
    Firing(
        "CalmonSeriesFolded",
        of_process(clock_seconds=CLOCK, series_folded=7, series_exported=900),
        "20m",
        SCRAPED,
        "group values or classes are summed as __other__",
        f"7 series of a:9779 are beyond max_group_values and summed as __other__ (bound: 0); 900 series are exported. Clock: {_NOW}.",
    ),
    Silent("CalmonSeriesFolded", "none", of_process(series_folded=0)),
)
