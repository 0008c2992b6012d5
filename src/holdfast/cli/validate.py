"""holdfast validate: checks a file and reports every problem."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import click
from msgspec.structs import replace

from holdfast.agents.http.request import build_request_form
from holdfast.agents.python.source_check import find_source_problems
from holdfast.cli import options as shared
from holdfast.cli.screen import print_document, show_problems
from holdfast.errors import AgentMisconfigured, UserError
from holdfast.folders import find_config
from holdfast.model.codec import to_builtins
from holdfast.model.scenario import Position
from holdfast.model.shorten import shorten
from holdfast.model.spec import Part, Problem, Spec
from holdfast.replay.derived_spec import build_spec
from holdfast.replay.session_list import list_sessions
from holdfast.report.wording import format_count
from holdfast.runner.consultations import check_judges, check_users
from holdfast.secrets.values import resolve_secrets
from holdfast.spec import CheckResult, LoadOptions, check, find_contract_problems
from holdfast.spec.explain import find_key_position, report_unbuilt
from holdfast.spec.references import find_names


@click.command(name="validate")
@shared.add_config
@shared.as_json
def command(config: Path | None, as_json: bool) -> int:
    """Check a spec file; run nothing.

    \b
      holdfast validate
      holdfast validate specs/renewal.yaml --json
    """

    return check_file(find_config(config), as_json=as_json, contract=False)


def check_file(path: Path, *, as_json: bool, contract: bool) -> int:
    """Return 0 if the file can be used, otherwise 4. Warnings are printed and do not change the exit code."""
    checked = _check_contract(path) if contract else _check_undeclared(path)
    spec = checked.spec
    problems = [*checked.problems]
    if spec is not None:  # what a run would refuse, as far as that can be known without running anything
        problems += [*report_unbuilt(spec), *_check_references(spec)]
        problems += [*_find_missing_fields(spec), *_find_missing_values(spec), *_find_unjudged_sessions(spec)]
    wrong = any(p.severity == "error" for p in problems)
    if as_json:
        return _print_json(path, problems, wrong)
    if problems:
        show_problems(str(path), checked.source, problems, as_json=False, ran=not wrong)
    if wrong or spec is None:
        return 4
    print(f"{path}: {_format_size(spec)}. It is valid.")
    return 0


def _find_missing_fields(spec: Spec) -> Iterator[Problem]:
    """Yield the first prompt that lacks a field of the HTTP request."""
    agent = spec.agent
    texts = (agent.request_template or "", *agent.query_params, *agent.query_params.values())
    if agent.type != "http" or any(find_names(text).has_references for text in texts):
        return
    form = build_request_form(replace(agent, endpoint="http://127.0.0.1/", headers={}))
    key = "agent.request_template" if agent.request_template else "agent.query_params"
    for prompt in dict.fromkeys(turn for task in spec.tasks for turn in task.turns):
        try:
            form.fill(prompt, prompt)
        except AgentMisconfigured as unknown:
            message = f"{unknown}: {shorten(prompt, 60)!r}"
            yield _build_problem(spec, key, message, unknown.hint, "unknown-field")
            return


def _find_missing_values(spec: Spec) -> Iterator[Problem]:
    """Yield a warning for each secret and model without a usable value or key here. No secret's command is run."""
    root = Path(spec.path).resolve().parent
    trusted = root.is_relative_to(Path.cwd())
    tries: list[tuple[str, Callable[[], object]]] = [
        ("models", lambda: check_judges(spec, spec.invariants, os.environ)),
        ("models", lambda: check_users(spec, os.environ)),
    ]
    for number, secret in enumerate(spec.world.secrets if spec.world else ()):
        kind = secret.source.partition(":")[0]
        if kind == "file" or (kind == "command" and not trusted):
            resolve = partial(resolve_secrets, [secret], os.environ, root, spec.seed, commands=False)
            tries.append((f"secrets[{number}]", resolve))
    for key, attempt in tries:
        try:
            attempt()
        except UserError as wrong:
            problem = _build_problem(spec, key, f"{wrong}; a run would be refused", wrong.hint, "run-refused")
            yield replace(problem, severity="warning", ignored="run-refused" in spec.ignored_warnings)


