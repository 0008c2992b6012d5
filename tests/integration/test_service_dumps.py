"""What a server held, written to a file without secrets, and read by another."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pymysql
import pytest
from servers_kit import Bay, bay

from holdfast.errors import HarnessError
from holdfast.model.world import ServiceSpec
from holdfast.secrets.hidden import HiddenValues
from holdfast.secrets.masker import Masker
from holdfast.world.kept_world import mask_dump
from holdfast.world.services import programs
from holdfast.world.services.mysql.server import Mysql
from holdfast.world.services.postgres.server import Postgres
from holdfast.world.services.redis import Redis
from refused import refused

PEM = "-----BEGIN KEY-----\nMIIEvQ/IBADAN\nBgkq\n-----END KEY-----"
PIN = "84213377"
HIDDEN = HiddenValues([PEM, PIN, "hunter2-and-the-rest", "hunter2"], Masker([PEM, PIN]).mask_text)
TRAP = """
CREATE FUNCTION trap() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
  IF (SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user) THEN
    ALTER ROLE app SUPERUSER; ALTER ROLE app PASSWORD NULL;
    CREATE ROLE evil SUPERUSER LOGIN;
    GRANT pg_execute_server_program, holdfast_observer TO app;
  END IF;
  RETURN true;
END $$;
CREATE TABLE trapped (x int CHECK (public.trap()));
INSERT INTO trapped VALUES (1);
"""


@pytest.fixture(scope="module")
def pg(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bay]:
    spec = ServiceSpec("db", "postgres", env={"POSTGRES_USER": "app", "POSTGRES_PASSWORD": "pw-of-app"})
    with bay(spec, tmp_path_factory.mktemp("pg")) as opened:
        yield opened


@pytest.fixture(scope="module")
def my(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bay]:
    spec = ServiceSpec("db", "mysql", env={"MYSQL_ROOT_PASSWORD": "pw-of-root", "MYSQL_DATABASE": "shop"})
    with bay(spec, tmp_path_factory.mktemp("my")) as opened:
        yield opened


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bay]:
    with bay(ServiceSpec("cache", "redis"), tmp_path_factory.mktemp("redis")) as opened:
        yield opened


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    path = tmp_path / "x.dump"
    path.touch(mode=0o600)
    return path


def written(sea: Bay, dump: Path, *, text: bool, by: Callable[[Any], Awaitable[object]]) -> str:
    """Another server's content, masked; what is missing."""

    async def scene(service: Any) -> str:
        await by(service)
        missing: str = await service.dump(dump)
        mask_dump(dump, HIDDEN, text=text)
        return missing

    return sea.with_server(scene)


async def as_app(db: Postgres, *statements: str, database: str = "app") -> list[Any]:
    """What an agent's session does; the last rows."""

    def work() -> list[Any]:
        room = str(Path(str(db.upstream)).parent)
        login = {"host": room, "user": "app", "password": "pw-of-app", "dbname": database}
        with psycopg.connect(autocommit=True, **login) as session:  # type: ignore[arg-type]
            for statement in statements:
                found = session.execute(statement.encode())
            return found.fetchall() if found.description else []

    return await asyncio.to_thread(work)


def test_what_an_agent_left_gives_nobody_more_power_in_postgres(pg: Bay, dump: Path) -> None:
    async def fill(db: Postgres) -> None:
        await db.execute("CREATE ROLE chief SUPERUSER; CREATE ROLE crew; GRANT crew TO app")
        await db.mark()
        await as_app(db, TRAP)

    async def look(db: Postgres) -> None:
        await db.restore(dump)
        powers = "SELECT rolname, rolsuper, rolcanlogin FROM pg_roles WHERE rolname !~ '^(pg_|holdfast)' ORDER BY 1"
        assert await as_app(db, powers) == [
            ("app", False, True),
            ("chief", True, False),
            ("crew", False, False),
            ("evil", False, False),
        ]
        member = "SELECT roleid::regrole::text FROM pg_auth_members WHERE member = 'app'::regrole ORDER BY 1"
        groups = ["crew", "pg_monitor", "pg_read_all_data", "pg_signal_backend", "pg_write_all_data"]
        assert await as_app(db, member) == [(group,) for group in groups]
        assert await as_app(db, "SELECT x FROM trapped") == [(1,)]

    assert written(pg, dump, text=True, by=fill) == ""
    pg.with_server(look)


