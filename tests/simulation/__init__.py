"""Simulations: what the evidence tests promise about error rates and delays, on streams drawn with fixed seeds."""