def _find_unjudged_sessions(spec: Spec) -> Iterator[Problem]:
    """Yield the first session that would pass whatever the agent does. Nothing is fetched."""
    if "replay" not in spec.declares:
        return
    replayed = check(Path(spec.path), environ=os.environ, options=LoadOptions(part="replay")).spec
    if replayed is None or replayed.replays is None:
        return
    recorded = replace(replayed, replays=replace(replayed.replays, sources=()))
    try:
        build_spec(recorded, list_sessions(recorded, os.environ, datetime.now(UTC)).sessions, live=False)
    except UserError as wrong:
        yield _build_problem(spec, "replays", str(wrong), wrong.hint, wrong.code)


def _build_problem(spec: Spec, key: str, message: str, hint: str, code: str) -> Problem:
    at = find_key_position(spec, key) or Position(1, 1)
    return Problem(message, key, at.line, at.column, hint=hint, code=code)


def _check_references(spec: Spec) -> list[Problem]:
    """Report references to code that cannot work, or probably cannot. The code is read, not run."""
    problems = []
    for one in find_source_problems(spec.agent, Path(spec.path).resolve().parent):
        problem = _build_problem(spec, one.key, one.message, one.hint, "bad-reference")
        problem = replace(problem, suggestion=one.suggestion)
        if not one.certain:
            ignored = "lint-reference" in spec.ignored_warnings
            problem = replace(problem, code="lint-reference", severity="warning", ignored=ignored)
        problems.append(problem)
    return problems


def _check_contract(path: Path) -> CheckResult:
    """Check the file as `contract run` would."""
    checked = check(path, environ=os.environ)
    missing = find_contract_problems(checked.spec) if checked.spec else []
    return replace(checked, spec=None, problems=(*checked.problems, *missing)) if missing else checked


def _check_undeclared(path: Path) -> CheckResult:
    """Check the file for each command that could run it. If none can, return the problems of the likelier one."""
    loaded = check(path, environ=os.environ)
    if loaded.spec is not None and loaded.spec.declares:
        return _add_other_commands(path, loaded, _check_parts(path, loaded.spec.declares))
    if loaded.spec is None or not (missing := find_contract_problems(loaded.spec)):
        return loaded
    scenario = check(path, environ=os.environ, options=LoadOptions(part="scenario"))
    if scenario.spec is not None or any(task.kind == "task" for task in loaded.spec.tasks):
        return scenario
    return replace(loaded, spec=None, problems=(*loaded.problems, *missing))


def _add_other_commands(path: Path, loaded: CheckResult, checked: CheckResult) -> CheckResult:
    """Add, as warnings, why `run` or `contract run` would refuse a file with sections for it that others run."""
    assert loaded.spec is not None
    declared, refused = loaded.spec.declares, list[Problem]()
    if "task" in loaded.keys and "scenario" not in declared:
        scenario = check(path, environ=os.environ, options=LoadOptions(part="scenario"))
        refused += [one for one in scenario.problems if one.severity == "error"]
    if loaded.keys & {"contract", "chaos_matrix"} and "contract" not in declared:
        refused += find_contract_problems(loaded.spec)
    known = {(one.path, one.code) for one in checked.problems}
    warnings = (replace(one, severity="warning") for one in refused if (one.path, one.code) not in known)
    problems = sorted((*checked.problems, *warnings), key=lambda one: (one.line, one.column))
    return replace(checked, problems=tuple(problems))


def _check_parts(path: Path, parts: Sequence[Part]) -> CheckResult:
    """Check every part that the file configures, and collect the problems of all."""
    every = [check(path, environ=os.environ, options=LoadOptions(part=part)) for part in parts]
    if len(every) > 1 and every[0].spec is None and parts[0] == "scenario" and every[1].spec is not None:
        # Its matrix is run by `contract run`, which needs less: what `run` would refuse is only a warning.
        refused = tuple(replace(problem, severity="warning") for problem in every[0].problems)
        every = [replace(every[1], problems=(*refused, *every[1].problems)), *every[2:]]
    problems = tuple(dict.fromkeys(problem for one in every for problem in one.problems))
    # What is an error for one part may be a warning for another: then only the error is shown.
    wrong = {(p.path, p.line, p.code) for p in problems if p.severity == "error"}
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
