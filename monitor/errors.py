"""Errors that a person can act on; each message says what was wrong with which input and what to do."""


class CalmonError(Exception):
    """Base of every error that ends a command with one clear line instead of a traceback."""

    exit_code = 1


class ConfigError(CalmonError):
    """A configuration that cannot be used; carries every fault with its path in the file.

    Args:
        faults: One line a fault, each starting with the path of the key (``models.flights.bins: ...``).
        origin: The file the faults are in.
    """

    exit_code = 2

    def __init__(self, faults: list[str], origin: str) -> None:
        self.faults = faults
        self.origin = origin
        super().__init__("\n".join([f"{origin}: {len(faults)} fault(s)", *(f"  {fault}" for fault in faults)]))


class StateError(CalmonError):
    """A state directory that is corrupt, foreign, newer, locked or of another layout; it is never deleted."""


class StateInUseError(StateError):
    """A state that another process has open for writing."""


class SourceError(CalmonError):
    """An input that cannot be read or that no longer matches the stored position."""


class StoppedError(CalmonError):
    """A start that was given up because somebody asked for the end: no failure."""

    exit_code = 0


class CapacityError(CalmonError):
    """A sum that could pass its integer's range: refused loudly rather than wrapped around."""
