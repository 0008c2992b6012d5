"""Finds a server's programs: on the path, where packages put them, or bundled in a wheel."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from glob import glob
from importlib.util import find_spec
from pathlib import Path

from msgspec import Struct


class ServerProgram(Struct, frozen=True):
    """A server on this machine."""

    program: Path
    version: str
    """As it says itself: `PostgreSQL 15.9`."""

    @property
    def prefix(self) -> Path:
        """The folder that holds all of it; for a wheel the one above its package, where its libraries are, too."""
        program = self.program.resolve()
        packages = [folder for folder in program.parents if (folder / "__init__.py").exists()]
        return packages[-1].parent if packages else program.parents[1]

    @property
    def numbers(self) -> tuple[int, ...]:
        said = re.search(r"\d+(?:\.\d+)*", self.version)
        return tuple(map(int, said[0].split("."))) if said else ()


def candidates(names: Sequence[str], places: Iterable[str], bundles: Iterable[tuple[str, str]]) -> Iterator[Path]:
    """Every program of these names, in the order in which it is preferred."""
    for name in names:
        on_path = shutil.which(name)
        if on_path:
            yield Path(on_path)
        for place in places:
            for path in sorted(glob(f"{place}/{name}"), key=_by_number, reverse=True):
                if os.access(path, os.X_OK):
                    yield Path(path)
        for module, folder in bundles:
            bundled = _bundled(module, folder, name)
            if bundled is not None:
                yield bundled


def choose(found: Sequence[ServerProgram], image: str | None) -> ServerProgram:
    """The one of the major version that the image asks for, else the first."""
    wanted = re.search(r":v?(\d+)", image or "")
    return next((f for f in found if wanted and f.numbers[:1] == (int(wanted[1]),)), found[0])


@lru_cache(maxsize=64)
def version(program: Path) -> str:
    """What it says of itself."""
    try:
        ran = subprocess.run([program, "--version"], capture_output=True, timeout=10, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return ran.stdout.decode("utf-8", "replace").strip().partition("\n")[0]


def note(spec_image: str | None, name: str, stands_in: str) -> tuple[str, ...]:
    """What the reader is told of the version that is used."""
    return (f"service {name}: {f'{spec_image} is served by' if spec_image else 'it is'} {stands_in} of this machine",)


def _bundled(module: str, folder: str, name: str) -> Path | None:
    spec = find_spec(module)
    if spec is None or not spec.submodule_search_locations:
        return None
    path = Path(next(iter(spec.submodule_search_locations))) / folder / name
    return path if os.access(path, os.X_OK) else None


def _by_number(path: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", path)))
