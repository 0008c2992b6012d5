"""A YAML value with its position."""

from __future__ import annotations

import re
from itertools import chain
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from holdfast.model.scenario import Position

_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_BOOL = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INT = r"[-+]?(?:0|[1-9][0-9]*(?:_[0-9]+)*)"
_BASED = r"0x[0-9a-fA-F]+|0o[0-7]+"
_FLOAT = r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?"
_SPECIAL = r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
_MAX_DIGITS = 400
_LARGEST = 2**63 - 1
"""Larger numbers are text, so an id of many digits stays unchanged and JSON can represent every value."""

_TAGS: dict[str, NodeKind] = {"str": "text", "int": "int", "float": "float", "bool": "bool", "null": "null"}
STANDARD = "tag:yaml.org,2002:"


def parse_plain(text: str) -> tuple[NodeKind, Any]:
    """Return the kind and value of an unquoted scalar."""
    if text in _NULL:
        return "null", None
    if text in _BOOL:
        return "bool", _BOOL[text]
    # Close to the core schema of YAML 1.2, not 1.1: `yes`, `no`, `on` and `off` are text, `010` is not octal, and
    # `12:30:45` is not a number of seconds. Users do not expect any of these conversions.
    if text[0] in "+-.0123456789" and len(text) <= _MAX_DIGITS:
        if re.fullmatch(_INT, text) or re.fullmatch(_BASED, text):
            value = int(text, 10 if re.fullmatch(_INT, text) else 0)
            return ("int", value) if -_LARGEST <= value <= _LARGEST else ("text", text)
        if re.fullmatch(_FLOAT, text):
            return "float", float(text)
        if re.fullmatch(_SPECIAL, text):
            return "float", float(text.replace(".", "").lower())
        return "text", text
    return "text", text


def parse_tagged(tag: str, text: str) -> tuple[NodeKind, Any] | None:
    """Return the kind and value of a scalar with an explicit tag; None if the tag is not supported."""
    wanted = _TAGS.get(tag.removeprefix(STANDARD))
    if wanted == "text" or tag == "!":
        return "text", text
    kind, value = parse_plain(text)
    if wanted == "float" and kind == "int":
        return "float", float(value)
    return (kind, value) if wanted == kind else None


# `json.dumps` writes an emoji as a surrogate pair, which YAML rejects. Each pair is read as two characters of a private
# range, written with as many letters, so every position in the file stays the same. Afterwards they are joined.
_PAIR = r"(?<!\\)((?:\\\\)*)\\u[dD]([89abAB][0-9a-fA-F]{2})\\u[dD]([c-fC-F][0-9a-fA-F]{2})"
_STAND_INS = "[\ue000-\ue3ff][\ue400-\ue7ff]"
_WRITTEN = r"\\u[eE][0-3][0-9a-fA-F]{2}\\u[eE][4-7][0-9a-fA-F]{2}"
_AWAY = 0xE000 - 0xD800


def has_pairs(text: str) -> bool:
    """Return whether it contains an escaped surrogate pair."""
    return re.search(_PAIR, text) is not None


def replace_pairs(text: str) -> str:
    """Return the text with every pair as two escapes that YAML reads, of the same length."""
    return re.sub(_PAIR, lambda match: f"{match[1]}\\u{_move_digits(match[2])}\\u{_move_digits(match[3])}", text)


def _move_digits(digits: str) -> str:
    return f"{int(f'd{digits}', 16) + _AWAY:04x}"


def join_pairs(value: str) -> str:
    """Return a value in double quotes from such a text, with its pairs joined."""
    return re.sub(_STAND_INS, lambda match: _join_pair(*map(ord, match[0])), value)


def restore_pairs(value: str) -> str:
    """Return a value without double quotes, in which a backslash is literal: as in the file."""
    return re.sub(_WRITTEN, lambda match: _restore_escape(match[0][2:6]) + _restore_escape(match[0][8:]), value)


def _restore_escape(digits: str) -> str:
    return f"\\u{int(digits, 16) - _AWAY:04x}"


def _join_pair(high: int, low: int) -> str:
    return chr(0x10000 + ((high - 0xE000) << 10) + (low - 0xE400))


NodeKind = Literal["null", "bool", "int", "float", "text", "list", "map"]


