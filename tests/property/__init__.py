"""Properties that hold for every history: against the oracle, and on the integers themselves."""
