"""Running several parts of a file one after the other: `ci`, `score`, and `run` where the file declares two."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from holdfast.api.job import PreparedJob, load_part, settled_job
from holdfast.api.part_spec import made_part
from holdfast.cli.options import find_config, option_warnings
from holdfast.cli.run_job import execute
from holdfast.cli.screen_output import Screen
from holdfast.errors import HarnessError, NothingProven, UsageError
from holdfast.model.overall import Overall, PartResult
from holdfast.model.spec import Part, Spec
from holdfast.plan import RunOptions
from holdfast.runner.job import told
from holdfast.runner.outcome import RunOutcome, shown_path
from holdfast.runner.preflight import was_stateful
from holdfast.runner.start import RUNS, begin_whole, take_up
from holdfast.runner.whole import NOT_DECLARED, ORDER, overall, part_results, skipped, store_overall, stored_overall
from holdfast.runner.whole_history import baseline_run, compared, regressions_named
from holdfast.score.overall import interrupted
from holdfast.score.ruling import BROKEN, INTERRUPTED, UNPROVEN, Reason
from holdfast.store.rundir import RunDir


class WholePlan(Struct, frozen=True):
    """What is run: the parts in their order, each settled before anything is asked."""

    spec: Spec
    options: RunOptions
    jobs: dict[Part, PreparedJob]
    skipped: dict[Part, str]
    """Parts that are not run, and why."""
    whole: RunDir | None = None
    """The run that is taken up; None: a new one."""
    baseline: RunDir | None = None
    """The run that this one must not be worse than."""
    cached: bool = False
    """A stored run of the very same part stands for asking it again."""
    unfound: str = ""
    """Why there is no baseline, where one was asked for."""
    failed: dict[Part, str] = {}
    """Parts that our side could not make, and why."""


class WholeOutcome(Struct, frozen=True):
    """All parts, and the runs behind them."""

    overall: Overall
    outcomes: dict[Part, RunOutcome]
    spec: Spec
    whole: RunDir
    stack: ExitStack

    @property
    def shown_page(self) -> str:
        """Where the overall page lies, as the user would name it."""
        return shown_path(self.whole.path / "report.html")

    def close(self) -> None:
        """Lets go of the files of every part."""
        self.stack.close()


def plan_whole(
    config: Path | None,
    given: RunOptions,
    resume: str | None,
    force: bool,
    *,
    baseline: str | None = None,
    cached: bool = False,
) -> WholePlan:
    """Everything that can be refused is refused here, before the agent is started."""
    if baseline is not None and given.select.shard is not None:
        hint = "merge the shards, and compare what comes of it: holdfast compare BEFORE AFTER"
        raise UsageError("--baseline compares whole runs, and --shard runs a share", hint=hint)
    whole = RunDir.find(RUNS.absolute(), resume) if resume is not None else None
    if whole is not None and not whole.manifest().parts:
        command = "holdfast contract run" if whole.manifest().options.part == "contract" else "holdfast run"
        hint = f"go on with it: {command} --resume {whole.id}"
        raise UsageError(f"run {whole.id} is of one part", hint=hint)
    if whole is not None:
        config = config or _file_of(whole)
        other = whole.manifest().options.other(given)
        if other:
            raise UsageError(f"{other} cannot be changed when a run is taken up", hint="leave it out")
        given = whole.manifest().options.taken_up(given)
    spec, _ = load_part(find_config(config), given)
    wanted = whole.manifest().parts if whole is not None else _wanted(spec)
    if not wanted:
        hint = "add golden_prompts with invariants, a contract with a chaos_matrix, a task, or replays"
        raise UsageError(f"{spec.path} declares nothing to run", hint=hint)
    jobs: dict[Part, PreparedJob] = {}
    failed: dict[Part, str] = {}
    left = {part: why for part, why in NOT_DECLARED.items() if part not in spec.declares}
    for part in wanted:
        try:
            jobs[part] = _prepared(part, spec, given, whole, force, warned=not jobs)
        except NothingProven as idle:  # sessions that no rule judges, or a source without any
            left[part] = str(idle)
        except HarnessError as broken:  # a model that was to write mutations, a source that was to give sessions
            failed[part] = str(broken)
    if not jobs and failed:
        raise HarnessError(next(iter(failed.values())))
    before = baseline_run(RUNS.absolute(), baseline, spec, whole) if baseline is not None else None
    unfound = ""
    if baseline is not None and before is None:
        unfound = f"--baseline {baseline}: no earlier ci run of {spec.path} is stored, so nothing was compared"
    return WholePlan(spec, given, jobs, left, whole, before, cached, unfound, failed)


def _file_of(whole: RunDir) -> Path:
    """The file that a run was made of, as the user named it where that is still the same."""
    manifest = whole.manifest()
    named = Path(manifest.spec_path)
    return named if named.resolve() == manifest.original else manifest.original


def _wanted(spec: Spec) -> tuple[Part, ...]:
    """The parts to run; a scenario that asks what the contract asks gives both from the same trials."""
    declared = spec.declares
    both = "scenario" in declared and not spec.has_golden
    return tuple(part for part in ORDER if part in declared and not (part == "contract" and both))


def _prepared(
    part: Part, spec: Spec, given: RunOptions, whole: RunDir | None, force: bool, *, warned: bool
) -> PreparedJob:
    """One part, settled: taken up where it was begun, else new."""
    options = part_options(part, spec, given)
    if whole is not None and (whole.part(part).path / "run.json").is_file():
        rundir = whole.part(part)
        config = Path(spec.path)
        return PreparedJob(take_up(rundir, config=config, force=force, options=options, environ=os.environ), rundir)
    own, problems = load_part(Path(spec.path), options)
    own, made = made_part(own, os.environ)
    warnings = [*(told(own, problems) if warned else ()), *made]
    warnings += option_warnings(own, options) if warned else []
    return settled_job(own, options, warnings)


def part_options(part: Part, spec: Spec, given: RunOptions) -> RunOptions:
    """The options of one part: a minimum is of the overall score, and tolerates all but critical rules in the parts."""
    return replace(given, part=part, min_score=None if _least(given, spec) is None else 0.0)


def _least(given: RunOptions, spec: Spec) -> float | None:
    """The minimum of the overall score: of the command line, else of the file."""
    return given.min_score if given.min_score is not None else spec.scoring.min_score


def run_whole(plan: WholePlan, screen: Screen, *, report: bool, outputs: Sequence[Path] = ()) -> WholeOutcome:
    """Runs each part, stores what it came to, and all of them together."""
    began = time.monotonic()
    parts = tuple(plan.jobs)
    whole = plan.whole or begin_whole(plan.spec, plan.options, RUNS.absolute(), parts)
    if plan.whole is not None:
        whole.lock()
    stack = ExitStack()
    outcomes: dict[Part, RunOutcome] = {}
    results: list[PartResult] = [skipped(part, why, plan.spec.weights) for part, why in plan.skipped.items()]
    results += [skipped(part, why, plan.spec.weights, BROKEN) for part, why in plan.failed.items()]
    try:
        for part, prepared in plan.jobs.items():
            if interrupted(results):
                results.append(skipped(part, "the run was interrupted before it", plan.spec.weights))
                continue
            settled, used_up = _after(prepared, outcomes, plan.options, time.monotonic() - began)
            if used_up:
                results.append(skipped(part, f"{used_up} is used up", plan.spec.weights, UNPROVEN))
                continue
            screen.heading(part)
            outcome = _outcome(settled, screen, plan.cached, outputs, report=report, at=whole.part(part))
            stack.enter_context(closing(outcome))
            outcomes[part] = outcome
            results += part_results(outcome, whole, plan.spec.weights)
            screen.part_ended(outcome)
    except BaseException:
        stack.close()
        _discard(whole, plan.whole is None)
        raise
    reasons, notes = ([], []) if interrupted(results) else _beside(plan, whole, outcomes)
    found = overall(
        whole,
        plan.spec,
        results,
        least=_least(plan.options, plan.spec),
        duration_s=time.monotonic() - began,
        found=reasons,
        notes=[*_stopped(outcomes), *notes],
    )
    store_overall(whole, found)
    whole.unlock()
    return WholeOutcome(found, outcomes, plan.spec, whole, stack)


def _after(
    prepared: PreparedJob, before: dict[Part, RunOutcome], given: RunOptions, took_s: float
) -> tuple[PreparedJob, str]:
    """A part after others, with what they left of the budgets; the option that left nothing, if one did.

    The agent was reached, and is not asked whether it is there; what it showed holds.
    """
    if not before:
        return prepared, ""
    trials = sum(outcome.score.trials for outcome in before.values())
    spent = sum((o.score.spent.cost_usd or 0.0) if o.score.spent else 0.0 for o in before.values())
    left = {
        "max_trials": None if given.max_trials is None else given.max_trials - trials,
        "max_cost": None if given.max_cost is None else given.max_cost - spent,
        "max_time_s": None if given.max_time_s is None else given.max_time_s - took_s,
    }
    used_up = next((name for name, rest in left.items() if rest is not None and rest <= 0), "")
    job = prepared.job
    stateful = any(was_stateful(outcome.run.warnings) for outcome in before.values())
    concurrency = 1 if stateful else job.options.concurrency
    job.options = replace(job.options, preflight=False, concurrency=concurrency, **left)
    return prepared, f"--{used_up.removesuffix('_s').replace('_', '-')}" if used_up else ""


def _outcome(
    prepared: PreparedJob, screen: Screen, cached: bool, outputs: Sequence[Path], *, report: bool, at: RunDir
) -> RunOutcome:
    """The part as it was run, or the stored run that running it would only repeat."""
    if not cached or prepared.rundir is not None:
        return execute(prepared, screen, (), report=report, at=at)
    from holdfast.cli.cached_outcome import cached_outcome

    again, files = cached_outcome(prepared.job, outputs)
    if again is None:
        return execute(replace(prepared, files=files), screen, (), report=report, at=at)
    at.path.parent.mkdir(parents=True, exist_ok=True)
    at.path.symlink_to(os.path.relpath(Path(again.run.path).absolute(), at.path.parent))
    return again


def _beside(plan: WholePlan, whole: RunDir, outcomes: dict[Part, RunOutcome]) -> tuple[Sequence[Reason], Sequence[str]]:
    """What the run is compared with: the baseline that was named, else the last good run of each part."""
    if plan.options.select.shard is not None:
        return [], []  # of a share nothing can be said yet
    if plan.baseline is not None:
        return compared(plan.baseline, whole, os.environ)
    ids = [outcome.run.id for outcome in outcomes.values()]
    told = [plan.unfound] if plan.unfound else []
    return [], [*told, *regressions_named(RUNS.absolute(), ids)]


def _stopped(outcomes: dict[Part, RunOutcome]) -> list[str]:
    """What a budget left out of each part."""
    from holdfast.runner.run import STOPPED

    said = [(part, note) for part, found in outcomes.items() for note in found.run.notes]
    return [f"{part}: {note}" for part, note in said if note.startswith(STOPPED)]


def _discard(whole: RunDir, new: bool) -> None:
    """A run of which no part was begun leaves nothing behind."""
    whole.unlock()
    if new and not any((whole.path / "parts").glob("*/run.json")):
        shutil.rmtree(whole.path, ignore_errors=True)


def look_whole(whole: RunDir) -> WholeOutcome:
    """A stored run of several parts, each as far as it goes."""
    from holdfast.runner.start import stored_spec
    from holdfast.runner.stored import look

    manifest = whole.manifest()
    spec, _ = stored_spec(whole, manifest, None, os.environ)
    stack, outcomes = ExitStack(), {}
    results: list[PartResult] = []
    for part in manifest.parts:
        if not (whole.part(part).path / "run.json").is_file():
            results.append(skipped(part, "the run ended before it", spec.weights))
            continue
        outcomes[part] = stack.enter_context(closing(look(whole.part(part), environ=os.environ)))
        results += part_results(outcomes[part], whole, spec.weights)
    found = stored_overall(whole) or _unconcluded(whole, spec, results)
    return WholeOutcome(found, outcomes, spec, whole, stack)


def conclude_merged(whole: RunDir, beside: Sequence[PartResult]) -> WholeOutcome:
    """A run whose parts were joined of shards: judged, stored, and each part with its page. `beside` did not run."""
    from holdfast.cli.run_job import with_reports
    from holdfast.runner.outcome import store_score

    found = look_whole(whole)
    spec = found.spec
    results = [*beside, *(part for part in found.overall.parts if part.part not in found.outcomes and not part.ran)]
    for part, outcome in found.outcomes.items():
        store_score(whole.part(part), outcome.score)
        page = shown_path(whole.part(part).path / "report.html")
        found.outcomes[part] = with_reports(replace(outcome, run=replace(outcome.run, page=page)), ())
        results += part_results(found.outcomes[part], whole, spec.weights)
    least = _least(whole.manifest().options, spec)
    took_s = sum(outcome.run.duration_s for outcome in found.outcomes.values())
    notes = _stopped(found.outcomes)
    concluded = overall(whole, spec, results, least=least, duration_s=took_s, notes=notes)
    store_overall(whole, concluded)
    return replace(found, overall=concluded)


def _unconcluded(whole: RunDir, spec: Spec, results: Sequence[PartResult]) -> Overall:
    """A run that was killed: its parts as far as they go, and interrupted."""
    left_early = [(INTERRUPTED, "the run was interrupted")]
    return overall(whole, spec, results, least=None, duration_s=0.0, found=left_early)


def show_overall(found: WholeOutcome, *, as_json: bool, quiet: bool, page: str) -> None:
    """The overall result on stdout."""
    from holdfast.cli import screen as terminal
    from holdfast.report.overall import document, summary
    from holdfast.report.safe import can_show_signs

    if as_json:
        from holdfast.cli.json_output import print_document

        print_document(document(found.overall))
        return
    text = summary(
        found.overall,
        color=terminal.wants_color(sys.stdout),
        quiet=quiet,
        unicode=can_show_signs(sys.stdout.encoding),
        page=page,
    )
    sys.stdout.write(text if quiet else f"\n{text}")


def write_overall(found: WholeOutcome, outputs: Sequence[Path], *, report: bool) -> list[str]:
    """Writes the overall page and every report that was asked for; what could not be written is told."""
    from holdfast.report.whole_files import write_whole

    runs = {part: outcome.run for part, outcome in found.outcomes.items()}
    home = found.whole.path
    trouble = write_whole(found.overall, runs, home / "report.html", home=home) if report else ""
    if trouble:
        print(f"warning: {trouble}", file=sys.stderr)
    return [trouble for path in outputs if (trouble := write_whole(found.overall, runs, path, home=home))]


def tell_whole_step(found: WholeOutcome, *, annotations: bool) -> None:
    """Tells a step of GitHub Actions, or whoever asks for annotations, what came of every part."""
    step = os.environ.get("GITHUB_STEP_SUMMARY")
    if step:
        from holdfast.cli.run_job import append_summary
        from holdfast.report.overall import markdown

        append_summary(Path(step), [markdown(found.overall).encode("utf-8", "replace")])
    if not annotations and os.environ.get("GITHUB_ACTIONS") != "true":
        return
    from holdfast.cli.github_step import annotate, set_outputs
    from holdfast.report.overall import verdict

    for outcome in found.outcomes.values():
        annotate(outcome.run, os.environ, asked=annotations)
    last = found.overall
    set_outputs(os.environ, score=last.score, verdict=verdict(last), run=last.run)
