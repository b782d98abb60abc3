"""Where records come from: one protocol, an adapter per kind of input."""
