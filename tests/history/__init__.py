"""Metrics at past moments."""
