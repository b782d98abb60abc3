"""Secrets that configuration keys name files for."""

from __future__ import annotations

from pathlib import Path

from monitor.errors import ConfigError

ORIGIN = "configuration"


class HiddenText(str):
    """A secret that is a plain text to whoever needs it; its representation does not show it."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'...'"


def read_secret(key: str, path: str) -> HiddenText:
    """Read a secret from the file that a key names, without the line end at its end.

    Args:
        key: The whole key, for messages.
        path: The file.

    Raises:
        ConfigError: The file cannot be read, is empty, or holds more than a line.
    """
    try:
        text = Path(path).read_text(encoding="utf-8").removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        raise file_fault(key, path, "is no UTF-8 text") from None
    except OSError as error:
        raise file_fault(key, path, f"cannot be read: {error.strerror or error}") from None
    if not text or not text.isprintable():
        raise file_fault(key, path, "is empty" if not text else "holds more than one line of text")
    return HiddenText(text)


def file_fault(key: str, path: str, problem: str) -> ConfigError:
    """The fault of a file that a key names."""
    return ConfigError([f"{key}: the file {path} {problem}"], ORIGIN)
