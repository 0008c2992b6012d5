"""Specs of mutations and sessions, and what trials of them came to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.model.observation import FaultMet, Observation, Turn
from holdfast.model.scenario import Injection, Scenario
from holdfast.model.score import Case, Score
from holdfast.model.spec import AgentSpec, Invariant, Spec
from holdfast.model.task import RecordedUse, Task, Variation
from holdfast.model.verdict import Verdict
from holdfast.plan import build_plan
from holdfast.score import ScoreOptions, Tally
from holdfast.score.task_score import score_tasks

CANARY = "HOLDFAST-CANARY-12345678"
OUTCOMES = {"p": "pass", "f": "fail", "e": "error", "u": "unproven", "o": "pass"}
CALM = Scenario("calm")
STORM = Scenario("storm", injections=(Injection("tool", "x", "error"),))


def mutation(name: str = "noise", *, attack: bool = False, weight: float = 1.0, n: int = 0) -> Task:
    made = Variation(name, "prompt", attack=attack, weight=weight, canaries=(CANARY,) if attack else ())
    return Task((f"{name} {n}",), "mutation", made)


def mutation_spec(tasks: Sequence[Task], **changes: Any) -> Spec:
    settings = {"invariants": (Invariant("held", "output_not_empty"),), "scenarios": (CALM,), **changes}
    return Spec("spec.yaml", AgentSpec(), tasks=tuple(tasks), part="mutation", **settings)


def tallied(spec: Spec, outcomes: Sequence[str], *, met: bool = True, recorded: tuple[RecordedUse, ...] = ()) -> Tally:
    """Trials in plan order that passed (p), failed (f), broke (e), proved nothing (u) or obeyed (o)."""
    made = build_plan(spec)
    tally = Tally(spec, made)
    for trial, sign in reversed(list(zip(made.trials, "".join(outcomes), strict=False))):  # any order
        storm = trial.scenario.name == "storm" and met
        ledger = (FaultMet(0, "error", "tool", "x", 1),) if storm else ()
        turns = (Turn("?", CANARY if sign == "o" else "fine"),)
        seen = Observation(trial.id, turns, ledger=ledger, recorded=recorded)
        verdicts = [
            Verdict(trial.id, rule.id, OUTCOMES[sign], float(sign == "p"), f"because {sign}")  # type: ignore[arg-type]
            for rule in made.get_rules(trial)
        ]
        tally.add_trial(trial, seen, verdicts)
    return tally


def cases_of(spec: Spec, outcomes: Sequence[str], *, met: bool = True) -> list[Case]:
    return list(tallied(spec, outcomes, met=met).cases.iter_cases())


def scored(spec: Spec, outcomes: Sequence[str], **options: Any) -> Score:
    tally = tallied(spec, outcomes)
    return score_tasks(spec, tuple(tally.cases.iter_cases()), tally, ScoreOptions(**options))
