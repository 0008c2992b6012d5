"""Templates as Python: what a tag means, and what becomes of blanks around it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from types import CodeType
from typing import NamedTuple

_TAG = re.compile(r"\{\{(=?)(.*?)\}\}|(?:^[ \t]+)?\{%(.*?)%\}\n?|(\{[{%#])", re.MULTILINE)
"""An expression; a statement with the blanks before it on its line and the line end after it; what only begins so."""
_WITHIN = {"elif": ("if", "elif"), "else": ("if", "elif"), "endif": ("if", "elif", "else"), "endfor": ("for",)}
"""Where a tag may stand: within which others."""
ReadTemplate = Callable[[str], str]
"""The text of a template, by its name."""


class OpenTag(NamedTuple):
    """A statement that is yet to be closed."""

    word: str
    line: int

    def __str__(self) -> str:
        return f"{{% {self.word} %}}"


def compiled(name: str, read: ReadTemplate) -> CodeType:
    """The code of a function without arguments that gives the pieces of the page; other names are global to it."""
    source = "def pieces():\n yield ''\n" + "\n".join(_lines(name, read, 1))
    module = compile(source, name, "exec")
    return next(part for part in module.co_consts if isinstance(part, CodeType))


def _lines(name: str, read: ReadTemplate, depth: int) -> Iterator[str]:
    text = read(name).removesuffix("\n")
    end, opened = 0, list[OpenTag]()
    for tag in _TAG.finditer(text):
        indent = depth + len(opened)
        if tag.start() > end:
            yield f"{' ' * indent}yield {text[end : tag.start()]!r}"
        end = tag.end()
        as_it_is, shown, statement, broken = tag.groups()
        line = text.count("\n", 0, tag.start()) + 1
        if broken:
            raise ValueError(f"{name}, line {line}: {broken} begins no tag that ends on its line")
        if statement is None:
            yield f"{' ' * indent}yield {'str' if as_it_is else 'escaped'}({shown.strip()})"
        elif (included := statement.strip()).startswith("include "):
            yield from _lines(included.removeprefix("include ").strip(), read, indent)
        else:
            yield from _statement(name, statement.strip(), line, opened, depth)
    if opened:
        raise ValueError(f"{name}, line {opened[-1].line}: {opened[-1]} is not closed")
    if text[end:]:
        yield f"{' ' * depth}yield {text[end:]!r}"


def _statement(name: str, statement: str, line: int, opened: list[OpenTag], depth: int) -> Iterator[str]:
    """The statement with what must stand in its block; `opened` is changed."""
    tag = OpenTag(statement.partition(" ")[0], line)
    if tag.word in _WITHIN:
        if not opened:
            raise ValueError(f"{name}, line {line}: {tag} stands where no tag is open")
        outer = opened.pop()
        if outer.word not in _WITHIN[tag.word]:
            raise ValueError(f"{name}, line {line}: {tag} stands in {outer} of line {outer.line}")
    elif tag.word not in ("if", "for"):
        raise ValueError(f"{name}, line {line}: there is no tag {tag}")
    if not tag.word.startswith("end"):
        yield f"{' ' * (depth + len(opened))}{statement}:"
        opened.append(tag)
        yield f"{' ' * (depth + len(opened))}pass"
