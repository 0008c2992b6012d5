"""Traits, not names: no module asks for a plug-in by its name, or for a power of one by an attribute.

A name may be written in the plug-in's own file, in the registry, and where Holdfast writes a spec as a user would:
`Injection(plane, target, "down")`, `{"type": "completes"}`, `backend="process"`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast import plugins
from holdfast.model.traits import CheckTraits, FaultTraits

ROOT = Path(__file__).parents[2] / "src"
NAMES = {name for family in plugins.BUILT_IN.values() for name in family}
OWN = {
    (name, ROOT / (path.partition(":")[0].replace(".", "/") + ".py"))
    for family in plugins.BUILT_IN.values()
    for name, path in family.items()
}

OTHER_MEANINGS = {
    "outcomes, endings and states": {"empty", "ending", "error", "killed", "latency", "partial", "timeout"},
    "reasons and limits as providers of models name them": {
        *("content_filter", "context_length", "max_tokens", "overloaded", "permission", "quota", "rate_limit"),
        "server_error",
    },
    "kinds of Failed, ways to fail on a wire": {
        *("garbage", "hang", "malformed_rpc", "read_only", "serialization_failure", "session_lost", "tls_error"),
    },
    "languages, formats and protocols": {"html", "json", "mysql", "postgres", "redis", "sql"},
    "programs of this machine": {"bubblewrap", "docker", "process"},
    "`image:` and `type: external` of a spec's services": {"container", "external"},
    "kinds of mutations, of request changes and of drift": {"custom", "odd_chunks", "stale"},
    "keys of documents and options": {"max_cost", "only_after", "similarity"},
    "plain words in texts": {"down"},
}
"""Names that are words with another meaning, too: of these only a decision about a plug-in is looked for."""
ORDINARY = set().union(*OTHER_MEANINGS.values())
SUBJECTS = {"mode", "modes", "check", "backend", "reporter"}
"""What a decision about a plug-in is made on."""
POWERS = {
    *(field for traits in (FaultTraits, CheckTraits) for field in traits.__struct_fields__),
    *("apply", "configured", "consult", "delay_ms", "disturb", "foresee", "gather", "heal", "lint", "problems"),
    *("rewrite", "tables_read", "traits", "unmet", "watch"),
}
MODULES = sorted(path for path in ROOT.rglob("*.py") if path.name != "plugins.py")


def names_asked_for(path: Path, source: str) -> Iterator[str]:
    """Every place in a module that names a plug-in, and is not about something else."""
    tree = ast.parse(source)
    as_users_write = {id(node) for node in ast.walk(tree) for node in _written_for(node)}
    for node in ast.walk(tree):
        for name in _names_in(node):
            if name not in ORDINARY and id(node) not in as_users_write and (name, path) not in OWN:
                yield f"{node.lineno}: {name}"
        if isinstance(node, ast.Compare) and SUBJECTS & {_word(one) for one in (node.left, *node.comparators)}:
            yield from (f"{node.lineno}: decides by {one}" for inner in ast.walk(node) for one in _names_in(inner))
        if isinstance(node, ast.Match) and _word(node.subject) in SUBJECTS:
            yield f"{node.lineno}: decides by a name"


def powers_looked_for(source: str) -> Iterator[str]:
    """Every look for an attribute that plug-ins declare otherwise."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        asked = [one for argument in node.args for one in _constants(argument)]
        looks = _word(node.func) in ("getattr", "hasattr")
        in_class = isinstance(node.func, ast.Attribute) and _word(node.func.value) in ("vars", "__dict__")
        if (looks or (in_class and _word(node.func) == "get")) and POWERS & set(asked):
            yield f"{node.lineno}: {ast.unparse(node)}"


def _names_in(node: ast.AST) -> list[str]:
    return [one for one in _constants(node) if one in NAMES]


def _constants(node: ast.AST) -> list[str]:
    return [node.value] if isinstance(node, ast.Constant) and isinstance(node.value, str) else []


def _word(node: ast.AST) -> str:
    """The last word of `fault.injection.mode`, `mode`, `vars(plugin)`."""
    if isinstance(node, ast.Call):
        return _word(node.func)
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _written_for(node: ast.AST) -> list[ast.AST]:
    """What stands where a spec names a plug-in."""
    if isinstance(node, ast.Call) and _word(node.func) == "Injection":
        return list(node.args)
    if isinstance(node, ast.keyword) and node.arg == "backend":
        return [node.value]
    if isinstance(node, ast.Dict):
        keys = [key.value if isinstance(key, ast.Constant) else None for key in node.keys]
        return [value for key, value in zip(keys, node.values, strict=True) if key in ("type", "mode")]
    return []


@pytest.mark.slow
def test_no_plug_in_is_asked_for_by_name_and_no_power_by_attribute() -> None:
    found = {path: [*names_asked_for(path, source := path.read_text()), *powers_looked_for(source)] for path in MODULES}
    assert {path.relative_to(ROOT).as_posix(): places for path, places in found.items() if places} == {}


@pytest.mark.parametrize(
    "source",
    [
        'if injection.mode == "down": ...',
        'x = mode in ("slow", "timeout")',
        'LISTED = ("tools_changed", "tool_poisoning")',
        'if rule.check != "latency": ...',
        'shared = backend == "process"',
        'match injection.mode:\n    case "error": ...',
        'if hasattr(check, "gather"): ...',
        'x = getattr(made, "asks_model", False)',
        'x = vars(plugin).get("requires_probes")',
        'x = type(made).__dict__.get("sql_only")',
    ],
)
def test_the_search_finds_what_it_is_for(source: str) -> None:
    assert [*names_asked_for(ROOT / "holdfast/x.py", source), *powers_looked_for(source)]


@pytest.mark.parametrize(
    "source",
    [
        'Injection("tool", "search", "lost_reply")',
        'rule = {"id": "ended", "type": "completes"}',
        'RunOptions(backend="process")',
        'if failed.kind == "hang": ...',
        'x = getattr(value, "content", None)',
    ],
)
def test_the_search_lets_pass_what_is_about_something_else(source: str) -> None:
    assert [*names_asked_for(ROOT / "holdfast/x.py", source), *powers_looked_for(source)] == []


def test_every_ordinary_word_is_a_plug_in_that_something_else_is_called_too() -> None:
    assert ORDINARY <= NAMES
