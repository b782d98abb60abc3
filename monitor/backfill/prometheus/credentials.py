"""Who writes to Prometheus: from a file or the environment, never from the command line, which everyone can read."""

from __future__ import annotations

from collections.abc import Mapping

from monitor.errors import ConfigError
from monitor.export.prometheus_http import Credentials
from monitor.request.moment import COMMAND_LINE
from monitor.secret_file import checked_secret, read_secret

PASSWORD, TOKEN = "CALMON_PROMETHEUS_PASSWORD", "CALMON_PROMETHEUS_TOKEN"
"""Variables that hold a secret."""


def credentials(
    username: str | None, password_file: str | None, bearer_token_file: str | None, environment: Mapping[str, str]
) -> Credentials | None:
    """What requests are allowed by; None where nothing is said.

    Raises:
        ConfigError: A secret is missing, cannot be read or is of no use; the secret is not shown.
    """
    password = _secret("--password-file", password_file, PASSWORD, environment)
    token = _secret("--bearer-token-file", bearer_token_file, TOKEN, environment)
    if username is not None:
        if bearer_token_file is not None:
            raise ConfigError(["--username and --bearer-token-file exclude each other"], COMMAND_LINE)
        if password is None:
            raise ConfigError([f"--username {username}: its password is missing: --password-file FILE, or {PASSWORD}"], COMMAND_LINE)
        return Credentials.basic(username, password)
    if password_file is not None:
        raise ConfigError(["--password-file: whose password is it? --username NAME"], COMMAND_LINE)
    return None if token is None else Credentials.bearer(token)


def _secret(option: str, path: str | None, variable: str, environment: Mapping[str, str]) -> str | None:
    """A secret; the file's comes before the variable's."""
    if path is not None:
        return read_secret(option, path, COMMAND_LINE)
    text = environment.get(variable)
    return None if text is None else checked_secret(f"the variable {variable}", text, COMMAND_LINE)
