"""Plans several parts of a file before anything runs: what `ci`, `score` and `demo` run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from shlex import quote

from msgspec import Struct
from msgspec.structs import replace

from holdfast.api.hunt import prepare_hunt
from holdfast.api.job import build_part, load_part, prepare_job
from holdfast.errors import HarnessError, NothingProven, UsageError
from holdfast.folders import find_config, get_runs_folder
from holdfast.model.codes import RunWarning
from holdfast.model.spec import Part, Spec, get_run_command
from holdfast.plan import RunOptions
from holdfast.plan.options import HuntOptions
from holdfast.runner.job import Job, format_spec_warnings
from holdfast.runner.past.whole_history import find_baseline
from holdfast.runner.start import resume_job
from holdfast.runner.whole import NOT_DECLARED, ORDER, check_parts, describe_missing, is_own_part
from holdfast.store.known_causes import read_known_causes
from holdfast.store.run_folders import format_name
from holdfast.store.rundir import RunDir

WarnOf = Callable[[Spec, RunOptions], Iterable[RunWarning]]
"""Returns warnings about options for a spec."""


class WholePlan(Struct, frozen=True):
    """The parts to run in order, each prepared before anything runs."""

    spec: Spec
    options: RunOptions
    jobs: dict[Part, Job]
    skipped: dict[Part, str]
    """Parts that do not run, and why."""
    whole: RunDir | None = None
    """The run to resume; None: a new one."""
    baseline: RunDir | None = None
    """The run that this one must not be worse than."""
    unfound: str = ""
    """Why there is no baseline although one was requested."""
    failed: dict[Part, str] = {}
    """Parts that failed with a harness error during preparation, and why."""


def plan_whole(
    config: Path | None,
    options: RunOptions,
    resume: str | None,
    force: bool,
    *,
    warn: WarnOf = lambda *_: (),
    baseline: str | None = None,
) -> WholePlan:
    """Plan the parts. Everything that can be rejected is rejected here, before the agent starts.

    `warn` returns warnings about the options for the first part; it may also reject them.
    """
    if baseline is not None and options.select.shard is not None:
        hint = "merge the shards, and compare the result: holdfast compare BEFORE AFTER"
        raise UsageError("--baseline and --shard cannot be combined", hint=hint, code="options-conflict")
    whole = None
    if resume is not None:
        whole = RunDir.find(get_runs_folder(config).absolute(), resume)
        options, config = _check_resumed(whole, options, force), config or whole.read_manifest().written_path
    spec, _ = load_part(find_config(config), options)
    wanted = whole.read_manifest().parts if whole is not None else _choose_parts(spec, options)
    if not wanted:
        hint = "add golden_prompts with invariants, a contract with a chaos_matrix, a task, or replays"
        raise UsageError(f"{spec.path} declares nothing to run", hint=hint, code="nothing-to-run")
    jobs: dict[Part, Job] = {}
    failed: dict[Part, HarnessError] = {}
    left = {part: describe_missing(part, spec) for part in NOT_DECLARED if part not in spec.declares}
    for part in wanted:
        try:
            jobs[part] = _prepare_part(part, spec, options, whole, force, None if jobs else warn)
        except NothingProven as idle:  # no rule judges its sessions, or a source has none
            left[part] = str(idle)
        except HarnessError as broken:  # a model could not write mutations, or a source could not provide sessions
            failed[part] = broken
    if not jobs and failed:
        raise next(iter(failed.values()))
    before, unfound = _find_baseline(baseline, spec, whole)
    broken_parts = {part: str(broken) for part, broken in failed.items()}
    return WholePlan(spec, options, jobs, left, whole, before, unfound, broken_parts)


def _find_baseline(baseline: str | None, spec: Spec, whole: RunDir | None) -> tuple[RunDir | None, str]:
    """Return the run to compare with, or why there is none although one was requested."""
    if baseline is None:
        return None, ""
    before = find_baseline(get_runs_folder(spec.file).absolute(), baseline, spec, whole)
    if before is not None:
        return before, ""
    return None, f"--baseline {baseline}: no earlier ci run of {spec.path} is stored, so nothing was compared"


def _check_resumed(whole: RunDir, options: RunOptions, force: bool) -> RunOptions:
    """Return the options of the run to resume; raise UsageError if it has one part, or cannot be resumed with these
    options.
    """
    manifest = whole.read_manifest()
    if not manifest.parts:
        hint = f"continue it: {get_run_command(manifest.options.part)} --resume {quote(format_name(whole.path))}"
        raise UsageError(f"run {whole.id} has only one part", hint=hint, code="run-unusable")
    if not force:
        check_parts(whole)
    if other := manifest.options.find_changed_option(options):
        raise UsageError(
            f"{other} cannot be changed when a run is resumed", hint="leave it out", code="options-conflict"
        )
    return manifest.options.merge_resumed(options)


def _choose_parts(spec: Spec, options: RunOptions) -> tuple[Part, ...]:
    """Return the parts to run; a scenario with the contract's tasks yields both from the same trials.

    Known causes are tried first; shards do not divide them.
    """
    declared = spec.declares
    if declared and options.select.shard is None and (spec.hunt_trials or any(read_known_causes(spec).values())):
        declared = ("hunt", *declared)
    both = "scenario" in declared and not spec.has_golden
    return tuple(part for part in ORDER if part in declared and not (part == "contract" and both))


def _prepare_part(
    part: Part, spec: Spec, run_options: RunOptions, whole: RunDir | None, force: bool, warn: WarnOf | None
) -> Job:
    """Prepare one part: resume it if it was begun, otherwise start it. With `warn`, return warnings about the file."""
    # The minimum applies to the overall score; parts then tolerate non-critical failures.
    least = None if get_min_score(run_options, spec) is None else 0.0
    options, path = replace(run_options, part=part, min_score=least), Path(spec.path)
    if whole is not None and is_own_part(whole, whole.get_part(part)):
        rundir = whole.get_part(part)
        return resume_job(rundir, config=path, force=force, options=options, environ=os.environ)
    if part == "hunt":
        goal = HuntOptions(only_known=not spec.hunt_trials, replay_orphans=False)
        most = spec.hunt_trials or options.max_trials
        return prepare_hunt(path, replace(options, max_trials=most, min_score=None, replicas=None, hunt=goal))
    part_spec, problems = load_part(path, options)
    part_spec, warnings = build_part(part_spec, os.environ)
    if warn is not None:
        warnings = (*format_spec_warnings(part_spec, problems), *warnings, *warn(part_spec, options))
    return prepare_job(part_spec, options, warnings)


def get_min_score(options: RunOptions, spec: Spec) -> float | None:
    """Return the minimum of the overall score: from the command line, otherwise from the file."""
    return options.min_score if options.min_score is not None else spec.scoring.min_score
