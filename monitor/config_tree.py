"""YAML as a tree that remembers lines and spellings, read event by event so that every fault can be named with its place.

Anchors, aliases and tags are refused: no document can grow while it is read, and none can name a type.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

import yaml

MAX_BYTES: Final = 1 << 20
MAX_DEPTH: Final = 16
AFTER_ALL_LINES: Final = 1 << 40
"""Where faults sort that are not in the file but in the environment."""

UNREADABLE: Final = object()
"""Stands for a value that YAML can read and calmon does not: no field of the models takes it."""

Place: TypeAlias = tuple[str | int, ...]

_SHOWN_LENGTH: Final = 60
_PLAIN_KEY: Final = re.compile(r"[A-Za-z0-9_-]{1,60}")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_REFERENCE: Final = re.compile(r"\$\$\{|\$\{([^}]*)(\}?)")
_DECIMAL: Final = re.compile(r"[-+]?(0|[1-9][0-9]{0,17})")
_EXPONENT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)[eE][-+]?[0-9]+$")
_SURROGATE: Final = re.compile(r"[\ud800-\udfff]")
_TAG: Final = "tag:yaml.org,2002:"


class UnusableError(Exception):
    """A text of which no tree can be made."""

    def __init__(self, message: str, line: int = 0) -> None:
        self.message = message
        self.line = line
        super().__init__(message)


@dataclass(slots=True)
class Node:
    """A value as it stands in the text; `value` is a scalar, a dict of nodes or a list of nodes."""

    line: int
    where: str
    value: object = UNREADABLE
    text: str = ""
    plain: bool = False


@dataclass(slots=True)
class Faults:
    """The faults found so far, and the places that have one: a second complaint about the same value helps nobody.

    `secrets` are the places whose values are not shown; what stands below one is named by it.
    """

    secrets: frozenset[tuple[str, ...]] = frozenset()
    found: list[tuple[int, str]] = field(default_factory=list)
    places: set[Place] = field(default_factory=set)

    def add(self, place: Place, message: str, line: int, where: str) -> None:
        """Note a fault at a place; `where` is the line or variable as people read it, `line` what faults are sorted by."""
        place = self.secret(place) or place
        self.places.add(place)
        start = f"{path_text(place)}: " if place else ""
        self.found.append((line, f"{start}{message} ({where})" if where else f"{start}{message}"))

    def add_at(self, place: Place, message: str, node: Node) -> None:
        """Note a fault at a place, on the line of a node."""
        self.add(place, message, node.line, node.where)

    def secret(self, place: Place) -> Place:
        """Return the secret that a place is or lies in; empty if it is none."""
        return next((secret for secret in self.secrets if place[: len(secret)] == secret), ())

    def show(self, place: Place, text: str) -> str:
        """Make a text from a place safe to print."""
        return "..." if self.secret(place) else shorten(text)

    def in_order(self) -> list[str]:
        """List the faults by line."""
        return [fault for _, fault in sorted(self.found, key=lambda fault: fault[0])]


def read_tree(text: str, faults: Faults, environ: Mapping[str, str] | None, variable: str = "", place: Place = ()) -> Node:
    """Read one YAML document; an empty one is a node whose value is None.

    Args:
        text: The document.
        faults: Where faults are noted after which reading goes on.
        environ: Values for ``${NAME}`` in texts; None leaves texts as they are.
        variable: The environment variable that the text is from, if it is from one.
        place: Where the document belongs in the configuration.

    Raises:
        UnusableError: Not YAML, larger than 1 MiB, deeper than 16 levels or more than one document.
    """
    if len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise UnusableError("larger than 1 MiB")
    try:
        return _Reader(_Loader(text), faults, environ, variable).document(place)
    except yaml.MarkedYAMLError as error:
        problem = " ".join(str(part) for part in (error.context, error.problem) if part)
        mark = error.problem_mark or error.context_mark
        hint = "; quote a text with ${NAME} where braces or brackets are open" if "${" in text and "'{'" in problem else ""
        raise UnusableError(f"not YAML: {problem}{hint}", mark.line + 1 if mark else 0) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise UnusableError(f"not YAML: the character U+{ord(text[error.position]):04X} is not allowed", line) from None
    except (ValueError, OverflowError):  # PyYAML lets chr() and int() of what it scanned fail
        raise UnusableError("not YAML: an escape or a version number is out of range") from None


def quote_hint(node: Node) -> str:
    """Say what YAML takes an unquoted text for."""
    reading = "no value" if node.value is None else str(node.value).lower() if isinstance(node.value, bool) else "a number"
    text = shorten(node.text)
    return f'must be a text, but YAML reads {text or "this"} as {reading}; quote it: "{text}"'


def shorten(text: str) -> str:
    """Make a text safe to print: one line, no control characters, not too long."""
    shown = text if len(text) <= _SHOWN_LENGTH else f"{text[:_SHOWN_LENGTH]}..."
    return shown if shown.isprintable() else json.dumps(shown)[1:-1]


def path_text(place: Place) -> str:
    """Write a place as people do: ``windows[0].length``; keys that would be read wrongly are quoted."""
    parts = [f"[{part}]" if isinstance(part, int) else f".{_key_text(part)}" for part in place]
    return "".join(parts).removeprefix(".")


def _key_text(key: str) -> str:
    return key if _PLAIN_KEY.fullmatch(key) else f'"{shorten(key)}"'


class _Loader(yaml.SafeLoader):
    """Resolves plain scalars as YAML 1.1 does, but times, `<<` and `=` stay texts, and 1e-3 is a number as in YAML 1.2."""

    yaml_implicit_resolvers = {  # noqa: RUF012 -- PyYAML's own class attribute, here without the resolvers that are not wanted
        first: [(tag, pattern) for tag, pattern in resolvers if tag.removeprefix(_TAG) in ("bool", "float", "int", "null")]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


_Loader.add_implicit_resolver(f"{_TAG}float", _EXPONENT, list("-+.0123456789"))


def _line(event: Any) -> int:
    return int(event.start_mark.line) + 1


def _join_surrogates(text: str) -> str:
    """Join the pairs in which JSON writes characters beyond U+FFFF; a lone surrogate becomes U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace") if _SURROGATE.search(text) else text


