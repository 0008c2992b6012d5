"""Judging a stored run anew: other rules on the same observations, without asking the agent."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from holdfast.errors import UsageError
from holdfast.judge import Judge
from holdfast.model.codec import canonical, encode
from holdfast.model.observation import Observation
from holdfast.model.spec import Invariant, Spec, Task
from holdfast.model.trial import Trial
from holdfast.model.verdict import Verdict
from holdfast.plan import CellKey, Plan, Select
from holdfast.runner.consultations import Consultations
from holdfast.runner.job import RunOptions, refuse_unbuilt, told
from holdfast.runner.outcome import Outcome, conclude
from holdfast.runner.start import stored_options, stored_spec
from holdfast.runner.stored_consultations import Hearing, Pair, hearing
from holdfast.score import Tally
from holdfast.store.audits import whole
from holdfast.store.consulted import StoredAdvice
from holdfast.store.lines import JsonLines
from holdfast.store.record import observations, trials
from holdfast.store.rundir import Manifest, RunDir, RunEnd, number_of
from holdfast.store.seal_check import check

NOT_RECORDED = "not recorded in this run"

Group = tuple[str, bytes, Task]
"""Scenario, params and task: the trials that asked the same in the same weather."""


class StoredPlan(Plan):
    """A plan whose trials are those that were stored, whatever rule they were made for."""

    whole = False

    def __init__(self, spec: Spec, select: Select, stored: Mapping[str, Trial], replicas: int) -> None:
        super().__init__(spec, select)
        self._replicas = replicas
        """That the run was to have: those it never came to are missing, not left out."""
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
        if all(s.name != trial.scenario for s in self.scenarios):
            return ()
        params = self.params_index(trial.params)
        asking = [r for r in self.invariants if trial.task in self.tasks(r.id)]
        return tuple(r for r in asking if self.applies(CellKey(r.id, trial.scenario, params)))

    def asked(self, key: CellKey) -> tuple[int, ...]:
        rule, params = self.spec.invariant(key.invariant), self.spec.params[key.params]
        if not self.applies(key):
            return (0,) * len(self.tasks(rule.id))
        tasks = self.tasks(rule.id)
        wanted = (self._replicas,) * len(tasks) if super().whole else super().asked(key)
        found = (len(self.judged_by(rule, key.scenario, params, task)) for task in tasks)
        return tuple(map(max, wanted, found))


def judge_again(run: RunDir, *, config: Path | None, options: RunOptions, environ: Mapping[str, str]) -> Outcome:
    """Judges every stored trial by the rules of the spec; the verdicts become a file of their own."""
    manifest = run.manifest()
    unsealed = check(run)
    spec, problems = stored_spec(run, manifest, config, environ)
    refuse_unbuilt(spec)
    before = stored_spec(run, manifest, None, environ)[0] if config is not None else spec
    _same_weather(before, spec)
    options = _as_it_was(manifest, options, another=config is not None)
    run.lock()
    try:
        stored = trials(run)
        plan = StoredPlan(spec, options.select, stored, before.replicas)
        tally = Tally(spec, plan)
        hear = hearing(Consultations(spec, environ, run), StoredAdvice(run) if config is None else None)
        path = _judge_all(run, plan, tally, stored, _planned(before, manifest), hear)
    finally:
        run.unlock()
    said = _borrowed(plan, stored)
    known = run.ended()
    complete = known is not None and known.complete
    if not complete:
        said = (*said, "the run is unfinished; it is judged as far as it goes")
    if unsealed:
        said = (*said, unsealed)
    known = known or RunEnd(False, 0.0)
    ended = RunEnd(complete, 0.0, told(spec, problems), (*known.notes, *said), isolation=known.isolation)
    return conclude(run, spec, plan, tally, options, ended=ended, verdicts=path)


def _as_it_was(manifest: Manifest, given: RunOptions, *, another: bool) -> RunOptions:
    """What was asked of the run holds for its judging, too, where nothing else is asked now."""
    was = stored_options(manifest)
    select = was.select if not another else Select(scenarios=was.select.scenarios)
    return replace(
        was,
        select=select,
        min_score=given.min_score if given.min_score is not None else was.min_score,
        strict=given.strict or was.strict,
        allow_vacuous=given.allow_vacuous or was.allow_vacuous,
        max_errors=given.max_errors or was.max_errors,
    )


def _planned(before: Spec, manifest: Manifest) -> set[Group]:
    """What the run was to ask: a trial of these that is missing was not run; any other was never to be."""
    return {_group(t.scenario, t.params, t.task) for t in Plan(before, stored_options(manifest).select).trials}


def _judge_all(
    run: RunDir, plan: StoredPlan, tally: Tally, stored: Mapping[str, Trial], planned: set[Group], hear: Hearing
) -> Path:
    """Judges cell by cell. The verdicts are there whole or not at all; the file's path is returned."""
    path = run.verdicts(1 + max((number_of(file) for file in run.verdict_files()), default=0))
    unfinished = path.with_suffix(".new")
    unfinished.unlink(missing_ok=True)  # of a judging that was killed
    lines = JsonLines(unfinished)
    judged: set[str] = set()
    cases = _CasesAgain()
    try:
        for trial, seen, verdict in _verdicts(run, plan, tally, stored, planned, hear):
            if trial.id:
                if trial.id not in judged:
                    tally.saw(trial, seen)
                judged.add(trial.id)
                lines.write(encode(verdict))
                if plan.spec.part == "scenario":
                    cases.add(trial, seen, verdict)
            tally.add(trial, seen, verdict)
    finally:
        lines.close()
    cases.into(tally)
    tally.trials = len(judged)  # one trial may serve rules that it was not made for
    unfinished.replace(path)
    return path


