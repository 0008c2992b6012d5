"""The programs that come with a server and write or read all that it holds.

What an agent left in a database is not trusted, and these programs read it: they are confined like the server's.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from holdfast.errors import HarnessError
from holdfast.processes.leftovers import kill_group
from holdfast.world.services.confinement import SOCKETS, as_user, confinement
from holdfast.world.services.user import User

Argv = Callable[[str], list[str]]
"""A command, of the folder in which the server's socket is seen."""
MOST_BYTES = 1 << 30
"""Of what a program may write."""
LIMIT_S = 120.0
_READ = 2_000
_SHOWN = 300
_BLOCK = 512
_SCRIPT = 'ulimit -f "$1" && shift && exec "$@"'


@dataclass(frozen=True)
class Programs:
    """Runs them beside a server, as its user."""

    user: User | None
    sees: Path
    """Where they are."""

    async def run(
        self,
        argv: Argv,
        socket_folder: Path,
        env: Mapping[str, str],
        *,
        given: Path | None = None,
        skip: int = 0,
        to: Path | None = None,
    ) -> None:
        """Runs one, with a file to read and a file to add to; HarnessError, with the last that it said, if it fails.

        It does not read the first bytes that are to be skipped.
        """
        with tempfile.TemporaryFile() as said, (given or Path(os.devnull)).open("rb", buffering=0) as reads:
            reads.seek(skip)
            process = self._started(argv, socket_folder, env, reads, to or Path(os.devnull), said)
            try:
                async with asyncio.timeout(LIMIT_S):
                    code = await asyncio.to_thread(process.wait)
            except TimeoutError:
                raise HarnessError(f"{_name(argv)} took longer than {LIMIT_S:.0f} s") from None
            finally:
                if process.poll() is None:
                    kill_group(process.pid, signal.SIGKILL)
                    process.wait()
            if code != 0:
                raise HarnessError(f"{_name(argv)} failed: {_last(said) or f'exit code {code}'}")

    def refuse_unconfined(self) -> None:
        """HarnessError where they cannot be confined: what an agent left would run with the rights of our user."""
        raised, why = confinement(self.user)
        if raised is None:
            raise HarnessError(
                f"what an agent left in a database is only run confined, and nothing confines it here: {why}"
            )

    def _started(
        self, argv: Argv, socket_folder: Path, env: Mapping[str, str], reads: IO[bytes], to: Path, said: IO[bytes]
    ) -> subprocess.Popen[bytes]:
        raised, _ = confinement(self.user)
        words = [
            "/bin/sh",
            "-c",
            _SCRIPT,
            "sh",
            str(MOST_BYTES // _BLOCK),
            *argv(SOCKETS if raised else str(socket_folder)),
        ]
        how = as_user(self.user)
        if raised is not None:
            words, how = raised.around(words, {SOCKETS: socket_folder}, {str(self.sees): self.sees}), raised.how
        env = {"PATH": os.defpath, "LANG": "C.UTF-8", "HOME": "/", **env}
        try:
            with to.open("ab") as writes:
                return subprocess.Popen(  # noqa: S603
                    words, stdin=reads, stdout=writes, stderr=said, env=env, cwd="/", start_new_session=True, **how
                )
        except OSError as refused:
            raise HarnessError(f"{_name(argv)} cannot be started: {refused}") from refused


def _name(argv: Argv) -> str:
    return Path(argv("")[0]).name


def _last(said: IO[bytes]) -> str:
    """The last line in which it speaks of an error, else all of its end: what it quotes may have lines of its own."""
    said.seek(max(0, os.fstat(said.fileno()).st_size - _READ))
    lines = [line.strip() for line in said.read().decode("utf-8", "replace").split("\n") if line.strip()]
    found = [line for line in lines if "error" in line.lower()]  # psql shows where below the error
    return found[-1] if found else " ".join(lines)[-_SHOWN:]


def beside(program: Path, *names: str) -> Path:
    """A program of one of these names where a server's own are; HarnessError if there is none."""
    real = program.resolve()
    folders = (real.parent, real.parent.parent / "bin", program.parent)
    for path in (folder / name for folder in folders for name in names):
        if os.access(path, os.X_OK):
            return path
    raise HarnessError(f"{program} has no {names[0]} beside it")
