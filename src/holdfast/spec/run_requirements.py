"""The requirements of a run on a file that loads."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from holdfast.model.scenario import Position
from holdfast.model.spec import Problem, Spec

_START = Position(1, 1)


def find_contract_problems(spec: Spec) -> list[Problem]:
    """Return what a contract run requires: rules, scenarios and something to ask."""
    rules = spec.invariants
    first = (rules[0].position if rules else spec.agent.position) or _START
    problems = []
    if not rules:
        problems.append(
            _build_problem("contract.invariants", "no rules", "add contract: with name and invariants", first)
        )
    if not spec.scenarios:
        hint = "add chaos_matrix: with - name: no-chaos, or use --profile"
        problems.append(_build_problem("chaos_matrix", "no scenarios", hint, first))
    silent = next((rule for rule in rules if not rule.probes), None)
    if not spec.tasks and (silent is not None or not rules):
        what = f"nothing to ask for the rule {silent.id}, which has no probes" if silent else "nothing to ask"
        hint = f"add golden_prompts: or task:, or probes to {silent.id if silent else 'every rule'}"
        problems.append(_build_problem("golden_prompts", what, hint, (silent and silent.position) or first))
    return problems


def _build_problem(path: str, message: str, hint: str, at: Position) -> Problem:
    return Problem(f"a contract needs it: {message}", path, at.line, at.column, hint=hint, code="no-contract")


def reject_unset_variables(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Return the problems as a run sees them: a variable without a value is an error."""
    return tuple(
        replace(p, severity="error", message=f"the variable {p.values[0]} is not set")
        if p.code == "unset-variable"
        else p
        for p in problems
    )


def report_unbuilt(spec: Spec) -> list[Problem]:
    """Return what this release reads and cannot run: a warning, or an error for an unknown name."""
    return [
        Problem(
            u.why if u.mistake else f"{u.why.rstrip('.')}; a run would be refused",
            u.section,
            u.position.line,
            u.position.column,
            hint=u.hint,
            severity="error" if u.mistake else "warning",
            code="not-built",
        )
        for u in spec.unbuilt
    ]
