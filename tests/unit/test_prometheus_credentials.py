"""Where the secrets of `calmon backfill remote-write` come from, and that a wrong one is never shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from monitor.backfill.prometheus.credentials import credentials
from monitor.errors import ConfigError
from monitor.export.prometheus_http import Credentials

ENVIRONMENT = {"CALMON_PROMETHEUS_PASSWORD": "of the environment", "CALMON_PROMETHEUS_TOKEN": "t-of-the-environment"}


def test_from_files_before_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("of a file \n")  # the line end is none of it, the blank is
    assert credentials(None, None, None, {}) is None
    assert credentials("me", str(file), None, ENVIRONMENT) == Credentials.basic("me", "of a file ")
    assert credentials("me", None, None, ENVIRONMENT) == Credentials.basic("me", "of the environment")
    assert credentials(None, None, str(file), ENVIRONMENT) == Credentials.bearer("of a file ")
    assert credentials(None, None, None, ENVIRONMENT) == Credentials.bearer("t-of-the-environment")


@pytest.mark.parametrize("content", [b"", b"\n", b"hidden\nhidden\n", b"hidden\x00", b"hidden\xff"])
def test_secrets_of_no_use_are_not_shown(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "secret"
    file.write_bytes(content)
    with pytest.raises(ConfigError) as refused:
        credentials(None, None, str(file), {})
    assert f"--bearer-token-file: the file {file} " in str(refused.value)
    assert "hidden" not in str(refused.value)


def test_a_token_is_ascii_and_a_password_any_text(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("hidd€n", encoding="utf-8")
    assert credentials("me", str(file), None, {}) == Credentials.basic("me", "hidd€n")
    for path, environment in ((str(file), {}), (None, {"CALMON_PROMETHEUS_TOKEN": "hidd€n"})):
        with pytest.raises(ConfigError, match="holds a character that is not ASCII") as refused:
            credentials(None, None, path, environment)
        assert "hidd" not in str(refused.value)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("me", None, None), "--username me: its password is missing: --password-file FILE, or CALMON_PROMETHEUS_PASSWORD"),
        (("me", None, "FILE"), "--username and --bearer-token-file exclude each other"),
        ((None, "FILE", None), "--password-file: whose password is it?"),
        (("me:too", "FILE", None), "--username: must be one line of text without a colon"),
        (("\udcff", "FILE", None), "--username: must be one line of text without a colon"),
    ],
)
def test_words_that_do_not_go_together(tmp_path: Path, words: tuple[str | None, ...], said: str) -> None:
    file = tmp_path / "secret"
    file.write_text("hidden")
    username, password_file, token_file = (str(file) if word == "FILE" else word for word in words)
    with pytest.raises(ConfigError, match="command line") as refused:
        credentials(username, password_file, token_file, {})
    assert said in str(refused.value)
