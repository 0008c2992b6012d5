"""No code decides by the wording of our own messages: what is decided on is a code or a value."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import holdfast

SRC = Path(holdfast.__file__).parent
PROSE = {"reason", "reasons", "note", "notes", "warning", "warnings", "message", "why", "hint", "detail"}
"""Names that hold sentences for people."""
CUTS = {"startswith", "endswith", "partition", "rpartition", "split", "rsplit", "removeprefix", "removesuffix", "find"}
SEARCHES = {"match", "search", "fullmatch", "findall", "split"}
ALLOWED = {
    "agents/python/answers.py": "`message` is a dict that the agent returned",
    "planes/llm/codecs/ollama.py": "the provider's reason for the end of a reply",
    "planes/llm/sources/model_client.py": "what a provider says of a request that it refused",
    "reading/tree.py": "the messages of the YAML library",
    "report/causes/cause_words.py": "which of a cause's reasons is already shown; only the text depends on it",
    "report/formats/sarif.py": "whether a full stop is missing",
    "runner/across_trials.py": "whether trials say the same or each its own",
    "runner/run.py": "whether the same warning, with its code, is stored already",
    "starter/http_agent.py": "an agent to start from: `message` is what its user wrote",
    "web/listing.py": "`notes` are the user's, by the id of a run",
}


def is_prose(node: ast.expr) -> bool:
    """Whether the expression is a text for people, as far as its name says so."""
    if isinstance(node, ast.Name):
        return node.id in PROSE
    if isinstance(node, ast.Attribute):
        return node.attr in PROSE
    if isinstance(node, ast.Subscript):
        return is_prose(node.value) or (isinstance(node.slice, ast.Constant) and node.slice.value in PROSE)
    lowered = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    return lowered and node.func.attr in ("lower", "casefold", "strip") and is_prose(node.func.value)  # type: ignore[attr-defined]


def is_empty(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and not node.value


def decides_by_prose(node: ast.AST) -> bool:
    """Cuts, searches or compares a text for people; whether it is empty may be asked."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        cuts = node.func.attr in CUTS and is_prose(node.func.value)
        return cuts or (node.func.attr in SEARCHES and any(map(is_prose, node.args)))
    if not isinstance(node, ast.Compare):
        return False
    sides = [node.left, *node.comparators]
    equal = any(isinstance(op, ast.Eq | ast.NotEq) for op in node.ops) and not any(map(is_empty, sides))
    contains = any(isinstance(op, ast.In | ast.NotIn) for op in node.ops)
    return (equal and any(map(is_prose, sides))) or (contains and is_prose(node.comparators[-1]))


def decisions(source: str) -> Iterator[int]:
    return (node.lineno for node in ast.walk(ast.parse(source)) if decides_by_prose(node))


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("if verdict.reason.startswith('no answer'): pass", 1),
        ("name = problem.message.partition(' is ')[0]", 1),
        ("if 'loopback' in why: pass", 1),
        ("if re.search('x', found['reason']): pass", 1),
        ("if run.note == NOT_ENDED: pass", 1),
        ("if note.lower().endswith('x'): pass", 1),
        ("if run.note == '' or not why: pass", 0),
        ("seen = {why}; known = why in seen", 0),
        ("text = f'{reason}: {hint}'", 0),
    ],
)
def test_the_lint_finds_what_it_is_for(source: str, found: int) -> None:
    assert len(list(decisions(source))) == found


@pytest.mark.slow
def test_nothing_decides_by_the_wording_of_a_message() -> None:
    files = {str(file.relative_to(SRC)): file.read_text() for file in sorted(SRC.rglob("*.py"))}
    found = {name: list(decisions(source)) for name, source in files.items()}
    assert {name: lines for name, lines in found.items() if lines and name not in ALLOWED} == {}
    assert [name for name in ALLOWED if not found.get(name)] == [], "an exception that nothing needs"
