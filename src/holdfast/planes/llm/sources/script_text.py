"""The texts of a scripted model: patterns to match, and templates with placeholders such as `{{ result.price }}`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import Struct

from holdfast.planes.llm.codecs.loose import parse_json, to_json_text
from holdfast.reading.fields import ValueForm
from holdfast.reading.node import Node
from holdfast.reading.reader import BAD, Reader
from holdfast.reading.words import describe, suggest_name

if TYPE_CHECKING:  # every spec is read with this module, and few have a script: the codecs cost 15 ms
    from holdfast.planes.llm.codecs.request import ModelRequest, ToolResult

LIMIT_S = 2.0
"""Time limit for a user's regex: an agent's text can make some of them run forever."""

ROOTS = ("prompt", "result", "results", "arguments")
FORMS = ("prompt", "result", "result.FIELD", "results.TOOL", "arguments.NAME")
"""The allowed contents between `{{` and `}}`."""
FLAGS = "imsx"
_HOLE = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_NAME = re.compile(r"[\w-]+(\.[\w-]+)*")
_REGEX = re.compile(r"/(.+)/([A-Za-z]*)", re.DOTALL)


class Missing(Exception):
    """A placeholder without a value: the rule does not match."""


class Pattern(Struct, frozen=True):
    """A glob over the complete text, or `/a regex/` searched in it."""

    written: str

    def matches(self, text: str) -> bool:
        match = _REGEX.fullmatch(self.written)
        if match is None:
            return fnmatchcase(text, self.written)
        try:
            return _compile_regex(*match.groups()).search(text, timeout=LIMIT_S) is not None
        except TimeoutError as slow:
            from holdfast.planes.llm.sources.source import UpstreamDown

            raise UpstreamDown(f"the pattern {self.written} of a script took over 2 s") from slow

    @property
    def is_exact(self) -> bool:
        """Whether it matches exactly one text."""
        from holdfast.planes.llm.sources.provider_hosts import is_glob

        return not is_glob(self.written) and not _REGEX.fullmatch(self.written)

    def find_problem(self) -> tuple[str, str] | None:
        """Return why it cannot be used, and what to do; None if it can."""
        import regex

        match = _REGEX.fullmatch(self.written)
        if match is None:
            return None
        strange = [flag for flag in match[2] if flag not in FLAGS]
        if strange:
            hint = f"known: {', '.join(FLAGS)}; a glob that begins with a slash is written [/]..."
            return f"unknown flag of a regular expression: {strange[0]!r}", hint
        try:
            _compile_regex(*match.groups())
        except (regex.error, ValueError, OverflowError, RecursionError) as bad:
            return f"not a valid regular expression: {bad}", ""
        return None


def _compile_regex(pattern: str, flags: str) -> Any:
    import regex

    return regex.compile(f"(?{flags})" * bool(flags) + pattern, regex.DOTALL)


class Hole(Struct, frozen=True):
    """A placeholder that the conversation fills."""

    root: Literal["prompt", "result", "results", "arguments"]
    path: tuple[str, ...] = ()


class TextTemplate(Struct, frozen=True):
    """A text with placeholders."""

    parts: tuple[str | Hole, ...]

    def fill(self, scene: Scene) -> str:
        """Return the filled-in text; raise Missing."""
        return "".join([part if isinstance(part, str) else to_json_text(scene.find_value(part)) for part in self.parts])

    def fill_value(self, scene: Scene) -> Any:
        """Return the filled-in text. If the template is a single placeholder, its value is returned unchanged: a
        number stays a number."""
        if len(self.parts) == 1 and isinstance(self.parts[0], Hole):
            return scene.find_value(self.parts[0])
        return self.fill(scene)

    @property
    def is_always_filled(self) -> bool:
        """Whether every conversation fills it."""
        return all(isinstance(part, str) or part.root == "prompt" for part in self.parts)


def parse_template(text: str) -> TextTemplate:
    """Parse a template; raise ValueError with an unknown placeholder, or with an empty text for one that is
    not closed."""
    parts: list[str | Hole] = []
    done = 0
    for hole in _HOLE.finditer(text):
        parts += [text[done : hole.start()], _parse_hole(hole[1].strip())]
        done = hole.end()
    if "{{" in text[done:]:
        raise ValueError("")
    parts.append(text[done:])
    nonempty = tuple([part for part in parts if part != ""])
    return TextTemplate(nonempty or ("",))


def _parse_hole(name: str) -> Hole:
    name = name or "(nothing)"
    root, *path = name.split(".")
    if not _NAME.fullmatch(name) or root not in ROOTS or (path and root == "prompt"):
        raise ValueError(name)
    if not path and root in ("results", "arguments"):
        raise ValueError(name)
    return msgspec.convert({"root": root, "path": path}, Hole)


class Scene:
    """A conversation as a script's rules read it."""

    def __init__(self, request: ModelRequest) -> None:
        self.request = request

    @cached_property
    def prompt(self) -> str:
        return self.request.prompt

    @cached_property
    def system(self) -> str:
        return "\n".join([message.text for message in self.request.messages if message.role == "system"])

    @cached_property
    def result(self) -> ToolResult | None:
        """The last tool result that the model has not answered; none once the user has spoken again."""
        for message in reversed(self.request.messages):
            if message.results:
                return message.results[-1]
            if message.role in ("user", "assistant"):
                return None
        return None

    @cached_property
    def results(self) -> Mapping[str, str]:
        """The last result of each tool, by name."""
        return {result.name: result.text for result in self.request.results}

    @cached_property
    def turn(self) -> int:
        """The number of the model's next answer, from 1; consecutive entries of the model are one answer."""
        roles = [message.role for message in self.request.messages if message.role != "system"]
        before = [None, *roles]
        return 1 + sum(role == "assistant" != last for last, role in zip(before, roles, strict=False))

    def find_value(self, hole: Hole) -> Any:
        """Return the value of a placeholder; raise Missing."""
        if hole.root == "prompt":
            return self.prompt
        if hole.root == "results":
            for size in range(len(hole.path), 0, -1):
                name = ".".join(hole.path[:size])
                if name in self.results:
                    return _find_inside(self.results[name], hole.path[size:])
            raise Missing
        if self.result is None:
            raise Missing
        return _find_inside(self.result.text if hole.root == "result" else self.result.arguments, hole.path)


