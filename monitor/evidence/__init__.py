"""Evidence: tests of calibration that stay valid however often someone looks, from integer sums of grid bins."""
