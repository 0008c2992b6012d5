"""Joins the shards of a run, wherever they were run, into one run that is judged as a whole."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from holdfast.errors import UsageError
from holdfast.model.codec import decoder
from holdfast.model.spec import run_command
from holdfast.plan.options import RunOptions
from holdfast.plan.select import Shard
from holdfast.runner.outcome import shown_path
from holdfast.store.blobs import Named
from holdfast.store.record import read_trial
from holdfast.store.run_names import PARTS
from holdfast.store.rundir import Manifest, RunDir, RunEnd, read_lines, write_json
from holdfast.store.seal_check import check
from holdfast.store.seals import seal_of

DEEPEST = 5
"""Folders down to which shards are looked for: an artifact of a CI job has `.holdfast/runs/0001` in a folder."""
_FOLDERS = ("traces", "audit", "blobs")
_HEX = frozenset("0123456789abcdef")
_named = decoder(Named)


class _Part(Struct, frozen=True):
    """One shard that was found."""

    run: RunDir
    manifest: Manifest
    shard: Shard
    ended: RunEnd

    def __str__(self) -> str:
        return shown_path(self.run.path)


def merge(paths: Sequence[Path], runs: Path, *, partial: bool = False) -> RunDir:
    """A new run that holds what the shards hold; UsageError says why they do not make one.

    `partial`: shards may be missing or unfinished; `--resume` then runs what is left.
    """
    parts = sorted((_part(run) for run in _found(paths)), key=lambda part: part.shard.number)
    _fit(parts)
    missing = tuple(_missing(parts))
    if missing and not partial:
        hint = "name all of them, or --partial to join what is there; --resume then runs the rest"
        raise UsageError(f"the run is not whole: {'; '.join(missing)}", hint=hint)
    said = [word for part in parts if (word := check(part.run))]
    run = RunDir.create(runs)
    run.lock()
    try:
        _join(parts, run)
        notes = (f"merged of {len(parts)} shards: {', '.join(map(str, parts))}", *missing)
        _end(parts, run, notes, said, complete=not missing)
    except BaseException:
        run.unlock()
        shutil.rmtree(run.path)
        raise
    run.unlock()
    return run


def _found(paths: Sequence[Path]) -> list[RunDir]:
    """The shards that lie there: each path is one, or a folder that has some below."""
    found: dict[Path, RunDir] = {}
    for path in paths:
        below = [path] if (path / "run.json").is_file() else list(_below(path, DEEPEST))
        shards = {place.resolve(): RunDir(place) for place in below if RunDir(place).manifest().options.select.shard}
        if not shards:
            what = "is no shard" if below == [path] else "holds no shard"
            hint = "a shard is the run directory of a command with --shard I/N: .holdfast/runs/0001"
            raise UsageError(f"{path} {what} of a run", hint=hint)
        for place in shards.keys() & found.keys():
            raise UsageError(f"{place} is named twice", hint="name each shard once")
        found |= shards
    return list(found.values())


def _below(folder: Path, deep: int) -> Iterator[Path]:
    """The runs below a folder."""
    try:
        inside = sorted(Path(entry.path) for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False))
    except OSError as refused:
        raise UsageError(f"{folder}: {refused.strerror}", hint="name the run directories of the shards") from refused
    for path in inside:
        if (path / "run.json").is_file():
            yield path
        elif deep > 1 and path.name != PARTS:
            yield from _below(path, deep - 1)


def _part(run: RunDir) -> _Part:
    manifest = run.manifest()
    shard = manifest.options.select.shard
    assert shard is not None, "it was found by its shard"
    return _Part(run, manifest, shard, run.ended() or RunEnd(False, 0.0))


# -- whether they fit ---------------------------------------------------------------------------------
def _fit(parts: Sequence[_Part]) -> None:
    """Refuses what is not of one run."""
    first = parts[0]
    for part in parts[1:]:
        for what, of in _SAME.items():
            if of(part) != of(first):
                raise UsageError(
                    f"{first} and {part} are not of one run: {what} differs",
                    hint="run every shard from the same files, with the same seed and options",
                )
    for one, other in pairwise(parts):
        if one.shard == other.shard:
            numbers = f"shard {one.shard.number} of {one.shard.of}"
            raise UsageError(f"{numbers} is given twice: {one} and {other}", hint="name each shard once")


def _made(part: _Part) -> bytes:
    """What was derived from the spec, where something was: mutations that a model wrote are not the same twice."""
    path = part.run.path / "part.json"
    return path.read_bytes() if path.is_file() else b""


_OWN = ("concurrency", "max_time_s", "keep", "preflight", "on", "send_secrets", "select")
"""Options that each shard may have its own way: they do not decide what is run."""


def _option(name: str) -> Callable[[_Part], object]:
    """What an option was, as far as it decides what is run."""
    return lambda part: getattr(part.manifest.options, name)


def _selected(part: _Part) -> object:
    return replace(part.manifest.options.select, shard=None)


_SAME: dict[str, Callable[[_Part], object]] = {
    "the number of shards": lambda part: part.shard.of,
    "the spec": lambda part: part.manifest.spec_digest,
    "the agent": lambda part: part.manifest.agent_digest,
    "the seed": lambda part: part.manifest.seed,
    "what variables gave for numbers": lambda part: part.manifest.settled,
    "the version of Holdfast": lambda part: part.manifest.version,
    "what was selected": _selected,
    **{f"--{name.replace('_', '-')}": _option(name) for name in RunOptions.__struct_fields__ if name not in _OWN},
    "what was made of the spec": _made,
}


def _missing(parts: Sequence[_Part]) -> Iterator[str]:
    """What is not there, in words."""
    of = parts[0].shard.of
    there = {part.shard.number for part in parts}
    lost = [str(number) for number in range(1, of + 1) if number not in there]
    if lost:
        one = len(lost) == 1
        yield f"shard{'' if one else 's'} {', '.join(lost)} of {of} {'is' if one else 'are'} missing"
    for part in parts:
        if not part.ended.complete or part.ended.unrun:
            again = f"{run_command(part.manifest.options.part)} --resume {part.run.path.name}"
            yield f"shard {part.shard.number} of {of} has not run to its end (there: {again})"


# -- joining them -------------------------------------------------------------------------------------
def _join(parts: Sequence[_Part], run: RunDir) -> None:
    first = parts[0]
    for name in ("spec.yaml", "part.json"):
        if (first.run.path / name).is_file():
            shutil.copyfile(first.run.path / name, run.path / name)
    options = first.manifest.options
    whole = replace(options, select=replace(options.select, shard=None))
    started = min(part.manifest.started for part in parts)
    run.describe(replace(first.manifest, id=run.id, options=whole, started=started))
    controls: set[str] = set()
    """Those of the shards before: many shards ask for the same calm answers, and the first of them counts."""
    for part in parts:
        controls |= _add(part, run, controls)


def _add(part: _Part, run: RunDir, known: set[str]) -> set[str]:
    """Adds a shard's records and files; the controls that it has."""
    source = part.run
    planned = source.path / "trials.jsonl"
    own = {trial.id for trial in map(read_trial, read_lines(planned)) if trial.kind == "control"}
    _append(run.path / planned.name, _of_others(planned, known, lambda line: read_trial(line).id))
    for path in source.observation_files():
        seen = _of_others(path, known, lambda line: _named.decode(line).trial)
        _append(run.path / "observations-0.jsonl", seen)
    _append(run.verdicts(), read_lines(source.verdicts()))
    if source.evidence().is_file():
        _append(run.evidence(), read_lines(source.evidence()))
    for name in _FOLDERS:
        _copy_files(source.path / name, run.path / name)
    return own


