"""Values that are text whatever they look like: `5` in an environment or a header is "5"."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from holdfast.reading.fields import ValueForm
from holdfast.reading.node import Node
from holdfast.reading.reader import Reader
from holdfast.reading.words import found


def _read(reader: Reader, node: Node, path: str) -> Any:
    if node.kind in ("text", "int", "float", "bool"):
        return node.text
    return reader.error(node, path, f"expected text, found {found(node)}", code="wrong-type")


Written: TypeAlias = Annotated[
    str, ValueForm(_read, lambda: {"type": ["string", "number", "boolean"]}, "text, or a number as written")
]
