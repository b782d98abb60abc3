"""Grafana's dashboards: as files, against the models of its SDK, and on a real Prometheus."""
