"""Reads nodes by type hints: values, and every problem with its position."""

from __future__ import annotations

import math
import types
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import is_dataclass
from typing import Any, Final, Literal, Union, get_args, get_origin

import msgspec
from msgspec.structs import replace

from holdfast.model.spec import Problem
from holdfast.reading.fields import Hint, get_keys, get_node_field, parse_hint
from holdfast.reading.hints import (
    AS_WRITTEN,
    SCALARS,
    UNCLOSED,
    describe_type,
    find_limit_error,
    get_node_kinds,
    get_placeholder,
    is_reference_only,
    suggest_closing,
    suggest_list,
    suggest_map,
    suggest_option,
    suggest_scalar,
)
from holdfast.reading.node import Node, parse_plain
from holdfast.reading.words import describe, suggest, suggest_name


class Bad:
    """A value that could not be read; its problem has been reported."""


BAD: Final = Bad()


ValueOf = Callable[[str, str], str | None]
"""The value of a text with references, by its path; None if one of them has no value."""


class Reader:
    """Collects problems while it reads."""

    def __init__(self, value_of: ValueOf | None = None) -> None:
        """`value_of` resolves numbers, durations and options that are written as a reference."""
        self.problems: list[Problem] = []
        self.value_of = value_of

    # -- problems -----------------------------------------------------------------------------
    def report(self, node: Node, message: str, *, hint: str = "", code: str = "bad-value", suggestion: str = "") -> Bad:
        """Report an error at the node."""
        where = (node.path, node.line, node.column, node.length)
        self.problems.append(Problem(message, *where, hint, "error", code, suggestion))
        return BAD

    def report_type(self, node: Node, what: str, *, hint: str = "", code: str = "wrong-type") -> Bad:
        """Report a value of the wrong kind."""
        return self.report(node, f"expected {what}, found {describe(node)}", hint=hint, code=code)

    def report_conflict(self, node: Node, message: str, *, hint: str = "") -> Bad:
        """Report a key that another key, or the kind of its section, rules out."""
        return self.report(node, message, hint=hint, code="conflict")

    def report_missing(self, node: Node, key: str, message: str = "missing", *, hint: str = "") -> Bad:
        """Report a key that the map lacks."""
        return self.report(node.get(key), message, hint=hint, code="missing-key")

    def warn(
        self, node: Node, message: str, *, code: str, hint: str = "", length: int = 0, values: tuple[str, ...] = ()
    ) -> None:
        """Report a warning at the node."""
        where = (node.path, node.line, node.column, length or node.length)
        self.problems.append(Problem(message, *where, hint, "warning", code, values=values))

    def report_duplicates(self, named: Iterable[tuple[str, Node]], what: str) -> None:
        """Report each name that an earlier node already has."""
        first: dict[str, Node] = {}
        for name, node in named:
            if first.setdefault(name, node) is not node:
                message = f"the {what} {name!r} is used twice: first on line {first[name].line}"
                self.report(node, message, hint=f"give it another {what}", code="duplicate-id")

    def has_error(self, *prefixes: str) -> bool:
        """Return whether there already is an error at or below one of these paths."""
        return any(p.severity == "error" and p.path.startswith(prefixes) for p in self.problems)

    # -- values -------------------------------------------------------------------------------
    def read(self, hint: Any, node: Node) -> Any:
        """Return the node as a value of that type within its limits, or BAD."""
        hint = parse_hint(hint)
        if node.kind == "text" and "${" in node.text and self.value_of is not None and is_reference_only(hint):
            if way_out := suggest_closing(node.text):
                return self.report(node, UNCLOSED, hint=way_out, code="unclosed-reference")
            node = self._resolve(self.value_of, hint, node)
        value = hint.form.read(self, node) if hint.form else self._read(hint.base, node)
        if value is BAD or value is None:
            return value
        # Limits count what was written: unreadable entries are missing from the value, and have problems of their own.
        measured = node.items if node.kind == "list" else node.pairs if node.kind == "map" else value
        for limit in hint.limits:
            if message := find_limit_error(limit, measured):
                return self.report(node, f"{message}, found {describe(node)}", code="out-of-range")
        return value

    def _resolve(self, value_of: ValueOf, hint: Hint, node: Node) -> Node:
        """Return the node with the value of its references; a placeholder if a variable is not set."""
        if node.path.rpartition(".")[2] in AS_WRITTEN:
            return node
        # Without a value the rest of the file can still be checked: a placeholder that the type accepts is read, and
        # the variable is reported as unset.
        value = value_of(node.path, node.text)
        text = get_placeholder(hint) if value is None else value.strip()
        kind, plain_value = parse_plain(text) if text else ("text", text)
        reference = "" if value is None else node.text
        return replace(node, kind=kind, value=plain_value, text=text, style="", reference=reference)

    def _read(self, base: Any, node: Node) -> Any:
        origin = get_origin(base)
        if base is Any:
            return node.to_plain()
        if base in SCALARS:
            return self._read_scalar(base, node)
        if origin is Literal:
            return self._read_literal(get_args(base), node)
        if origin in (Union, types.UnionType):
            return self._read_union(get_args(base), node)
        if origin in (list, tuple, Sequence, frozenset, set):
            return self._read_list(base, node)
        if origin in (dict, Mapping) or base is dict:
            return self._read_map(base, node)
        if isinstance(base, type) and (issubclass(base, msgspec.Struct) or is_dataclass(base)):
            return self.read_section(base, node)
        raise TypeError(f"{node.path}: a settings type uses {base!r}, which the reader does not know")

    def _read_scalar(self, base: type, node: Node) -> Any:
        kinds, words = SCALARS[base]
        if node.kind not in kinds:
            return self.report_type(node, words, hint=suggest_scalar(base, node))
        if node.kind == "float" and not math.isfinite(node.value):
            return self.report(node, f"expected a finite number, found {node.text}")
        try:
            return base(node.value)
        except OverflowError:
            return self.report(node, "the number is too large", code="out-of-range")

    def _read_literal(self, options: tuple[Any, ...], node: Node) -> Any:
        for option in options:
            if node.value == option and type(node.value) is type(option):
                return option
        return self.report_option(node, [str(o).lower() if isinstance(o, bool) else str(o) for o in options])

    def report_option(self, node: Node, options: Sequence[str]) -> Bad:
        """Report a value that is not one of the options."""
        hint = suggest_name(node.text, options) if node.kind == "text" else ""
        what = options[0] if len(options) == 1 else f"one of {', '.join(options)}"
        return self.report_type(node, what, hint=hint, code="unknown-value")

    def _read_union(self, members: tuple[Any, ...], node: Node) -> Any:
        if type(None) in members and node.kind == "null":
            return None
        # If the kind of node leaves one member, that member is read: its own message is better than "a or b".
        members = tuple(m for m in members if m is not type(None))
        candidates = [m for m in members if node.kind in get_node_kinds(m)] or list(members)
        if len(candidates) == 1 and (len(members) == 1 or node.kind in get_node_kinds(candidates[0])):
            return self.read(candidates[0], node)
        # Each member is tried by a reader of its own, whose problems are discarded: the user is told about one union,
        # not about every way in which it does not fit.
        for member in candidates:
            attempt = Reader(self.value_of)
            value = attempt.read(member, node)
            if value is not BAD and not attempt.has_error(""):
                self.problems += attempt.problems
                return value
        what = " or ".join(dict.fromkeys(describe_type(m) for m in members))
        return self.report_type(node, what, hint=suggest_option(members, node))

    def _read_list(self, base: Any, node: Node) -> Any:
        element = next(iter(get_args(base)), Any)
        if node.kind != "list":
            return self.report_type(node, "a list", hint=suggest_list(element, node))
        values = [value for item in node.items if (value := self.read(element, item)) is not BAD]
        collection: type = get_origin(base)
        return values if collection in (list, Sequence) else collection(values)

    def _read_map(self, base: Any, node: Node) -> Any:
        if node.kind != "map":
            return self.report_type(node, "a map", hint=suggest_map(None, node))
        args = get_args(base)
        key_hint, element = (parse_hint(args[0]), args[1]) if args else (parse_hint(str), Any)
        checked = key_hint.base is not str or key_hint.limits
        values = {}
        for key, (key_node, item) in node.pairs.items():
            if checked and self.read(key_hint, replace(key_node, kind="text", value=key, text=key)) is BAD:
                continue
            values[key] = self.read(element, item)
        return {k: v for k, v in values.items() if v is not BAD}

    # -- sections -----------------------------------------------------------------------------
    def read_section(self, kind: type, node: Node) -> Any:
        """Return a section of that type; unreadable optional keys keep their defaults."""
        if node.kind != "map":
            return self.report_type(node, "a map", hint=suggest_map(kind, node))
        self.report_unknown(node, [f.key for f in get_keys(kind)])
        values = self.read_keys(kind, node)
        if values is BAD:
            return BAD
        place = get_node_field(kind)
        return kind(**values, **({place: node} if place else {}))

    def read_keys(self, kind: type, node: Node) -> Any:
        """Return the keys of that type that the map has; BAD if a required one is missing or unreadable."""
        values: dict[str, Any] = {}
        bad = False
        for field in get_keys(kind):
            if field.is_section and node.get(field.key).kind == "null":
                continue  # a section without keys is one that is not there
            if field.key in node.pairs:
                value = self.read(field.hint, node.get(field.key))
            elif field.required:
                value = self.report_missing(node, field.key, hint=field.hint.description)
            else:
                continue
            if value is not BAD:
                values[field.name] = value
            bad |= value is BAD and field.required
        return BAD if bad else values

    def report_unknown(
        self,
        node: Node,
        known: Collection[str],
        *,
        message: str = "unknown key",
        label: str = "known keys",
        synonyms: Mapping[str, str] | None = None,
    ) -> None:
        """Report unknown keys of the map; `synonyms` are hints for keys that people try."""
        for key in node.pairs:
            if key not in known:
                hints = synonyms or {}
                meant, hint = ("", hints[key]) if key in hints else suggest(key, known, label=label)
                self.report(node.get_key(key), message, hint=hint, code="unknown-key", suggestion=meant)
