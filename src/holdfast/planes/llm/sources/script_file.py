"""Reads a scripted model's YAML file, and reports every problem with file, line and column."""

from __future__ import annotations

from pathlib import Path

from holdfast.errors import SpecError
from holdfast.model.spec import Problem
from holdfast.planes.llm.sources.script import Match, Script, ScriptRule
from holdfast.reading.file import Source, read_file
from holdfast.reading.node import Node
from holdfast.reading.reader import Bad, Reader
from holdfast.reading.tree import parse

_NOT_IN_A_FAILURE = ("text", "tool_calls", "token_delay_ms", "chunks", "finish", "usage")
_TEXT_ONLY = ("token_delay_ms", "chunks")


def load_script(path: Path, *, label: str | None = None, names: tuple[str, ...] = ()) -> Script:
    """Return the scripted model of a file.

    Raises SpecError with all problems. `names` are the models that it replaces.
    """
    label = label or str(path)
    source = read_file(path)
    if source.problem is not None:
        raise _build_spec_error(label, source, [source.problem])
    root, problems = parse(source.text)
    reader = Reader()
    reader.problems += problems
    rules = () if root is None else _read_rules(reader, root)
    lines = () if root is None or not rules else tuple(node.line for node in root.get("replies").items)
    if reader.problems:
        raise _build_spec_error(label, source, reader.problems)
    exact = [rule.match.model.written for rule in rules if rule.match.model and rule.match.model.is_exact]
    return Script(label, rules, tuple(dict.fromkeys([*names, *exact])), lines)


def _build_spec_error(label: str, source: Source, problems: list[Problem]) -> SpecError:
    return SpecError(label, sorted(problems, key=lambda p: (p.line, p.column)), source=source.text)


def _read_rules(reader: Reader, root: Node) -> tuple[ScriptRule, ...]:
    if root.kind != "map":
        reader.report_type(root, "a map")
        return ()
    reader.report_unknown(root, ("replies",))
    listed = root.get("replies")
    if not root.has("replies"):
        reader.report_missing(root, "replies", hint="replies: a list of rules")
        return ()
    rules = reader.read(tuple[ScriptRule, ...], listed)
    for node in listed.items:
        _check_rule(reader, node)
    if isinstance(rules, Bad):
        return ()
    if not listed.items:
        reader.report(listed, "no rules: the model cannot answer anything")
    if not reader.problems:
        _check_order(reader, rules, listed.items)
    return rules  # type: ignore[no-any-return]  # the reader returns the requested type


def _check_rule(reader: Reader, node: Node) -> None:
    """Report fields that cannot be combined."""
    if node.kind != "map":
        return
    if node.has("status"):
        for name in _NOT_IN_A_FAILURE:
            if node.has(name):
                reader.report(node.get(name), "a rule with a status can only have an error")
    elif node.has("error"):
        hint = "status: the HTTP status of the failure, such as 429"
        reader.report(node.get("error"), "an error needs a status", hint=hint)
    elif not node.has("text") and not node.has("tool_calls"):
        hint = 'give text, tool_calls, or status; an empty answer is text: ""'
        reader.report(node, "the rule has no reply", hint=hint, code="missing-key")
    for name in _TEXT_ONLY:
        if node.has(name) and not node.has("text") and not node.has("status"):
            reader.report(node.get(name), "there is no text to send in chunks")


def _check_order(reader: Reader, rules: tuple[ScriptRule, ...], nodes: list[Node]) -> None:
    """Report a rule after one that matches everything: it would never be used."""
    first = next((at for at, rule in enumerate(rules) if _matches_all(rule)), None)
    if first is not None and first + 1 < len(rules):
        message = f"never used: the rule on line {nodes[first].line} matches every request"
        hint = f"move the rule on line {nodes[first].line} to the end, or give it a match or times"
        reader.report(nodes[first + 1], message, hint=hint, code="never-used")


def _matches_all(rule: ScriptRule) -> bool:
    texts = [rule.text, rule.error]
    plain = all(text is None or text.is_always_filled for text in texts) and not rule.tool_calls
    return rule.match == Match() and rule.times is None and plain
