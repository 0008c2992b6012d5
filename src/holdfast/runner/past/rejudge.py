"""Rejudges a stored run: other rules on the same observations, without running the agent."""

from __future__ import annotations

import asyncio
import re
import shlex
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import closing
from itertools import groupby, islice
from pathlib import Path
from typing import TypeAlias

from msgspec.structs import replace

from holdfast.errors import UsageError
from holdfast.folders import shorten_path
from holdfast.judge import Judge
from holdfast.model.codec import digest, encode_canonical, encode_lines
from holdfast.model.codes import RunNote
from holdfast.model.observation import Observation
from holdfast.model.scenario import Scenario
from holdfast.model.spec import BuiltText, Invariant, Spec
from holdfast.model.trial import Trial
from holdfast.model.verdict import Verdict
from holdfast.plan import Plan, RunOptions, Select
from holdfast.plan.serving import EVERY_RULE
from holdfast.runner.consultations import WAITING, Consultations
from holdfast.runner.job import format_spec_warnings, refuse_unrunnable
from holdfast.runner.outcome import RunOutcome, conclude
from holdfast.runner.past.stored_plan import StoredPlan
from holdfast.runner.start import load_stored_spec
from holdfast.score import Tally
from holdfast.store.lines import JsonLines
from holdfast.store.record import StoredAdvice
from holdfast.store.rundir import Manifest, RunDir, RunEnd, get_number, list_verdict_files
from holdfast.store.seal_check import check
from holdfast.store.stored_records import RunRecords
from holdfast.store.view import build_run_command

Pair: TypeAlias = tuple[Invariant, Trial, Observation]
GetControl: TypeAlias = Callable[[Trial], Observation | None]
"""Returns the control of a trial."""
Consult: TypeAlias = Callable[[Iterable[Pair], GetControl], Iterator[Pair]]
"""Adds the model's answer for a rule to the observation of each trial."""
NOT_RECORDED = "not recorded in this run"

_DIGEST = re.compile(rb"masked-[0-9a-f]{16}")
"""The form of a redacted secret in a run's copy of the spec."""
_Judged = tuple[Trial, Observation, Verdict]


def judge_again(
    run: RunDir, *, config: Path | None, options: RunOptions, environ: Mapping[str, str], built: BuiltText | None = None
) -> RunOutcome:
    """Judge every stored trial by the rules of the spec, and write the verdicts to a new file.

    `built` are rules built by Python code; `config` is then the file of that code.
    """
    manifest = run.read_manifest()
    unsealed = check(run)
    spec, problems = load_stored_spec(run, manifest, config, environ, built=built)
    if manifest.masked and config is None:
        _refuse_digests(run, spec)
    refuse_unrunnable(spec)
    before = load_stored_spec(run, manifest, None, environ)[0] if config is not None else spec
    _check_faults(before, spec)
    options = _restore_selection(manifest.options, options, before, spec)
    run.lock()
    try:
        with closing(RunRecords(run, before.scenarios)) as records:
            trials = (trial for _, trial in records.iter_trials())
            plan = StoredPlan(spec, options.select, trials, before.replicas, sequential=options.auto)
            tally = Tally(spec, plan)
            consult = build_consult(Consultations(spec, environ, run), StoredAdvice(run) if config is None else None)
            path = _judge_all(run, plan, tally, _judge_trials(plan, tally, records, consult))
        _add_unplanned(plan, tally, lambda: Plan(before, manifest.options.select))
    finally:
        run.unlock()
    texts = [*_note_borrowed(plan), *_note_changes(run, manifest, spec, config)]
    ended = replace(_build_end(run, texts, unsealed), warnings=format_spec_warnings(spec, problems))
    by = f"the rules of {config}" if config else "the rules that it was run with"
    page = run.path / f"report-judged-{get_number(path)}.html"  # report.html keeps the verdicts of the run itself
    return conclude(run, spec, plan, tally, options, ended=ended, verdicts=path, judged_by=by, page=page)


