"""The programs of servers: where they are, and `wait_for`."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from glob import glob
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from msgspec import Struct

from holdfast.errors import HarnessError, ServiceFailed
from holdfast.model.world import ServiceSpec
from holdfast.processes.program import run_child
from holdfast.world.services.confinement import User, build_user_options, find_confinement, is_readable


def refuse_unconfined(user: User | None) -> None:
    """Raise HarnessError if servers of that user are unconfined: an agent's code would run with the user's rights."""
    confinement, why = find_confinement(user)
    if confinement is None:
        raise HarnessError(
            f"an agent's data is only loaded into a confined server, but nothing confines one here: {why}",
            code="service-unconfined",
        )


def find_sibling(program: Path, *names: str) -> Path:
    """Return a program of one of these names next to the server's; raise HarnessError if there is none."""
    real = program.resolve()
    folders = (real.parent, real.parent.parent / "bin", program.parent)
    for path in (folder / name for folder in folders for name in names):
        if os.access(path, os.X_OK):
            return path
    raise ServiceFailed(f"{program} has no {names[0]} next to it")


class ServerProgram(Struct, frozen=True):
    """A server on this machine."""

    program: Path
    version: str
    """Its own description, such as `PostgreSQL 15.9`."""

    @property
    def prefix(self) -> Path:
        """The folder with all its files; for a wheel the one above its package, where its libraries are, too."""
        program = self.program.resolve()
        packages = [folder for folder in program.parents if (folder / "__init__.py").exists()]
        return packages[-1].parent if packages else program.parents[1]

    @property
    def numbers(self) -> tuple[int, ...]:
        match = re.search(r"\d+(?:\.\d+)*", self.version)
        return tuple(map(int, match[0].split("."))) if match else ()


def list_candidates(names: Sequence[str], places: Iterable[str], bundles: Iterable[tuple[str, str]]) -> Iterator[Path]:
    """Yield every program with one of these names, in order of preference."""
    for name in names:
        on_path = shutil.which(name)
        if on_path:
            yield Path(on_path)
        for place in places:
            newest_first = sorted(glob(f"{place}/{name}"), key=lambda path: [*map(int, re.findall(r"\d+", path))])[::-1]
            for path in newest_first:
                if os.access(path, os.X_OK):
                    yield Path(path)
        for module, folder in bundles:
            bundled = _find_bundled(module, folder, name)
            if bundled is not None:
                yield bundled


def list_servers(
    user: User | None,
    names: Sequence[str],
    describe: Callable[[str], str],
    places: Iterable[str],
    bundles: Iterable[tuple[str, str]] = (),
) -> list[ServerProgram]:
    """Return the servers of these names that the user may run, in order of preference.

    `describe` turns the text of `--version` into a description.
    """
    return [
        ServerProgram(path, describe(text))
        for path in list_candidates(names, places, bundles)
        if is_readable(path, user) and (text := read_version(path))
    ]


def choose(servers: Sequence[ServerProgram], image: str | None) -> ServerProgram:
    """Return the program of the major version that the image names, else the first."""
    wanted = re.search(r":v?(\d+)", image or "")
    return next((f for f in servers if wanted and f.numbers[:1] == (int(wanted[1]),)), servers[0])


@lru_cache(maxsize=64)
def read_version(program: Path) -> str:
    """Return the program's own version text."""
    try:
        ran = subprocess.run([program, "--version"], capture_output=True, timeout=10, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return ran.stdout.decode("utf-8", "replace").strip().partition("\n")[0]


def _find_bundled(module: str, folder: str, name: str) -> Path | None:
    spec = find_spec(module)
    if spec is None or not spec.submodule_search_locations:
        return None
    path = Path(next(iter(spec.submodule_search_locations))) / folder / name
    return path if os.access(path, os.X_OK) else None


WAIT_S = 30.0
PAUSE_S = 0.1
_READINESS_TESTS = re.compile(
    r"\s*(?:pg_isready\b|(?:redis-cli|valkey-cli)\b.*\bping\b|(?:mysqladmin|mariadb-admin)\b.*\bping\b|healthcheck\.sh\b)"
    r"[^;&|]*",
    re.IGNORECASE,
)
"""Commands that only test whether the server accepts connections, which Holdfast has tested already."""


async def wait_for(spec: ServiceSpec, address: Mapping[str, str], user: User | None) -> None:
    """Run the command until it succeeds, with the service's address in its environment."""
    if spec.wait_for is None or _READINESS_TESTS.fullmatch(spec.wait_for):
        return
    until = time.monotonic() + WAIT_S
    while True:
        code, text = await _try(spec.wait_for, address, user, until - time.monotonic())
        if code == 0:
            return
        if time.monotonic() + PAUSE_S >= until:
            raise ServiceFailed(
                f"service {spec.name}: wait_for did not succeed in {WAIT_S:.0f} s: {spec.wait_for}: {text}. "
                "It runs on this machine, with the address of the service in its environment"
            )
        await asyncio.sleep(PAUSE_S)


async def _try(command: str, address: Mapping[str, str], user: User | None, limit_s: float) -> tuple[int | None, str]:
    env = {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8", **address}
    with tempfile.TemporaryFile() as output:
        options: dict[str, Any] = {
            "stdout": output,
            "stderr": output,
            "env": env,
            "cwd": "/",
            **build_user_options(user),
        }
        code = await run_child(["sh", "-c", command], max(limit_s, 0.1), **options)
        output.seek(max(0, os.fstat(output.fileno()).st_size - 500))
        message = output.read().decode("utf-8", "replace").strip()
    return code, "it did not end" if code is None else message or f"exit code {code}"
