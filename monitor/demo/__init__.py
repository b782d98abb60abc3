"""`calmon demo`: two real streams replayed on a scaled clock, so that labels come late while somebody watches."""
