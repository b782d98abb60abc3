"""Real services that tests start and end."""
