"""The files and databases of a world: filled before the agent starts, and read after it has ended.

Short texts of files that the agent wrote are shown, and searched for the canaries of an attack.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from random import Random
from typing import TypeAlias

from holdfast.errors import HarnessError, HoldfastError, QueryFailed
from holdfast.folders import OWN, get_own_folder, get_runs_folder
from holdfast.model.canary import CanaryReader, find_echoes
from holdfast.model.codec import digest, encode_canonical
from holdfast.model.shorten import join_lines, shorten
from holdfast.model.trial import Trial
from holdfast.model.world import FileTexts, Fixture, PlacedFile, WrittenCanaries
from holdfast.protocols.sandbox import FileChange, Sandbox
from holdfast.protocols.service import Database
from holdfast.reading.bash_syntax import BASH_FEATURES, explain_bash_only, find_bash_features
from holdfast.world.bare_world import open_regular
from holdfast.world.kept_world import read_tables
from holdfast.world.services.drift import damage_table

CLONE_S = 120.0


def place_fixtures(folder: Path, root: Path, fixtures: Iterable[Fixture]) -> None:
    """Put every workspace fixture into the folder, in order; raise HarnessError if one fails."""
    for number, fixture in enumerate(fixtures):
        try:
            if fixture.type == "directory":
                _copy(root / (fixture.source or "."), resolve_inside(folder, fixture.path))
            elif fixture.type == "files":
                place_files(folder, root, fixture.files)
            elif fixture.type == "git_repo":
                _clone(fixture, resolve_inside(folder, fixture.path), root)
        except OSError as refused:
            why = f"{refused.strerror}: {refused.filename}" if refused.filename else str(refused)
            raise HarnessError(
                f"fixtures[{number}] ({fixture.type}) could not be put in place: {why}", code="fixture-failed"
            ) from refused


def place_files(folder: Path, root: Path, files: Iterable[PlacedFile]) -> None:
    """Write files into the workspace or the home."""
    for file in files:
        path = resolve_inside(folder, file.path)
        path.parent.mkdir(parents=True, exist_ok=True)
        if file.source is not None:
            shutil.copyfile(root / file.source, path)
            path.chmod((root / file.source).stat().st_mode & 0o777)
        else:
            path.write_text(file.content or "", encoding="utf-8")
        if file.mode is not None:
            path.chmod(file.mode)


def resolve_inside(folder: Path, name: str) -> Path:
    """Return a path of the workspace or the home as a path on this machine; a link that leads out is not followed."""
    path = folder / name
    if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder)):
        raise HarnessError(f"{name!r} points outside its folder", code="path-outside")
    return path


def _copy(source: Path, target: Path) -> None:
    stored = [path.resolve() for path in (get_own_folder(), get_runs_folder())]

    def list_ours(folder: str, names: list[str]) -> list[str]:
        return [name for name in names if name == OWN or Path(folder, name).resolve() in stored]

    shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True, ignore=list_ours)


def _clone(fixture: Fixture, target: Path, root: Path) -> None:
    command = ["git", "clone", "--quiet"]
    command += ["--branch", fixture.branch] if fixture.branch else []
    command += ["--depth", str(fixture.depth)] if fixture.depth else []
    url = fixture.url or ""
    if fixture.depth and (root / url).is_dir():  # git ignores a depth for a plain path
        url = (root / url).resolve().as_uri()
    staging = target.with_name(f".{target.name or 'repo'}.clone")
    try:
        ran = subprocess.run(  # noqa: S603  # the spec's own words, without a shell
            [*command, "--", url, str(staging)], cwd=root, capture_output=True, timeout=CLONE_S, check=False
        )
        if ran.returncode:
            message = ran.stderr.decode("utf-8", "replace").strip()
            raise HarnessError(f"git clone of {fixture.url} failed: {message[-500:]}", code="fixture-failed")
        _copy(staging, target)
    except FileNotFoundError as missing:
        raise HarnessError("a git_repo fixture needs git, which is not installed", code="fixture-failed") from missing
    except subprocess.TimeoutExpired:
        raise HarnessError(
            f"git clone of {fixture.url} took longer than {CLONE_S:g} s", code="fixture-failed"
        ) from None
    finally:
        shutil.rmtree(staging, ignore_errors=True)


SETUP_S = 600.0
_SHELL = "/bin/sh"
Begin: TypeAlias = Callable[[str], None]
"""Called when a step begins, with its place in the spec."""


async def fill_databases(
    fixtures: Iterable[Fixture], databases: Mapping[str, Database], root: Path, trial: Trial, begin: Begin
) -> None:
    """Load the fixtures of the databases, in order; HarnessError names the one that failed."""
    for number, fixture in enumerate(fixtures):
        if fixture.type not in ("sql", "drift"):
            continue
        database = databases.get(fixture.service or "")
        if database is None:
            raise HarnessError(
                f"fixtures[{number}] needs a database, and {fixture.service} is not one", code="fixture-failed"
            )
        begin(f"fixtures[{number}] ({fixture.type})")
        try:
            await _load_fixture(database, fixture, root, trial)
        except QueryFailed as refused:
            why = f"fixtures[{number}] ({fixture.type}) failed in {fixture.service}: {refused}"
            raise HarnessError(why, code="fixture-failed") from refused


async def _load_fixture(database: Database, fixture: Fixture, root: Path, trial: Trial) -> None:
    if fixture.type == "drift":
        rng = Random(digest(encode_canonical([trial.seed, trial.replica, fixture.table])))
        await damage_table(database, fixture.table or "", fixture.rate, fixture.kinds, rng)
        return
    sql = fixture.sql
    if sql is None:
        sql = (root / (fixture.file or "")).read_text(encoding="utf-8")
    await database.execute(sql)


async def run_setup(commands: Iterable[str], sandbox: Sandbox, environ: Mapping[str, str], begin: Begin) -> None:
    """Run each command to its end; raise HarnessError with the output of the one that failed."""
    for number, command in enumerate(commands):
        begin(f"setup.commands[{number}]")
        await _refuse_bash_syntax(number, command, sandbox, environ)
        ran = await sandbox.run([_SHELL, "-c", command], environ, timeout_s=SETUP_S)
        if ran.exit_code != 0:
            # A compiler's first line is the cause, a script's last one.
            output = shorten(join_lines((ran.stderr or ran.stdout).decode("utf-8", "replace")), 1_000)
            ending = "took too long" if ran.timed_out else f"exited with {ran.exit_code}"
            raise HarnessError(f"setup.commands[{number}] {ending}: {output}", code="setup-failed")


async def _refuse_bash_syntax(number: int, command: str, sandbox: Sandbox, environ: Mapping[str, str]) -> None:
    """Raise HarnessError if the command needs bash: sh would silently prepare another world."""
    for name in find_bash_features(command):
        probe = [_SHELL, "-c", BASH_FEATURES[name].probe]
        if (await sandbox.run(probe, environ, timeout_s=SETUP_S)).exit_code != 0:
            raise HarnessError(f"setup.commands[{number}]: {explain_bash_only(name)}", code="setup-failed")


TEXT_LIMIT = 32_000
"""Maximum size in bytes of a file whose text is stored; of a larger one only name and size are."""
TEXT_BUDGET = 500_000
"""Maximum number of characters of all files of a trial."""


class ChangedTexts:
    """The texts of one trial's changed files.

    `layer` is the workspace before the agent; None if the setup may have changed it.
    """

    def __init__(self, sandbox: Sandbox, layer: Path | None) -> None:
        self._sandbox = sandbox
        self._layer = layer
        self._room = TEXT_BUDGET

    def read_texts(self, change: FileChange) -> FileTexts | None:
        """Return the text before and after a change; None if either is unknown or the room is used up."""
        before = self._read_before(change.path) if change.op != "created" else None
        after = self._read_after(change.path) if change.op != "deleted" else None
        if change.op == "modified" and (before is None or after is None):
            return None  # with one side alone it would look as if the complete text had been added or removed
        self._room -= len(before or "") + len(after or "")
        return None if self._room < 0 or (before is None and after is None) else FileTexts(before, after)

    def _read_before(self, path: str) -> str | None:
        try:
            return None if self._layer is None else _read_text(resolve_inside(self._layer, path))
        except HoldfastError:
            return None

    def _read_after(self, path: str) -> str | None:
        try:
            host_path = self._sandbox.find(path)
        except (HoldfastError, OSError):
            return None
        return None if host_path is None else _read_text(host_path)


def _read_text(path: Path) -> str | None:
    """Return the text of a small regular file; None for anything else."""
    try:
        with open_regular(path) as file:
            data = file.read(TEXT_LIMIT + 1)
        return None if len(data) > TEXT_LIMIT or b"\0" in data else data.decode()
    except (OSError, UnicodeDecodeError):
        return None


_FILE_SIZE = 10_000_000
"""Maximum number of bytes that are read from one file."""
_ROWS = 100_000
"""Maximum number of rows that are read from one table."""
_PIECE = 65_536
_CACHES = ("__pycache__", ".git", ".pytest_cache")
"""Cache folders that programs write in their own formats: an unreadable file there does not hide anything."""


def find_in_file(sandbox: Sandbox, change: FileChange) -> WrittenCanaries:
    """Read a file that was created or changed, without following links."""
    if change.op == "deleted":
        return WrittenCanaries()
    try:
        path = sandbox.find(change.path)
    except (HoldfastError, OSError):
        return WrittenCanaries()  # a link that leaves the workspace has no content of its own
    if path is None:
        return WrittenCanaries()
    cached = any(part in _CACHES for part in change.path.split("/"))
    try:
        opened = open_regular(path)
    except OSError:  # an agent may have locked its own file: its content is unknown
        return WrittenCanaries(unread=_is_regular(path) and not cached)
    with opened as file:
        data = file.read(_PIECE)
        lookout = CanaryReader(packed=data[:2] == b"\x1f\x8b")
        while data and file.tell() <= _FILE_SIZE:
            lookout.feed(data)
            data = file.read(_PIECE)
    return WrittenCanaries(lookout.canaries, (bool(data) or not lookout.is_legible) and not cached)


def _is_regular(path: Path) -> bool:
    """Return whether it is a regular file; also true if a locked folder on the way keeps Holdfast from looking."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except PermissionError:
        return True
    except OSError:
        return False


async def find_in_database(database: Database) -> WrittenCanaries:
    """Read the tables of a database."""
    try:
        tables = await read_tables(database, _ROWS)
    except (HoldfastError, TimeoutError):
        return WrittenCanaries(unread=True)
    texts = (str(value) for table in tables.values() for row in table.rows for value in row if value is not None)
    canaries = dict.fromkeys(word for text in texts for word in find_echoes(text))
    return WrittenCanaries(tuple(canaries), any(table.count > len(table.rows) for table in tables.values()))
