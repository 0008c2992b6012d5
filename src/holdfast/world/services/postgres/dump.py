"""All that a PostgreSQL server holds, as a script: roles, databases, sequences, extensions, rows."""

from __future__ import annotations

import mmap
import re
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from holdfast.world.services.postgres.session import quoted
from holdfast.world.services.programs import Programs, beside
from holdfast.world.services.settings import OURS

_GLOBALS = b"\n\\connect "
"""What comes before the first of these is about the whole server."""
_BLOCK = 1 << 20
_AS_HEX = "-c bytea_output=hex"
"""Whatever a database says of itself: secrets are found in this form."""
_OUR_OWN = re.compile(rb"^(?:DROP ROLE IF EXISTS|CREATE ROLE|ALTER ROLE) %s\b[^\n]*" % OURS.encode(), re.MULTILINE)


@dataclass(frozen=True)
class PgDump:
    """Writes the script, and runs it on another server, where all that is there gives way to it."""

    programs: Programs
    server: Path
    password: str
    """Of our own account."""

    async def write(self, socket_folder: Path, path: Path, without: Iterable[str] = ()) -> None:
        """Without some databases, and without passwords: not even their hashes are left in a file."""
        program = beside(self.server, "pg_dumpall")
        less = [f"--exclude-database={quoted(name)}" for name in without]

        def argv(sockets: str) -> list[str]:
            how = ["-w", "--clean", "--if-exists", "--no-role-passwords", *less]
            return [str(program), "-h", sockets, "-U", OURS, *how]

        await self.programs.run(argv, socket_folder, {"PGPASSWORD": self.password, "PGOPTIONS": _AS_HEX}, to=path)
        _leave_out_ours(path)

    async def read_roles(self, socket_folder: Path, path: Path) -> None:
        """The part that is about the whole server: nothing in it runs what an agent wrote."""
        self.programs.refuse_unconfined()
        with tempfile.NamedTemporaryFile() as roles:
            end = _end_of_globals(path)
            with path.open("rb") as script:
                roles.writelines(script.read(min(_BLOCK, end - at)) for at in range(0, end, _BLOCK))
            roles.flush()
            await self._run(socket_folder, Path(roles.name))

    async def read(self, socket_folder: Path, path: Path) -> None:
        """All else. Functions that an agent wrote may run, with our rights: for a constraint, or for an index."""
        self.programs.refuse_unconfined()
        await self._run(socket_folder, path, skip=_end_of_globals(path))

    async def _run(self, socket_folder: Path, script: Path, *, skip: int = 0) -> None:
        program = beside(self.server, "psql")

        def argv(sockets: str) -> list[str]:
            how = ["-X", "-q", "-w", "-v", "ON_ERROR_STOP=1", "-o", "/dev/null"]
            return [str(program), *how, "-h", sockets, "-U", OURS, "-d", "postgres"]

        await self.programs.run(argv, socket_folder, {"PGPASSWORD": self.password}, given=script, skip=skip)


def _leave_out_ours(path: Path) -> None:
    """Our own account is in every server: whoever runs the script cannot replace it."""
    if not path.stat().st_size:
        return
    end = _end_of_globals(path)
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as text:
        for found in [match.span() for match in _OUR_OWN.finditer(text, 0, end)]:
            text[slice(*found)] = b"-" * (found[1] - found[0])


def _end_of_globals(path: Path) -> int:
    """Where the part begins that is about one database after the other."""
    size = path.stat().st_size
    if not size:
        return 0
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
        end = text.find(_GLOBALS)
        return end if end >= 0 else size
