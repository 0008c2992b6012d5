"""Every finding has a code, every code is documented, and nothing documents one that no finding has."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import holdfast
from holdfast.model.codes import STATEFUL, load_codes
from holdfast.plugins import list_plugins
from holdfast.protocols.check import CodesTrait

pytestmark = pytest.mark.slow  # each reads the whole source
SRC = Path(holdfast.__file__).parent
CHECK_CODES = {code for _, check in list_plugins("checks") if isinstance(check, CodesTrait) for code in check.codes}
CODES, WARNINGS, NOTES, ERROR_CODES, PROBLEM_CODES, DOCTOR_CODES = (
    load_codes()[name].codes for name in ("findings", "warnings", "notes", "errors", "problems", "doctor")
)
_POSITION = 2
"""Of the code among the arguments of a finding."""


@cache
def list_nodes() -> list[tuple[Path, ast.Call | ast.ClassDef]]:
    """Every call and every class of the product, with its file."""
    return [
        (file.relative_to(SRC), node)
        for file in sorted(SRC.rglob("*.py"))
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Call | ast.ClassDef)
    ]


def calls_of(*names: str) -> Iterator[tuple[Path, ast.Call]]:
    """Every call of a function, method or class by one of these names in the product."""
    return ((file, node) for file, node in list_nodes() if isinstance(node, ast.Call) and name_of(node) in names)


def code_of(call: ast.Call) -> ast.expr | None:
    given = [keyword.value for keyword in call.keywords if keyword.arg == "code"]
    return given[0] if given else call.args[_POSITION] if len(call.args) > _POSITION else None


def test_every_finding_of_ours_has_a_code_that_is_documented() -> None:
    found = [(f"{file}:{call.lineno}", code_of(call)) for file, call in calls_of("Finding")]
    assert len(found) > 100
    assert [place for place, code in found if code is None] == []
    literal = {(place, code.value) for place, code in found if isinstance(code, ast.Constant)}
    assert sorted(one for one in literal if one[1] not in {*CODES, *CHECK_CODES}) == []


def test_every_check_of_ours_lists_its_codes() -> None:
    ours = [(name, check) for name, check in list_plugins("checks") if check.__module__.startswith("holdfast.")]
    assert [name for name, check in ours if not isinstance(check, CodesTrait)] == []


def test_every_documented_code_is_given_somewhere() -> None:
    source = "".join(file.read_text() for file in SRC.rglob("*.py"))
    meanings = [*CODES, *CHECK_CODES]
    # A check documents its codes in its own file, so they occur there twice; rows-above is put together from its parts.
    idle = [code for code in meanings if source.count(f'"{code}"') <= (code in CHECK_CODES) and code[:5] != "rows-"]
    assert idle == []


def test_every_warning_of_a_run_has_a_documented_code_and_every_code_is_given() -> None:
    """`RunWarning(code, …)` and `warn(code, …)`; a warning about the spec file has its problem's code."""
    codes = [call.args[0] for _, call in calls_of("RunWarning", "warn") if call.args]
    found = {code.value for code in codes if isinstance(code, ast.Constant)}
    found |= {STATEFUL for code in codes if isinstance(code, ast.Name) and code.id == "STATEFUL"}
    assert found == set(WARNINGS)


def test_every_note_of_a_run_has_a_documented_code_and_every_code_is_given() -> None:
    source = "".join(file.read_text() for file in sorted(SRC.rglob("*.py")))
    given = set(re.findall(r'(?:RunNote|log\.note|notes\.append)\(\(?\s*"([a-z-]+)"', source))
    assert given == set(NOTES)


CODELESS = {"InjectedError", "InjectedConnectionError"}
"""What a faulted function raises in the agent. Every other error has a code, from its `raise` or from its class."""


def error_classes() -> dict[str, ast.ClassDef]:
    """Every class of the product that is a HoldfastError, by name."""
    classes = [node for _, node in list_nodes() if isinstance(node, ast.ClassDef)]
    errors: dict[str, ast.ClassDef] = {}
    size = -1
    while size < len(errors):
        size = len(errors)
        errors |= {
            one.name: one
            for one in classes
            if one.name == "HoldfastError"
            or any(isinstance(base, ast.Name) and base.id in errors for base in one.bases)
        }
    return errors


def default_code_of(name: str, errors: dict[str, ast.ClassDef]) -> str:
    """The code that errors of the class have if its `raise` names none: its own, or that of its base class."""
    for node in ast.walk(errors[name]):
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "default_code":
            return str(ast.literal_eval(node.value))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "super().__init__":
            given = keyword(node, "code")
            if isinstance(given, ast.Constant):
                return str(given.value)
    bases = (base.id for base in errors[name].bases if isinstance(base, ast.Name) and base.id in errors)
    return next(filter(None, (default_code_of(base, errors) for base in bases)), "")


def name_of(call: ast.Call) -> str:
    """The name of the function, method or class that is called."""
    if isinstance(call.func, ast.Name):
        return call.func.id
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((one.value for one in call.keywords if one.arg == name), None)


def test_every_deliberate_error_has_a_documented_code() -> None:
    errors = error_classes()
    found = [(file, call, keyword(call, "code")) for file, call in calls_of(*errors.keys() - CODELESS)]
    assert len(found) > 300
    bare = [(file, call) for file, call, code in found if code is None]
    assert [f"{file}:{call.lineno}" for file, call in bare if not default_code_of(name_of(call), errors)] == []
    literal = {(str(file), code.value) for file, _, code in found if isinstance(code, ast.Constant)}
    assert sorted(one for one in literal if one[1] not in {*ERROR_CODES, *CODES}) == []


def test_every_default_code_of_an_error_is_documented() -> None:
    errors = error_classes()
    defaults = {default_code_of(name, errors) for name in errors} - {""}
    assert len(defaults) > 15
    assert sorted(defaults - {*ERROR_CODES}) == []


def test_every_problem_of_a_spec_has_a_documented_code() -> None:
    problems = [(file, call, keyword(call, "code")) for file, call in calls_of("Problem")]
    # The reader gives the code by its place; every other problem names it.
    assert [str(file) for file, _, code in problems if code is None] == ["reading/reader.py"] * 2
    reported = [*problems, *((file, call, keyword(call, "code")) for file, call in calls_of("report_inner"))]
    for file, call in calls_of("report", "report_type", "warn"):
        if isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name | ast.Attribute):
            reported.append((file, call, keyword(call, "code")))
    literal = {(str(file), code.value) for file, _, code in reported if isinstance(code, ast.Constant)}
    assert len(literal) > 100
    assert sorted(one for one in literal if one[1] not in PROBLEM_CODES) == []


def test_every_documented_code_of_a_problem_is_given() -> None:
    source = "".join(file.read_text() for file in SRC.rglob("*.py"))
    assert [code for code in PROBLEM_CODES if f'"{code}"' not in source] == []


def test_every_finding_of_the_doctor_has_a_documented_code_and_every_code_is_given() -> None:
    source = "".join(file.read_text() for file in (SRC / "doctor").glob("*.py"))
    assert [code for code in DOCTOR_CODES if f'"{code}"' not in source] == []
    calls = [call.args[_POSITION] for _, call in calls_of("DoctorFinding")]
    literal = {code.value for code in calls if isinstance(code, ast.Constant)}
    assert literal - set(DOCTOR_CODES) == set()
