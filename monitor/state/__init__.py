"""The state store: one atomic write a batch, behind a small protocol."""