def _of_others(path: Path, known: set[str], trial: Callable[[bytes], str]) -> Iterator[bytes]:
    """The lines that are not of those trials."""
    return (line for line in read_lines(path) if not known or trial(line) not in known)


def _append(path: Path, lines: Iterable[bytes]) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600), "ab") as file:
        file.writelines(lines)


def _copy_files(source: Path, target: Path) -> None:
    """The files of a shard's folder that are called as a run calls them; what is there already is the same."""
    if not source.is_dir() or source.is_symlink():
        return
    target.mkdir(mode=0o700, exist_ok=True)
    for entry in os.scandir(source):
        stem = entry.name.removesuffix(".jsonl")
        if _HEX.issuperset(stem) and entry.is_file(follow_symlinks=False) and not (target / entry.name).exists():
            shutil.copyfile(entry.path, target / entry.name)


def _end(parts: Sequence[_Part], run: RunDir, notes: tuple[str, ...], said: list[str], *, complete: bool) -> None:
    """The end of the whole, and its seals."""
    ends = [part.ended for part in parts]
    whole = RunEnd(
        complete,
        max(end.duration_s for end in ends),
        tuple(dict.fromkeys(word for end in ends for word in end.warnings)),
        (*dict.fromkeys(word for end in ends for word in end.notes), *notes, *dict.fromkeys(said)),
        {path.name: seal for path in run.record_files() if (seal := seal_of(path)) is not None},
        tuple(dict.fromkeys(one for end in ends for one in end.isolation)),
        unasked=sum(end.unasked for end in ends),
    )
    write_json(run.path / "ended.json", whole)
