"""Settings that hold for every test."""

from __future__ import annotations

import signal

from hypothesis import settings

pytest_plugins = ["tests.services.fixtures"]

# On a busy machine a deadline fails for reasons that are not the code's; a blob makes CI's finds repeatable anywhere.
settings.register_profile("calmon", deadline=None, print_blob=True)
settings.load_profile("calmon")

# A run that was started in the background ignores Ctrl-C, and so would every command that a test starts to interrupt it.
signal.signal(signal.SIGINT, signal.default_int_handler)
