"""Settings that hold for every test."""

from __future__ import annotations

from hypothesis import settings

pytest_plugins = ["tests.services.fixtures"]

# On a busy machine a deadline fails for reasons that are not the code's; a blob makes CI's finds repeatable anywhere.
settings.register_profile("calmon", deadline=None, print_blob=True)
settings.load_profile("calmon")
