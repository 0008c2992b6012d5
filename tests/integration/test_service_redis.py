"""A real Redis for every trial, and services that are elsewhere."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from servers_kit import TRIAL, Bay, bay, told

from holdfast.errors import HarnessError, QueryFailed
from holdfast.model.world import ServiceSpec
from holdfast.protocols.service import Database
from holdfast.world.services import open_keeper
from holdfast.world.services.mysql.server import Mysql
from holdfast.world.services.postgres.server import Postgres
from holdfast.world.services.redis import Redis
from refused import refused

SPEC = ServiceSpec("cache", "redis", image="redis:7", env={"REDIS_PASSWORD": 'p w"x'}, wait_for="redis-cli ping")


@pytest.fixture(scope="module")
def sea(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bay]:
    with bay(SPEC, tmp_path_factory.mktemp("redis")) as opened:
        yield opened


async def ask(cache: Redis, *commands: tuple[str, ...]) -> list[bytes]:
    reader, writer = await asyncio.open_unix_connection(str(cache.upstream))
    replies = []
    for words in commands:
        writer.write(b"".join([b"*%d\r\n" % len(words), *(b"$%d\r\n%b\r\n" % (len(w), w.encode()) for w in words)]))
        replies.append(await reader.readline())
    writer.close()
    await writer.wait_closed()
    return replies


def test_it_asks_for_the_password_and_starts_empty(sea: Bay) -> None:
    async def scene(cache: Redis) -> None:
        assert (await ask(cache, ("GET", "k")))[0].startswith(b"-NOAUTH")
        login = ("AUTH", 'p w"x')
        assert await ask(cache, login, ("DBSIZE",), ("SET", "k", "v")) == [b"+OK\r\n", b":0\r\n", b"+OK\r\n"]
        assert cache.variables["URL"].format(host="cache", port=6379) == "redis://:p%20w%22x@cache:6379/0"
        assert re.search("redis:7 .* Redis", cache.notes[0])

    sea.with_server(scene)
    sea.with_server(scene)


def test_a_server_that_writes_where_it_is_told_stays_within_the_walls(sea: Bay, tmp_path: Path) -> None:
    tmp_path.chmod(0o777)

    async def scene(cache: Redis) -> None:
        if any("runs unconfined" in note for note in cache.notes):
            pytest.skip("this machine does not let us confine a server")
        tried = await ask(cache, ("AUTH", 'p w"x'), ("CONFIG", "SET", "dir", str(tmp_path)), ("SAVE",))
        assert tried[1].startswith(b"-ERR")

    sea.with_server(scene)
    assert list(tmp_path.iterdir()) == []


# -- elsewhere ----------------------------------------------------------------------------------
@asynccontextmanager
async def on_a_port(socket: str) -> AsyncIterator[int]:
    """The server behind a Unix socket, on a port of loopback."""

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_unix_connection(socket)
        await asyncio.gather(_pump(reader, back), _pump(there, writer))

    server = await asyncio.start_server(carry, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except ConnectionError:
        pass
    finally:
        writer.close()


async def elsewhere(url: str) -> Database:
    keeper = await open_keeper(ServiceSpec("legacy", "external", settings={"url": url}), Path("/"))
    found = await keeper.provide(TRIAL, alone=False)
    assert isinstance(found, Database)
    return found


def test_an_external_postgres_is_a_database(tmp_path: Path) -> None:
    async def scene(db: Postgres) -> None:
        async with on_a_port(str(db.upstream)) as port:
            legacy = await elsewhere(f"postgresql://postgres:pw@127.0.0.1:{port}/postgres")
            await legacy.execute("CREATE TABLE t (x int PRIMARY KEY)")
            await legacy.mark()
            await legacy.execute("INSERT INTO t VALUES (1), (2)")
            assert told(list(await legacy.writes())) == [("t", "insert", 2)]
            assert (await legacy.query("SELECT count(*) FROM t", timeout_s=5)).rows == ((2,),)
            with pytest.raises(QueryFailed):
                await legacy.prepare("SELECT * FROM nothing")
            wrong = await elsewhere(f"postgresql://postgres:no@127.0.0.1:{port}/postgres")
            with refused("login-refused"):
                await wrong.query("SELECT 1", timeout_s=5)
        nobody = await elsewhere(f"postgresql://postgres:pw@127.0.0.1:{port}/postgres")
        with refused("service-failed"):
            await nobody.query("SELECT 1", timeout_s=5)

    with bay(ServiceSpec("db", "postgres", env={"POSTGRES_PASSWORD": "pw"}), tmp_path) as opened:
        opened.with_server(scene)


def test_an_external_mysql_is_a_database(tmp_path: Path) -> None:
    async def scene(db: Mysql) -> None:
        async with on_a_port(str(db.upstream)) as port:
            legacy = await elsewhere(f"mysql://root:p%40w@127.0.0.1:{port}/shop")
            await legacy.execute("CREATE TABLE t (x int PRIMARY KEY)")
            await legacy.mark()
            await legacy.execute("INSERT INTO t VALUES (1), (2)")
            assert told(list(await legacy.writes())) == [("t", "write", 2)]
            assert (await legacy.query("SELECT count(*) FROM t", timeout_s=5)).rows == ((2,),)
            wrong = await elsewhere(f"mysql://root:no@127.0.0.1:{port}/shop")
            with pytest.raises(HarnessError, match="refuses the login"):
                await wrong.prepare("SELECT 1")

    spec = ServiceSpec("db", "mysql", env={"MYSQL_ROOT_PASSWORD": "p@w", "MYSQL_DATABASE": "shop"})
    with bay(spec, tmp_path) as opened:
        opened.with_server(scene)
