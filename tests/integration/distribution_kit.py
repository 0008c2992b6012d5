"""Holdfast installed in an environment of the distribution's own Python, and commands run in it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import holdfast

PYTHON = Path("/usr/bin/python3")
ROOT = Path(__file__).parents[2]
USERS = ("root", "ordinary") if os.getuid() == 0 else ("ordinary",)
_ORDINARY = ("setpriv", "--reuid", "1000", "--regid", "1000", "--clear-groups", "env")


def install(folder: Path) -> Path:
    """Makes the environment; gives the command. Skips where the distribution has no Python."""
    version = _version()
    subprocess.run([PYTHON, "-m", "venv", "--without-pip", folder], check=True)
    packages = folder / "lib" / f"python{version}" / "site-packages"
    if version == f"{sys.version_info.major}.{sys.version_info.minor}":
        for name in sorted(_needed(Requirement("holdfast"), set()) - {"holdfast"}):
            _copy(name, packages)
    else:
        pip = [sys.executable, "-m", "pip", "--python", folder / "bin" / "python", "install", "--quiet"]
        subprocess.run([*pip, "--require-hashes", "-r", ROOT / "requirements" / "base.txt"], check=True)
    source = Path(holdfast.__file__).parent
    shutil.copytree(source, packages / "holdfast", ignore=shutil.ignore_patterns("__pycache__"))
    program = folder / "bin" / "holdfast"
    program.write_text(f"#!{folder}/bin/python\nfrom holdfast.cli import main\nmain()\n")
    program.chmod(0o755)
    return program


def run(user: str, folder: Path, command: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A command of `holdfast` in a folder, as root or as a user without rights."""
    env = {"PATH": f"{command.parent}:/usr/bin:/bin", "HOME": str(folder), "TMPDIR": str(folder), "LANG": "C.UTF-8"}
    drop = _ORDINARY if user == "ordinary" and os.getuid() == 0 else ()
    return subprocess.run(
        [*drop, str(command), *words], cwd=folder, env=env, capture_output=True, text=True, timeout=120
    )


def _version() -> str:
    """The distribution's Python, as 3.11; skips where there is none that Holdfast runs on."""
    missing = f"{PYTHON} is not there"
    if PYTHON.exists():
        words = [PYTHON, "-c", "import sys, venv; print(*sys.version_info[:2], sep='.')"]
        asked = subprocess.run(words, capture_output=True, text=True, check=True)
        found = asked.stdout.strip()
        if tuple(map(int, found.split("."))) >= (3, 11):
            return found
        missing = f"{PYTHON} is {found}, and Holdfast needs 3.11"
    pytest.skip(missing)


def _needed(asked: Requirement, found: set[str]) -> set[str]:
    """The names of what a package needs here, its own among them."""
    found.add(asked.name)
    for line in distribution(asked.name).requires or ():
        part = Requirement(line)
        wanted = part.marker is None or any(part.marker.evaluate({"extra": extra}) for extra in ("", *asked.extras))
        if wanted and part.name not in found:
            _needed(part, found)
    return found


def _copy(name: str, packages: Path) -> None:
    for file in distribution(name).files or ():
        if ".." not in file.parts and "__pycache__" not in file.parts:
            target = packages / file
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(str(file.locate()), target)
