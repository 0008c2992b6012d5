"""The complete content of a PostgreSQL server as a script: roles, databases, sequences, extensions, rows."""

from __future__ import annotations

import mmap
import re
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from holdfast.world.services.postgres.session import quote_name
from holdfast.world.services.programs import Programs, find_sibling
from holdfast.world.services.settings import OURS

_GLOBALS = b"\n\\connect "
"""Everything before the first of these lines concerns the complete server."""
_BLOCK = 1 << 20
_AS_HEX = "-c bytea_output=hex"
"""Settings that make databases print bytes as hex: secrets are masked in this form."""
_OUR_OWN = re.compile(rb"^(?:DROP ROLE IF EXISTS|CREATE ROLE|ALTER ROLE) %s\b[^\n]*" % OURS.encode(), re.MULTILINE)


@dataclass(frozen=True)
class PgDump:
    """Writes the script, and runs it on another server, whose content it replaces."""

    programs: Programs
    server: Path
    password: str
    """The password of Holdfast's own account."""

    async def write(self, socket_folder: Path, path: Path, without: Iterable[str] = ()) -> None:
        """Write the script without the databases in `without` and without passwords or their hashes."""
        program = find_sibling(self.server, "pg_dumpall")
        less = [f"--exclude-database={quote_name(name)}" for name in without]

        def build_argv(sockets: str) -> list[str]:
            how = ["-w", "--clean", "--if-exists", "--no-role-passwords", *less]
            return [str(program), "-h", sockets, "-U", OURS, *how]

        await self.programs.run(build_argv, socket_folder, {"PGPASSWORD": self.password, "PGOPTIONS": _AS_HEX}, to=path)
        _leave_out_ours(path)

    async def read_roles(self, socket_folder: Path, path: Path) -> None:
        """Run the server-wide part; nothing in it executes code that an agent wrote."""
        self.programs.refuse_unconfined()
        with tempfile.NamedTemporaryFile() as roles:
            end = _find_globals_end(path)
            with path.open("rb") as script:
                roles.writelines(script.read(min(_BLOCK, end - at)) for at in range(0, end, _BLOCK))
            roles.flush()
            await self._run(socket_folder, Path(roles.name))

    async def read(self, socket_folder: Path, path: Path) -> None:
        """Run the rest. Functions that an agent wrote may run with Holdfast's rights, for a constraint or an index."""
        self.programs.refuse_unconfined()
        await self._run(socket_folder, path, skip=_find_globals_end(path))

    async def _run(self, socket_folder: Path, script: Path, *, skip: int = 0) -> None:
        program = find_sibling(self.server, "psql")

        def build_argv(sockets: str) -> list[str]:
            how = ["-X", "-q", "-w", "-v", "ON_ERROR_STOP=1", "-o", "/dev/null"]
            return [str(program), *how, "-h", sockets, "-U", OURS, "-d", "postgres"]

        await self.programs.run(build_argv, socket_folder, {"PGPASSWORD": self.password}, source=script, skip=skip)


def _leave_out_ours(path: Path) -> None:
    """Remove Holdfast's own account: every server has it, and its own session cannot replace it."""
    if not path.stat().st_size:
        return
    # Overwritten in place with a comment of the same length: a dump may be too large to copy, and no later position
    # moves.
    end = _find_globals_end(path)
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as text:
        for span in [match.span() for match in _OUR_OWN.finditer(text, 0, end)]:
            text[slice(*span)] = b"-" * (span[1] - span[0])


def _find_globals_end(path: Path) -> int:
    """Return the position at which the parts of the single databases begin."""
    size = path.stat().st_size
    if not size:
        return 0
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
        end = text.find(_GLOBALS)
        return end if end >= 0 else size
