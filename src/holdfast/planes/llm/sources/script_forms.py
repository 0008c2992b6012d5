"""How the texts of a script are written in YAML: patterns, templates and arguments with templates in them."""

from __future__ import annotations

from typing import Any

from holdfast.planes.llm.sources.script_text import FORMS, ROOTS, Pattern, template
from holdfast.reading.fields import ValueForm
from holdfast.reading.node import Node
from holdfast.reading.reader import BAD, Reader
from holdfast.reading.words import found, near_hint


def _text(reader: Reader, node: Node, path: str) -> Any:
    """A text, as it is written: a number needs no quotes."""
    if node.kind in ("null", "list", "map"):
        return reader.error(node, path, f"expected a text, found {found(node)}", code="wrong-type")
    return node.text


def _pattern(reader: Reader, node: Node, path: str) -> Any:
    text = _text(reader, node, path)
    if text is BAD:
        return BAD
    pattern = Pattern(text)
    wrong = pattern.fault()
    if wrong is None:
        return pattern
    message, hint = wrong
    return reader.error(node, path, message, hint=hint, code="bad-regex")


def _patterns(reader: Reader, node: Node, path: str) -> Any:
    """One, or a list of them."""
    nodes = [(item, f"{path}[{at}]") for at, item in enumerate(node.items)] if node.kind == "list" else [(node, path)]
    read = [_pattern(reader, one, where) for one, where in nodes]
    return BAD if any(one is BAD for one in read) else tuple(read)


def _template(reader: Reader, node: Node, path: str) -> Any:
    text = _text(reader, node, path)
    return BAD if text is BAD else _with_holes(reader, node, path, text)


def _with_holes(reader: Reader, node: Node, path: str, text: str) -> Any:
    try:
        return template(text)
    except ValueError as unknown:
        name = str(unknown)
    if not name:
        hint = "close it by }}; a text cannot hold two braces of its own"
        return reader.error(node, path, "a {{ is opened and not closed", hint=hint, code="bad-template")
    root = name.partition(".")[0]
    message = f"nothing can fill {{{{ {name[:60]} }}}}: expected one of {', '.join(FORMS)}"
    hint = near_hint(root, ROOTS) if root not in ROOTS else ""
    return reader.error(node, path, message, hint=hint, code="bad-template")


def _arguments(reader: Reader, node: Node, path: str) -> Any:
    if node.kind != "map":
        message = f"expected a map of the tool's arguments, found {found(node)}"
        return reader.error(node, path, message, code="wrong-type")
    return _filled(reader, node, path)


def _filled(reader: Reader, node: Node, path: str) -> Any:
    """A value of any form, its texts as templates."""
    if node.kind == "list":
        return [_filled(reader, item, f"{path}[{at}]") for at, item in enumerate(node.items)]
    if node.kind == "map":
        return {name: _filled(reader, value, f"{path}.{name}") for name, (_, value) in node.pairs.items()}
    return _with_holes(reader, node, path, node.text) if node.kind == "text" else node.value


def _form(read: Any, words: str) -> ValueForm:
    return ValueForm(read, dict, words)


NAME = _form(_text, "a text")
PATTERN = _form(_pattern, "a glob, or /a regex/")
PATTERNS = _form(_patterns, "a glob, /a regex/, or a list of them")
TEMPLATE = _form(_template, "a text with {{ holes }}")
ARGUMENTS = _form(_arguments, "a map")
