"""Metrics: pure functions of sums, each declared once in the catalogue."""
