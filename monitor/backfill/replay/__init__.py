"""`calmon backfill replay`: archived events or topics read again, under any configuration, into a scratch state."""
