"""holdfast validate: checks a file and reports every problem."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import click
from msgspec.structs import replace

from holdfast.agents.python.source_check import find_source_problems
from holdfast.api.config_file import find_config
from holdfast.cli import options as shared
from holdfast.cli.screen import print_document, show_problems
from holdfast.model.codec import to_builtins
from holdfast.model.scenario import Position
from holdfast.model.spec import Part, Problem, Spec
from holdfast.report.wording import format_count
from holdfast.spec import CheckResult, LoadOptions, check, find_contract_problems
from holdfast.spec.explain import find_key_position, report_unbuilt


@click.command(name="validate")
@shared.add_config
@shared.as_json
def command(config: Path | None, as_json: bool) -> int:
    """Check a spec of either spelling; run nothing.

    \b
      holdfast validate
      holdfast validate specs/renewal.yaml --json
    """

    return check_file(find_config(config), as_json=as_json, contract=False)


def check_file(path: Path, *, as_json: bool, contract: bool) -> int:
    """Return 0 if the file can be used, otherwise 4. Warnings are printed and do not change the exit code."""
    checked = _check_contract(path) if contract else _check_undeclared(path)
    spec = checked.spec
    problems = [*checked.problems, *([*report_unbuilt(spec), *_check_references(spec)] if spec else ())]
    wrong = any(p.severity == "error" for p in problems)
    if as_json:
        return _print_json(path, problems, wrong)
    if problems:
        show_problems(str(path), checked.source, problems, as_json=False, ran=not wrong)
    if wrong or spec is None:
        return 4
    print(f"{path}: {_format_size(spec)}. It is valid.")
    return 0


def _check_references(spec: Spec) -> list[Problem]:
    """Report references to code that cannot work, or probably cannot. The code is read, not run."""
    problems = []
    for one in find_source_problems(spec.agent, Path(spec.path).resolve().parent):
        at = find_key_position(spec, one.key) or Position(1, 1)
        problem = Problem(
            one.message, one.key, at.line, at.column, hint=one.hint, code="bad-reference", suggestion=one.suggestion
        )
        if not one.certain:
            ignored = "lint-reference" in spec.ignored_warnings
            problem = replace(problem, code="lint-reference", severity="warning", ignored=ignored)
        problems.append(problem)
    return problems


def _check_contract(path: Path) -> CheckResult:
    """Check the file as `contract run` would."""
    checked = check(path, environ=os.environ)
    lacking = find_contract_problems(checked.spec) if checked.spec else []
    return replace(checked, spec=None, problems=(*checked.problems, *lacking)) if lacking else checked


def _check_undeclared(path: Path) -> CheckResult:
    """Check the file for each command that could run it. If none can, return the problems of the likelier one."""
    loaded = check(path, environ=os.environ)
    if loaded.spec is not None and loaded.spec.declares:
        return _check_parts(path, loaded.spec.declares)
    if loaded.spec is None or not (lacking := find_contract_problems(loaded.spec)):
        return loaded
    scenario = check(path, environ=os.environ, options=LoadOptions(part="scenario"))
    if scenario.spec is not None or any(task.kind == "task" for task in loaded.spec.tasks):
        return scenario
    return replace(loaded, spec=None, problems=(*loaded.problems, *lacking))


def _check_parts(path: Path, parts: Sequence[Part]) -> CheckResult:
    """Check every part that the file configures, and collect the problems of all."""
    every = [check(path, environ=os.environ, options=LoadOptions(part=part)) for part in parts]
    if len(every) > 1 and every[0].spec is None and parts[0] == "scenario" and every[1].spec is not None:
        # Its matrix is run by `contract run`, which needs less: what `run` would refuse is told, and changes nothing.
        refused = tuple(replace(problem, severity="warning") for problem in every[0].problems)
        every = [replace(every[1], problems=(*refused, *every[1].problems)), *every[2:]]
    problems = tuple(dict.fromkeys(problem for one in every for problem in one.problems))
    wrong = {(p.path, p.line, p.code) for p in problems if p.severity == "error"}  # a warning to the other parts
    problems = tuple(p for p in problems if p.severity == "error" or (p.path, p.line, p.code) not in wrong)
    problems = tuple(sorted(problems, key=lambda problem: (problem.line, problem.column)))
    broken = any(one.spec is None for one in every)
    return replace(every[0], spec=None if broken else every[0].spec, problems=problems)


def _format_size(spec: Spec) -> str:
    probes = {probe for rule in spec.invariants for probe in rule.probes}
    counts = (
        (len(spec.invariants), "rule"),
        (len(spec.scenarios), "scenario"),
        (len(spec.tasks) + len(probes), "prompt"),
    )
    return ", ".join(format_count(count, noun) for count, noun in counts)


def _print_json(path: Path, problems: Sequence[Problem], wrong: bool) -> int:
    entries = [to_builtins(p) for p in problems]
    document = {
        "file": str(path),
        "valid": not wrong,
        "exit_code": 4 if wrong else 0,
        "errors": [p for p in entries if p.get("severity", "error") == "error"],
        "warnings": [p for p in entries if p.get("severity") == "warning"],
    }
    print_document(document)
    return 4 if wrong else 0
