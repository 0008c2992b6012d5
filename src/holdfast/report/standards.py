"""Which public lists know what a run did: the ids of attacks, checks and mutations, for every report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from holdfast.model.observation import FaultMet
from holdfast.model.run import Run
from holdfast.model.score import Case
from holdfast.model.standards import Mapped, StandardEntry, standards_of, standards_of_all
from holdfast.report.case_causes import CaseCause
from holdfast.report.cases import telling as replica_telling
from holdfast.report.causes import Cause
from holdfast.report.wording import telling


def of_run(run: Run) -> tuple[StandardEntry, ...]:
    """All that its scenarios, rules and mutations stand for."""
    return standards_of_all(_things(run))


def _things(run: Run) -> Iterator[tuple[Mapped, str]]:
    yield from (("fault", injection.mode) for scenario in run.scenarios for injection in scenario.injections)
    yield from (("check", rule.check) for rule in run.invariants)
    yield from (("mutation", one.type) for one in (run.score.mutation.types if run.score.mutation else ()))


def of_scenario(run: Run, scenario: str) -> tuple[StandardEntry, ...]:
    """What the faults of a scenario stand for."""
    found = next((one for one in run.scenarios if one.name == scenario), None)
    return standards_of_all(("fault", one.mode) for one in (found.injections if found else ()))


def of_rule(run: Run, rule: str) -> tuple[StandardEntry, ...]:
    """What a rule's check looks for."""
    found = next((one for one in run.invariants if one.id == rule), None)
    return standards_of("check", found.check) if found else ()


def of_case(case: Case) -> tuple[StandardEntry, ...]:
    """What the mutation of a case stands for."""
    return standards_of("mutation", case.variation.mutation) if case.variation is not None else ()


def of_faults(faults: Iterable[FaultMet]) -> tuple[StandardEntry, ...]:
    return standards_of_all(("fault", met.mode) for met in faults)


def of_cause(run: Run, cause: Cause) -> tuple[StandardEntry, ...]:
    """What the rules of a cause look for, and the faults under which any of its cells did not hold."""
    trial = telling(cause.first)
    met = of_faults(one for one in trial.faults if one.effect == "met") if trial is not None else ()
    modes = standards_of_all(("fault", name.mode) for faults, _ in cause.faults for name in faults)
    return tuple(dict.fromkeys((*(one for rule in cause.rules for one in of_rule(run, rule)), *met, *modes)))


def of_case_cause(cause: CaseCause) -> tuple[StandardEntry, ...]:
    """The mutations of all its cases, and what was met in the trial that tells of them."""
    one = replica_telling(cause.first)
    found = [entry for row in cause.members for entry in of_case(row.case)]
    return tuple(dict.fromkeys((*found, *(of_faults(one.seen.met) if one is not None else ()))))


def names(found: Iterable[StandardEntry]) -> str:
    """`ASI01 Agent Goal Hijack; LLM01:2025 Prompt Injection`."""
    return "; ".join(dict.fromkeys(map(str, found)))


def ids(found: Iterable[StandardEntry]) -> list[str]:
    return [one.id for one in found]


def entries(found: Iterable[StandardEntry]) -> list[dict[str, Any]]:
    """The entries as JSON has them."""
    return [{"id": one.id, "title": one.title, "list": one.list, "url": one.url} for one in found]
