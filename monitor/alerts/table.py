"""The table of all alerts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from monitor.alerts.alert import Alert
from monitor.alerts.calibration import CALIBRATION
from monitor.alerts.decision import DECISION
from monitor.alerts.feed import FEED
from monitor.alerts.process import PROCESS

GROUPS: Mapping[str, Sequence[Alert]] = {
    "calmon-calibration": CALIBRATION,
    "calmon-decision": DECISION,
    "calmon-feed": FEED,
    "calmon-process": PROCESS,
}
"""By rule group."""

ALERTS: Sequence[Alert] = tuple(alert for alerts in GROUPS.values() for alert in alerts)
"""All of them."""
