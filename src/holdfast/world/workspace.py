"""What is in workspace and home before the agent comes: folders, files, repositories, as the spec asks for them."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from holdfast.errors import HarnessError
from holdfast.folders import OWN, own_folder, runs_folder
from holdfast.model.world import Fixture, PlacedFile

CLONE_S = 120.0


def lay_out(folder: Path, root: Path, fixtures: Iterable[Fixture]) -> None:
    """Puts every fixture that concerns the workspace into the folder, in order; HarnessError if one cannot be."""
    for number, fixture in enumerate(fixtures):
        try:
            if fixture.type == "directory":
                _copy(root / (fixture.source or "."), inside(folder, fixture.path))
            elif fixture.type == "files":
                place_files(folder, root, fixture.files)
            elif fixture.type == "git_repo":
                _clone(fixture, inside(folder, fixture.path), root)
        except OSError as refused:
            what = f"{refused.strerror}: {refused.filename}" if refused.filename else str(refused)
            raise HarnessError(f"fixtures[{number}] ({fixture.type}) could not be put in place: {what}") from refused


def place_files(folder: Path, root: Path, files: Iterable[PlacedFile]) -> None:
    """Writes files into the workspace or the home."""
    for file in files:
        path = inside(folder, file.path)
        path.parent.mkdir(parents=True, exist_ok=True)
        if file.source is not None:
            shutil.copyfile(root / file.source, path)
            path.chmod((root / file.source).stat().st_mode & 0o777)
        else:
            path.write_text(file.content or "", encoding="utf-8")
        if file.mode is not None:
            path.chmod(file.mode)


def inside(folder: Path, name: str) -> Path:
    """A path of the workspace or the home as a path on this machine; a link in it is not followed out."""
    path = folder / name
    if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder)):
        raise HarnessError(f"{name!r} leaves its folder")
    return path


def _copy(source: Path, target: Path) -> None:
    stored = [path.resolve() for path in (own_folder(), runs_folder())]

    def ours(folder: str, names: list[str]) -> list[str]:
        return [name for name in names if name == OWN or Path(folder, name).resolve() in stored]

    shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True, ignore=ours)


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
            said = ran.stderr.decode("utf-8", "replace").strip()
            raise HarnessError(f"git clone of {fixture.url} failed: {said[-500:]}")
        _copy(staging, target)
    except FileNotFoundError as missing:
        raise HarnessError("a git_repo fixture needs git, which is not installed") from missing
    except subprocess.TimeoutExpired:
        raise HarnessError(f"git clone of {fixture.url} took longer than {CLONE_S:g} s") from None
    finally:
        shutil.rmtree(staging, ignore_errors=True)
