"""All that a MariaDB or MySQL server holds, as a script: databases, routines, events, rows, and MariaDB's accounts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from holdfast.world.services.programs import Programs, beside
from holdfast.world.services.settings import OURS

_WRITERS = ("mariadb-dump", "mysqldump")


@dataclass(frozen=True)
class MyDump:
    """Writes the script, and runs it on another server."""

    programs: Programs
    server: Path
    password: str
    """Of our own account."""
    mariadb: bool

    async def write(self, socket_folder: Path, path: Path, databases: Sequence[str]) -> None:
        """Accounts only from MariaDB: MySQL's program cannot write them."""
        if databases:
            whole = ["--single-transaction", "--routines", "--events", "--triggers", "--databases", "--", *databases]
            await self._run(socket_folder, _WRITERS, whole, (OURS, self.password), to=path)
        if self.mariadb:
            await self._run(
                socket_folder, _WRITERS, ["--system=users", "--insert-ignore"], (OURS, self.password), to=path
            )

    async def read(self, socket_folder: Path, path: Path, root_password: str) -> None:
        """As root: our own account may not grant what root has from the beginning."""
        self.programs.refuse_unconfined()
        await self._run(socket_folder, ("mariadb", "mysql"), ["--binary-mode"], ("root", root_password), given=path)

    async def _run(
        self,
        socket_folder: Path,
        names: tuple[str, str],
        words: list[str],
        account: tuple[str, str],
        *,
        given: Path | None = None,
        to: Path | None = None,
    ) -> None:
        program = beside(self.server, *(names if self.mariadb else names[1:]))

        def argv(sockets: str) -> list[str]:
            login = ["--no-defaults", f"--socket={sockets}/mysql.sock", f"--user={account[0]}"]
            return [str(program), *login, "--default-character-set=utf8mb4", *words]

        await self.programs.run(argv, socket_folder, {"MYSQL_PWD": account[1]}, given=given, to=to)
