"""Integration tests: the real command, real services."""
