"""A run's directory: append-only JSON lines, one object per record, flushed as it is written.

JSONL is the truth. A torn last line, which kill -9 may leave, is dropped by readers.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct, json
from msgspec.structs import replace

from holdfast.errors import UserError
from holdfast.folders import OWN, get_own_folder_of
from holdfast.model.codec import (
    RUN_DIRECTORY,
    FormatNumber,
    LazyDecoder,
    create_decoder,
    digest,
    encode,
    format_too_new,
)
from holdfast.model.codes import RunNote, RunWarning
from holdfast.model.spec import Part
from holdfast.model.world import Isolation
from holdfast.plan import RunOptions
from holdfast.store.lines import SIZE, UNREADABLE, Seal, build_unreadable_error, compute_seal
from holdfast.store.run_folders import PARTS, find_run, get_id, get_single_run, is_written, list_parts

_FIX_FILE = "someone or the agent changed it: fix it, or start a new run"

T = TypeVar("T")


class Manifest(Struct, frozen=True, omit_defaults=True):
    """`run.json`: the run's inputs, and what `--resume` must find unchanged."""

    format: int
    id: str
    version: str
    started: str
    spec_path: str
    """As the user wrote it."""
    file: str
    """The spec's file itself, following links."""
    root: str
    """The spec's folder."""
    spec_digest: str
    agent_digest: str
    seed: int
    options: RunOptions
    """The command line options of the run."""
    settled: dict[str, str] = {}
    """The values of variables for the spec's numbers, by path."""
    masked: bool = False
    """The copy of the spec lacks literal secrets: to run the agent, the file itself is read."""
    parts: tuple[Part, ...] = ()
    """For a multi-part run: its parts, each a run in `parts/`."""
    concluded: tuple[str, ...] = ()
    """For a multi-part run that has ended: the folders of the parts that ran; none while it is resumed."""
    commit: str = ""
    """The commit of the spec's git repository when the run began; empty if there is none."""
    dirty: bool = False
    """There were uncommitted changes, or files of the spec and the agent are not in the commit."""
    branch: str = ""
    agent_files: dict[str, str] = {}
    """The digest of each file of the agent, by its path relative to the spec's folder."""
    files: str = ""
    """For a `--cached` run: the digest of all files next to the spec, and of what was installed."""
    variables: dict[str, str] = {}
    """For such a run: a mark for each inherited variable that changes with its value."""
    built: int = 0
    """For a spec built by Python code: its line in the file; 0: the spec is the file."""

    @property
    def original(self) -> Path:
        """The spec file of the run."""
        return Path(self.file)

    @property
    def written_path(self) -> Path:
        """The same as the user wrote it, unless that is another file now."""
        path = Path(self.spec_path)
        return path if path.resolve() == self.original else self.original


class RunEnd(Struct, frozen=True, omit_defaults=True):
    """The end of a run: `ended.json`, rewritten whenever the run stops."""

    complete: bool
    duration_s: float
    warnings: tuple[RunWarning, ...] = ()
    notes: tuple[RunNote, ...] = ()
    sealed: dict[str, Seal] = {}
    """The seals of the run's files, by name; empty while it runs, or if it was killed."""
    isolation: tuple[Isolation, ...] = ()
    """What the sandboxes of its trials enforced, and what they did not."""
    unrun: int = 0
    """Planned trials that did not run because of fail-fast."""
    unasked: int = 0
    """Planned trials that a budget left out."""
    stopped_by: str = ""
    """The option whose budget ended it: `--max-trials`."""
    stateful: bool = False
    """The agent seems to keep state between trials: they run one at a time, also when the run is resumed."""
    background: tuple[RunNote, ...] = ()
    """What is known of the world of every trial: its sandbox, its services, what the agent could see."""
    seal: str = ""
    """Of this file itself: a digest of all that is above."""

    def compute_seal(self) -> str:
        """Return the seal for its current content."""
        return digest(encode(replace(self, seal="")), SIZE)


def _decode(decode: Callable[[bytes], T], data: bytes, where: str, hint: str) -> T:
    """Decode a file; content that Holdfast did not write is a UserError, not a bug."""
    try:
        return decode(data)
    except UNREADABLE as broken:
        raise build_unreadable_error(where, broken, hint) from broken


