"""Revisions: what was changed, after it had matured, by which records, and what it did to the windows."""
