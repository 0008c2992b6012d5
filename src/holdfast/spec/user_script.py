"""A scripted user: a file with what the user says, in order or in answer to what the agent said."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from msgspec import Struct

from holdfast.errors import SpecError
from holdfast.model.spec import Problem
from holdfast.model.task import SayRule, UserScript
from holdfast.planes.llm.sources.script_text import Pattern
from holdfast.reading.fields import about
from holdfast.reading.file import Source, read_file
from holdfast.reading.node import Node
from holdfast.reading.reader import BAD, Reader
from holdfast.reading.tree import parse
from holdfast.reading.words import found

_TEXT = Annotated[str, about("", min_length=1)]


class SayRuleKeys(Struct, frozen=True, kw_only=True):
    """What the user says whenever an answer has something in it."""

    when: Annotated[str, about("A regular expression that is looked for in the answer.", min_length=1)]
    say: Annotated[str, about("What the user then says.", min_length=1)]


def answer_pattern(written: str) -> Pattern:
    """What is looked for in an answer: a regular expression, in any case of its letters."""
    return Pattern(f"/{written}/is")


def read_script(path: Path, *, shown: str) -> UserScript:
    """The script of a file: lines of text (.txt), or a YAML or JSON list. SpecError with all that is wrong."""
    source = read_file(path)
    reader = Reader()
    script = UserScript()
    if source.problem is not None:
        reader.problems.append(source.problem)
    elif path.suffix == ".txt":
        script = UserScript(tuple(line.strip() for line in source.text.splitlines() if line.strip()))
    else:
        script = _listed(reader, source)
    if not reader.problems and not script.texts and not script.rules:
        reader.problems.append(Problem("the user says nothing", hint="write a list of what the user says"))
    if reader.problems:
        raise SpecError(shown, sorted(reader.problems, key=lambda p: (p.line, p.column)), source=source.text)
    return script


def _listed(reader: Reader, source: Source) -> UserScript:
    root, problems = parse(source.text)
    reader.problems += problems
    if root is None:
        return UserScript()
    if root.kind != "list":
        hint = "what the user says, one entry a turn; or {when: ..., say: ...}"
        reader.error(root, "", f"expected a list, found {found(root)}", hint=hint, code="wrong-type")
        return UserScript()
    return read_lines(reader, root, "")


def read_lines(reader: Reader, root: Node, path: str) -> UserScript:
    """The script of a list: texts, and rules."""
    texts: list[str] = []
    rules: list[SayRule] = []
    for index, node in enumerate(root.items):
        if node.kind == "map":
            rules += _rule(reader, node, f"{path}[{index}]")
        elif (text := reader.read(_TEXT, node, f"{path}[{index}]")) is not BAD:
            texts.append(text)
    return UserScript(tuple(texts), tuple(rules))


def _rule(reader: Reader, node: Node, path: str) -> list[SayRule]:
    rule = reader.section(SayRuleKeys, node, path)
    if rule is BAD:
        return []
    if wrong := answer_pattern(rule.when).fault():
        reader.error(node.get("when"), f"{path}.when", wrong[0], hint=wrong[1], code="bad-regex")
    return [SayRule(rule.when, rule.say)]
