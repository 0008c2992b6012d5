"""Templates as Python: what a tag means, and what becomes of blanks around it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from types import CodeType

_TAG = re.compile(r"\{\{(=?)(.*?)\}\}|\{%(.*?)%\}", re.DOTALL)
_OPENING, _GOING_ON, _CLOSING = ("if", "for"), ("elif", "else"), ("endif", "endfor")
ReadTemplate = Callable[[str], str]
"""The text of a template, by its name."""


def compiled(name: str, read: ReadTemplate) -> CodeType:
    """The code of a function without arguments that gives the pieces of the page; other names are global to it."""
    source = "def pieces():\n yield ''\n" + "\n".join(_lines(name, read, 1))
    module = compile(source, name, "exec")
    return next(part for part in module.co_consts if isinstance(part, CodeType))


def _lines(name: str, read: ReadTemplate, depth: int) -> Iterator[str]:
    text = _trimmed(read(name))
    end, outer = 0, depth
    for tag in _TAG.finditer(text):
        if tag.start() > end:
            yield f"{' ' * depth}yield {text[end : tag.start()]!r}"
        end = tag.end()
        as_it_is, shown, statement = tag.groups()
        if statement is None:
            yield f"{' ' * depth}yield {'str' if as_it_is else 'escaped'}({shown.strip()})"
            continue
        word, _, rest = statement.strip().partition(" ")
        if word == "include":
            yield from _lines(rest.strip(), read, depth)
            continue
        if word not in _OPENING + _GOING_ON + _CLOSING:
            raise ValueError(f"{name}: there is no tag {word!r}")
        depth -= word not in _OPENING
        if word not in _CLOSING:
            yield f"{' ' * depth}{statement.strip()}:"
            depth += 1
            yield f"{' ' * depth}pass"
    if text[end:]:
        yield f"{' ' * depth}yield {text[end:]!r}"
    if depth != outer:
        raise ValueError(f"{name}: a tag is not closed")


def _trimmed(text: str) -> str:
    """Without the blanks before a statement that begins a line, the line end after one, and the file's last."""
    text = re.sub(r"^[ \t]+(?=\{%)", "", text, flags=re.MULTILINE)
    return text.replace("%}\n", "%}").removesuffix("\n")
