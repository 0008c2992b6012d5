"""Reads typed values out of a YAML file, and finds every problem in it with its place."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

from holdfast.errors import SpecError
from holdfast.model.spec import Problem

SIZE_LIMIT = 10_000_000
NESTING_LIMIT = 100
VALUE_LIMIT = 100_000
"""Values of arguments in one file, aliases counted as often as they are used."""

_MOST = 10**12
_INT = re.compile(r"[-+]?[0-9]{1,18}")
_FLOAT = re.compile(r"[-+]?([0-9]+\.[0-9]*|\.[0-9]+|[0-9]+)([eE][-+]?[0-9]{1,3})?")
_CONSTANTS = {"true": True, "false": False, "null": None, "~": None, "": None}


class Reading:
    """One file being read. What is wrong is kept, and the value that should stand there is a harmless one."""

    def __init__(self, file: str, source: str) -> None:
        self.file = file
        self.source = source
        self.problems: list[Problem] = []
        self._values = 0

    def finish(self) -> None:
        """Raises SpecError if anything is wrong."""
        if self.problems:
            ordered = sorted(self.problems, key=lambda problem: (problem.line, problem.column))
            raise SpecError(self.file, ordered, source=self.source)

    def error(self, node: Any, path: str, message: str, *, hint: str = "", code: str = "bad-value") -> None:
        start, end = node.start_mark, node.end_mark
        length = max(end.column - start.column, 1) if end.line == start.line else 1
        self.problems.append(Problem(message, path, start.line + 1, start.column + 1, length, hint, code=code))

    def fields(self, node: Any, path: str, known: Collection[str]) -> dict[str, Any]:
        """The values of a map by key; unknown keys are problems, with the near miss."""
        found = self.entries(node, path)
        for name in [name for name in found if name not in known]:
            key, _ = found.pop(name)
            where = f"{path}.{name}".lstrip(".")
            self.error(key, where, f"unknown key {name[:80]!r}", hint=near_hint(name, known), code="unknown-key")
        return {name: value for name, (_, value) in found.items()}

    def entries(self, node: Any, path: str) -> dict[str, tuple[Any, Any]]:
        """A map: name to key and value; a key written twice is a problem."""
        found: dict[str, tuple[Any, Any]] = {}
        if node.id != "mapping":
            self.error(node, path, f"expected a map, found {_found(node)}")
            return found
        for key, value in node.value:
            if key.id != "scalar":
                self.error(key, path, "a key must be a word, not a list or a map", code="yaml-form")
            elif key.value in found:
                self.error(key, f"{path}.{key.value}", "written twice", code="duplicate-key")
            else:
                found[key.value] = (key, value)
        return found

    def items(self, node: Any, path: str) -> list[tuple[Any, str]]:
        """The entries of a list, each with its path."""
        if node.id != "sequence":
            self.error(node, path, f"expected a list, found {_found(node)}")
            return []
        return [(item, f"{path}[{at}]") for at, item in enumerate(node.value)]

    def text(self, node: Any, path: str) -> str:
        """A text, as it is written."""
        if node.id != "scalar" or (not _quoted(node) and node.value in ("", "~", "null")):
            self.error(node, path, f"expected a text, found {_found(node)}")
            return ""
        return str(node.value)

    def number(self, node: Any, path: str) -> float:
        """A number, 0 or more."""
        value = scalar(node) if node.id == "scalar" else None
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _MOST:
            self.error(node, path, f"expected a number, 0 or more, found {_found(node)}")
            return 0.0
        return float(value)

    def whole(self, node: Any, path: str, least: int = 1, most: int = _MOST) -> int:
        """A whole number within limits."""
        value = scalar(node) if node.id == "scalar" else None
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            limits = f"from {least} to {most}" if most < _MOST else f"{least} or more"
            self.error(node, path, f"expected a whole number, {limits}, found {_found(node)}")
            return least
        return value

    def counted(self, node: Any, path: str, depth: int) -> bool:
        """Counts a value of free form; False if it is too deep, or there are too many."""
        self._values += 1
        if depth > NESTING_LIMIT:
            self.error(node, path[:80], f"nested deeper than {NESTING_LIMIT} levels", code="yaml-form")
            return False
        if self._values == VALUE_LIMIT + 1:
            self.error(node, path, f"more than {VALUE_LIMIT:,} values", code="yaml-form")
        return self._values <= VALUE_LIMIT


def compose(path: Path, shown: str) -> tuple[Reading, Any]:
    """The file and its tree; SpecError if it cannot be read as YAML at all."""
    import yaml

    loader = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader
    reading = Reading(shown, _read(path, shown))
    try:
        _shallow(yaml.parse(reading.source, Loader=loader), reading)
        root = yaml.compose(reading.source, Loader=loader)
    except yaml.MarkedYAMLError as broken:
        mark = broken.problem_mark
        line, column = (mark.line + 1, mark.column + 1) if mark is not None else (1, 1)
        raise _unusable(shown, f"not readable as YAML: {broken.problem or broken.context}", line, column) from broken
    except (yaml.YAMLError, ValueError, RecursionError) as broken:
        raise _unusable(shown, f"not readable as YAML: {broken}", 1, 1) from broken
    if root is None:
        raise _unusable(shown, "the file is empty", 1, 1, code="empty-file")
    return reading, root


def scalar(node: Any) -> Any:
    """A scalar as JSON has it. `on`, `no` and `12:30` are texts."""
    if _quoted(node):
        return node.value
    if node.value.lower() in _CONSTANTS:
        return _CONSTANTS[node.value.lower()]
    if _INT.fullmatch(node.value):
        return int(node.value)
    return float(node.value) if _FLOAT.fullmatch(node.value) else node.value


def near_hint(word: str, known: Collection[str]) -> str:
    """The near miss, else the known names."""
    from difflib import get_close_matches

    close = get_close_matches(word[:100].lower().replace("-", "_"), known, n=1, cutoff=0.6)
    return f"did you mean {close[0]}?" if close else f"known: {', '.join(known)}"


def _read(path: Path, shown: str) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(SIZE_LIMIT + 1)
        if len(data) > SIZE_LIMIT:
            raise _unusable(shown, f"larger than {SIZE_LIMIT // 1_000_000} MB", 1, 1)
        return data.decode("utf-8-sig")
    except OSError as broken:
        raise _unusable(shown, f"cannot be read: {broken.strerror}", 0, 0, code="missing-file") from broken
    except UnicodeDecodeError as broken:
        line = data[: broken.start].count(b"\n") + 1
        raise _unusable(shown, "not UTF-8", line, 1) from broken


def _unusable(shown: str, message: str, line: int, column: int, *, code: str = "yaml-syntax") -> SpecError:
    return SpecError(shown, [Problem(message, line=line, column=column, code=code)])


def _shallow(events: Any, reading: Reading) -> None:
    """Refuses what is nested too deeply, or in itself, before anything walks down into it."""
    open_anchors: list[str | None] = []
    for event in events:
        kind = type(event).__name__
        wrong = ""
        if kind in ("MappingStartEvent", "SequenceStartEvent"):
            open_anchors.append(event.anchor)
            wrong = f"nested deeper than {NESTING_LIMIT} levels" if len(open_anchors) > NESTING_LIMIT else ""
        elif kind in ("MappingEndEvent", "SequenceEndEvent"):
            open_anchors.pop()
        elif kind == "AliasEvent" and event.anchor in open_anchors:
            wrong = f"the alias *{event.anchor} is inside what it stands for"
        if wrong:
            mark = event.start_mark
            raise _unusable(reading.file, wrong, mark.line + 1, mark.column + 1, code="yaml-form")


def _quoted(node: Any) -> bool:
    return node.style in ("'", '"', "|", ">")


def _found(node: Any) -> str:
    if node.id != "scalar":
        return {"mapping": "a map", "sequence": "a list"}[node.id]
    value = scalar(node)
    return "nothing" if value is None else f"{node.value[:40]!r}"