def _find_inside(text: str, path: tuple[str, ...]) -> Any:
    """Return a field of a JSON text; without a path the text itself."""
    if not path:
        return text
    value = parse_json(text)
    for name in path:
        if isinstance(value, dict) and name in value:
            value = value[name]
        elif isinstance(value, list) and name.isdigit() and int(name) < len(value):
            value = value[int(name)]
        else:
            raise Missing
    return value


def _read_text(reader: Reader, node: Node) -> Any:
    """Return a text as written in YAML: a number needs no quotes."""
    if node.kind in ("null", "list", "map"):
        return reader.report_type(node, "a text")
    return node.text


def _read_pattern(reader: Reader, node: Node) -> Any:
    text = _read_text(reader, node)
    if text is BAD:
        return BAD
    pattern = Pattern(text)
    wrong = pattern.find_problem()
    if wrong is None:
        return pattern
    message, hint = wrong
    return reader.report(node, message, hint=hint, code="bad-regex")


def _read_patterns(reader: Reader, node: Node) -> Any:
    """Return one value, or a list of them."""
    patterns = [_read_pattern(reader, item) for item in (node.items if node.kind == "list" else [node])]
    return BAD if any(pattern is BAD for pattern in patterns) else tuple(patterns)


def _read_template(reader: Reader, node: Node) -> Any:
    text = _read_text(reader, node)
    return BAD if text is BAD else _parse_holes(reader, node, text)


def _parse_holes(reader: Reader, node: Node, text: str) -> Any:
    try:
        return parse_template(text)
    except ValueError as unknown:
        name = str(unknown)
    if not name:
        hint = "close it with }}; a text cannot contain literal double braces"
        return reader.report(node, "a {{ is not closed", hint=hint, code="bad-template")
    root = name.partition(".")[0]
    message = f"unknown placeholder {{{{ {name[:60]} }}}}: expected one of {', '.join(FORMS)}"
    hint = suggest_name(root, ROOTS) if root not in ROOTS else ""
    return reader.report(node, message, hint=hint, code="bad-template")


def _read_arguments(reader: Reader, node: Node) -> Any:
    if node.kind != "map":
        message = f"expected a map of the tool's arguments, found {describe(node)}"
        return reader.report(node, message, code="wrong-type")
    return _read_filled(reader, node)


def _read_filled(reader: Reader, node: Node) -> Any:
    """Return a value of any shape, with its texts as templates."""
    if node.kind == "list":
        return [_read_filled(reader, item) for item in node.items]
    if node.kind == "map":
        return {name: _read_filled(reader, value) for name, (_, value) in node.pairs.items()}
    return _parse_holes(reader, node, node.text) if node.kind == "text" else node.value


NAME = ValueForm(_read_text, dict, "a text")
PATTERN = ValueForm(_read_pattern, dict, "a glob, or /a regex/")
PATTERNS = ValueForm(_read_patterns, dict, "a glob, /a regex/, or a list of them")
TEMPLATE = ValueForm(_read_template, dict, "a text with {{ placeholders }}")
ARGUMENTS = ValueForm(_read_arguments, dict, "a map")
