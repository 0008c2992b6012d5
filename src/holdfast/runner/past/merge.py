"""Joins the shards of a run, wherever they ran, into one run that is judged as a whole."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import asdict, replace

from holdfast.errors import UsageError
from holdfast.folders import shorten_path
from holdfast.model.codec import create_decoder
from holdfast.model.codes import RunNote
from holdfast.model.run import PartResult
from holdfast.model.spec import Part, get_run_command
from holdfast.plan.select import Shard
from holdfast.runner.whole import read_overall
from holdfast.store.blobs import TrialName
from holdfast.store.lines import compute_seal, read_lines
from holdfast.store.record import read_trial
from holdfast.store.run_folders import PARTS
from holdfast.store.rundir import Manifest, RunDir, RunEnd, list_record_files
from holdfast.store.seal_check import check

DEEPEST = 5
"""How deep to look for shards: a CI artifact has `.holdfast/runs/0001` in a folder."""
_FOLDERS = ("traces", "audit", "blobs")
_HEX = frozenset("0123456789abcdef")
_named = create_decoder(TrialName)


class FoundShard(Struct, frozen=True):
    """One shard: a run, or a part of one."""

    run: RunDir
    manifest: Manifest
    shard: Shard
    ended: RunEnd

    def __str__(self) -> str:
        return shorten_path(self.run.path)


class MergedRun(NamedTuple):
    """The run that the shards make together."""

    run: RunDir
    skipped_parts: tuple[PartResult, ...] = ()
    """For a multi-part run: the parts that no shard was to run, and why."""


def find_shards(paths: Sequence[Path]) -> list[FoundShard]:
    """Return the shards below the paths, in order; UsageError says why they do not belong to one run."""
    shards = sorted((_read_shard(run) for run in _find_runs(paths)), key=lambda one: one.shard.number)
    _check_shards(shards)
    return shards


def merge(shards: Sequence[FoundShard], runs: Path, *, partial: bool = False) -> MergedRun:
    """Create a run with the content of the shards; UsageError says what is missing.

    `partial`: shards may be missing or unfinished; `--resume` then runs what is left.
    """
    by_part = {part: _list_begun(part, shards) for part in shards[0].manifest.parts}
    for begun in by_part.values():
        _check_shards(begun)  # mutations that a model wrote are stored with their part
    missing = (*_describe_missing(shards), *_describe_unfinished(shards, by_part))
    if missing and not partial:
        hint = "name all of them, or use --partial to join these; --resume then runs the rest"
        raise UsageError(f"the run is incomplete: {'; '.join(missing)}", code="shards-missing", hint=hint)
    run = RunDir.create(runs)
    run.lock()
    try:
        if by_part:
            _describe(shards, run)
        for part, own in by_part.items():
            if own:
                run.get_part(part).path.mkdir(parents=True, mode=0o700)
                _join(own, run.get_part(part), missing)
        if not by_part:
            _join(shards, run, missing)
    except BaseException:
        run.unlock()
        shutil.rmtree(run.path)
        raise
    run.unlock()
    first = shards[0]
    ended = read_overall(first.run) if by_part else None
    skipped = [one for one in ended.parts if one.part not in by_part and not one.ran] if ended else []
    return MergedRun(run, tuple(skipped))


def _list_begun(part: Part, shards: Sequence[FoundShard]) -> list[FoundShard]:
    """Return the shards that have begun this part."""
    places = (one.run.get_part(part) for one in shards)
    return [_read_shard(place) for place in places if (place.path / "run.json").is_file()]


def _find_runs(paths: Sequence[Path]) -> list[RunDir]:
    """Return the shards at the paths: each path is a run, or a folder that contains some."""
    runs: dict[Path, RunDir] = {}
    for path in paths:
        below = [path] if (path / "run.json").is_file() else list(_scan_folder(path, DEEPEST))
        shards = {
            place.resolve(): RunDir(place) for place in below if RunDir(place).read_manifest().options.select.shard
        }
        if not shards:
            problem = "is not a shard" if below == [path] else "holds no shard"
            hint = "a shard is the run directory of a command with --shard I/N: .holdfast/runs/0001"
            raise UsageError(f"{path} {problem} of a run", code="shards-missing", hint=hint)
        for place in shards.keys() & runs.keys():
            raise UsageError(f"{place} is named twice", code="shards-differ", hint="name each shard once")
        runs |= shards
    return list(runs.values())


def _scan_folder(folder: Path, deep: int) -> Iterator[Path]:
    """Yield the runs below a folder."""
    try:
        inside = sorted(Path(entry.path) for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False))
    except OSError as refused:
        raise UsageError(
            f"{folder}: {refused.strerror}", code="file-unusable", hint="name the run directories of the shards"
        ) from refused
    for path in inside:
        if (path / "run.json").is_file():
            yield path
        elif deep > 1 and path.name != PARTS:
            yield from _scan_folder(path, deep - 1)


def _read_shard(run: RunDir) -> FoundShard:
    manifest = run.read_manifest()
    shard = manifest.options.select.shard
    assert shard is not None, "it was found by its shard"
    return FoundShard(run, manifest, shard, run.read_end() or RunEnd(False, 0.0))


# -- whether they fit ---------------------------------------------------------------------------------
def _check_shards(shards: Sequence[FoundShard]) -> None:
    """Reject shards that do not belong to one run."""
    for other in shards[1:]:
        first, inputs = shards[0], _list_inputs(other)
        for what, value in _list_inputs(first).items():
            if inputs[what] != value:
                hint = "run every shard from the same files, with the same seed and options"
                problem = f"{first} and {other} do not belong to one run: {what} differs"
                raise UsageError(problem, code="shards-differ", hint=hint)
    for one, other in pairwise(shards):
        if one.shard == other.shard:
            numbers = f"shard {one.shard.number} of {one.shard.of}"
            raise UsageError(
                f"{numbers} is given twice: {one} and {other}", code="shards-differ", hint="name each shard once"
            )


def _read_part(one: FoundShard) -> bytes:
    """Return the digest of prompts derived from the spec: a model does not write the same mutations twice."""
    path = one.run.path / "part.json"
    return path.read_bytes() if path.is_file() else b""


_OWN = ("concurrency", "max_time_s", "keep", "preflight", "on", "send_secrets", "select", "part", "hunt")
"""Options that may differ between shards, and three that are compared by meaning: `select`, `part` and `hunt`."""


def _list_inputs(one: FoundShard) -> dict[str, object]:
    """List everything that decides which trials of a shard exist, and how they are judged.

    Options that only change speed or place are left out, so every machine may use its own.
    """
    manifest = one.manifest
    options = {name: value for name, value in asdict(manifest.options).items() if name not in _OWN}
    return {
        "the command": manifest.options.part,
        "which parts were run": manifest.parts,
        "the number of shards": one.shard.of,
        "the spec": manifest.spec_digest,
        "the agent": manifest.agent_digest,
        "the seed": manifest.seed,
        "numbers that variables set": manifest.settled,
        "the version of Holdfast": manifest.version,
        "what was selected": replace(manifest.options.select, shard=None),
        **{f"--{name.replace('_', '-')}": value for name, value in options.items()},
        # A shard that runs after another knows the causes that the other has found.
        "what is hunted (--order, --sweep, --cause, --confirm-live)": replace(
            manifest.options.hunt, known=(), orphans=()
        ),
        "the resolved spec": _read_part(one),
    }


def _describe_missing(shards: Sequence[FoundShard]) -> Iterator[str]:
    """Describe the missing shards."""
    of = shards[0].shard.of
    present = {one.shard.number for one in shards}
    lost = [str(number) for number in range(1, of + 1) if number not in present]
    if lost:
        shard, is_ = ("shard", "is") if len(lost) == 1 else ("shards", "are")
        yield f"{shard} {', '.join(lost)} of {of} {is_} missing"


def _describe_unfinished(shards: Sequence[FoundShard], by_part: Mapping[Part, Sequence[FoundShard]]) -> Iterator[str]:
    """Describe the shards that have trials left to run."""
    for one in shards:
        own = [its for part in by_part.values() for its in part if its.shard == one.shard] if by_part else [one]
        whole = len(own) == max(1, len(by_part))
        if not whole or any(not its.ended.complete or its.ended.unrun for its in own):
            command = "holdfast ci" if by_part else get_run_command(one.manifest.options.part)
            again = f"{command} --resume {one.run.path.name}"
            yield f"shard {one.shard.number} of {one.shard.of} is unfinished; finish it on its machine: {again}"


# -- joining them -------------------------------------------------------------------------------------
def _describe(shards: Sequence[FoundShard], run: RunDir) -> None:
    """Write the joined run's manifest and its copy of the spec."""
    first = shards[0]
    for name in ("spec.yaml", "part.json"):
        if (first.run.path / name).is_file():
            shutil.copyfile(first.run.path / name, run.path / name)
    options = first.manifest.options
    hunts = [one.manifest.options.hunt for one in shards]
    hunt = replace(
        options.hunt,
        known=tuple({(one.scenario.name, one.prompt): one for hunt in hunts for one in hunt.known}.values()),
        orphans=tuple(dict.fromkeys(id for hunt in hunts for id in hunt.orphans)),
        joined=options.part == "hunt",
    )
    whole = replace(options, select=replace(options.select, shard=None), hunt=hunt)
    started = min(one.manifest.started for one in shards)
    run.write_manifest(replace(first.manifest, id=run.id, options=whole, started=started, concluded=()))


