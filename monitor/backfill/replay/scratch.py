"""The scratch state of a replay: whose it may be, and what of the configuration decides it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from monitor.config import Config, QuarantineConfig, SourceConfig
from monitor.errors import StateError
from monitor.pipeline.configured import layouts_of
from monitor.state.origin import Origin


def refuse_live_state(directory: Path, config: Config) -> None:
    """Refuse the configured state directory, what is in it, and what it is in.

    Raises:
        StateError: It is one of these.
    """
    scratch, live = directory.resolve(), Path(config.state.directory).resolve()
    if scratch == live or live in scratch.parents or scratch in live.parents:
        how = "is" if scratch == live else "lies in" if live in scratch.parents else "holds"
        raise StateError(
            f"--into {directory} {how} the state.directory of the configuration ({live}): a replay wants a directory of its own"
        )


def scratch_config(config: Config, directory: Path, files: bool) -> Config:
    """The configuration with the state, and the refused records, in a scratch directory.

    Args:
        config: As given.
        directory: The scratch state.
        files: Whether files are read, and not the configured source.
    """
    changes: dict[str, Any] = {
        "state": config.state.model_copy(update={"directory": str(directory)}),
        "quarantine": QuarantineConfig(),
    }
    return config.model_copy(update=changes | ({"source": SourceConfig()} if files else {}))


def deciding_settings(config: Config) -> dict[str, Any]:
    """What of a configuration decides the sums, as JSON values by the name of its key."""
    horizon = config.state.horizon_ms
    found: dict[str, Any] = {
        "state.horizon": horizon,
        "state.history": None if horizon is None else config.state.history_ms,
        "defaults": _of_model(config, ""),
    }
    for name in sorted(config.models):
        of_model = _of_model(config, name)
        if of_model != found["defaults"]:
            found[f"models.{name}"] = of_model
    return found


def refuse_other_settings(origin: Origin, settings: dict[str, Any], directory: Path) -> None:
    """A replay goes on under the settings that it began with: its sums would not be those of any one configuration.

    Raises:
        StateError: A setting is another one.
    """
    before = origin.settings
    changed = sorted(key for key in before.keys() | settings.keys() if before.get(key) != settings.get(key))
    if changed:
        raise StateError(
            f"{directory} holds a replay under other settings ({', '.join(changed)} changed since): name another directory with --into"
        )


def _of_model(config: Config, name: str) -> list[Any]:
    classes = config.model(name).classes
    return [layouts_of(config)(name)[0].fingerprint, None if classes is None else list(classes)]
