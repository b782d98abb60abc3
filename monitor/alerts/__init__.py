"""Alerts: one table, and what is rendered from it for Prometheus, for Grafana and for people; no clock, no I/O."""