def _join(shards: Sequence[FoundShard], run: RunDir, missing: tuple[str, ...]) -> None:
    """Join the shards of one part, or those that are present."""
    warnings = [word for one in shards if (word := check(one.run))]
    _describe(shards, run)
    # Controls run in every shard, and the shards of a hunt may run the same trial. The first shard that has such a
    # trial gives its records, and the others' are dropped; two observations of one trial would be counted twice.
    repeated: set[str] = set()
    for one in shards:
        repeated |= _add(one, run, repeated)
    notes = (f"merged from {len(shards)} shards: {', '.join(map(str, shards))}", *missing)
    _write_end(shards, run, notes, warnings, complete=not missing)


def _add(one: FoundShard, run: RunDir, known: set[str]) -> set[str]:
    """Add a shard's records and files, and return those of its trials that other shards may have, too."""
    source, is_hunt = one.run, one.manifest.options.part == "hunt"
    planned = source.path / "trials.jsonl"
    own = {trial.id for trial in map(read_trial, read_lines(planned)) if is_hunt or trial.kind == "control"}
    if source.get_scenario_file().is_file():
        _append(run.get_scenario_file(), read_lines(source.get_scenario_file()))
    _append(run.path / planned.name, _filter_lines(planned, known, lambda line: read_trial(line).id))
    for path in source.list_observation_files():
        lines = _filter_lines(path, known, lambda line: _named.decode(line).trial)
        _append(run.path / "observations-0.jsonl", lines)
    verdicts = _filter_lines(
        source.get_verdict_file(), known if is_hunt else set(), lambda line: _named.decode(line).trial
    )
    _append(run.get_verdict_file(), verdicts)
    if source.get_evidence_file().is_file():
        _append(run.get_evidence_file(), read_lines(source.get_evidence_file()))
    for name in _FOLDERS:
        _copy_files(source.path / name, run.path / name)
    return own