class _CasesAgain:
    """Verdicts come rule by rule; a case wants those of a trial together."""

    def __init__(self) -> None:
        self._given: dict[str, tuple[Trial, Observation, list[Verdict]]] = {}

    def add(self, trial: Trial, seen: Observation, verdict: Verdict) -> None:
        if trial.invariant == "*":
            bare = Observation(trial.id, forbidden=seen.forbidden)
            self._given.setdefault(trial.id, (trial, bare, []))[2].append(verdict)

    def into(self, tally: Tally) -> None:
        for trial, seen, verdicts in self._given.values():
            tally.cases.add(trial, seen, verdicts)


def _verdicts(
    run: RunDir, plan: StoredPlan, tally: Tally, stored: Mapping[str, Trial], planned: set[Group], hear: Hearing
) -> Iterator[tuple[Trial, Observation, Verdict]]:
    judge = Judge(plan.spec, stored=True)
    seen = {o.trial: o for o in observations(run, traces=False)}  # a trace is read when its trial is judged
    controls = {_asked(t): seen[t.id] for t in stored.values() if t.kind == "control" and t.id in seen}
    for trial in stored.values():
        if trial.kind == "control" and trial.id in seen:
            tally.saw(trial, whole(run, seen[trial.id]))
    for rule, trial, found in hear(_pairs(run, plan, seen, planned)):
        if trial.id:
            yield trial, found, judge.judge(rule, trial, found, controls.get(_asked(trial)))
        else:
            yield trial, found, Verdict("", rule.id, "error", 0.0, NOT_RECORDED)


def _pairs(run: RunDir, plan: StoredPlan, seen: Mapping[str, Observation], planned: set[Group]) -> Iterator[Pair]:
    """Every rule with every trial that it is judged on, cell by cell; a trial without an id was never to be run."""
    spec = plan.spec
    for key in plan.cells:
        rule, params = spec.invariant(key.invariant), spec.params[key.params]
        for task in plan.tasks(rule.id) if plan.applies(key) else ():
            alike = plan.judged_by(rule, key.scenario, params, task)
            for trial in alike:
                if trial.id in seen:
                    yield rule, trial, whole(run, seen[trial.id])
            if not alike and _group(key.scenario, params, task) not in planned:
                never = Trial("", "contract", key.scenario, task, params=params, invariant=rule.id)
                yield rule, never, Observation("", error=NOT_RECORDED)


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


def _asked(trial: Trial) -> tuple[bytes, Task]:
    return canonical(trial.params), trial.task


def _group(scenario: str, params: Mapping[str, Any], task: Task) -> Group:
    return scenario, canonical(params), task
