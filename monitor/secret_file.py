"""Secrets that configuration keys and options name files for."""

from __future__ import annotations

from pathlib import Path

from monitor.errors import ConfigError

ORIGIN = "configuration"


class HiddenText(str):
    """A secret that is a plain text to whoever needs it; its representation does not show it."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'...'"


def read_secret(place: str, path: str, origin: str = ORIGIN) -> HiddenText:
    """Read a secret from the file that a key or an option names, without the line end at its end.

    Args:
        place: The whole key or the option, for messages.
        path: The file.
        origin: Where that stands.

    Raises:
        ConfigError: The file cannot be read, is empty, or holds more than a line; the secret is not shown.
    """
    try:
        text = Path(path).read_text(encoding="utf-8").removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        raise file_fault(place, path, "is no UTF-8 text", origin) from None
    except OSError as error:
        raise file_fault(place, path, f"cannot be read: {error.strerror or error}", origin) from None
    return checked_secret(f"{place}: the file {path}", text, origin)


def read_token(place: str, path: str, origin: str = ORIGIN) -> HiddenText:
    """Read a bearer token as `read_secret` reads a secret.

    Raises:
        ConfigError: As there, or it is none.
    """
    return checked_token(f"{place}: the file {path}", read_secret(place, path, origin), origin)


def checked_token(place: str, text: str, origin: str) -> HiddenText:
    """A bearer token: it stands in a header as it is, and a header is ASCII.

    Raises:
        ConfigError: It is no secret that can be sent, or not ASCII; it is not shown.
    """
    secret = checked_secret(place, text, origin)
    if not secret.isascii():
        raise ConfigError([f"{place} holds a character that is not ASCII, as no token does"], origin)
    return secret


def checked_secret(place: str, text: str, origin: str) -> HiddenText:
    """A secret that can be sent.

    Raises:
        ConfigError: It is empty, or not one line of text; it is not shown.
    """
    if not text or not text.isprintable():
        raise ConfigError([f"{place} {'is empty' if not text else 'holds more than one line of text'}"], origin)
    return HiddenText(text)


def file_fault(place: str, path: str, problem: str, origin: str = ORIGIN) -> ConfigError:
    """The fault of a file that a key or an option names."""
    return ConfigError([f"{place}: the file {path} {problem}"], origin)
