"""Parses YAML text into a Node tree: every value with its position, without YAML's traps."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from holdfast.model.spec import Problem
from holdfast.reading.node import (
    STANDARD,
    Node,
    has_pairs,
    join_pairs,
    parse_plain,
    parse_tagged,
    replace_pairs,
    restore_pairs,
    set_paths,
)

MAX_NESTING = 100
MAX_ALIAS_NODES = 100_000

_NO_TABS = "use spaces: YAML is not indented with tabs"
_HINTS = (
    ("mapping values are not allowed", "quote text that holds a colon and a space"),
    ("found character that cannot start any token", "indent with spaces, and quote text that starts with @ or `"),
    ("found character '\\t'", _NO_TABS),
    ("found a tab character", _NO_TABS),
    ("could not find expected ':'", "is a colon missing, or a line indented differently from its neighbours?"),
    ("did not find expected key", "is this line indented differently from its neighbours?"),
    ("found unknown escape character", "in double quotes a backslash starts an escape: use single quotes"),
)
_OPENED = (
    ("while scanning a quoted scalar", ("the quote", "close it on this line, with the same sign")),
    ("while parsing a flow sequence", ("the [", "add the ], or the missing comma or quote inside")),
    ("while parsing a flow mapping", ("the {", "add the }, or the missing comma or quote inside")),
)
BREAK = "\r\n|[\n\r\x85\u2028\u2029]"
"""A pattern that only errors need."""


class Unreadable(Exception):
    """The text is not YAML that Holdfast reads; carries the one problem that stopped it."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


def parse(text: str) -> tuple[Node | None, list[Problem]]:
    """Return the tree of a file's one document, and problems of its form. No tree: not readable at all."""
    # json.dumps writes an emoji as two escapes, which YAML rejects. Such a file is read a second time, with each pair
    # replaced by characters that YAML accepts; they are joined again in the
    root, problems = _parse_text(text, paired=False)
    if root is None and has_pairs(text):
        return _parse_text(replace_pairs(text), paired=True)
    return root, problems


def _parse_text(text: str, *, paired: bool) -> tuple[Node | None, list[Problem]]:
    builder = _Builder(paired)
    try:
        for event in _iter_events(text):
            builder.take(event)
    except Unreadable as stopped:
        return None, [*builder.problems, stopped.problem]
    if builder.root is None:
        return None, [Problem("the file is empty", line=1, column=1, code="empty-file")]
    return set_paths(builder.root), builder.problems


def _iter_events(text: str) -> Iterator[Any]:
    import yaml

    loader = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader
    try:
        yield from yaml.parse(text, Loader=loader)
    except yaml.MarkedYAMLError as broken:
        raise Unreadable(_report_unclosed(broken) or _report_syntax(text, broken)) from broken
    except yaml.reader.ReaderError as broken:
        line, column = _find_position(text, broken.position)
        message = f"not readable as YAML: {broken.reason}"
        raise Unreadable(Problem(message, line=line, column=column, code="yaml-syntax")) from broken
    except (ValueError, RecursionError) as broken:  # PyYAML's own answer to some malformed escapes
        raise Unreadable(Problem(f"not readable as YAML: {broken}", line=1, column=1, code="yaml-syntax")) from broken


def _report_unclosed(broken: Any) -> Problem | None:
    """Return the problem of an unclosed quote or bracket, at the position where it opens."""
    opening = next((words for start, words in _OPENED if str(broken.context).startswith(start)), None)
    at, noticed = broken.context_mark, broken.problem_mark
    if opening is None or at is None or noticed is None or noticed.line == at.line:
        return None
    what, hint = opening
    message = f"not readable as YAML: {what} opened here is not closed before line {noticed.line + 1} continues"
    return Problem(message, line=at.line + 1, column=at.column + 1, hint=hint, code="yaml-syntax")


def _report_syntax(text: str, broken: Any) -> Problem:
    message, mark = str(broken.problem or broken.context), broken.problem_mark
    hint = next((h for start, h in _HINTS if message.startswith(start)), "")
    line, column = (mark.line + 1, mark.column + 1) if mark is not None else (1, 1)
    lines = re.split(BREAK, text)
    if line <= len(lines) and lines[line - 1][column - 1 : column] == "\t":
        hint = _NO_TABS
    if line > len(lines):  # libyaml puts the end of the file on its own line
        line, column = len(lines), len(lines[-1]) + 1
    return Problem(f"not readable as YAML: {message}", line=line, column=column, hint=hint, code="yaml-syntax")


def _find_position(text: str, offset: int) -> tuple[int, int]:
    """Line and column of a character offset."""
    line, start = 1, 0
    for match in re.finditer(BREAK, text[: max(offset, 0)]):
        line, start = line + 1, match.end()
    return line, max(offset, 0) - start + 1


