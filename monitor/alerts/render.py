"""Every file that is made from the table."""

from __future__ import annotations

from monitor.alerts.choice import Choice
from monitor.alerts.grafana import grafana_alerts
from monitor.alerts.prometheus import prometheus_rules
from monitor.alerts.runbook_index import runbook_index

RULES = "deploy/prometheus/rules/calmon.yaml"
GRAFANA = "grafana/provisioning/alerting/calmon.yaml"
INDEX = "deploy/runbooks/README.md"


def rendered(choice: Choice) -> dict[str, str]:
    """Text by path below the repository's root."""
    return {RULES: prometheus_rules(choice), GRAFANA: grafana_alerts(choice), INDEX: runbook_index(choice)}
