"""One module at a time."""
