"""What is known now of past windows, for Prometheus: as a file of blocks to be, or written to a running one."""
