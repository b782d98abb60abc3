"""Dashboards and provisioning of Grafana, and the tool that makes them; see docs/grafana.md."""
