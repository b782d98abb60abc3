"""The real command in processes of its own, with a real Prometheus where one scrapes."""
