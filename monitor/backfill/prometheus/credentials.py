"""Who writes to Prometheus: from a file or the environment, never from the command line, which everyone can read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from monitor.errors import ConfigError
from monitor.export.prometheus_http import Credentials
from monitor.request.moment import COMMAND_LINE

PASSWORD, TOKEN = "CALMON_PROMETHEUS_PASSWORD", "CALMON_PROMETHEUS_TOKEN"
"""Variables that hold a secret."""


def credentials(
    username: str | None, password_file: str | None, token_file: str | None, environment: Mapping[str, str]
) -> Credentials | None:
    """What requests are allowed by; None where nothing is said.

    Raises:
        ConfigError: A secret is missing, cannot be read or is of no use; the secret is not shown.
    """
    password = _secret("--password-file", password_file, PASSWORD, environment)
    token = _secret("--token-file", token_file, TOKEN, environment)
    if username is not None:
        if token_file is not None:
            raise ConfigError(["--username and --token-file exclude each other"], COMMAND_LINE)
        if password is None:
            raise ConfigError([f"--username {username}: its password is missing: --password-file FILE, or {PASSWORD}"], COMMAND_LINE)
        return Credentials.basic(username, password)
    if password_file is not None:
        raise ConfigError(["--password-file: whose password is it? --username NAME"], COMMAND_LINE)
    return None if token is None else Credentials.bearer(token)


def _secret(option: str, path: str | None, variable: str, environment: Mapping[str, str]) -> str | None:
    """A secret without the line end at its end; the file's comes before the variable's."""
    if path is None:
        place, secret = variable, environment.get(variable)
    else:
        place = f"{option} {path}"
        try:
            secret = Path(path).read_text(encoding="utf-8").removesuffix("\n").removesuffix("\r")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is no text"
            raise ConfigError([f"{place}: cannot be read: {reason}"], COMMAND_LINE) from error
    if secret is not None and (not secret or not secret.isprintable()):
        raise ConfigError([f"{place}: must be one line, and not empty"], COMMAND_LINE)
    return secret
