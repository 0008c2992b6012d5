"""The prompts: `task:` and the entries of `golden_prompts:`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, TypeAlias

from msgspec import Struct

from holdfast.errors import SpecError
from holdfast.model.spec import Problem
from holdfast.model.task import SayRule, UserScript
from holdfast.planes.llm.sources.script_text import Pattern
from holdfast.reading.fields import Schema, ValueForm, about
from holdfast.reading.file import Source, read_file
from holdfast.reading.node import Node
from holdfast.reading.reader import BAD, Reader
from holdfast.reading.tree import parse
from holdfast.spec.catalogue.schema import build_section_schema

_LINE = Annotated[str, about("", min_length=1)]


def build_answer_pattern(written: str) -> Pattern:
    """Return the pattern for an answer: a regular expression that ignores case."""
    return Pattern(f"/{written}/is")


def read_script(path: Path, *, label: str) -> UserScript:
    """Return the script of a file: lines of text (.txt), or a YAML or JSON list; SpecError with all problems."""
    source = read_file(path)
    reader = Reader()
    script = UserScript()
    if source.problem is not None:
        reader.problems.append(source.problem)
    elif path.suffix == ".txt":
        script = UserScript(tuple(line.strip() for line in source.text.splitlines() if line.strip()))
    else:
        script = _parse_list(reader, source)
    if not reader.problems and not script.texts and not script.rules:
        reader.problems.append(
            Problem("the user says nothing", hint="write a list of what the user says", code="empty")
        )
    if reader.problems:
        raise SpecError(label, sorted(reader.problems, key=lambda p: (p.line, p.column)), source=source.text)
    return script


def _parse_list(reader: Reader, source: Source) -> UserScript:
    root, problems = parse(source.text)
    reader.problems += problems
    if root is None:
        return UserScript()
    if root.kind != "list":
        reader.report_type(root, "a list", hint="what the user says, one entry a turn; or {when: ..., say: ...}")
        return UserScript()
    return read_lines(reader, root)


def read_lines(reader: Reader, root: Node) -> UserScript:
    """Return the script of a list: texts and rules."""
    texts: list[str] = []
    rules: list[SayRule] = []
    for node in root.items:
        if node.kind == "map":
            rules += _read_rule(reader, node)
        elif (text := reader.read(_LINE, node)) is not BAD:
            texts.append(text)
    return UserScript(tuple(texts), tuple(rules))


def _read_rule(reader: Reader, node: Node) -> list[SayRule]:
    rule = reader.read_section(SayRule, node)
    if rule is BAD:
        return []
    if wrong := build_answer_pattern(rule.when).find_problem():
        reader.report(node.get("when"), wrong[0], hint=wrong[1], code="bad-regex")
    return [rule]


_TEXT = Annotated[str, about("", min_length=1)]


def _read_script(reader: Reader, node: Node) -> Any:
    if node.kind != "list":
        return reader.read(_TEXT, node)

    return read_lines(reader, node)


def _build_script_schema() -> Schema:
    text = {"type": "string", "minLength": 1}
    items = {"anyOf": [text, build_section_schema(SayRule)]}
    return {"anyOf": [text, {"type": "array", "items": items, "minItems": 1}]}


_SCRIPT = ValueForm(_read_script, _build_script_schema, "a file, or a list of texts and {when, say}")


class UserSection(Struct, frozen=True, kw_only=True):
    """A simulated user, who continues the conversation after the written turns."""

    at: Node
    script: Annotated[Any, _SCRIPT, about("The user's turns: a file next to the spec, or a list.")] = None
    model: Annotated[str | None, about("The model that plays the user, a name in models:.", min_length=1)] = None
    goal: Annotated[str | None, about("The goal of a user that a model plays.", min_length=1)] = None
    stop: Annotated[
        str | None, about("A regular expression; an answer that matches ends the conversation.", min_length=1)
    ] = None
    max_turns: Annotated[int, about("The maximum number of turns, including the written ones.", ge=2, le=100)] = 5

    @property
    def script_file(self) -> str | None:
        """The file of its script; None if there is none, or the script is in the spec itself."""
        return self.script if isinstance(self.script, str) else None


class TaskSection(Struct, frozen=True, kw_only=True):
    """One question, several, or a conversation with a simulated user."""

    at: Node
    prompt: Annotated[str | None, about("The question, or the first one if turns follow.", min_length=1)] = None
    turns: Annotated[tuple[_TEXT, ...], about("Further questions, one after the other.")] = ()
    user: Annotated[UserSection | None, about("A simulated user, who continues the conversation.")] = None

    @property
    def prompts(self) -> tuple[str, ...]:
        """All written questions, in order."""
        return (*((self.prompt,) if self.prompt else ()), *self.turns)


def _read_prompt(reader: Reader, node: Node) -> Any:
    if node.kind == "map":
        return reader.read_section(TaskSection, node)
    if node.kind == "list":
        return reader.report_type(node, "text or a map", hint="several turns of one conversation are {turns: [...]}")
    text = reader.read(_TEXT, node)
    return BAD if text is BAD else TaskSection(at=node, prompt=text)


GoldenPrompt: TypeAlias = Annotated[
    TaskSection,
    ValueForm(
        _read_prompt,
        lambda: {"anyOf": [{"type": "string", "minLength": 1}, {"$ref": "#/$defs/TaskSection"}]},
        "text, or a map of prompt, turns and user",
    ),
]
