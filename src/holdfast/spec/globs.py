"""Globs of faults that can match nothing: a `[` that is never closed."""

from __future__ import annotations

import re

from holdfast.reading.node import Node
from holdfast.reading.reader import Reader

_CLASS = r"\[(?:!\]|\]|!(?!\])|(?![!\]]))[^\]]*\]"
"""A class of characters, as fnmatch reads it: a `]` at its beginning is one of them."""
LONGEST = 2000
"""Characters that are looked at: no host and no tool has a longer name."""


def glob_problems(reader: Reader, node: Node, path: str) -> None:
    """Reports what no tool and no host is called. A tool that is met at its URL may be called anything."""
    url, tool = _text(node, "match_url"), _text(node, "tool")
    if _is_open(_host(url)):
        message = "the [ in its host is never closed, so no URL is meant"
        hint = "close it: an IPv6 address is written [::1], a class of characters [ab]"
        reader.error(node.get("match_url"), f"{path}.match_url", message, hint=hint, code="bad-value")
    elif not url and _is_open(tool):
        message = "the [ is never closed, so no tool is meant"
        hint = "close it, as in [ab]*; a [ itself is written [[]"
        reader.error(node.get("tool"), f"{path}.tool", message, hint=hint, code="bad-value")


def _text(node: Node, key: str) -> str:
    return str(node.get(key).value) if node.has(key) and node.get(key).kind == "text" else ""


def _host(url: str) -> str:
    return (url.partition("://")[2] or url).partition("/")[0]


def _is_open(glob: str) -> bool:
    return "[" in re.sub(_CLASS, "", glob[:LONGEST])