def _build_end(run: RunDir, texts: list[str], unsealed: str) -> RunEnd:
    """Build the end of the run, with notes about the rejudging."""
    known = run.read_end() or RunEnd(False, 0.0)
    if not known.complete:
        texts = [*texts, "the run is unfinished; only its finished trials are judged"]
    notes = [*known.notes, *(RunNote("judged-again", text) for text in texts)]
    notes += [RunNote("unsealed", unsealed)] if unsealed else []
    return replace(known, duration_s=0.0, notes=tuple(notes), sealed={})


def _refuse_digests(run: RunDir, spec: Spec) -> None:
    """Reject a rule whose secret is a digest in the copy: it would search for the digest."""
    masked = [rule.id for rule in spec.invariants if _DIGEST.search(encode_canonical(rule))]
    if masked:
        problem = f"the copy of the spec in run {run.id} lacks secrets that its rules name ({', '.join(masked)})"
        raise UsageError(problem, code="run-unusable", hint="pass the file with -c FILE")


def _note_changes(run: RunDir, manifest: Manifest, spec: Spec, config: Path | None) -> Iterator[str]:
    """Yield a note if the file's rules are no longer those that were used."""
    if config is not None or manifest.built:
        return
    try:
        same = digest(Path(spec.path).read_bytes(), 16) == manifest.spec_digest
    except OSError:
        return
    if not same:
        name = shorten_path(Path(spec.path))
        yield (
            f"judged by the rules that the run was made with; {name} has changed since: "
            f"holdfast judge {run.id} -c {shlex.quote(name)} takes its rules as they are now"
        )


def _restore_selection(was: RunOptions, options: RunOptions, before: Spec, now: Spec) -> RunOptions:
    """Return the options of the rejudging: it selects what the run had selected.

    If the file now has other prompts, rules or scenarios, only names of scenarios are known to mean the same.
    """
    same = _digest_plan(before) == _digest_plan(now)
    if was.select.trials:  # task ids contain the agent and the seed
        same = same and (before.agent, before.seed) == (now.agent, now.seed)
    select = was.select if same else Select(scenarios=was.select.scenarios)
    return replace(was.merge_resumed(options), select=select)


def _digest_plan(spec: Spec) -> bytes:
    """Return everything that a selection chooses from; not the rules' settings."""
    rules = [(rule.id, rule.when, rule.probes) for rule in spec.invariants]
    names = [scenario.name for scenario in spec.scenarios]
    return encode_canonical((rules, names, spec.tasks, spec.params, spec.cell_rules, spec.replicas))


def _judge_all(run: RunDir, plan: StoredPlan, tally: Tally, verdicts_on_trials: Iterable[_Judged]) -> Path:
    """Write all verdicts or none, add them to the tally, and return the file's path."""
    path = run.get_verdict_file(1 + max((get_number(file) for file in list_verdict_files(run)), default=0))
    unfinished = path.with_suffix(".new")
    unfinished.unlink(missing_ok=True)  # left by a rejudging that was killed
    lines = JsonLines(unfinished)
    try:
        for _, of_trial in groupby(verdicts_on_trials, key=lambda one: one[0].id):
            judged = list(of_trial)
            trial, observation, _ = judged[0]
            verdicts = [verdict for _, _, verdict in judged]
            lines.write_lines(encode_lines(verdicts), len(verdicts))
            tally.add_trial(trial, observation, verdicts)
    finally:
        lines.close()
    unfinished.replace(path)
    return path


def _judge_trials(plan: StoredPlan, tally: Tally, records: RunRecords, consult: Consult) -> Iterator[_Judged]:
    """Yield every verdict on every observed trial, trial by trial."""
    # A run may have a million trials, so observations are read one at a time. Controls are the exception: any trial may
    # be compared with one, and there is one per prompt.
    judge, controls = Judge(plan.spec, stored=True), {}
    for number, trial in records.iter_trials():
        if trial.kind == "control" and records.is_observed(number):
            observation = records.read_observation(number)
            tally.note_trial(trial, observation)
            controls[encode_canonical(trial.params), trial.task] = observation

    def get_control(trial: Trial) -> Observation | None:
        return controls.get((encode_canonical(trial.params), trial.task.control)) if controls else None

    for rule, trial, observation in consult(_pair_rules(plan, records), get_control):
        yield trial, observation, judge.judge(rule, trial, observation, get_control(trial))


