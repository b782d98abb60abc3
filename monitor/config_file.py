"""Configuration files: YAML text and environment to a `Config`, or every fault with its path and line.

The tree of the text (`monitor.config_tree`) is judged by the models (`monitor.config`); what they object to is put into words here.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from monitor.config import SECRETS, SECTIONS, Config, config_keys, section_at, section_keys
from monitor.config_tree import AFTER_ALL_LINES, MAX_BYTES, UNREADABLE, Faults, Node, Place, UnusableError, quote_hint, read_tree, shorten
from monitor.config_value import FROM_FILE
from monitor.errors import ConfigError

OVERRIDE_PREFIX: Final = "CALMON__"

_MESSAGES: Final = {
    "missing": "this key is needed",
    "int_type": "must be a whole number in plain digits",
    "float_type": "must be a finite number",
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "string_type": "must be a text",
    "tuple_type": "must be a list",
    "model_type": "must be a mapping of keys",
    "dict_type": "must be a mapping of keys",
}


def load_config(path: str | Path, environ: Mapping[str, str] | None = None) -> Config:
    """Read a configuration file, with overrides from the environment.

    Args:
        path: The YAML file.
        environ: Where ``${NAME}`` and ``CALMON__SECTION__KEY`` are looked up; the process's environment if None.

    Raises:
        ConfigError: The file cannot be read or used; it carries every fault.
    """
    origin = str(path)
    try:
        with Path(path).open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
        text = raw.decode("utf-8-sig") if len(raw) <= MAX_BYTES else " " * len(raw)
    except FileNotFoundError:
        raise ConfigError(["no such file"], origin) from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise ConfigError([f"not UTF-8 text (line {line})"], origin) from None
    except (OSError, ValueError) as error:  # ValueError: a path that no file can have
        raise ConfigError([f"cannot be read: {getattr(error, 'strerror', None) or error}"], origin) from None
    return parse_config(text, origin, os.environ if environ is None else environ)


def parse_config(text: str, origin: str, environ: Mapping[str, str]) -> Config:
    """Make a configuration of YAML text and environment overrides.

    Args:
        text: The YAML document: at most 1 MiB, 16 levels, without anchors, aliases and tags.
        origin: What to call the text in errors.
        environ: Where ``${NAME}`` in texts and overrides such as ``CALMON__HTTP__PORT`` are looked up.

    Raises:
        ConfigError: Carries every fault, each with its path and its line or variable.
    """
    faults = Faults(SECRETS)
    try:
        root = read_tree(text, faults, environ)
        if root.value is None:
            raise UnusableError("the file is empty; {} is the configuration with every default")
        if root.value is not UNREADABLE and not isinstance(root.value, dict):
            raise UnusableError(f"must be a mapping of keys at the top, got {_kind(root)}", root.line)
    except UnusableError as error:
        faults.add((), error.message, error.line, f"line {error.line}" if error.line else "")
        raise ConfigError(faults.in_order(), origin) from None
    config = None
    if isinstance(root.value, dict):
        _override(root.value, environ, faults)
        config = _validate(root, faults)
    if config is None or faults.found:
        raise ConfigError(faults.in_order(), origin)
    return config


def _override(root: dict[str, Node], environ: Mapping[str, str], faults: Faults) -> None:
    """Put the values of variables such as ``CALMON__HTTP__PORT`` into the tree, in place of what the file says."""
    known = _override_places()
    for variable in sorted(name for name in environ if name.startswith(OVERRIDE_PREFIX)):
        place = known.get(variable)
        if place is None:
            faults.add((variable,), _no_override(variable, list(known)), AFTER_ALL_LINES, "environment")
            continue
        try:
            node = read_tree(environ[variable], faults, None, variable, place)
        except UnusableError as error:
            message = "not YAML that is a text: quote it" if faults.secret(place) else error.message
            faults.add(place, message, AFTER_ALL_LINES, variable)
            continue
        children: object = root
        for part in place[:-1]:
            if isinstance(children, dict):
                section = children.setdefault(part, Node(AFTER_ALL_LINES, variable, value={}))
                if section.value is None:
                    section.value = {}
                children = section.value
        if isinstance(children, dict):
            children[place[-1]] = node


def _override_places() -> dict[str, tuple[str, ...]]:
    keys = ["windows", *(key for key in config_keys() if not key.startswith(("windows", "models")))]
    return {OVERRIDE_PREFIX + key.replace(".", "__").upper(): tuple(key.split(".")) for key in keys}


def _no_override(variable: str, known: list[str]) -> str:
    if variable.split("__")[1] == "MODELS":
        return "the keys of single models can be set in the file only"
    nearest = get_close_matches(variable, known, n=1)
    return f"no key has this name{f'; did you mean {nearest[0]}?' if nearest else ''}"


def _validate(root: Node, faults: Faults) -> Config | None:
    """Judge the tree and note what the models object to."""
    data = _data(root)
    result = _judge(data)
    if isinstance(result, Config):
        return result
    for error in result + _errors_among_sound_items(data, result):
        place = _place(error)
        if place not in faults.places:
            node, nearest = _find(root, place)
            faults.add_at(place, _message(error, place, node, bool(faults.secret(place))), nearest)
    return None


def _judge(data: object) -> Config | list[ErrorDetails]:
    try:
        return Config.model_validate(data, context=FROM_FILE, by_alias=True, by_name=False)
    except ValidationError as error:
        return error.errors(include_url=False)


def _place(error: ErrorDetails) -> Place:
    *above, last = error["loc"]
    if last == "[key]":
        return tuple(above)
    # Of a value that is not in the file pydantic names the attribute instead of the key.
    attribute = SECTIONS[section_at(tuple(above))].model_fields.get(str(last)) if above and error["type"] == "value_error" else None
    return (*above, str(attribute.validation_alias or last) if attribute else last)


def _errors_among_sound_items(data: object, errors: list[ErrorDetails]) -> list[ErrorDetails]:
    """Judge lists again without their faulty items: the models compare items with each other only where every one is sound."""
    places = {error["loc"] for error in errors}
    faulty = {place[: depth + 1] for place in places for depth, part in enumerate(place) if isinstance(part, int)}
    kept: dict[Place, list[int]] = {}
    result = _judge(_sound(data, (), faulty | places, kept)) if faulty else []
    found = []
    for error in result if isinstance(result, list) else []:
        depth = next((depth for depth, part in enumerate(error["loc"]) if isinstance(part, int)), None)
        if depth is not None:
            items = error["loc"][:depth]
            index = int(error["loc"][depth])
            item = (*items, kept[items][index] if items in kept else index)
            error["loc"] = (*item, *error["loc"][depth + 1 :])
            if error["loc"] not in places and (item not in faulty or error["loc"][-1] == "name"):
                found.append(error)
    return found


def _sound(data: object, place: Place, faulty: set[Place], kept: dict[Place, list[int]]) -> object:
    """Copy data without faulty items, and note in `kept` which items of a list are left; of a faulty window its sound name is left."""
    if isinstance(data, dict):
        return {key: _sound(value, (*place, key), faulty, kept) for key, value in data.items()}
    if not isinstance(data, tuple):
        return data
    left = kept[place] = []
    items: list[object] = []
    for index, item in enumerate(data):
        if (*place, index) not in faulty:
            items.append(_sound(item, (*place, index), faulty, kept))
        elif isinstance(item, dict) and "name" in item and (*place, index, "name") not in faulty:
            items.append({"name": item["name"], "length": "1m"})
        else:
            continue
        left.append(index)
    return tuple(items)


def _data(node: Node) -> object:
    if isinstance(node.value, dict):
        return {key: _data(child) for key, child in node.value.items()}
    if isinstance(node.value, list):
        return tuple(_data(item) for item in node.value)
    return node.value


def _find(root: Node, place: Place) -> tuple[Node | None, Node]:
    """Return the node at a place, if there is one, and the nearest node above it that there is."""
    node = root
    for part in place:
        child = node.value.get(part) if isinstance(node.value, dict) else None
        if isinstance(node.value, list) and isinstance(part, int):
            child = node.value[part]
        if child is None:
            return None, node
        node = child
    return node, node


def _message(error: ErrorDetails, place: Place, node: Node | None, secret: bool) -> str:
    kind = error["type"]
    if kind == "extra_forbidden":
        return _unknown_key(place)
    context = error.get("ctx", {})
    if kind == "literal_error":
        message = f"must be {context['expected'].replace(chr(39), '')}"
    elif kind == "value_error":
        message = str(context["error"])
    else:
        message = _MESSAGES.get(kind, error["msg"])
    if node is None or secret or not message.startswith("must"):
        return message
    if kind == "string_type" and node.plain and node.text:
        return quote_hint(node)
    if isinstance(node.value, dict | list):
        return message if kind in ("value_error", "fault") else f"{message}, got {_kind(node)}"
    variable = next((name for name, known in _override_places().items() if known == place), None)
    hint = f"; set {variable} to take it from the environment" if variable and isinstance(node.value, str) and "${" in node.text else ""
    return f"{message}, got {_kind(node)}{hint}"


def _unknown_key(place: Place) -> str:
    key = str(place[-1])
    known = section_keys(section_at(place[:-1])) if place[1:] else list(Config.model_fields)
    nearest = get_close_matches(key, known, n=1) or [path for path in config_keys() if path.endswith(f".{key}")]
    return f"unknown key; did you mean {nearest[0]}?" if nearest else f"unknown key; known here: {', '.join(known)}"


def _kind(node: Node) -> str:
    if isinstance(node.value, dict | list):
        return "a mapping" if isinstance(node.value, dict) else "a list"
    return (shorten(node.text) or "no value") if node.plain else f'"{shorten(node.text)}"'
