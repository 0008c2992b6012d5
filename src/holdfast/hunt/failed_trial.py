"""The simpler forms of a failed trial: a shrink reduces the first of them that fails in the same way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from glob import escape
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from holdfast.model.observation import FaultMet
from holdfast.model.scenario import Injection, Scenario, Schedule
from holdfast.model.task import Task
from holdfast.model.trial import Trial
from holdfast.plan.options import FailedTrial

MOST_FIRINGS = 12
"""A fault with a probability that was met more often keeps its probability."""
MOST_TURNS = 5
"""Longer conversations keep all turns: each part of one takes a few trials."""
_CALLS = ("tool", "mcp", "llm", "http")
"""Planes on which each firing of a fault belongs to a call of the agent."""


def list_forms(trial: Trial, ledger: Sequence[FaultMet], first_params: dict[str, Any]) -> tuple[FailedTrial, ...]:
    """Return the forms of the trial: with fewer turns, without its mutation, with the first params, and as it was.

    In all but the last, faults strike exactly the calls at which they were met.
    """
    placed = Scenario(trial.scenario.name, tuple(_place_faults(trial.scenario, ledger)))
    every = tuple(replace(one, schedule=_count_from_start(one.schedule)) for one in trial.scenario.injections)
    forms = [
        FailedTrial(placed, task, params)
        for task in (*_list_simpler_tasks(trial.task), trial.task)
        for params in (first_params, trial.params)
    ]
    forms.append(FailedTrial(Scenario(trial.scenario.name, every), trial.task, trial.params))
    return tuple(one for number, one in enumerate(forms) if one not in forms[:number])


def _list_simpler_tasks(task: Task) -> Iterator[Task]:
    """Yield the golden prompt behind a mutation: each single turn, each two turns in a row, and so on."""
    if task.recording is not UNSET or task.context is not UNSET:
        return
    plain = task.plain
    turns = plain.turns if len(plain.turns) <= MOST_TURNS else ()
    for count in range(1, len(turns)):
        yield from (replace(plain, turns=turns[at : at + count]) for at in range(len(turns) - count + 1))
    yield plain


def _place_faults(scenario: Scenario, ledger: Sequence[FaultMet]) -> Iterator[Injection]:
    """Yield the faults that were met, at the calls at which they were.

    Random draws belong to a replica and a prompt, so a fault with a probability would strike other calls in the next
    trial. It becomes one fault for each call.
    """
    for index, injection in enumerate(scenario.injections):
        met = [one for one in ledger if one.index == index and one.effect == "met"]
        plan = injection.schedule
        if not met:
            continue
        if injection.plane not in _CALLS or plan.on_call or plan.after_event:
            yield injection
        elif plan.probability >= 1.0:
            yield _name_target(injection, met, replace(_count_from_start(plan), times=len(met)))
        elif len(met) > MOST_FIRINGS:
            yield replace(injection, schedule=_count_from_start(plan))
        else:
            for one in met:
                if _is_named(injection):
                    yield replace(injection, target=escape(one.target), schedule=Schedule(on_call=one.call))
                else:
                    yield replace(injection, schedule=Schedule(on_call=one.nth, count=plan.count, match=plan.match))


def _is_named(injection: Injection) -> bool:
    """Whether the ledger's target and number of a call place the fault at just that call."""
    return injection.plane in ("tool", "mcp") and not injection.match_url and not injection.schedule.match


def _name_target(injection: Injection, met: Iterable[FaultMet], plan: Schedule) -> Injection:
    """Return the fault with the name of the only tool that it struck, instead of a pattern."""
    targets = {one.target for one in met}
    if len(targets) > 1 or not _is_named(injection) or plan.every:
        return replace(injection, schedule=plan)
    # The calls of the one tool are numbered from the first that was struck.
    after = min(one.call for one in met) - 1
    return replace(injection, target=escape(targets.pop()), schedule=replace(plan, after_calls=after))


def _count_from_start(plan: Schedule) -> Schedule:
    """Return the schedule as a hunt writes it: a fault without a first call strikes from the first one on."""
    return plan if plan.on_call or plan.after_event else replace(plan, after_calls=plan.after_calls or 0)
