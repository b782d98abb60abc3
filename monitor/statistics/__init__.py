"""Exact statistics: fixed-point integers per series, pane and bin, that merge, add and retract without residue."""
