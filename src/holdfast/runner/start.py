"""Beginning a run in a directory of its own, or taking up one that was left."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from msgspec.structs import replace

import holdfast
from holdfast.errors import UsageError
from holdfast.model.spec import Part, Problem, Spec
from holdfast.plan import Select
from holdfast.runner.job import Job, RunOptions, agent_digest, told
from holdfast.spec import load
from holdfast.store.rundir import FORMAT, Manifest, RunDir
from holdfast.store.seal_check import check

RUNS = Path(".holdfast") / "runs"


def begin(job: Job, runs: Path) -> RunDir:
    """A new run: its manifest and its copy of the spec are on disk before anything runs."""
    run = RunDir.create(runs)
    run.lock()
    options = job.options
    shutil.copyfile(job.spec.path, run.path / "spec.yaml")
    manifest = Manifest(
        format=FORMAT,
        id=run.id,
        version=holdfast.__version__,
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        spec_path=str(Path(job.spec.path)),
        root=str(Path(job.spec.path).resolve().parent),
        spec_digest=job.spec.digest,
        agent_digest=agent_digest(job.spec),
        seed=job.spec.seed,
        scenarios=options.select.scenarios,
        invariants=options.select.invariants,
        trials=options.select.trials,
        replicas=options.replicas,
        seed_given=options.seed,
        profile=options.profile,
        min_score=options.min_score,
        strict=options.strict,
        allow_vacuous=options.allow_vacuous,
        max_errors=options.max_errors,
        recording=None if options.replay is None else str(options.replay.resolve()),
        part=job.spec.part,
        backend=options.backend,
        strict_world=options.strict_world,
    )
    run.describe(manifest)
    return run


def take_up(run: RunDir, *, config: Path | None, force: bool, options: RunOptions, environ: Mapping[str, str]) -> Job:
    """The job of a run that was left; another spec or agent is refused unless forced."""
    manifest = run.manifest()
    _same_command(run, manifest, options)
    spec, problems = stored_spec(run, manifest, config, environ)
    changed = [
        what
        for what, before, now in (
            ("spec", manifest.spec_digest, spec.digest),
            ("agent", manifest.agent_digest, agent_digest(spec)),
        )
        if before != now
    ]
    if changed and not force:
        raise UsageError(
            f"the {' and the '.join(changed)} changed since run {run.id}; its results would be of two kinds",
            hint="start a new run, or insist with --force",
        )
    _refuse_another(manifest, options)
    said = check(run, force=force)
    options = replace(
        stored_options(manifest),
        concurrency=options.concurrency,
        fail_fast=options.fail_fast,
        preflight=options.preflight,
        min_score=options.min_score if options.min_score is not None else manifest.min_score,
        strict=options.strict or manifest.strict,
        allow_vacuous=options.allow_vacuous or manifest.allow_vacuous,
        max_errors=options.max_errors or manifest.max_errors,
        record=options.record,
        keep=options.keep,
        strict_world=options.strict_world or manifest.strict_world,
        allow_commands=options.allow_commands,
    )
    run.lock()
    verdict = {name: getattr(options, name) for name in ("min_score", "strict", "allow_vacuous", "max_errors")}
    run.describe(replace(manifest, **verdict))
    return Job(spec, options, environ, (*told(spec, problems), *((said,) if said else ())))


def stored_options(manifest: Manifest) -> RunOptions:
    """What the command line had asked of the run: its parts, its luck, and what counts as held."""
    return RunOptions(
        select=Select(manifest.scenarios, manifest.invariants, manifest.trials),
        min_score=manifest.min_score,
        strict=manifest.strict,
        max_errors=manifest.max_errors,
        allow_vacuous=manifest.allow_vacuous,
        replicas=manifest.replicas,
        seed=manifest.seed_given,
        profile=manifest.profile,
        replay=None if manifest.recording is None else Path(manifest.recording),
        backend=manifest.backend,
        strict_world=manifest.strict_world,
        part=manifest.part,
    )


def _same_command(run: RunDir, manifest: Manifest, given: RunOptions) -> None:
    """What a run reports was settled when it began."""
    if given.part != manifest.part:
        command = resuming(manifest.part)
        raise UsageError(f"run {run.id} was begun by {command}", hint=f"go on with it: {command} --resume {run.id}")


def resuming(part: Part) -> str:
    """The command that runs this part of a file."""
    return "holdfast run" if part == "scenario" else "holdfast contract run"


def _refuse_another(manifest: Manifest, given: RunOptions) -> None:
    """What is run was settled when the run began: an option that says otherwise is not passed over."""
    for option, now, before in (
        ("--scenario", given.select.scenarios, manifest.scenarios),
        ("--invariant", given.select.invariants, manifest.invariants),
        ("--trial", given.select.trials, manifest.trials),
        ("--replicas", given.replicas, manifest.replicas),
        ("--seed", given.seed, manifest.seed_given),
        ("--profile", given.profile, manifest.profile),
        ("--backend", None if given.backend == RunOptions().backend else given.backend, manifest.backend),
        ("--replay", given.replay and str(given.replay.resolve()), manifest.recording),
    ):
        if now not in (None, (), before):
            raise UsageError(
                f"{option} cannot be changed when a run is taken up", hint="leave it out, or start a new run"
            )


def stored_spec(
    run: RunDir, manifest: Manifest, config: Path | None, environ: Mapping[str, str]
) -> tuple[Spec, tuple[Problem, ...]]:
    """The spec a run was made of: its own copy, read as if it lay where it came from; or the one given."""
    path = config or run.path / "spec.yaml"
    spec, problems = load(
        path,
        environ=environ,
        seed=manifest.seed_given,
        replicas=manifest.replicas,
        profile=manifest.profile,
        copied_from=Path(manifest.root) if config is None else None,
        part=manifest.part,
    )
    if config is None:
        original = Path(manifest.spec_path)
        here = original if original.resolve().parent == Path(manifest.root) else Path(manifest.root) / original.name
        spec = replace(spec, path=str(here))
    return spec, problems
