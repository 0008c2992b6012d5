"""Reads nodes by type hints: values, and every problem with its place."""

from __future__ import annotations

import math
import types
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import is_dataclass
from typing import Any, Final, Literal, Union, get_args, get_origin

import msgspec

from holdfast.model.spec import Problem
from holdfast.reading.fields import Field, Hint, keys_of, node_field, peel
from holdfast.reading.hints import AS_WRITTEN, SCALARS, beyond, by_reference, kinds_of, name_of, stand_in
from holdfast.reading.node import Node
from holdfast.reading.scalars import plain
from holdfast.reading.words import found, near_hint, suggest


class Bad:
    """Stands for a value that could not be read; its problem has been noted."""


BAD: Final = Bad()


ValueOf = Callable[[str, str], str | None]
"""The value of a text with references, by the path it stands at; None if one of them has no value."""


class Reader:
    """Collects problems while it reads."""

    def __init__(self, value_of: ValueOf | None = None) -> None:
        """`value_of` gives numbers, durations and options that are written as a reference."""
        self.problems: list[Problem] = []
        self.value_of = value_of

    # -- problems -----------------------------------------------------------------------------
    def error(
        self, node: Node, path: str, message: str, *, hint: str = "", code: str = "bad-value", suggestion: str = ""
    ) -> Bad:
        where = (node.line, node.column, node.length)
        self.problems.append(Problem(message, path, *where, hint, "error", code, suggestion))
        return BAD

    def warn(
        self,
        node: Node,
        path: str,
        message: str,
        *,
        code: str,
        hint: str = "",
        length: int = 0,
        values: tuple[str, ...] = (),
    ) -> None:
        where = (node.line, node.column, length or node.length)
        self.problems.append(Problem(message, path, *where, hint, "warning", code, values=values))

    def failed(self, *prefixes: str) -> bool:
        """Something at or under one of these paths is wrong already."""
        return any(p.severity == "error" and p.path.startswith(prefixes) for p in self.problems)

    # -- values -------------------------------------------------------------------------------
    def read(self, hint: Any, node: Node, path: str) -> Any:
        """The node as a value of that type, or BAD."""
        return self.read_hint(peel(hint), node, path)

    def read_hint(self, hint: Hint, node: Node, path: str) -> Any:
        if node.kind == "text" and "${" in node.text and self.value_of is not None and by_reference(hint):
            from holdfast.reading.hints import UNCLOSED, unclosed

            if way_out := unclosed(node.text):
                return self.error(node, path, UNCLOSED, hint=way_out, code="unclosed-reference")
            node = self._given(self.value_of, hint, node, path)
        value = hint.form.read(self, node, path) if hint.form else self._read(hint.base, node, path)
        if value is BAD or value is None:
            return value
        held = node.items if node.kind == "list" else node.pairs if node.kind == "map" else value
        for limit in hint.limits:
            message = beyond(limit, held)
            if message:
                return self.error(node, path, f"{message}, found {found(node)}", code="out-of-range")
        return value

    def _given(self, value_of: ValueOf, hint: Hint, node: Node, path: str) -> Node:
        """The node of what the references in this one give. One without a value is warned of: a stand-in is read."""
        if path.rpartition(".")[2] in AS_WRITTEN:
            return node
        value = value_of(path, node.text)
        text = stand_in(hint) if value is None else value.strip()
        given = Node("text", node.line, node.column, node.length, text, text)
        given.reference = "" if value is None else node.text
        if text:
            given.kind, given.value = plain(text)
        return given

    def _read(self, base: Any, node: Node, path: str) -> Any:
        origin = get_origin(base)
        if base is Any:
            return node.plain()
        if base in SCALARS:
            return self._scalar(base, node, path)
        if origin is Literal:
            return self._literal(get_args(base), node, path)
        if origin in (Union, types.UnionType):
            return self._union(get_args(base), node, path)
        if origin in (list, tuple, Sequence, frozenset, set):
            return self._list(base, node, path)
        if origin in (dict, Mapping) or base is dict:
            return self._map(base, node, path)
        if isinstance(base, type) and (issubclass(base, msgspec.Struct) or is_dataclass(base)):
            return self.section(base, node, path)
        raise TypeError(f"{path}: a settings type uses {base!r}, which the reader does not know")

    def _scalar(self, base: type, node: Node, path: str) -> Any:
        kinds, words = SCALARS[base]
        if node.kind not in kinds:
            from holdfast.reading.hints import scalar_hint

            hint = scalar_hint(base, node)
            return self.error(node, path, f"expected {words}, found {found(node)}", hint=hint, code="wrong-type")
        if node.kind == "float" and not math.isfinite(node.value):
            return self.error(node, path, f"expected a finite number, found {node.text}")
        try:
            return base(node.value)
        except OverflowError:
            return self.error(node, path, "the number is too large", code="out-of-range")

    def _literal(self, options: tuple[Any, ...], node: Node, path: str) -> Any:
        for option in options:
            if node.value == option and type(node.value) is type(option):
                return option
        named = [str(o).lower() if isinstance(o, bool) else str(o) for o in options]
        hint = near_hint(node.text, named) if node.kind == "text" else ""
        expected = named[0] if len(named) == 1 else f"one of {', '.join(named)}"
        return self.error(node, path, f"expected {expected}, found {found(node)}", hint=hint, code="unknown-value")

    def _union(self, members: tuple[Any, ...], node: Node, path: str) -> Any:
        if type(None) in members and node.kind == "null":
            return None
        members = tuple(m for m in members if m is not type(None))
        fits = [m for m in members if node.kind in kinds_of(m)] or list(members)
        if len(fits) == 1 and (len(members) == 1 or node.kind in kinds_of(fits[0])):
            return self.read(fits[0], node, path)
        for member in fits:
            attempt = Reader(self.value_of)
            value = attempt.read(member, node, path)
            if value is not BAD and not attempt.failed(""):
                self.problems += attempt.problems
                return value
        expected = " or ".join(dict.fromkeys(name_of(m) for m in members))
        from holdfast.reading.hints import option_hint

        hint = option_hint(members, node)
        return self.error(node, path, f"expected {expected}, found {found(node)}", hint=hint, code="wrong-type")

    def _list(self, base: Any, node: Node, path: str) -> Any:
        args = get_args(base)
        element = args[0] if args else Any
        if node.kind != "list":
            from holdfast.reading.hints import list_hint

            hint = list_hint(element, node)
            return self.error(node, path, f"expected a list, found {found(node)}", hint=hint, code="wrong-type")
        values = [self.read(element, item, f"{path}[{i}]") for i, item in enumerate(node.items)]
        kept = [v for v in values if v is not BAD]
        made: type = get_origin(base)
        return kept if made in (list, Sequence) else made(kept)

    def _map(self, base: Any, node: Node, path: str) -> Any:
        if node.kind != "map":
            from holdfast.reading.hints import map_hint

            hint = map_hint(None, node)
            return self.error(node, path, f"expected a map, found {found(node)}", hint=hint, code="wrong-type")
        args = get_args(base)
        key_hint, element = (peel(args[0]), args[1]) if args else (peel(str), Any)
        values = {}
        for key, (key_node, item) in node.pairs.items():
            if key_hint.base is not str or key_hint.limits:
                as_text = Node("text", key_node.line, key_node.column, key_node.length, key, key)
                if self.read_hint(key_hint, as_text, join(path, key)) is BAD:
                    continue
            values[key] = self.read(element, item, join(path, key))
        return {k: v for k, v in values.items() if v is not BAD}

    # -- sections -----------------------------------------------------------------------------
    def section(self, kind: type, node: Node, path: str) -> Any:
        """A section of that type, its unreadable optional keys left at their defaults."""
        if node.kind != "map":
            from holdfast.reading.hints import map_hint

            hint = map_hint(kind, node)
            return self.error(node, path, f"expected a map, found {found(node)}", hint=hint, code="wrong-type")
        self.unknown_keys(node, path, [f.key for f in keys_of(kind)])
        values = self.keys(kind, node, path)
        return BAD if values is BAD else self.make(kind, values, node)

    def make(self, kind: type, values: dict[str, Any], node: Node) -> Any:
        place = node_field(kind)
        return kind(**values, **({place: node} if place else {}))

    def keys(self, kind: type, node: Node, path: str) -> Any:
        """The keys of that type as written in the map; BAD if a required one is missing or unreadable."""
        values: dict[str, Any] = {}
        bad = False
        for field in keys_of(kind):
            if field.key not in node.pairs:
                bad |= self._missing(field, node, path)
                continue
            value = self.read_hint(field.hint, node.pairs[field.key][1], join(path, field.key))
            if value is not BAD:
                values[field.name] = value
            bad |= value is BAD and field.required
        return BAD if bad else values

    def _missing(self, field: Field, node: Node, path: str) -> bool:
        if field.required:
            words = field.hint.description
            self.error(node, join(path, field.key), "missing", hint=words, code="missing-key")
        return field.required

    def unknown_keys(self, node: Node, path: str, known: Collection[str], *, message: str = "unknown key") -> None:
        for key, (key_node, _) in node.pairs.items():
            if key not in known:
                meant, hint = suggest(key, known, label="known keys")
                self.error(key_node, join(path, key), message, hint=hint, code="unknown-key", suggestion=meant)


def join(path: str, key: str) -> str:
    """The path of a key."""
    return f"{path}.{key}" if path else key
