"""calmon's tests."""
