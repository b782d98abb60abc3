"""`calmon backfill replay`: archives read again into a scratch state."""
