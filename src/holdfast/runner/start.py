"""Starts a run in its own directory, or resumes one that was interrupted."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from shlex import quote

from msgspec import Struct
from msgspec.structs import replace

from holdfast.errors import UsageError, UserError
from holdfast.model.codec import RUN_DIRECTORY, create_decoder, digest
from holdfast.model.codes import RunWarning
from holdfast.model.scenario import Scenario
from holdfast.model.spec import PART_COMMANDS, BuiltText, Invariant, Part, Problem, Spec
from holdfast.model.task import Task
from holdfast.plan import RunOptions
from holdfast.plan.options import VERDICT
from holdfast.reading.fields import convert
from holdfast.runner.agent_files import describe_changes, digest_agent, digest_agent_files
from holdfast.runner.job import Job, format_spec_warnings
from holdfast.spec import LoadOptions, load
from holdfast.spec.secrecy import mask_source
from holdfast.store.git_commit import find_commit, is_dirty
from holdfast.store.run_folders import format_name
from holdfast.store.rundir import Manifest, RunDir, read_json, write_json
from holdfast.store.seal_check import check
from holdfast.version import __version__

FILES_SHOWN = 5
"""Changed files that are listed by name."""


def begin(job: Job, runs: Path, at: RunDir | None = None) -> RunDir:
    """Create a run: its manifest and its copy of the spec are on disk before anything runs.

    `at` is its folder if it is a part of a larger run.
    """
    if at is not None:
        at.path.mkdir(parents=True, mode=0o700)
    run = at or RunDir.create(runs)
    run.lock()
    recording = job.options.replay
    options = replace(job.options, part=job.spec.part, replay=recording and recording.resolve())
    manifest = _build_manifest(run, job.spec, options)
    if job.files:
        from holdfast.runner.past.cached import digest_variables

        manifest = replace(manifest, files=job.files, variables=digest_variables(job))
    run.write_manifest(manifest)
    write_part(run, job.spec)
    return run


def begin_whole(spec: Spec, options: RunOptions, runs: Path, parts: tuple[Part, ...]) -> RunDir:
    """Create a run of several parts; each part then starts in its own subfolder."""
    run = RunDir.create(runs)
    run.lock()
    run.write_manifest(replace(_build_manifest(run, spec, options), parts=parts))
    return run


def _build_manifest(run: RunDir, spec: Spec, options: RunOptions) -> Manifest:
    masked = _keep_spec(spec, run.path / "spec.yaml")
    files = digest_agent_files(spec)
    file = Path(spec.path).resolve()
    at = find_commit(file.parent)
    return Manifest(
        format=RUN_DIRECTORY,
        id=run.id,
        version=__version__,
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        spec_path=str(Path(spec.path)),
        root=str(file.parent),
        spec_digest=spec.digest,
        agent_digest=digest_agent(spec, files),
        agent_files=files,
        seed=spec.seed,
        options=options,
        settled=spec.settled,
        masked=masked,
        file=str(file),
        commit=at.commit,
        dirty=bool(at.commit) and is_dirty(file.parent, (file.name, *files)),
        branch=at.branch,
        built=0 if spec.built is None else spec.built.line,
    )


def _keep_spec(spec: Spec, copy: Path) -> bool:
    """Copy the file, and return whether literal secrets were left out."""
    source = Path(spec.path).read_bytes() if spec.built is None else spec.built.text.encode()
    text = source.decode("utf-8")
    masked = mask_source(text)
    copy.write_bytes(source if masked == text else masked.encode())
    return masked != text


def resume_job(
    run: RunDir, *, config: Path | None, force: bool, options: RunOptions, environ: Mapping[str, str]
) -> Job:
    """Return the job of an interrupted run; a changed spec or agent is rejected unless forced."""
    manifest = run.read_manifest()
    _check_command(run, manifest, options)
    if manifest.built:
        problem = f"Python code built the spec of run {run.id}, at {manifest.spec_path}:{manifest.built}"
        raise UsageError(problem, code="run-unusable", hint="run that code again")
    original = manifest.original
    if manifest.masked and config is None:
        if not original.is_file():
            problem = f"the copy of the spec in run {run.id} lacks its secrets, and {original} does not exist"
            raise UsageError(problem, code="run-unusable", hint="pass the file with -c FILE")
        config = original
    spec, problems = load_stored_spec(run, manifest, config, environ, reads_again=True)
    edited = () if config is not None else _warn_edited(run, original)
    mixed = _warn_mixed(_describe_inputs(run, manifest, spec), force=force)
    other = manifest.options.find_changed_option(options)
    if other:
        raise UsageError(
            f"{other} cannot be changed when a run is resumed",
            code="run-changed",
            hint="leave it out, or start a new run",
        )
    warning = check(run, force=force)
    options = manifest.options.merge_resumed(options)
    run.lock()
    verdict = {name: getattr(options, name) for name in VERDICT}
    run.write_manifest(replace(manifest, options=replace(manifest.options, **verdict)))
    forged = (RunWarning("run-forged", warning),) if warning else ()
    warnings = (*format_spec_warnings(spec, problems), *mixed, *forged, *edited)
    return Job(spec, options, environ, warnings, resumed=run)


def _warn_mixed(changes: str, *, force: bool) -> tuple[RunWarning, ...]:
    """Return a warning if the results will not be of one spec and agent; raise UsageError unless that is forced."""
    if not changes:
        return ()
    if not force:
        hint = "change it back, start a new run, or override with --force"
        raise UsageError(f"{changes}; its results could not be combined", code="run-changed", hint=hint)
    return (RunWarning("run-mixed", f"{changes}: its results combine trials from before and after"),)


def _warn_edited(run: RunDir, original: Path) -> tuple[RunWarning, ...]:
    """Return a warning if the file is not the copy that the run continues with: its user may expect the new text."""
    if not original.is_file() or original.read_bytes() == (run.path / "spec.yaml").read_bytes():
        return ()
    problem = (
        f"{original.name} was edited after run {run.id} began: the run continues with its own copy of the old version"
    )
    return (RunWarning("spec-edited", f"{problem}. Start a new run to use the new one"),)


def _describe_inputs(run: RunDir, manifest: Manifest, spec: Spec) -> str:
    """Return what changed since the run began, so that its results would not be comparable; empty if nothing did."""
    files = digest_agent_files(spec)
    changed = {"spec": manifest.spec_digest != spec.digest, "agent": manifest.agent_digest != digest_agent(spec, files)}
    if any(changed.values()):
        names = describe_changes(manifest.agent_files, files)
        which = f" ({', '.join(names[:FILES_SHOWN])}{', …' if names[FILES_SHOWN:] else ''})" if names else ""
        what = " and the ".join(name for name, differs in changed.items() if differs)
        return f"the {what} changed since run {run.id}{which}"
    before, now = manifest.settled, spec.settled
    for path in (*before, *now):  # the values of variables
        if before.get(path) != now.get(path):
            was = f"{path} was {before.get(path, 'not given by a variable')} when run {run.id} began"
            return f"{was}, and is {now.get(path, 'without a value')} now"
    return ""


def _check_command(run: RunDir, manifest: Manifest, options: RunOptions) -> None:
    """Reject other report options: they were fixed when the run began."""
    part = manifest.options.part  # what the run was started for
    part = "scenario" if part == "run" or part == "ci" or part == "verify" else part
    if options.part != part and not (options.part == "run" and part in ("scenario", "mutation", "chaos")):
        command = PART_COMMANDS[part]
        raise UsageError(
            f"run {run.id} was started by {command}",
            code="run-changed",
            hint=f"continue it: {command} --resume {quote(format_name(run.path))}",
        )


def _find_spec_copy(run: RunDir, manifest: Manifest) -> Path:
    """Return the run's copy of the spec; if that lacks secrets, the original file, provided it is unchanged.

    Raise UserError if there is no copy.
    """
    original = manifest.original
    if (
        manifest.masked
        and not manifest.built
        and original.is_file()
        and digest(original.read_bytes(), 16) == manifest.spec_digest
    ):
        return original
    copy = run.path / "spec.yaml"
    if not copy.is_file():
        problem = f"run {run.id}: its own copy of the spec, {copy}, is missing or not a file"
        hint = f"restore it (it was made from {manifest.original}), or run it again"
        raise UserError(problem, code="run-unusable", hint=hint)
    return copy


def load_stored_spec(
    run: RunDir,
    manifest: Manifest,
    config: Path | None,
    environ: Mapping[str, str],
    *,
    reads_again: bool = False,
    built: BuiltText | None = None,
) -> tuple[Spec, tuple[Problem, ...]]:
    """Return the spec of a stored run: its own copy, resolved as if it lay at its original place, or the file in
    `config`.

    Variables for numbers keep the run's values; with `config` they are read again. `built` are rules built by Python
    code; `config` is then the file of that code.
    """
    path = config or _find_spec_copy(run, manifest)
    if config is None and manifest.built:
        built = BuiltText(path.read_text(encoding="utf-8"), manifest.built)
        path = Path(manifest.spec_path)
    spec, problems = load(
        path,
        environ=environ,
        options=convert(
            LoadOptions,
            manifest.options,
            copied_from=Path(manifest.root) if config is None else None,
            settled=None if reads_again or config is not None else manifest.settled,
            built=built,
        ),
    )
    spec = apply_part(run, spec, own_rules=config is not None and not reads_again)
    if config is None:
        spec = replace(spec, path=str(manifest.written_path))
        if spec.name == path.stem:  # the copy's value: the file sets no other
            spec = replace(spec, name=Path(manifest.spec_path).stem)
    return spec, problems


_NAME = "part.json"


class PartFile(Struct, frozen=True):
    """The generated tasks, the rules that judge them, and the scenarios of sessions."""

    tasks: tuple[Task, ...]
    invariants: tuple[Invariant, ...]
    scenarios: tuple[Scenario, ...]


def write_part(run: RunDir, spec: Spec) -> None:
    """Store what was derived from the spec, if anything was."""
    if spec.part in ("mutation", "replay"):
        write_json(run.path / _NAME, PartFile(spec.tasks, spec.invariants, spec.scenarios))


def apply_part(run: RunDir, spec: Spec, *, own_rules: bool = False) -> Spec:
    """Return the spec with the tasks, rules and scenarios that the run began with; `own_rules`: with the spec's own
    rules.
    """
    path = run.path / _NAME
    if not path.is_file():
        return spec
    stored = read_json(path, create_decoder(PartFile))
    if not own_rules:
        return replace(spec, tasks=stored.tasks, invariants=stored.invariants, scenarios=stored.scenarios)
    if spec.part == "replay":
        hint = "replay the sessions again: holdfast replay run -c FILE"
        raise UsageError(
            f"run {run.id}: its sessions are judged by the contracts they name", hint=hint, code="run-unusable"
        )
    return replace(spec, tasks=stored.tasks, invariants=tuple(rule.with_task_probes() for rule in spec.invariants))