def make_own_folder(path: Path) -> None:
    """Create the folder and make git ignore it; a folder with files of the user stays visible to git."""
    path.mkdir(parents=True, exist_ok=True)
    ignore = path / ".gitignore"
    if not ignore.exists() and (path.name == OWN or not any(path.iterdir())):
        ignore.write_text("*\n")


def write_json(path: Path, value: Any, *, indent: int = 0) -> None:
    """Replace the file in one step; with `indent`, for people to read."""
    text = encode(value)
    temporary = path.with_name(path.name + ".new")
    temporary.write_bytes((json.format(text, indent=indent) if indent else text) + b"\n")
    temporary.replace(path)


def read_json(path: Path, decode: LazyDecoder[T]) -> T:
    """Read a file with one value; raise UserError if it is malformed."""
    return _decode(decode.decode, path.read_bytes(), str(path), _FIX_FILE)


class RunDir:
    """One run's folder, locked while this process writes to it."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()  # an inline agent may change the working directory
        self._lock: int | None = None
        self._manifest: Manifest | None = None
        """What this process wrote: an agent without a sandbox may have changed the file."""

    @property
    def id(self) -> str:
        """`0007`, or `0007/contract` for a part."""
        return get_id(self.path)

    @property
    def parts(self) -> tuple[RunDir, ...]:
        """The runs of its parts, if it is a multi-part run."""
        return tuple(map(RunDir, list_parts(self.path)))

    def get_part(self, name: str) -> RunDir:
        """Return the folder of a part of this run."""
        return RunDir(self.path / PARTS / name)

    @property
    def own_folder(self) -> Path:
        """The folder with caches and kept worlds, shared by this run and later ones."""
        return get_own_folder_of(self.path.parents[2] if self.path.parent.name == PARTS else self.path.parent)

    def get_single(self) -> RunDir:
        """Return the run, or its only part; raise UsageError if it has several."""
        path = get_single_run(self.path)
        return self if path == self.path else RunDir(path)

    @classmethod
    def create(cls, runs: Path) -> RunDir:
        """Take the next free id with mkdir, so two runs never share one."""
        make_own_folder(get_own_folder_of(runs))
        if runs.parent.name == OWN:
            runs.mkdir(exist_ok=True)
        else:  # git also ignores the runs if the surrounding folder holds files of the user
            make_own_folder(runs)
        number = max((int(p.name) for p in runs.iterdir() if p.name.isdigit()), default=0)
        while True:
            number += 1
            try:
                # mkdir is atomic: of two processes that try the same number, one gets it and the other tries the next.
                (runs / f"{number:04d}").mkdir(mode=0o700)
            except FileExistsError:
                continue
            return cls(runs / f"{number:04d}")

    @classmethod
    def find(cls, runs: Path, name: str) -> RunDir:
        """Return a run by its id, `latest` or `last`, a part as `0007/contract`, or by a path to its folder."""
        return cls(find_run(runs, name, _is_by_product))

    def lock(self) -> None:
        """Reject a run that another process is writing."""
        fd = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            raise UserError(
                f"run {self.id} is being written by another process", hint="wait for it to end", code="run-busy"
            ) from None
        self._lock = fd

    def unlock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def discard_if_empty(self) -> None:
        """Remove a run without a trial, so a rejected start leaves nothing behind."""
        self.unlock()
        if any(p.stat().st_size for p in self.path.glob("observations-*.jsonl")):
            return
        shutil.rmtree(self.path)

    def write_manifest(self, manifest: Manifest) -> None:
        """Write `run.json` and remember its content."""
        self._manifest = manifest
        write_json(self.path / "run.json", manifest)

    def restore_manifest(self) -> None:
        """Restore `run.json`, now that no agent is running."""
        if self._manifest is not None:
            write_json(self.path / "run.json", self._manifest)

    def read_manifest(self) -> Manifest:
        if self._manifest is not None:
            return self._manifest
        path = self.path / "run.json"
        if not path.is_file():  # reading a pipe at this path would never end
            what = "no run.json: it was removed, or the run was killed at its start"
            what = "a run.json that is not a regular file" if os.path.lexists(path) else what
            raise UserError(
                f"run {self.id} has {what}", hint=f"restore it, or remove the rest: {self.path}", code="run-damaged"
            )
        data = path.read_bytes()
        number = _decode(create_decoder(FormatNumber).decode, data, str(path), _FIX_FILE).format
        if number != RUN_DIRECTORY:  # checked before its other keys, which may differ
            problem = format_too_new(f"run {self.id}", number, RUN_DIRECTORY)
            raise UserError(problem, hint="use the version of Holdfast that wrote it", code="run-too-new")
        return _decode(create_decoder(Manifest).decode, data, str(path), _FIX_FILE)

    def read_end(self) -> RunEnd | None:
        path = self.path / "ended.json"
        return (
            _decode(create_decoder(RunEnd).decode, path.read_bytes(), str(path), _FIX_FILE) if path.is_file() else None
        )

    def write_end(self, ended: RunEnd) -> None:
        """Write `ended.json`, sealed."""
        write_json(self.path / "ended.json", replace(ended, seal=ended.compute_seal()))

    def get_verdict_file(self, number: int = 1) -> Path:
        """Return a file of verdicts; the first is the run's own, the others come from rejudging."""
        return self.path / f"verdicts-{number}.jsonl"

    def get_evidence_file(self) -> Path:
        """Return the models' answers for the run's own verdicts; only if any was asked."""
        return self.path / "evidence-0.jsonl"

    def get_scenario_file(self) -> Path:
        """Return the file of scenarios that a planner invented; it exists only if a trial ran in one."""
        return self.path / "scenarios.jsonl"

    def list_observation_files(self) -> list[Path]:
        return sorted(path for path in self.path.glob("observations-*.jsonl") if path.is_file())


