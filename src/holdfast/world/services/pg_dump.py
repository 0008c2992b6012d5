"""All that a PostgreSQL server holds, as a script: roles, databases, sequences, extensions, rows."""

from __future__ import annotations

import mmap
import re
from dataclasses import dataclass
from pathlib import Path

from holdfast.world.services.programs import Programs, beside
from holdfast.world.services.settings import OURS

_GLOBALS = b"\n\\connect "
"""What comes before the first of these is about the whole server."""
_OUR_OWN = re.compile(rb"^(?:DROP ROLE IF EXISTS|CREATE ROLE|ALTER ROLE) %s\b[^\n]*" % OURS.encode(), re.MULTILINE)


@dataclass(frozen=True)
class PgDump:
    """Writes the script, and runs it on another server, where all that is there gives way to it."""

    programs: Programs
    server: Path
    password: str
    """Of our own account."""

    async def write(self, room: Path, path: Path) -> None:
        """Without passwords: not even their hashes are left in a file."""
        program = beside(self.server, "pg_dumpall")

        def argv(sockets: str) -> list[str]:
            return [str(program), "-h", sockets, "-U", OURS, "-w", "--clean", "--if-exists", "--no-role-passwords"]

        await self.programs.run(argv, room, {"PGPASSWORD": self.password}, to=path)
        _leave_out_ours(path)

    async def read(self, room: Path, path: Path) -> None:
        program = beside(self.server, "psql")

        def argv(sockets: str) -> list[str]:
            how = ["-X", "-q", "-w", "-v", "ON_ERROR_STOP=1", "-o", "/dev/null"]
            return [str(program), *how, "-h", sockets, "-U", OURS, "-d", "postgres"]

        await self.programs.run(argv, room, {"PGPASSWORD": self.password}, given=path)


def _leave_out_ours(path: Path) -> None:
    """Our own account is in every server: whoever runs the script cannot replace it."""
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as text:
        end = text.find(_GLOBALS)
        for found in [match.span() for match in _OUR_OWN.finditer(text, 0, end if end >= 0 else len(text))]:
            text[slice(*found)] = b"-" * (found[1] - found[0])