def _filter_lines(path: Path, known: set[str], trial: Callable[[bytes], str]) -> Iterator[bytes]:
    """Return the lines that do not belong to those trials."""
    return (line for line in read_lines(path) if not known or trial(line) not in known)


def _append(path: Path, lines: Iterable[bytes]) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600), "ab") as file:
        file.writelines(lines)


def _copy_files(source: Path, target: Path) -> None:
    """Copy the files of a shard that belong to a run; a file that exists already is identical."""
    if not source.is_dir() or source.is_symlink():
        return
    target.mkdir(mode=0o700, exist_ok=True)
    for entry in os.scandir(source):
        stem = entry.name.removesuffix(".jsonl")
        if _HEX.issuperset(stem) and entry.is_file(follow_symlinks=False) and not (target / entry.name).exists():
            shutil.copyfile(entry.path, target / entry.name)


def _write_end(
    shards: Sequence[FoundShard], run: RunDir, notes: tuple[str, ...], warnings: list[str], *, complete: bool
) -> None:
    """Write the end of the joined run, and seal it."""
    ends = [one.ended for one in shards]
    whole = RunEnd(
        complete,
        max(end.duration_s for end in ends),
        tuple(dict.fromkeys(word for end in ends for word in end.warnings)),
        (
            *dict.fromkeys(note for end in ends for note in end.notes),
            *(RunNote("merged", text) for text in notes),
            *(RunNote("unsealed", text) for text in dict.fromkeys(warnings)),
        ),
        {path.name: seal for path in list_record_files(run) if (seal := compute_seal(path)) is not None},
        tuple(dict.fromkeys(one for end in ends for one in end.isolation)),
        unasked=sum(end.unasked for end in ends),
        stopped_by=next((end.stopped_by for end in ends if end.stopped_by), ""),
        stateful=any(end.stateful for end in ends),
        background=tuple(dict.fromkeys(word for end in ends for word in end.background)),
    )
    run.write_end(whole)