class Node(Struct, eq=False):
    """One scalar, list or map; line and column count from 1."""

    kind: NodeKind
    line: int
    column: int
    length: int = 1
    value: Any = None
    """For a scalar: its Python value."""
    text: str = ""
    """For a scalar: its text as written."""
    style: str = ""
    """For a scalar: `'`, `"`, `|`, `>` or empty."""
    items: list[Node] = []
    pairs: dict[str, tuple[Node, Node]] = {}
    """For a map: key to (key, value)."""
    size: int = 1
    """The number of nodes it contains, including itself."""
    depth: int = 1
    """The number of levels."""
    span: tuple[int, int] = (0, 0)
    """For a scalar: start and end of its text in the file, in characters."""
    reference: str = ""
    """For a scalar: the `${VAR}` that provided the value."""
    path: str = ""
    """Its path in the file, such as `contract.invariants[1].severity`; a key has the path of its value."""

    @property
    def position(self) -> Position:
        return Position(self.line, self.column)

    def has(self, key: str) -> bool:
        return key in self.pairs

    def get_key(self, name: str) -> Node:
        """Return the key's own node; if the key is missing, an empty node at the position of this map."""
        return self.pairs[name][0] if name in self.pairs else self._build_absent(name)

    def get(self, name: str) -> Node:
        """Return the value's node; if the key is missing, an empty node at the position of this map."""
        return self.pairs[name][1] if name in self.pairs else self._build_absent(name)

    def _build_absent(self, name: str) -> Node:
        return Node("null", self.line, self.column, self.length, path=join_path(self.path, name))

    def find(self, field: str) -> Node:
        """Return the node of a field such as `assertions[1].field`; a missing field has the position of its owner."""
        node = self
        for part in re.findall(r"[^.\[\]]+", field):
            if node.kind == "list" and part.isdigit() and int(part) < len(node.items):
                node = node.items[int(part)]
            elif node.kind == "map" and node.has(part):
                node = node.get(part)
            else:
                return Node("null", node.line, node.column, node.length, path=join_path(self.path, field))
        return node

    def to_plain(self) -> Any:
        """Return the value as dicts, lists and scalars."""
        if self.kind == "list":
            return [item.to_plain() for item in self.items]
        if self.kind == "map":
            return {key: value.to_plain() for key, (_, value) in self.pairs.items()}
        return self.value


def build_absent() -> Node:
    """Return the node of a section that the file does not have."""
    return Node("null", 1, 1)


def join_path(path: str, key: str) -> str:
    """Return the path of a key."""
    return f"{path}.{key}" if path else key


def set_line(node: Node, line: int) -> None:
    """Set the position of a tree to one line: that of the code it comes from."""
    node.line, node.column, node.length = line, 1, 1
    for inner in (*node.items, *chain.from_iterable(node.pairs.values())):
        set_line(inner, line)


def set_paths(node: Node, path: str = "") -> Node:
    """Set the path of every node; a node that an alias repeats is copied, because it has two."""
    # The parser gives an alias the node of its anchor itself. A node that already has a path is met a second time.
    node = replace(node, path=path) if node.path else node
    node.path = path
    node.items = [set_paths(item, f"{path}[{index}]") for index, item in enumerate(node.items)]
    pairs = {key: (join_path(path, key), *pair) for key, pair in node.pairs.items()}
    node.pairs = {key: (set_paths(name, where), set_paths(value, where)) for key, (where, name, value) in pairs.items()}
    return node


def build_node(value: Any, at: Node, path: str | None = None) -> Node:
    """Return a node tree for a value from elsewhere, with the position of `at`."""
    # Profiles and defaults are not in the user's file. Their nodes take the position where the file names them, so a
    # problem in one is shown at a line that the user can change.
    path = at.path if path is None else path
    node = Node("null", at.line, at.column, at.length, path=path)
    if isinstance(value, dict):
        node.kind = "map"
        for name, inner in value.items():
            where = join_path(path, str(name))
            node.pairs[str(name)] = (build_node(str(name), at, where), build_node(inner, at, where))
    elif isinstance(value, list | tuple):
        node.kind = "list"
        node.items = [build_node(item, at, f"{path}[{index}]") for index, item in enumerate(value)]
    elif value is not None:
        kinds: dict[type, NodeKind] = {bool: "bool", int: "int", float: "float"}
        node.kind = kinds.get(type(value), "text")
        node.value = value if node.kind != "text" else str(value)
        node.text = str(value)
    return node
