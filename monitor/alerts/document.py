"""YAML as people read it: expressions as blocks, everything else on one line."""

from __future__ import annotations

from typing import Any

import yaml

MADE = "# Made by `calmon rules render` from monitor/alerts; not to be edited."


class _Dumper(yaml.SafeDumper):
    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        del indentless
        super().increase_indent(flow, indentless=False)


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


def document(content: Any, *notes: str) -> str:
    """A YAML document with a heading."""
    heading = "\n".join([MADE, *(f"# {note}" for note in notes)])
    return f"{heading}\n" + yaml.dump(content, Dumper=_Dumper, sort_keys=False, width=1_000_000, allow_unicode=True)
