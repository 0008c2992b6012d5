"""From a file to a finished run: shared by the command line, Python code and pytest."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

from msgspec import UNSET
from msgspec.structs import replace

from holdfast.errors import AgentUnavailable, SpecError, UsageError
from holdfast.execute.plane_needs import needs_planes
from holdfast.execute.resolved_spec import ModelOptions
from holdfast.folders import get_runs_folder
from holdfast.model.codes import RunWarning
from holdfast.model.scenario import is_applicable
from holdfast.model.spec import BuiltText, PartAsked, Problem, Spec
from holdfast.model.task import Task
from holdfast.plan import RunOptions
from holdfast.reading.fields import convert
from holdfast.runner.consultations import check_judges, check_users
from holdfast.runner.executors import choose_loop_factory
from holdfast.runner.interrupts import Interrupts
from holdfast.runner.job import Job, Listen
from holdfast.runner.outcome import RunOutcome, conclude, list_unrun_cases, store_score
from holdfast.runner.run import run
from holdfast.runner.start import begin
from holdfast.spec import LoadOptions, check, find_contract_problems, reject_unset_variables
from holdfast.store.rundir import RunDir, RunEnd


def load_part(path: Path, options: RunOptions, built: BuiltText | None = None) -> tuple[Spec, tuple[Problem, ...]]:
    """Return the spec with the options applied; raises SpecError if the selected part cannot run."""
    checked = check(path, environ=os.environ, options=convert(LoadOptions, options, built=built))
    problems = reject_unset_variables(checked.problems)
    if checked.spec is not None and options.part == "contract":
        problems = (*problems, *find_contract_problems(checked.spec))
    if checked.spec is None or any(p.severity == "error" for p in problems):
        raise SpecError(str(path), problems, source=checked.source)
    return checked.spec, problems


def choose_part(path: Path, options: RunOptions, built: BuiltText | None = None) -> PartAsked:
    """Return the contract of a file; without a contract, what `holdfast run` runs."""
    load_options = LoadOptions(seed=options.seed, replicas=options.replicas, built=built)
    spec = check(path, environ=os.environ, options=load_options).spec
    return "run" if spec is not None and spec.declares and "contract" not in spec.declares else "contract"


def prepare_job(
    spec: Spec, options: RunOptions, warnings: Iterable[RunWarning], environ: Mapping[str, str] = os.environ
) -> Job:
    """Return a new job, after checking everything that it needs."""
    choose_loop_factory(environ)  # raises if one cannot be resolved
    option = "--record" if options.record else "--replay" if options.replay else ""
    if option and not needs_planes(spec, ModelOptions(options.record, options.replay)):
        hint = "start it with agent.command, or put it behind holdfast gateway; an inline agent needs isolation: fresh"
        raise UsageError(
            f"{option}: this agent's model calls do not go through Holdfast", hint=hint, code="option-inapplicable"
        )
    job = Job(spec, options, environ, tuple(warnings))
    check_judges(spec, job.plan.invariants, environ)
    if job.options.on:
        from holdfast.runner.on_cluster import check_cluster

        check_cluster(spec, job.options)
    check_users(spec, environ)
    return job


def run_job(
    job: Job,
    listen: Listen,
    *,
    report: bool,
    runs: Path | None = None,
    at: RunDir | None = None,
    beat: Callable[[], None] | None = None,
    each_trial: bool = True,
    interrupts: Interrupts | None = None,
) -> RunOutcome:
    """Run, score and store; with `report` the outcome names the page to write.

    `at` is the folder of a new run that is part of a larger one.
    """
    here = os.getcwd()
    rundir = job.resumed or begin(job, (runs or get_runs_folder(job.spec.file)).absolute(), at)
    try:
        running = run(job, rundir, listen, beat=beat, each_trial=each_trial, interrupts=interrupts)
    except BaseException as broken:
        if isinstance(broken, AgentUnavailable) and job.resumed is None:
            broken.cases = tuple(list_unrun_cases(job.spec, job.plan, str(broken)))
        if job.resumed is None:
            rundir.discard_if_empty()
        raise
    finally:
        os.chdir(here)  # an inline agent may have changed the working folder
    ended = rundir.read_end() or RunEnd(False, 0.0)
    page = rundir.path / "report.html" if report else None
    tally = running.intake.tally
    outcome = conclude(rundir, job.spec, job.plan, tally, job.options, ended=ended, foreign=running.foreign, page=page)
    store_score(rundir, outcome.score)
    rundir.unlock()
    return outcome


def build_part(spec: Spec, environ: Mapping[str, str]) -> tuple[Spec, tuple[RunWarning, ...]]:
    """Return the spec with its tasks, and warnings."""
    if spec.part == "replay":
        from holdfast.replay.derived_spec import derive_spec
        from holdfast.replay.session_list import list_sessions

        return derive_spec(spec, list_sessions(spec, environ, datetime.now(UTC)), live=False)
    if spec.part != "mutation":
        return spec, ()
    from holdfast.mutate.expand import make_tasks

    mutated, warnings = make_tasks(spec, environ)
    probes = [Task((probe,), "probe") for rule in spec.invariants for probe in rule.probes]
    tasks = (*mutated, *dict.fromkeys(probes))
    spec = replace(spec, tasks=tasks, invariants=tuple(rule.with_task_probes() for rule in spec.invariants))
    return spec, (*warnings, *_warn_unjudged(spec))


def _warn_unjudged(spec: Spec) -> Iterator[RunWarning]:
    """Warn about mutation types that no rule judges in the weather of this run: the agent is not asked."""
    rules = [rule for rule in spec.invariants if any(is_applicable(rule.when, one) for one in spec.scenarios)]
    idle = Counter(
        task.variation.mutation
        for task in spec.tasks
        if task.variation is not UNSET and not any(rule.is_judging(task) for rule in rules)
    )
    for name, count in idle.items():
        many = f"{count} mutation{'' if count == 1 else 's'}"
        yield RunWarning("mutations-unjudged", f"{name}: {many} not run, because no rule judges them")
