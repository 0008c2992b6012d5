"""The entries of public risk lists for a run's attacks, checks and mutations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, get_args

from holdfast import plugins
from holdfast.model.observation import FaultMet
from holdfast.model.run import Run
from holdfast.model.scenario import Plane
from holdfast.model.score import Case
from holdfast.model.standards import MUTATIONS, StandardEntry, find_entries
from holdfast.report.cases import find_telling as replica_telling
from holdfast.report.causes.case_causes import CaseCause
from holdfast.report.causes.cell_causes import Cause
from holdfast.report.wording import find_telling


def list_for_run(run: Run) -> tuple[StandardEntry, ...]:
    """Return the entries for all its scenarios, rules and mutations."""
    return tuple(dict.fromkeys(_iterate_run(run)))


def _iterate_run(run: Run) -> Iterator[StandardEntry]:
    for scenario in run.scenarios:
        yield from list_for_modes(injection.mode for injection in scenario.injections)
    for rule in run.invariants:
        yield from list_for_rule(run, rule.id)
    for one in run.score.mutation.types if run.score.mutation else ():
        yield from find_entries(MUTATIONS.get(one.type, ()))


def list_for_modes(modes: Iterable[str]) -> tuple[StandardEntry, ...]:
    """Return the entries for faults, without repeats. A ledger does not record the plane of a fault's declaration."""
    return tuple(dict.fromkeys(entry for mode in modes for entry in _list_for_mode(mode)))


@cache
def _list_for_mode(mode: str) -> tuple[StandardEntry, ...]:
    # Looking up installed faults takes a while, and most runs have none.
    own = [plane for plane in get_args(Plane) if mode in plugins.BUILT_IN[f"faults.{plane}"]]
    return find_entries(
        id for plane in own or get_args(Plane) for id in plugins.get_fault_traits(plane, mode).standards
    )


def list_for_scenario(run: Run, scenario: str) -> tuple[StandardEntry, ...]:
    """Return the entries for the faults of a scenario."""
    match = next((one for one in run.scenarios if one.name == scenario), None)
    return list_for_modes(one.mode for one in (match.injections if match else ()))


def list_for_rule(run: Run, rule: str) -> tuple[StandardEntry, ...]:
    """Return the entries for a rule's check."""
    match = next((one for one in run.invariants if one.id == rule), None)
    check = plugins.find("checks", match.check) if match else None
    return find_entries(check.traits.standards) if check is not None else ()


def list_for_case(case: Case) -> tuple[StandardEntry, ...]:
    """Return the entries for the mutation of a case."""
    return find_entries(MUTATIONS.get(case.variation.mutation, ())) if case.variation is not None else ()


def list_for_faults(faults: Iterable[FaultMet]) -> tuple[StandardEntry, ...]:
    return list_for_modes(met.mode for met in faults)


def list_for_cause(run: Run, cause: Cause) -> tuple[StandardEntry, ...]:
    """Return the entries for the rules of a cause, and for the faults of its cells."""
    trial = find_telling(cause.first)
    met = list_for_faults(one for one in trial.faults if one.effect == "met") if trial is not None else ()
    modes = list_for_modes(name.mode for faults, _ in cause.faults for name in faults)
    return tuple(dict.fromkeys((*(one for rule in cause.rules for one in list_for_rule(run, rule)), *met, *modes)))


def list_for_case_cause(cause: CaseCause) -> tuple[StandardEntry, ...]:
    """Return the entries for the mutations of all its cases, and for the faults met in its most telling trial."""
    one = replica_telling(cause.first)
    mutations = [entry for row in cause.members for entry in list_for_case(row.case)]
    return tuple(dict.fromkeys((*mutations, *(list_for_faults(one.seen.met) if one is not None else ()))))


def format_names(standards: Iterable[StandardEntry]) -> str:
    """`ASI01 Agent Goal Hijack; LLM01:2025 Prompt Injection`."""
    return "; ".join(dict.fromkeys(map(str, standards)))


def list_ids(standards: Iterable[StandardEntry]) -> list[str]:
    return [one.id for one in standards]


def build_entries(standards: Iterable[StandardEntry]) -> list[dict[str, Any]]:
    """Return the entries as JSON."""
    return [{"id": one.id, "title": one.title, "list": one.list, "url": one.url} for one in standards]
