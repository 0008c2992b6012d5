"""Holdfast's sessions in a PostgreSQL of a trial: independent of each other, and in nobody's way."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from servers_kit import Bay, bay, on_a_server, told

from holdfast.errors import QueryFailed
from holdfast.model.world import ServiceSpec
from holdfast.world.services.postgres.server import Postgres

SPEC = ServiceSpec(
    "db", "postgres", env={"POSTGRES_USER": "app", "POSTGRES_PASSWORD": "pw-pw-pw", "POSTGRES_DB": "shop"}
)
SEED = "CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1), (2)"
OURS = "FROM pg_stat_activity WHERE usename = 'holdfast_observer' AND backend_type = 'client backend'"


@pytest.fixture(scope="module")
def sea(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bay]:
    with bay(SPEC, tmp_path_factory.mktemp("pg")) as opened:
        yield opened


async def agent(db: Postgres, *statements: str, dbname: str = "shop") -> list[Any]:
    def work() -> list[Any]:
        host = str(Path(str(db.upstream)).parent)
        with psycopg.connect(host=host, user="app", password="pw-pw-pw", dbname=dbname, autocommit=True) as session:
            for statement in statements:
                cursor = session.execute(statement)
            return cursor.fetchall() if cursor.description else []

    return await asyncio.to_thread(work)


@on_a_server
async def test_nothing_of_a_fixture_is_left_for_the_next(db: Postgres) -> None:
    await db.execute("CREATE SCHEMA s; SET search_path = s; CREATE TEMP TABLE gone (n int); SET work_mem = '5MB'")
    await db.execute("CREATE TABLE here (n int)")
    found = await db.query("SELECT schemaname FROM pg_tables WHERE tablename = 'here'", timeout_s=5)
    assert found.rows == (("public",),)
    with pytest.raises(QueryFailed, match="gone"):
        await db.execute("SELECT * FROM gone")
    await db.execute("BEGIN; INSERT INTO here VALUES (1)")  # never committed
    assert (await db.query("SELECT count(*) FROM here", timeout_s=5)).rows == ((0,),)


@on_a_server
async def test_what_a_fixture_sets_for_logins_holds_for_the_next_one(db: Postgres) -> None:
    await db.execute("CREATE SCHEMA s; ALTER DATABASE shop SET search_path = s")
    await db.execute("CREATE TABLE mine (n int)")
    await db.mark()
    assert (await db.query("SELECT count(*) FROM s.mine", timeout_s=5)).rows == ((0,),)
    await agent(db, "INSERT INTO s.mine VALUES (1)")
    assert told(await db.writes()) == [("mine", "insert", 1)]  # the schema that a bare name leads to


@on_a_server
async def test_no_session_of_ours_keeps_anybody_from_copying_or_dropping_the_database(db: Postgres) -> None:
    await db.execute(SEED)
    await db.mark()
    await agent(db, "CREATE DATABASE copy TEMPLATE shop", "DROP DATABASE shop", dbname="postgres")
    assert await agent(db, "SELECT count(*) FROM t", dbname="copy") == [(2,)]


@on_a_server
async def test_no_session_of_ours_is_there_while_the_agent_works(db: Postgres) -> None:
    await db.execute(SEED)
    await db.mark()
    await asyncio.sleep(0.2)
    assert await agent(db, f"SELECT count(*) {OURS}") == [(0,)]


@on_a_server
async def test_what_the_agent_sets_for_logins_is_found(db: Postgres) -> None:
    await db.execute(SEED)
    await db.mark()
    await agent(db, "ALTER DATABASE shop SET timezone = 'Asia/Tokyo'")
    await db.writes()
    assert (await db.query("SELECT current_setting('timezone')", timeout_s=5)).rows == (("Asia/Tokyo",),)


@on_a_server
async def test_a_query_that_failed_or_was_late_leaves_the_next_one_alone(db: Postgres) -> None:
    await db.execute(SEED)
    with pytest.raises(QueryFailed, match="nowhere"):
        await db.query("SELECT * FROM nowhere", timeout_s=5)
    with pytest.raises(TimeoutError):
        await db.query("SELECT pg_sleep(9)", timeout_s=0.05)
    with pytest.raises(QueryFailed, match="read-only"):
        await db.query("DELETE FROM t RETURNING id", timeout_s=5)
    await db.query("SELECT set_config('work_mem', '7MB', false)", timeout_s=5)
    found = await db.query("SELECT count(*), current_setting('work_mem'), current_user::text FROM t", timeout_s=5)
    assert found.rows == ((2, "4MB", "app"),)