def _pair_rules(plan: StoredPlan, records: RunRecords) -> Iterator[Pair]:
    """Yield every observed trial with every rule that judges it."""
    for number, observation in records.iter_observed(traces=False):  # a trace is read when its trial is judged
        trial = records.read_trial(number)
        rules = plan.get_judging_rules(trial) if trial.kind == "contract" else ()
        whole = records.read_observation(number) if rules else observation
        for rule in rules:
            yield rule, trial, whole


def _add_unplanned(plan: StoredPlan, tally: Tally, planned: Callable[[], Plan]) -> None:
    """Add cells that the run had no trials for: they cannot be judged."""
    judged = tally.trials
    before: Plan | None = None
    for key in plan.cells:
        params = plan.spec.params[key.params]
        for task, expected in zip(plan.get_tasks(key.invariant), plan.count_by_task(key), strict=True):
            if not expected or plan.count_trials(key, task):
                continue
            before = before or planned()
            if not before.has_trial(key.scenario, params, task):
                never = Trial("", "contract", Scenario(key.scenario), task, params=params, invariant=key.invariant)
                verdict = Verdict("", key.invariant, "error", 0.0, NOT_RECORDED)
                tally.add(never, Observation("", error=NOT_RECORDED), verdict)
    tally.trials = judged


def _check_faults(before: Spec, now: Spec) -> None:
    """Drop scenarios whose faults changed: their stored trials say nothing about the new faults."""
    old = {s.name: s for s in before.scenarios}
    for scenario in now.scenarios:
        if scenario.name not in old:
            continue
        if encode_canonical(old[scenario.name].content) != encode_canonical(scenario.content):
            raise UsageError(
                f"the faults of scenario {scenario.name!r} changed since the run; no stored trial met them",
                code="run-changed",
                hint=f"run it again: {build_run_command(now.path, part=now.part, seed=now.seed)}",
            )


def _note_borrowed(plan: StoredPlan) -> tuple[str, ...]:
    """Note which rules are judged on trials made for other rules."""
    if EVERY_RULE in plan.made_for:
        return ()
    new = [r.id for r in plan.invariants if r.id not in plan.made_for]
    if not new:
        return ()
    return (f"{', '.join(new)}: judged on every stored trial of the scenario that asked the same prompts",)


def build_consult(consultations: Consultations, known: StoredAdvice | None) -> Consult:
    """Build the function that asks models; `known` are the answers that the run stored for the same rules."""

    def consult(pairs: Iterable[Pair], get_control: GetControl) -> Iterator[Pair]:
        if not consultations:
            yield from pairs
            return
        feed = iter(pairs)
        with asyncio.Runner() as loop:
            try:
                while batch := tuple(islice(feed, WAITING)):
                    work = (_consult_pair(consultations, known, pair, get_control(pair[1])) for pair in batch)
                    yield from loop.run(_gather(work))
            finally:
                loop.run(consultations.close())

    return consult


async def _gather(work: Iterable[Awaitable[Pair]]) -> list[Pair]:
    return await asyncio.gather(*work)


async def _consult_pair(
    consultations: Consultations, known: StoredAdvice | None, pair: Pair, control: Observation | None
) -> Pair:
    rule, trial, observation = pair
    wanted = consultations.select_rules((rule,), observation)
    if not wanted:
        return rule, trial, observation
    before = known.get(trial.id, rule.id) if known is not None else None
    answers = (
        {rule.id: before} if before is not None else await consultations.ask_models(wanted, trial, observation, control)
    )
    return rule, trial, replace(observation, evidence={**observation.evidence, **answers})
