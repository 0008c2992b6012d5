"""Where a secret comes from: `source` leads to a value that is somewhere, `from` makes one up."""

from __future__ import annotations

import re
from typing import Annotated, Any, TypeAlias

from holdfast.reading.fields import ValueForm
from holdfast.reading.node import Node
from holdfast.reading.reader import Reader
from holdfast.reading.words import found

_SOURCE = r"env|env:[A-Za-z_][A-Za-z0-9_]*|file:.+|command:.+"
_FROM = r"static://.*|generated"
_VARIABLE = r"[A-Za-z_][A-Za-z0-9_]*"


def _read_source(reader: Reader, node: Node, path: str) -> Any:
    if node.kind == "text" and re.fullmatch(_SOURCE, node.text):
        return node.text
    takes = 'source takes env, "env:OTHER", "file:path" or "command:…"'
    hint = 'source: "env:OTHER" reads the variable OTHER, source: env the one of the secret\'s own name'
    if node.kind == "text" and re.fullmatch(_FROM, node.text):
        hint = f"write {_written('from', node.text)}"
    elif node.kind == "text" and re.fullmatch(_VARIABLE, node.text):
        hint = f"write {_written('source', f'env:{node.text}')}"
    return _refused(reader, node, path, takes, hint)


def _read_from(reader: Reader, node: Node, path: str) -> Any:
    if node.kind == "text" and re.fullmatch(_FROM, node.text):
        return node.text
    takes = 'from takes generated or "static://value"'
    hint = 'from: generated makes one up; a value that is somewhere is source: "env:OTHER" or source: "file:path"'
    if node.kind == "text" and re.fullmatch(_SOURCE, node.text):
        hint = f"write {_written('source', node.text)}"
    return _refused(reader, node, path, takes, hint)


def _refused(reader: Reader, node: Node, path: str, takes: str, hint: str) -> Any:
    bad = reader.error(node, path, f"{takes}, found {found(node)}", hint=hint, code="bad-value")
    return node.text if node.kind == "text" else bad  # else it would be taken for a secret without a source


def _written(key: str, value: str) -> str:
    return f"{key}: {value}" if re.fullmatch(_VARIABLE, value) else f'{key}: "{value}"'


SecretSource: TypeAlias = Annotated[
    str, ValueForm(_read_source, lambda: {"type": "string", "pattern": f"^({_SOURCE})$"}, "text")
]
SecretFrom: TypeAlias = Annotated[
    str, ValueForm(_read_from, lambda: {"type": "string", "pattern": f"^({_FROM})$"}, "text")
]