class _Reader:
    """Makes a tree of one YAML document; notes the faults after which reading goes on, raises the others."""

    def __init__(self, loader: _Loader, faults: Faults, environ: Mapping[str, str] | None, variable: str) -> None:
        self._loader: Any = loader  # PyYAML's methods have no types
        self._faults = faults
        self._environ = environ
        self._variable = variable

    def document(self, place: Place) -> Node:
        self._next()
        if self._loader.check_event(yaml.StreamEndEvent):
            return replace(self._new_node(1, value=None), plain=True)
        self._next()
        node = self._node(place, 1)
        self._next()
        if not self._loader.check_event(yaml.StreamEndEvent):
            raise UnusableError("more than one YAML document", _line(self._loader.peek_event()))
        return node

    def _next(self) -> Any:
        return self._loader.get_event()

    def _new_node(self, line: int, value: object = UNREADABLE) -> Node:
        return Node(AFTER_ALL_LINES, self._variable, value) if self._variable else Node(line, f"line {line}", value)

    def _node(self, place: Place, depth: int, key_line: int | None = None) -> Node:
        event = self._next()
        node = self._new_node(key_line or _line(event))
        readable = self._is_supported(event, place, node)
        value: object = UNREADABLE
        if isinstance(event, yaml.ScalarEvent):
            node.text, node.plain = _join_surrogates(event.value), event.style is None
            readable = self._is_text(event, place, node) and readable
            value = self._resolve(node.text, event.implicit)
            if readable and isinstance(value, str) and self._environ is not None:
                value = self._expand(value, self._environ, place, node)
        elif isinstance(event, yaml.CollectionStartEvent):
            if depth > MAX_DEPTH:
                raise UnusableError(f"nested deeper than {MAX_DEPTH} levels", _line(event))
            value = self._mapping(place, depth) if isinstance(event, yaml.MappingStartEvent) else self._sequence(place, depth)
        if readable:
            node.value = value
        return node

    def _is_supported(self, event: Any, place: Place, node: Node) -> bool:
        if isinstance(event, yaml.AliasEvent):
            self._faults.add_at(
                place, f"YAML aliases (*{self._faults.show(place, str(event.anchor))}) are not supported: write the value out", node
            )
            return False
        if event.anchor is not None:
            self._faults.add_at(place, f"YAML anchors (&{self._faults.show(place, event.anchor)}) are not supported: leave it out", node)
        if event.tag is not None:
            self._faults.add_at(place, f"YAML tags ({self._faults.show(place, event.tag)}) are not supported: leave it out", node)
        return event.tag is None

    def _sequence(self, place: Place, depth: int) -> list[Node]:
        items: list[Node] = []
        while not self._loader.check_event(yaml.SequenceEndEvent):
            items.append(self._node((*place, len(items)), depth + 1))
        self._loader.get_event()
        return items

    def _mapping(self, place: Place, depth: int) -> dict[str, Node]:
        children: dict[str, Node] = {}
        while not self._loader.check_event(yaml.MappingEndEvent):
            line = _line(self._loader.peek_event())
            key = self._key(place, depth)
            child_place = place if key is None else (*place, key)
            child = self._node(child_place, depth + 1, line)
            if key is None:
                self._faults.add_at(place, "a key must be a text", child)
            elif key in children:
                self._faults.add_at(child_place, f"this key is given twice, first on {children[key].where}", child)
            else:
                children[key] = child
        self._next()
        return children

    def _key(self, place: Place, depth: int) -> str | None:
        """Read a key; one that YAML takes for something else than a text is a fault, and goes on as it is spelled."""
        if not self._loader.check_event(yaml.ScalarEvent):
            self._node(place, depth + 1)
            return None
        event = self._next()
        key = self._new_node(_line(event))
        key.text = _join_surrogates(event.value)
        key.value = self._resolve(key.text, event.implicit)
        key_place = (*place, key.text)
        if self._is_supported(event, key_place, key) and self._is_text(event, key_place, key) and not isinstance(key.value, str):
            self._faults.add_at(key_place, quote_hint(key), key)
        return key.text

    def _is_text(self, event: Any, place: Place, node: Node) -> bool:
        lone = len(_SURROGATE.findall(event.value)) != 2 * (len(event.value) - len(node.text))
        if lone:
            self._faults.add_at(place, "must hold no lone surrogates", node)
        return not lone

    def _resolve(self, text: str, implicit: tuple[bool, bool]) -> object:
        kind = str(self._loader.resolve(yaml.ScalarNode, text, implicit)).removeprefix(_TAG)
        if kind == "null":
            return None
        if kind == "bool":
            return text.lower() in ("yes", "true", "on")
        if kind == "int":
            return int(text) if _DECIMAL.fullmatch(text) else UNREADABLE
        if kind == "float":
            try:
                return float(text)
            except ValueError:  # .inf, .nan and base 60
                return UNREADABLE
        return text

    def _expand(self, text: str, environ: Mapping[str, str], place: Place, node: Node) -> object:
        problems: list[str] = []

        def value(match: re.Match[str]) -> str:
            if match[1] is None:
                return "${"
            if not (match[2] and _VARIABLE.fullmatch(match[1])):
                problems.append(f"{self._faults.show(place, match[0])} names no environment variable; write $${{ for ${{ itself")
            elif match[1] not in environ:
                problems.append(f"the environment variable {match[1]} is not set")
            return environ.get(match[1], "")

        expanded = _REFERENCE.sub(value, text)
        for problem in problems:
            self._faults.add_at(place, problem, node)
        return UNREADABLE if problems else expanded