class _Builder:
    """Builds nodes from events without recursion, so depth and aliases stay bounded."""

    def __init__(self, paired: bool) -> None:
        """`paired`: the text has placeholders for surrogate pairs."""
        self._paired = paired
        self.root: Node | None = None
        self.problems: list[Problem] = []
        # A stack of the open lists and maps, each with its anchor. `_keys` has the key that waits for its value, if the
        # innermost one is a map.
        self._open: list[tuple[Node, str | None]] = []
        self._keys: list[Node | None] = []
        self._anchors: dict[str, Node | None] = {}
        self._expanded = 0
        self._documents = 0

    def take(self, event: Any) -> None:
        kind = type(event).__name__
        if kind == "ScalarEvent":
            node = self._build_scalar(event)
            if event.anchor is not None:
                self._anchors[event.anchor] = node
            self._add(node)
        elif kind in ("MappingStartEvent", "SequenceStartEvent"):
            self._start(event, "map" if kind == "MappingStartEvent" else "list")
        elif kind in ("MappingEndEvent", "SequenceEndEvent"):
            self._end()
        elif kind == "AliasEvent":
            self._add(self._resolve_alias(event))
        elif kind == "DocumentStartEvent":
            self._documents += 1
            if self._documents > 1:
                self._stop(event, "a second document starts here", "a file is one document: remove the --- line")

    def _stop(self, event: Any, message: str, hint: str = "") -> None:
        mark = event.start_mark
        raise Unreadable(Problem(message, line=mark.line + 1, column=mark.column + 1, hint=hint, code="yaml-form"))

    def _report_error(
        self, node: Node, message: str, key: str = "", *, hint: str = "", code: str = "yaml-form"
    ) -> None:
        path = (self._get_path() + (f".{key}" if key else "")).lstrip(".")
        self.problems.append(Problem(message, path, node.line, node.column, node.length, hint, code=code))

    def _get_path(self) -> str:
        """Return the path of the current value."""
        path = ""
        for (node, _), key in zip(self._open, self._keys, strict=True):
            path += f"[{len(node.items)}]" if node.kind == "list" else f".{key.text}" if key else ""
        return path

    def _build_scalar(self, event: Any) -> Node:
        start, end = event.start_mark, event.end_mark
        length = end.column - start.column if end.line == start.line else 1
        value = event.value
        if self._paired:
            value = join_pairs(value) if event.style == '"' else restore_pairs(value)
        node = Node("text", start.line + 1, start.column + 1, max(length, 1), value, value)
        node.style = "" if event.style in (None, ":") else event.style
        node.span = (start.index, end.index)
        if event.tag is not None and event.tag != "!":
            read = parse_tagged(event.tag, event.value)
            if read is None:
                self._report_error(node, f"the tag {event.tag.replace(STANDARD, '!!')} cannot be used here")
            else:
                node.kind, node.value = read
        elif event.implicit[0] and not node.style:
            node.kind, node.value = parse_plain(value)
        return node

    def _start(self, event: Any, kind: Any) -> None:
        node = Node(kind, event.start_mark.line + 1, event.start_mark.column + 1)
        if event.tag not in (None, "!", STANDARD + "map", STANDARD + "seq"):
            self._report_error(node, f"the tag {event.tag.replace(STANDARD, '!!')} cannot be used here")
        if len(self._open) >= MAX_NESTING:
            self._stop(event, f"nested deeper than {MAX_NESTING} levels")
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        self._open.append((node, event.anchor))
        self._keys.append(None)

    def _end(self) -> None:
        node, anchor = self._open.pop()
        self._keys.pop()
        if anchor is not None:
            self._anchors[anchor] = node
        if node.pairs:
            node.length = next(iter(node.pairs.values()))[0].length
        self._add(node)

    def _resolve_alias(self, event: Any) -> Node:
        if event.anchor not in self._anchors:
            self._stop(event, f"no anchor &{event.anchor} before this alias")
        node = self._anchors[event.anchor]
        if node is None:
            self._stop(event, f"the alias *{event.anchor} is inside its own anchor")
        assert node is not None
        # An alias repeats a complete tree, so the nesting that it adds is the depth of that tree, known when it was
        # closed. Without this check, aliases inside aliases nest deeper than any written line.
        if len(self._open) + node.depth - 1 > MAX_NESTING:
            self._stop(event, f"nested deeper than {MAX_NESTING} levels")
        # Ten aliases of ten aliases of … make a small file mean millions of values: count what they expand to.
        self._expanded += node.size
        if self._expanded > MAX_ALIAS_NODES:
            self._stop(event, f"aliases expand to more than {MAX_ALIAS_NODES:,} values")
        return node

    def _add(self, node: Node) -> None:
        if not self._open:
            self.root = node
            return
        parent = self._open[-1][0]
        parent.size += node.size
        parent.depth = max(parent.depth, node.depth + 1)
        if parent.kind == "list":
            parent.items.append(node)
        elif (key := self._keys[-1]) is None:
            self._keys[-1] = node
        else:
            self._keys[-1] = None
            self._add_pair(parent, key, node)

    def _add_pair(self, parent: Node, key: Node, value: Node) -> None:
        if key.kind in ("list", "map"):
            self._report_error(key, "a key must be a word, not a list or a map")
        elif key.text == "<<" and not key.style:
            self._merge(parent, value)
        # A merged key has the style `<<`, which no written key can have. It distinguishes a key that is written twice
        # from one that overrides a merged one, in whichever order they come.
        elif key.text in parent.pairs and parent.pairs[key.text][0].style != "<<":
            first = parent.pairs[key.text][0]
            message = f"written twice: first on line {first.line}"
            self._report_error(key, message, key.text, hint="write it once, with all its entries", code="duplicate-key")
        else:  # a key of the map itself overrides the merged one
            parent.pairs[key.text] = (key, value)

    def _merge(self, parent: Node, value: Node) -> None:
        sources = value.items if value.kind == "list" else [value]
        for source in sources:
            if source.kind != "map":
                self._report_error(value, "<< takes a map, or a list of maps")
                return
            for name, (key, merged) in source.pairs.items():
                inherited = Node("text", key.line, key.column, key.length, key.value, key.text, style="<<")
                parent.pairs.setdefault(name, (inherited, merged))
