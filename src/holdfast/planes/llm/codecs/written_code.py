"""Tool calls in code that a model writes: smolagents' CodeAgent runs it, and what it prints is what the model reads."""

from __future__ import annotations

import ast
import builtins
import re
from typing import Any

from msgspec.json import encode

INTERPRETER = "python_interpreter"
"""What the framework calls its running of code; it is the tool's name where the code calls several, or none."""
_CODE = re.compile(r"<code>(.*?)(?:</code>|\Z)", re.DOTALL)
_FENCED = re.compile(r"```(?:python|py)\s*\n(.*?)\n?(?:```|\Z)", re.DOTALL)
_OWN = frozenset((*dir(builtins), "final_answer"))
_LOGS, _LAST = "Execution logs:\n", "\nLast output from code snippet:\n"
_LONGEST = 20_000
"""Characters of code that are read."""


def code_in(text: str) -> str:
    """The code of a reply, as the framework takes it out; empty if there is none."""
    found = _CODE.findall(text) or _FENCED.findall(text)
    return "\n\n".join(part.strip() for part in found).strip()


def called_in(code: str) -> tuple[str, str]:
    """The one tool that the code calls, with its arguments by name as JSON; else the interpreter, with the code."""
    try:
        calls = _calls(ast.parse(code)) if len(code) <= _LONGEST else []
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        calls = []
    names = {name for name, _ in calls}
    if len(names) != 1:
        return INTERPRETER, encode({"code": code}).decode()
    name, made = calls[0]
    return name, encode({word.arg: _literal(word.value) for word in made.keywords if word.arg}).decode()


def printed_in(observation: str) -> str:
    """What the code printed, of all that the framework says of its run."""
    if not observation.startswith(_LOGS):
        return observation
    logs = observation.removeprefix(_LOGS)
    return logs.partition(_LAST)[0] or logs


def _calls(tree: ast.Module) -> list[tuple[str, ast.Call]]:
    """The calls of names that neither Python nor the code itself brings."""
    made = set(_OWN)
    found: list[tuple[str, ast.Call]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            made.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            made.update((name.asname or name.name).partition(".")[0] for name in node.names)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            made.add(node.id)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            found.append((node.func.id, node))
    return [(name, call) for name, call in found if name not in made]


def _literal(value: ast.expr) -> Any:
    """A value that is written out; what is worked out is known by how it is written."""
    return value.value if isinstance(value, ast.Constant) and _plain(value.value) else ast.unparse(value)


def _plain(value: object) -> bool:
    return value is None or isinstance(value, str | int | float | bool)