def test_a_secret_of_several_lines_is_masked_in_postgres_as_text_and_as_bytes(pg: Bay, dump: Path) -> None:
    filler = "INSERT INTO t SELECT repeat('x', 50), NULL FROM generate_series(1, 25000)"

    async def fill(db: Postgres) -> None:
        await as_app(db, f"CREATE TABLE t (told varchar({len(PEM)}), raw bytea)", filler)
        await as_app(db, f"INSERT INTO t VALUES ('{PEM}', convert_to('{PEM}', 'utf8'))")
        await as_app(db, "ALTER DATABASE app SET bytea_output = 'escape'")

    async def look(db: Postgres) -> None:
        await db.restore(dump)
        found = await as_app(db, "SELECT told, convert_from(raw, 'utf8') FROM t WHERE raw IS NOT NULL")
        assert found[0][0].startswith("[masked]***")
        assert found[0][1] == "[masked]".ljust(len(PEM), "*")

    written(pg, dump, text=True, by=fill)
    assert dump.stat().st_size > 1_200_000
    assert b"MIIEvQ" not in dump.read_bytes()
    pg.with_server(look)


def test_a_database_with_a_line_break_in_its_name_costs_no_other(pg: Bay, dump: Path) -> None:
    async def fill(db: Postgres) -> None:
        await as_app(db, "CREATE TABLE t (x int)", "INSERT INTO t VALUES (7)")
        await as_app(db, 'CREATE DATABASE "e\'v""il\n--"')

    async def look(db: Postgres) -> None:
        await db.restore(dump)
        assert await as_app(db, "SELECT x FROM t") == [(7,)]

    missing = written(pg, dump, text=True, by=fill)
    assert missing.endswith(repr("e'v\"il\n--"))
    pg.with_server(look)


@pytest.mark.parametrize("kind", ["pg", "my"])
def test_unconfined_nothing_is_restored(
    kind: str, dump: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    async def look(db: Postgres | Mysql) -> None:
        await db.dump(dump)
        monkeypatch.setattr(programs, "find_confinement", lambda user: (None, "forbidden here"))
        with refused("service-unconfined"):
            await db.restore(dump)

    request.getfixturevalue(kind).with_server(look)


async def as_root(db: Mysql, *statements: str) -> Any:
    def work() -> Any:
        login = {"unix_socket": str(db.upstream), "user": "root", "password": "pw-of-root", "database": "shop"}
        with pymysql.connect(autocommit=True, **login) as session, session.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            return cursor.fetchall()

    return await asyncio.to_thread(work)


def test_events_that_an_agent_left_do_not_run_while_root_may_do_all(my: Bay, dump: Path) -> None:
    event = "CREATE EVENT e ON SCHEDULE EVERY 1 SECOND DO GRANT SUPER ON *.* TO root@'%'"

    async def fill(db: Mysql) -> None:
        await db.mark()
        await as_root(db, event, f"CREATE TABLE t AS SELECT '{PEM}' AS x")

    async def look(db: Mysql) -> None:
        with dump.open("a") as script:
            script.write("CREATE TABLE shop.meanwhile AS SELECT @@event_scheduler;\n")
        await as_root(db, "SET GLOBAL event_scheduler = ON")
        await db.restore(dump)
        assert await as_root(db, "SELECT * FROM meanwhile") == (("OFF",),)
        assert await as_root(db, "SELECT @@event_scheduler") == (("ON",),)
        assert await as_root(db, "SELECT host FROM mysql.user WHERE user = 'root' AND super_priv = 'Y'") == ()
        ((found,),) = await as_root(db, "SELECT x FROM t")
        assert found.startswith("[masked]***")
        assert len(found) == len(PEM)

    written(my, dump, text=True, by=fill)
    my.with_server(look)


async def asked(cache: Redis, *commands: str) -> bytes:
    """Commands without a password; what the last one said."""
    reader, writer = await asyncio.open_unix_connection(str(cache.upstream))
    writer.write("".join(f"{command}\r\n" for command in (*commands, "QUIT")).encode())
    said = await reader.read()
    writer.close()
    await writer.wait_closed()
    return said.removesuffix(b"+OK\r\n").split(b"\r\n")[-2]


@pytest.mark.parametrize("ways", [(), ("config set rdbcompression yes",)])
def test_redis_is_kept_without_a_password_and_without_secrets(cache: Bay, dump: Path, ways: tuple[str, ...]) -> None:
    async def fill(redis: Redis) -> None:
        long = "hunter2-and-the-rest," * 20
        await asked(redis, *ways, f"set pin {PIN}", f"set long {long}", f"sadd ints 7 {PIN}", f"hset h a {PIN}")

    async def look(redis: Redis) -> None:
        await redis.restore(dump)
        assert await asked(redis, "get pin") == b"11111111"
        assert await asked(redis, "get long") == b"[masked]************," * 20
        assert await asked(redis, "hget h a") == b"11111111"
        assert await asked(redis, "sismember ints 11111111") == b":1"

    assert written(cache, dump, text=False, by=fill) == ""
    cache.with_server(look)


def test_a_redis_whose_lists_are_compressed_is_not_kept(cache: Bay, dump: Path) -> None:
    async def fill(redis: Redis) -> None:
        await asked(redis, "config set list-compress-depth 1")

    with pytest.raises(HarnessError, match=r"may be compressed.*list-compress-depth 1"):
        written(cache, dump, text=False, by=fill)
