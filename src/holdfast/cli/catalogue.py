"""Printing a family of plug-ins from the registry: names, what they do, their settings."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Sequence
from typing import Any, Protocol

from holdfast import plugins


class Described(Protocol):
    """A plug-in class: documented, and a dataclass."""

    __doc__: str | None


def entries(family: str) -> list[dict[str, Any]]:
    """Every plug-in of a family with the first line of its docstring and its settings."""
    return [
        {"name": name, "family": family, "what": _first_line(plugin), "settings": _settings(plugin)}
        for name, plugin in plugins.catalogue(family)
    ]


def show(families: Sequence[tuple[str, str]], *, as_json: bool) -> None:
    """All families, each under its heading."""
    if as_json:
        from holdfast.model.codec import encode

        found = [entry for family, _ in families for entry in entries(family)]
        sys.stdout.write(encode(found).decode() + "\n")
        return
    for family, heading in families:
        print(heading)
        rows = entries(family)
        room = max(len(row["name"]) for row in rows)
        for row in rows:
            settings = f"  [{', '.join(row['settings'])}]" if row["settings"] else ""
            print(f"  {row['name']:<{room}}  {row['what']}{settings}")
        print()


def _first_line(plugin: Described) -> str:
    return (plugin.__doc__ or "").strip().splitlines()[0]


def _settings(plugin: Any) -> list[str]:
    names = []
    for field in dataclasses.fields(plugin):
        default = field.default
        if default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            names.append(f"{field.name}*")
        elif isinstance(default, str | int | float | bool) and default != "":
            names.append(f"{field.name}={str(default).lower() if isinstance(default, bool) else default}")
        else:
            names.append(field.name)
    return names
