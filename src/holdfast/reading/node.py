"""A YAML value with the place where it was written."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from holdfast.model.scenario import Position

NodeKind = Literal["null", "bool", "int", "float", "text", "list", "map"]


class Node(Struct, eq=False):
    """One scalar, list or map; line and column count from 1."""

    kind: NodeKind
    line: int
    column: int
    length: int = 1
    value: Any = None
    """Of a scalar, as Python."""
    text: str = ""
    """Of a scalar, as written."""
    style: str = ""
    """Of a scalar: `'`, `"`, `|`, `>` or nothing."""
    items: list[Node] = []
    pairs: dict[str, tuple[Node, Node]] = {}
    """Of a map: key to (key, value)."""
    size: int = 1
    """How many nodes it holds, itself included."""
    depth: int = 1
    """How many levels they are on."""
    span: tuple[int, int] = (0, 0)
    """Of a scalar: where its text begins and ends in the file, in characters."""
    reference: str = ""
    """Of a scalar: the `${VAR}` that gave the value."""

    @property
    def position(self) -> Position:
        return Position(self.line, self.column)

    def has(self, key: str) -> bool:
        return key in self.pairs

    def key(self, name: str) -> Node:
        """The key's own node, or this map where the key is absent."""
        return self.pairs[name][0] if name in self.pairs else self

    def get(self, name: str) -> Node:
        """The value's node, or this map where the key is absent."""
        return self.pairs[name][1] if name in self.pairs else self

    def plain(self) -> Any:
        """The whole value as dicts, lists and scalars."""
        if self.kind == "list":
            return [item.plain() for item in self.items]
        if self.kind == "map":
            return {key: value.plain() for key, (_, value) in self.pairs.items()}
        return self.value


def put_at(node: Node, line: int) -> None:
    """Places a tree on one line: that of the code which it comes from."""
    node.line, node.column, node.length = line, 1, 1
    for item in node.items:
        put_at(item, line)
    for key, value in node.pairs.values():
        put_at(key, line)
        put_at(value, line)


def from_plain(value: Any, at: Node) -> Node:
    """A node tree for a value that comes from elsewhere, placed where `at` was written."""
    node = Node("null", at.line, at.column, at.length)
    if isinstance(value, dict):
        node.kind = "map"
        node.pairs = {str(k): (from_plain(str(k), at), from_plain(v, at)) for k, v in value.items()}
    elif isinstance(value, list | tuple):
        node.kind = "list"
        node.items = [from_plain(item, at) for item in value]
    elif value is not None:
        kinds: dict[type, NodeKind] = {bool: "bool", int: "int", float: "float"}
        node.kind = kinds.get(type(value), "text")
        node.value = value if node.kind != "text" else str(value)
        node.text = str(value)
    return node
