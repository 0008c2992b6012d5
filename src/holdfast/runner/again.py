"""Judging a stored run anew: other rules on the same observations, without asking the agent."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from holdfast.errors import UsageError
from holdfast.judge import Judge
from holdfast.model.codec import canonical, encode
from holdfast.model.observation import Observation
from holdfast.model.spec import Invariant, Spec, Task
from holdfast.model.trial import Trial
from holdfast.model.verdict import Verdict
from holdfast.plan import CellKey, Plan, Select
from holdfast.runner.job import Options, refuse_unbuilt, told
from holdfast.runner.outcome import Outcome, conclude
from holdfast.runner.start import stored_spec
from holdfast.score import Tally
from holdfast.store.record import observations, trials
from holdfast.store.rundir import Ended, Lines, RunDir

NOT_RECORDED = "not recorded in this run"

Group = tuple[str, bytes, Task]
"""Scenario, params and task: the trials that asked the same in the same weather."""


class StoredPlan(Plan):
    """A plan whose trials are those that were stored, whatever rule they were made for."""

    whole = False

    def __init__(self, spec: Spec, select: Select, stored: Mapping[str, Trial]) -> None:
        super().__init__(spec, select)
        self.stored: dict[Group, list[Trial]] = defaultdict(list)
        for trial in stored.values():
            if trial.kind == "contract":
                self.stored[_group(trial.scenario, trial.params, trial.task)].append(trial)

    def judged_by(self, rule: Invariant, scenario: str, params: Mapping[str, Any], task: Task) -> list[Trial]:
        """The trials a rule is judged on: its own, those that served every rule, else all that asked the same."""
        alike = self.stored.get(_group(scenario, params, task), [])
        own = [t for t in alike if t.invariant in (rule.id, "*")]
        return own or alike

    def rules(self, trial: Trial) -> tuple[Invariant, ...]:
        """The rules of its scenario that ask what the trial asked, however the run had laid them out."""
        at = next((s.name for s in self.scenarios if s.name == trial.scenario), None)
        if at is None:
            return ()
        params = self.params_index(trial.params)
        asking = [r for r in self.invariants if trial.task in self.tasks(r.id)]
        return tuple(r for r in asking if self.applies(CellKey(r.id, at, params)))

    def asked(self, key: CellKey) -> tuple[int, ...]:
        rule = next(r for r in self.invariants if r.id == key.invariant)
        params = self.spec.params[key.params]
        if not self.applies(key):
            return (0,) * len(self.tasks(rule.id))
        return tuple(max(1, len(self.judged_by(rule, key.scenario, params, task))) for task in self.tasks(rule.id))


def judge_again(run: RunDir, *, config: Path | None, options: Options, environ: Mapping[str, str]) -> Outcome:
    """Judges every stored trial by the rules of the spec; the verdicts become a file of their own."""
    manifest = run.manifest()
    spec, problems = stored_spec(run, manifest, config, environ)
    refuse_unbuilt(spec)
    before = stored_spec(run, manifest, None, environ)[0] if config is not None else spec
    _same_weather(before, spec)
    stored = trials(run)
    plan = StoredPlan(spec, options.select, stored)
    tally = Tally(spec, plan)
    seen = {o.trial: o for o in observations(run)}
    run.lock()
    path = run.verdicts(len(run.verdict_files()) + 1)
    lines = Lines(path.with_suffix(".new"))
    try:
        _judge_all(plan, tally, stored, seen, lines)
    finally:
        lines.close()
        run.unlock()
    path.with_suffix(".new").replace(path)  # whole or not at all
    said = _borrowed(plan, stored)
    known = run.ended()
    if known is None or not known.complete:
        said = (*said, "the run is unfinished; it is judged as far as it goes")
    ended = Ended(True, 0.0, told(spec, problems), said)
    return conclude(run, spec, plan, tally, options, ended=ended, verdicts=path)


def _judge_all(
    plan: StoredPlan, tally: Tally, stored: Mapping[str, Trial], seen: Mapping[str, Observation], lines: Lines
) -> None:
    spec = plan.spec
    judge = Judge(spec, stored=True)
    judged: set[str] = set()
    controls = {t.task: seen[t.id] for t in stored.values() if t.kind == "control" and t.id in seen}
    for key in plan.cells:
        rule = next(r for r in plan.invariants if r.id == key.invariant)
        params = spec.params[key.params]
        for task in plan.tasks(rule.id) if plan.applies(key) else ():
            alike = plan.judged_by(rule, key.scenario, params, task)
            for trial in alike or [Trial("", "contract", key.scenario, task, params=params, invariant=rule.id)]:
                if trial.id in seen:
                    judged.add(trial.id)
                    verdict = judge.judge(rule, trial, seen[trial.id], controls.get(task))
                    lines.write(encode(verdict))
                    tally.add(trial, seen[trial.id], verdict)
                else:
                    missing = Verdict(trial.id, rule.id, "error", 0.0, NOT_RECORDED)
                    tally.add(trial, Observation(trial.id, error=NOT_RECORDED), missing)
    tally.trials = len(judged)  # one trial may serve rules that it was not made for


def _same_weather(before: Spec, now: Spec) -> None:
    """A scenario whose faults changed was never run: its stored trials say nothing about it."""
    old = {s.name: s for s in before.scenarios}
    for scenario in now.scenarios:
        if scenario.name not in old:
            continue
        if canonical(old[scenario.name].content) != canonical(scenario.content):
            raise UsageError(
                f"the faults of scenario {scenario.name!r} changed since the run; its trials met other weather",
                hint="run it anew: holdfast contract run",
            )


def _borrowed(plan: StoredPlan, stored: Mapping[str, Trial]) -> tuple[str, ...]:
    """Says which rules are judged on trials that were made for others."""
    had = {t.invariant for t in stored.values() if t.kind == "contract"}
    if "*" in had:
        return ()
    new = [r.id for r in plan.invariants if r.id not in had]
    if not new:
        return ()
    return (f"{', '.join(new)}: judged on every stored trial of the scenario that asked the same prompts",)


def _group(scenario: str, params: Mapping[str, Any], task: Task) -> Group:
    return scenario, canonical(params), task
