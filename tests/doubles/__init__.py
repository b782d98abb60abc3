"""Stand-ins for the adapters at the edges: in memory, exact about what the protocols promise."""
