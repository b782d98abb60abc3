"""Putting history right: labels in bulk, replays into a state of their own, and what Prometheus is told of it."""
