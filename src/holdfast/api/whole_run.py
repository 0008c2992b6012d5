"""Runs several parts one after the other; also reads them back, and joins them from shards."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from holdfast.api.hunt import conclude_hunt
from holdfast.api.whole_plan import WholePlan, get_min_score
from holdfast.errors import HarnessError, NothingProven, UserError
from holdfast.folders import get_runs_folder, shorten_path
from holdfast.model.run import Overall, PartResult
from holdfast.model.spec import Part, Spec
from holdfast.plan import RunOptions
from holdfast.runner.job import Job
from holdfast.runner.outcome import RunOutcome, load_run, store_score
from holdfast.runner.past.whole_history import compare_baseline, describe_regressions
from holdfast.runner.start import begin_whole, load_stored_spec
from holdfast.runner.whole import (
    build_part_results,
    build_skipped,
    conclude_whole,
    forget_overall,
    read_overall,
    store_overall,
)
from holdfast.score.overall import is_interrupted
from holdfast.score.resilience import BROKEN, HELD, INTERRUPTED, UNPROVEN, Reason
from holdfast.store.run_folders import is_written
from holdfast.store.rundir import RunDir

RunPart = Callable[[Part, Job, RunDir], RunOutcome]
"""Runs the part in that folder, or returns the stored run that it would only repeat."""
ShowPart = Callable[[RunOutcome], None]


class WholeOutcome(Struct, frozen=True):
    """All parts, and the runs behind them."""

    overall: Overall
    outcomes: dict[Part, RunOutcome]
    spec: Spec
    whole: RunDir
    running: bool = False
    """Another process is still writing it: the parts are incomplete."""

    @property
    def page_path(self) -> str:
        """The path of the overall page, as the user would type it."""
        return shorten_path(self.whole.path / "report.html")


def run_whole(plan: WholePlan, run_part: RunPart, show_part: ShowPart) -> WholeOutcome:
    """Run each part, store its result, and combine all of them."""
    began = time.monotonic()
    parts = tuple(plan.jobs)
    whole = plan.whole or begin_whole(plan.spec, plan.options, get_runs_folder(plan.spec.file).absolute(), parts)
    if plan.whole is not None:
        whole.lock()
        forget_overall(whole)
        for part, job in plan.jobs.items():
            if job.resumed is None:  # it runs again, and must not write into the run that it links to
                whole.get_part(part).path.unlink(missing_ok=True)
    outcomes: dict[Part, RunOutcome] = {}
    try:
        results = _run_parts(plan, whole, run_part, show_part, outcomes, began)
    except BaseException:
        whole.unlock()
        if plan.whole is None and not any((whole.path / "parts").glob("*/run.json")):
            shutil.rmtree(whole.path, ignore_errors=True)  # none of its parts was begun
        raise
    # An interrupted run is not compared: what it left out says nothing about the agent.
    reasons, notes = ([], []) if is_interrupted(results) else _compare_runs(plan, whole, outcomes)
    result = conclude_whole(
        whole,
        plan.spec,
        results,
        least=get_min_score(plan.options, plan.spec),
        duration_s=time.monotonic() - began,
        reasons=reasons,
        notes=[*_list_stops(outcomes), *notes],
        outcomes=outcomes.values(),
    )
    store_overall(whole, result)
    whole.unlock()
    return WholeOutcome(result, outcomes, plan.spec, whole)


def _run_parts(
    plan: WholePlan,
    whole: RunDir,
    run_part: RunPart,
    show_part: ShowPart,
    outcomes: dict[Part, RunOutcome],
    began: float,
) -> list[PartResult]:
    """Run the parts in order and add their outcomes; the results, also of parts that were skipped."""
    weights = plan.spec.weights
    results: list[PartResult] = [build_skipped(part, why, weights) for part, why in plan.skipped.items()]
    results += [build_skipped(part, why, weights, BROKEN) for part, why in plan.failed.items()]
    for part, job in plan.jobs.items():
        if is_interrupted(results):
            results.append(build_skipped(part, "the run was interrupted before this part", weights))
            continue
        used_up = _apply_budgets(job, outcomes, plan.options, time.monotonic() - began)
        if used_up:
            results.append(build_skipped(part, f"{used_up} is used up", weights, UNPROVEN))
            continue
        outcome = run_part(part, job, whole.get_part(part))
        if part == "hunt":
            outcome, why, code = _conclude_hunt(job, outcome)
            if why:
                results.append(build_skipped(part, why, weights, code))
                continue
        outcomes[part] = outcome
        results += build_part_results(outcome, whole, weights)
        show_part(outcome)
    return results


def _conclude_hunt(job: Job, outcome: RunOutcome) -> tuple[RunOutcome, str, int]:
    """Return the outcome of the hunt, or why there is nothing to hunt, such as a rule that fails in calm, and its exit
    code.

    Known causes that could not be tried leave the verdict open; without any, other parts report what is wrong.
    """
    try:
        return conclude_hunt(job.plan, job.options, outcome).outcome, "", HELD
    except HarnessError as broken:
        return outcome, str(broken), BROKEN
    except (UserError, NothingProven) as nothing:
        return outcome, str(nothing), UNPROVEN if job.options.hunt.known else HELD


def _apply_budgets(job: Job, before: dict[Part, RunOutcome], options: RunOptions, took_s: float) -> str:
    """Give a later part the remaining budgets; return the option that is used up, if one is.

    The agent has been reached, so the preflight is skipped, and its findings are reused.
    """
    if not before:
        return ""
    # Budgets are those of the whole run, and each part checks only its own: what earlier parts used is taken off.
    trials = sum(outcome.score.trials for outcome in before.values())
    spent = sum((o.score.spent.cost_usd or 0.0) if o.score.spent else 0.0 for o in before.values())
    left = {
        "max_trials": None if options.max_trials is None else options.max_trials - trials,
        "max_cost": None if options.max_cost is None else options.max_cost - spent,
        "max_time_s": None if options.max_time_s is None else options.max_time_s - took_s,
    }
    used_up = next((name for name, budget in left.items() if budget is not None and budget <= 0), "")
    stateful = any(outcome.run.stateful for outcome in before.values())
    concurrency = 1 if stateful else job.options.concurrency
    job.options = replace(job.options, preflight=False, concurrency=concurrency, **left)
    return f"--{used_up.removesuffix('_s').replace('_', '-')}" if used_up else ""


def _compare_runs(
    plan: WholePlan, whole: RunDir, outcomes: dict[Part, RunOutcome]
) -> tuple[Sequence[Reason], Sequence[str]]:
    """Compare the run with the named baseline, otherwise with the last good run of each part."""
    if plan.options.select.shard is not None:
        return [], []  # a single shard decides nothing yet
    if plan.baseline is not None:
        return compare_baseline(plan.baseline, whole, os.environ)
    ids = [outcome.run.id for outcome in outcomes.values()]
    notes = [plan.unfound] if plan.unfound else []
    return [], [*notes, *describe_regressions(whole.path.parent, ids)]


def _list_stops(outcomes: dict[Part, RunOutcome]) -> list[str]:
    """List what a budget left out of each part."""
    return [f"{part}: {outcome.run.stopped}" for part, outcome in outcomes.items() if outcome.run.stopped]


def load_whole(whole: RunDir) -> WholeOutcome:
    """Return a stored run of several parts; some may be unfinished."""
    manifest = whole.read_manifest()
    spec, _ = load_stored_spec(whole, manifest, None, os.environ)
    outcomes: dict[Part, RunOutcome] = {}
    running = is_written(whole.path)
    stored = None if running else read_overall(whole)
    results: list[PartResult] = []
    for part in manifest.parts:
        if not (whole.get_part(part).path / "run.json").is_file():
            results.append(
                build_skipped(part, "to come" if running else "the run ended before this part", spec.weights)
            )
            continue
        outcomes[part] = load_run(whole.get_part(part), environ=os.environ)
        results += build_part_results(outcomes[part], whole, spec.weights)
    reason = "the run is under way" if running else "the run was interrupted"
    ended = is_interrupted(results) and not running  # then the part says so
    result = stored or conclude_whole(
        whole,
        spec,
        results,
        least=None,
        duration_s=0.0,
        reasons=[] if ended else [Reason(INTERRUPTED, reason, "interrupted")],
        outcomes=outcomes.values(),
    )
    return WholeOutcome(result, outcomes, spec, whole, running)


def conclude_merged(
    whole: RunDir, skipped_parts: Sequence[PartResult], write_page: Callable[[RunOutcome], RunOutcome]
) -> WholeOutcome:
    """Judge and store a run whose parts were joined from shards, each with its page. `skipped_parts` did not run."""
    merged = load_whole(whole)
    spec = merged.spec
    results = [
        *skipped_parts,
        *(part for part in merged.overall.parts if part.part not in merged.outcomes and not part.ran),
    ]
    for part, outcome in merged.outcomes.items():
        store_score(whole.get_part(part), outcome.score)
        page = shorten_path(whole.get_part(part).path / "report.html")
        merged.outcomes[part] = write_page(replace(outcome, run=replace(outcome.run, page=page)))
        results += build_part_results(merged.outcomes[part], whole, spec.weights)
    least = get_min_score(whole.read_manifest().options, spec)
    took_s = sum(outcome.run.duration_s for outcome in merged.outcomes.values())
    concluded = conclude_whole(
        whole,
        spec,
        results,
        least=least,
        duration_s=took_s,
        notes=_list_stops(merged.outcomes),
        outcomes=merged.outcomes.values(),
    )
    store_overall(whole, concluded)
    return replace(merged, overall=concluded)
