"""All that a Redis server holds, as it saves it itself, with every value in clear: so secrets can be found in it."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from holdfast.errors import HarnessError
from holdfast.world.services.programs import Programs, beside

_PLAIN = {
    ("CONFIG", "SET", "rdbcompression", "no"): "OK",
    ("CONFIG", "GET", "list-compress-depth"): "list-compress-depth 0",
}
"""What is asked before, and what it must say."""
_NO_SUCH_COMMAND = "unknown command"
"""The spec took it away: then nobody has changed what the server began with."""


@dataclass(frozen=True)
class RedisDump:
    """Writes the file."""

    programs: Programs
    server: Path
    password: str

    @property
    def login(self) -> dict[str, str]:
        """redis-cli fails where it has a password that is empty."""
        return {"REDISCLI_AUTH": self.password} if self.password else {}

    async def write(self, socket_folder: Path, path: Path) -> None:
        """HarnessError, too, where an agent had values compressed and that cannot be undone."""
        for words, wanted in _PLAIN.items():
            said = await self._asked(socket_folder, words)
            if said != wanted and _NO_SUCH_COMMAND not in said:
                raise HarnessError(f"values in it may be compressed, where no secret can be masked: {said}")
        await self._run(socket_folder, ("--rdb", "-"), path)

    async def _asked(self, socket_folder: Path, words: tuple[str, ...]) -> str:
        with tempfile.NamedTemporaryFile("rb") as answer:
            await self._run(socket_folder, words, Path(answer.name))
            return " ".join(answer.read(300).decode("utf-8", "replace").split())

    async def _run(self, socket_folder: Path, words: tuple[str, ...], to: Path) -> None:
        program = beside(self.server, "redis-cli", "valkey-cli")

        def argv(sockets: str) -> list[str]:
            return [str(program), "-s", f"{sockets}/redis.sock", *words]

        await self.programs.run(argv, socket_folder, self.login, to=to)
