"""What was known then and what is known now, side by side in a real Prometheus."""
