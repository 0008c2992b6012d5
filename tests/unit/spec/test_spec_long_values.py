"""Values that nobody writes: each is an error at once, however long it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.spec import check

SPEC = """
agent: {type: python, endpoint: "bot:ask", tools: ["bot:search"]}
golden_prompts: [one]
contract:
  name: c
  invariants: [{id: answers, type: completes, description: d}]
  chaos_matrix: [{name: calm}, {name: storm, tool_faults: [{tool: search, mode: error}]}]
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"bot:ask"', '"bot:ask", timeout: "' + "1" * 300_000 + '"', "expected a duration"),
        ('"bot:ask"', '"bot:ask", timeout: "' + "1." * 300_000 + 's"', "expected a duration"),
        ("tool: search", "tool: '" + "[" * 5_000 + "'", "expected at most 1000 characters"),
        ('"bot:ask"', '"' + "/" * 300_000 + ':ask"', "expected module:attribute"),
        ('"bot:ask"', '"' + "/" * 300_000 + '"', "expected module:attribute"),
        ("golden_prompts", "resources: {disk: '" + "9" * 400 + "'}\ngolden_prompts", "expected a size"),
        ("golden_prompts", "resources: {disk: '9999999999Ti'}\ngolden_prompts", "expected a size"),
    ],
    ids=["digits", "dots", "glob", "module", "path", "size", "unit"],
)
def test_a_value_of_any_length_is_looked_at_once(tmp_path: Path, old: str, new: str, message: str) -> None:
    (tmp_path / "bot.py").write_text("def ask(p): return p\ndef search(q): return q\n")
    path = tmp_path / "spec.yaml"
    path.write_text(SPEC)
    assert check(path, environ={}).spec is not None
    path.write_text(SPEC.replace(old, new))
    assert any(message in problem.message for problem in check(path, environ={}).problems)