def _is_by_product(path: Path) -> bool:
    """Return whether the run only served a command: the calm trials of a map, the live trials of a hunt."""
    try:
        return RunDir(path).read_manifest().options.hunt.purpose != "hunt"
    except (OSError, UserError):
        return False


HUNT, MAP = "hunt.json", "map.json"
"""The files with the result of a hunt, and with the map of its calm trials; they exist only if it was concluded."""


def seal_hunt(run: RunDir) -> None:
    """Add the results of a hunt to the run's seal: a hunt is concluded after its run has ended."""
    ended = run.read_end()
    if ended is not None and ended.sealed:
        seals = {name: seal for name in (HUNT, MAP) if (seal := compute_seal(run.path / name)) is not None}
        run.write_end(replace(ended, sealed={**ended.sealed, **seals}))


def forget_hunt(run: RunDir) -> None:
    """Remove the result of a hunt that is resumed: nobody must mistake it for the new one."""
    ended = run.read_end()
    if ended is not None:  # first, because a sealed run without its result looks forged
        run.write_end(replace(ended, complete=False, sealed={}))
    for name in (HUNT, MAP):
        (run.path / name).unlink(missing_ok=True)


def list_verdict_files(run: RunDir) -> list[Path]:
    """Return all files of verdicts, newest last."""
    files = (path for path in run.path.glob("verdicts-*.jsonl") if path.stem.rpartition("-")[2].isdecimal())
    return sorted(files, key=get_number)


def list_record_files(run: RunDir) -> list[Path]:
    """Return everything that a verdict is based on: the manifest, the spec, and the records."""
    optional = [path for path in (run.get_evidence_file(), run.get_scenario_file()) if path.is_file()]
    lines = [run.path / "trials.jsonl", *run.list_observation_files(), run.get_verdict_file()]
    return [*list_documents(run), *lines, *optional]


def seal_documents(run: RunDir) -> dict[str, Seal]:
    """Return the current seals of the documents."""
    return {path.name: seal for path in list_documents(run) if (seal := compute_seal(path)) is not None}


def list_documents(run: RunDir) -> list[Path]:
    """List the files that are written before the first trial."""
    part = run.path / "part.json"
    return [run.path / "run.json", run.path / "spec.yaml", *([part] if part.is_file() else ())]


def is_in_progress(run: RunDir) -> bool:
    """Return whether the run is being written: by its first process, or by one that resumes it."""
    if not is_written(run.path):
        return False
    ended = run.read_end()
    return ended is None or not ended.complete  # a complete run is only rejudged


def get_number(verdicts: Path) -> int:
    """Return the number of a file of verdicts."""
    return int(verdicts.stem.rpartition("-")[2])
