"""Every finding has a code, every code is documented, and nothing documents one that no finding has."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import holdfast
from holdfast.model.run_warning import STATEFUL, WARNINGS
from holdfast.model.verdict import CODES
from holdfast.protocols.check import CodesTrait
from holdfast.spec.catalogue.editors import checks

SRC = Path(holdfast.__file__).parent
CHECK_CODES = {code for _, check in checks() if isinstance(check, CodesTrait) for code in check.codes}
_POSITION = 2
"""Of the code among the arguments of a finding."""


def findings() -> Iterator[tuple[str, ast.Call]]:
    for file in sorted(SRC.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Finding":
                yield f"{file.relative_to(SRC)}:{node.lineno}", node


def code_of(call: ast.Call) -> ast.expr | None:
    given = [keyword.value for keyword in call.keywords if keyword.arg == "code"]
    return given[0] if given else call.args[_POSITION] if len(call.args) > _POSITION else None


def test_every_finding_of_ours_has_a_code_that_is_documented() -> None:
    found = [(place, code_of(call)) for place, call in findings()]
    assert len(found) > 100
    assert [place for place, code in found if code is None] == []
    literal = {(place, code.value) for place, code in found if isinstance(code, ast.Constant)}
    assert sorted(one for one in literal if one[1] not in {*CODES, *CHECK_CODES}) == []


def test_every_check_of_ours_lists_its_codes() -> None:
    ours = [(name, check) for name, check in checks() if check.__module__.startswith("holdfast.")]
    assert [name for name, check in ours if not isinstance(check, CodesTrait)] == []


def test_every_documented_code_is_given_somewhere() -> None:
    source = "".join(file.read_text() for file in SRC.rglob("*.py"))
    meanings = [*CODES, *CHECK_CODES]
    # Once where it is documented, and once where it is given; rows-above is put together from its parts.
    idle = [code for code in meanings if source.count(f'"{code}"') < 2 and not code.startswith("rows-")]
    assert idle == []


def test_every_warning_of_a_run_has_a_documented_code_and_every_code_is_given() -> None:
    """`RunWarning(code, …)` and `warn(code, …)`; a warning about the spec file has its problem's code."""
    found = set()
    for file in sorted(SRC.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute) and node.args:
                name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
                code = node.args[0]
                if name in ("RunWarning", "warn") and isinstance(code, ast.Constant):
                    found.add(code.value)
                elif name == "warn" and isinstance(code, ast.Name) and code.id == "STATEFUL":
                    found.add(STATEFUL)
    assert found == set(WARNINGS)
