"""Makes Grafana's dashboards from the catalogue of metrics: `python -m grafana.generate` writes `grafana/dashboards/`.

A tool of this repository, not part of the package: whoever loads the dashboards needs the JSON files alone.
"""
