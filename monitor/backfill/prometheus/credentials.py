"""Who writes to Prometheus: from a file or the environment, never from the command line, which everyone can read."""

from __future__ import annotations

from collections.abc import Mapping

from monitor.errors import ConfigError
from monitor.export.prometheus_http import Credentials
from monitor.prometheus_address import check_username
from monitor.request.moment import COMMAND_LINE
from monitor.secret_file import checked_secret, checked_token, read_secret, read_token

PASSWORD, TOKEN = "CALMON_PROMETHEUS_PASSWORD", "CALMON_PROMETHEUS_TOKEN"
"""Variables that hold a secret."""


def credentials(
    username: str | None, password_file: str | None, bearer_token_file: str | None, environment: Mapping[str, str]
) -> Credentials | None:
    """What requests are allowed by; None where nothing is said.

    Raises:
        ConfigError: A secret is missing, cannot be read or is of no use; the secret is not shown.
    """
    password = token = None
    if password_file is not None:  # the file's comes before the variable's
        password = read_secret("--password-file", password_file, COMMAND_LINE)
    elif PASSWORD in environment:
        password = checked_secret(f"the variable {PASSWORD}", environment[PASSWORD], COMMAND_LINE)
    if bearer_token_file is not None:
        token = read_token("--bearer-token-file", bearer_token_file, COMMAND_LINE)
    elif TOKEN in environment:
        token = checked_token(f"the variable {TOKEN}", environment[TOKEN], COMMAND_LINE)
    if username is not None:
        if bearer_token_file is not None:
            raise ConfigError(["--username and --bearer-token-file exclude each other"], COMMAND_LINE)
        if password is None:
            raise ConfigError([f"--username {username}: its password is missing: --password-file FILE, or {PASSWORD}"], COMMAND_LINE)
        try:
            return Credentials.basic(check_username(username), password)
        except ValueError as error:
            raise ConfigError([f"--username: {error}"], COMMAND_LINE) from error
    if password_file is not None:
        raise ConfigError(["--password-file: whose password is it? --username NAME"], COMMAND_LINE)
    return None if token is None else Credentials.bearer(token)
