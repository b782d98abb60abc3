"""Alerts on calmon itself."""

from __future__ import annotations

from collections.abc import Sequence

from monitor.alerts.alert import SCRAPED, Alert, Detail, Form, Needs, Severity
from monitor.alerts.promql import SCRAPED_NAMES

_CLOCK = Detail("max by ($by) (calmon_clock_seconds{$m})", Form.TIME)

PROCESS: Sequence[Alert] = (
    Alert(
        name="CalmonTargetDown",
        severity=Severity.PAGE,
        needs=Needs.NOTHING,
        expression='up{job="${job}"} == 0 or absent(up{job="${job}"})',
        form=Form.NUMBER,
        wait="2m",
        hold="0s",
        labels=SCRAPED,
        summary="calmon cannot be scraped",
        description="Prometheus cannot scrape {instance}, or knows no target of the job {job}. The last tick that it saw was of {last}. No "
        "model is watched meanwhile; nothing is lost as long as the log is kept.",
        dashboard="calmon-pipeline",
        details={"last": Detail("max by ($by) (last_over_time(calmon_clock_seconds{$m}[1d]))", Form.TIME)},
    ),
    Alert(
        name="CalmonTickStalled",
        severity=Severity.PAGE,
        needs=Needs.TARGET,
        expression="""calmon_clock_seconds == calmon_clock_seconds offset 5m
or
calmon_clock_seconds and increase(calmon_tick_errors_total[10m]) > 0""",
        form=Form.TIME,
        wait="1m",
        hold="5m",
        labels=SCRAPED,
        summary="calmon serves gauges that are not computed any more",
        description="The clock of {instance} has stood at {value} for 5 minutes, or a tick could not evaluate a window: {errors} errors in "
        "10 minutes. Its gauges are stale or missing, and alerts on them cannot be trusted.",
        dashboard="calmon-pipeline",
        details={"errors": Detail("max by ($by) (increase(calmon_tick_errors_total{$m}[10m]))", Form.COUNT)},
    ),
    Alert(
        name="CalmonShardMissing",
        severity=Severity.TICKET,
        needs=Needs.TARGET,
        expression="calmon_source_ok == 0",
        form=Form.NUMBER,
        wait="10m",
        hold="0s",
        labels=SCRAPED,
        summary="a part of the log is not read",
        description="{instance} does not read everything that it should (calmon_source_ok is {value}, bound: 1); its status page says why. "
        "Clock: {clock}; {lag} records are still to be read.",
        dashboard="calmon-pipeline",
        details={"clock": _CLOCK, "lag": Detail("sum by ($by) (calmon_source_lag_records{$m})", Form.COUNT)},
    ),
    Alert(
        name="CalmonEventTimeLag",
        severity=Severity.TICKET,
        needs=Needs.TARGET,
        # Behind the log, or the evidence behind the clock: a partition that stands still holds every version's maturity back.
        expression=f"""max by ({SCRAPED_NAMES}) (
  (
    calmon_clock_seconds
    - on ({SCRAPED_NAMES}) group_right () calmon_source_read_until_timestamp_seconds
    > ${{log_lag}}
  )
  and calmon_source_lag_records > 0
)
or
(
  calmon_clock_seconds
  - on ({SCRAPED_NAMES}) calmon_evidence_matured_until_timestamp_seconds
  - on ({SCRAPED_NAMES}) calmon_evidence_maturity_seconds
  > ${{maturity_lag}}
)""",
        form=Form.DURATION,
        wait="15m",
        hold="5m",
        labels=SCRAPED,
        summary="calmon is behind",
        description="{instance} is {value} behind in event time (bounds: {log_lag} in reading, {maturity_lag} in what has matured); {lag} "
        "records are still to be read. Clock: {clock}.",
        dashboard="calmon-pipeline",
        details={"clock": _CLOCK, "lag": Detail("sum by ($by) (calmon_source_lag_records{$m})", Form.COUNT)},
    ),
    Alert(
        name="CalmonStateDisk",
        severity=Severity.TICKET,
        needs=Needs.TARGET,
        expression="calmon_state_disk_free_bytes / calmon_state_disk_size_bytes < ${disk_free}",
        form=Form.RATIO,
        wait="10m",
        hold="10m",
        labels=SCRAPED,
        summary="the disk with the state is almost full",
        description="{value} of the disk with the state of {instance} is free (bound: {disk_free}): {free} bytes. Clock: {clock}. When it "
        "is full, calmon ends rather than go on without a checkpoint.",
        dashboard="calmon-pipeline",
        details={"free": Detail("max by ($by) (calmon_state_disk_free_bytes{$m})", Form.COUNT), "clock": _CLOCK},
    ),
    Alert(
        name="CalmonSeriesFolded",
        severity=Severity.INFO,
        needs=Needs.TARGET,
        expression="calmon_series_folded > 0",
        form=Form.COUNT,
        wait="15m",
        hold="1h",
        labels=SCRAPED,
        summary="group values or classes are summed as __other__",
        description="{value} series of {instance} are beyond max_group_values and summed as __other__ (bound: 0); {exported} series are "
        "exported. Clock: {clock}.",
        dashboard="calmon-pipeline",
        details={"exported": Detail("max by ($by) (calmon_series_exported{$m})", Form.COUNT), "clock": _CLOCK},
    ),
)
"""In the order of their severity."""
