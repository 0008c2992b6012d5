"""A real PostgreSQL for every trial: fresh, confined, audited."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from servers_kit import Bay, bay, on_a_server, told

from holdfast.errors import QueryFailed
from holdfast.model.world import ServiceSpec
from holdfast.protocols.service import Database
from holdfast.world.services.postgres import server as postgres
from holdfast.world.services.postgres.server import Postgres
from refused import refused

PASSWORD = "s3cret /{x}@'\u2168ü"
SPEC = ServiceSpec(
    "db",
    "postgres",
    image="postgres:16",
    env={"POSTGRES_USER": "app", "POSTGRES_PASSWORD": PASSWORD, "POSTGRES_DB": "shop"},
    wait_for="psql -c 'SELECT 1'",
)
SEED = """
CREATE TABLE customers (id int PRIMARY KEY, email text, paid numeric(8, 2), seen timestamptz);
INSERT INTO customers VALUES (1, 'a@x', 1.10, '2026-01-01 10:00:00+00'), (2, 'b@x', NULL, NULL);
CREATE TABLE mails (id serial PRIMARY KEY, customer int REFERENCES customers ON DELETE CASCADE);
"""


TRICKS = (
    "SET log_statement = 'none'",
    "SET track_counts = off",
    "SELECT pg_stat_reset()",
    "ALTER ROLE app SUPERUSER",
    "SET SESSION AUTHORIZATION holdfast_observer",
    "ALTER ROLE holdfast_observer PASSWORD 'x'",
    "ALTER SYSTEM SET log_statement = 'none'",
)


@pytest.fixture(scope="module")
def sea(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bay]:
    with bay(SPEC, tmp_path_factory.mktemp("pg")) as opened:
        yield opened


def login(db: Postgres, **other: str) -> psycopg.Connection[Any]:
    how = {"host": str(Path(str(db.upstream)).parent), "user": "app", "password": PASSWORD, "dbname": "shop", **other}
    return psycopg.connect(**how, autocommit=True)  # type: ignore[arg-type]


async def agent(db: Postgres, *statements: str, **other: str) -> list[Any]:
    """What an agent's session does; the last result."""

    def work() -> list[Any]:
        with login(db, **other) as session:
            for statement in statements:
                cursor = session.execute(statement)
            return cursor.fetchall() if cursor.description else []

    return await asyncio.to_thread(work)


@on_a_server
async def test_it_is_a_database_as_the_spec_asks_for(db: Postgres) -> None:
    assert isinstance(db, Database)
    await db.execute(SEED)
    assert await agent(db, "SELECT current_user::text, current_database()::text") == [("app", "shop")]
    assert await agent(db, "SELECT tableowner::text FROM pg_tables WHERE tablename = 'customers'") == [("app",)]
    url = db.variables["URL"].format(host="db", port=5432)
    assert psycopg.conninfo.conninfo_to_dict(url) == {
        "user": "app", "password": PASSWORD, "dbname": "shop", "host": "db", "port": "5432",
    }  # fmt: skip
    assert re.search("postgres:16 .* PostgreSQL", db.notes[0])


@on_a_server
async def test_the_agent_must_know_the_password_and_cannot_be_us(db: Postgres) -> None:
    for wrong in (
        {"password": "wrong"},
        {"user": "holdfast_observer"},
        {"user": "holdfast_observer", "password": ""},
    ):
        with pytest.raises(psycopg.OperationalError, match=r"authentication failed|no password"):
            login(db, **wrong)


def test_every_trial_starts_from_nothing(sea: Bay) -> None:
    async def scene(db: Postgres) -> None:
        await db.execute("CREATE TABLE left_over (x int)")

    sea.with_server(scene)
    sea.with_server(scene)


def test_no_agent_can_put_a_table_of_its_own_before_the_one_that_is_judged(sea: Bay) -> None:
    async def check(db: Postgres) -> Any:
        await db.execute("CREATE TABLE t AS SELECT 1 AS id")
        await db.mark()
        await agent(db, "CREATE SCHEMA app", "CREATE TABLE app.t AS SELECT 1 AS id UNION SELECT 2")
        await agent(db, "CREATE SCHEMA f", "CREATE TABLE f.t AS SELECT 1 AS id UNION SELECT 3")
        await agent(db, "ALTER DATABASE shop SET search_path = f, public")
        return (await db.query("SELECT count(*) FROM t", timeout_s=5)).rows[0][0]

    assert sea.with_server(check) == 1


@on_a_server
async def test_values_of_a_query_are_json(db: Postgres) -> None:
    await db.execute(SEED)
    found = await db.query("SELECT id, paid, seen, email IS NULL AS none FROM customers ORDER BY id", timeout_s=5)
    assert found.columns == ("id", "paid", "seen", "none")
    assert found.rows == ((1, 1.1, "2026-01-01T10:00:00+00:00", False), (2, None, None, False))
    many = await db.query("SELECT repeat('x', 1000) FROM generate_series(1, 20000)", timeout_s=20, keep=3)
    assert (len(many.rows), many.count) == (3, 20_000)
    like = await db.query("SELECT count(*) FROM customers WHERE email LIKE 'a%'", timeout_s=5)
    assert like.rows == ((1,),)


@on_a_server
async def test_a_query_only_reads_and_ends_in_time(db: Postgres) -> None:
    await db.execute(SEED)
    with pytest.raises(QueryFailed, match="read-only transaction") as raised:
        await db.query("DELETE FROM mails RETURNING 1", timeout_s=5)
    assert raised.value.state == "25006"
    with pytest.raises(QueryFailed, match="multiple commands"):
        await db.query("COMMIT; DELETE FROM customers", timeout_s=5)
    with refused("query-failed"):
        await db.query("SELECT * FROM nothing", timeout_s=5)
    with pytest.raises(TimeoutError, match=r"longer than 0\.2 s"):
        await db.query("SELECT pg_sleep(30)", timeout_s=0.2)


@on_a_server
async def test_preparing_tells_what_could_never_run(db: Postgres) -> None:
    await db.execute(SEED)
    await db.prepare("SELECT count(*) FROM customers")
    with pytest.raises(QueryFailed, match="custmers") as raised:
        await db.prepare("SELECT count(*) FROM custmers")
    assert raised.value.state == "42P01"


@on_a_server
async def test_a_fixture_that_fails_names_its_line_and_statement(db: Postgres) -> None:
    with refused("query-failed"):
        await db.execute("CREATE TABLE t (x int);\nINSERT INTO t\nvaluse (1);")
    with refused("query-failed"):
        await db.execute("CREATE TABLE u (x int PRIMARY KEY); INSERT INTO u VALUES (1);\nINSERT INTO u VALUES (1)")


@on_a_server
async def test_a_dump_of_pg_dump_is_a_fixture(db: Postgres) -> None:
    await db.execute(
        "CREATE TABLE t (a int, b text);\nCOPY public.t (a, b) FROM stdin;\n1\tx;y\n2\t\\N\n\\.\nANALYZE t;"
    )
    assert (await db.query("SELECT a, b FROM t ORDER BY a", timeout_s=5)).rows == ((1, "x;y"), (2, None))


@on_a_server
async def test_writes_of_the_agent_are_told_and_nobody_elses(db: Postgres) -> None:
    await db.execute(SEED + "CREATE FUNCTION pay() RETURNS void LANGUAGE sql AS 'UPDATE customers SET paid = 0';")
    await db.mark()
    await db.query("SELECT 1", timeout_s=5)
    await agent(
        db,
        "UPDATE customers SET email = 'c@x' WHERE id = 1",
        "INSERT INTO mails (customer) SELECT 1 FROM generate_series(1, 3)",
        "DELETE FROM mails WHERE false",
        "CREATE TEMP TABLE scratch (x int)",
        "INSERT INTO scratch VALUES (1)",
        "CREATE TABLE extra (x int)",
        "SELECT pay()",
    )
    assert told(await db.writes()) == [
        ("customers", "update", 3),
        ("extra", "create", None),
        ("mails", "insert", 3),
    ]


@on_a_server
async def test_what_no_statement_says_the_counters_know(db: Postgres) -> None:
    await db.execute(SEED + "INSERT INTO mails (customer) VALUES (1), (1);")
    await db.mark()
    await agent(db, "WITH gone AS (DELETE FROM customers WHERE id = 1 RETURNING *) SELECT * FROM gone")
    assert told(await db.writes()) == [("customers", "delete", 1), ("mails", "delete", 2)]


@on_a_server
async def test_a_partition_counts_as_its_table_and_other_schemas_are_named(db: Postgres) -> None:
    await db.execute(
        "CREATE TABLE log (d int) PARTITION BY RANGE (d);"
        "CREATE TABLE log_1 PARTITION OF log FOR VALUES FROM (0) TO (9);"
        "CREATE SCHEMA audit; CREATE TABLE audit.trail (x int);"
    )
    await db.mark()
    await agent(db, "INSERT INTO log VALUES (1)", "SET search_path = audit", "INSERT INTO trail VALUES (1), (2)")
    await agent(db, "CREATE TABLE elsewhere (x int)", "INSERT INTO elsewhere VALUES (1)", dbname="postgres")
    assert told(await db.writes()) == [
        ("audit.trail", "insert", 2),
        ("log", "insert", 1),
        ("postgres.public.elsewhere", "create", None),
        ("postgres.public.elsewhere", "insert", 1),
    ]


HIDDEN = (
    "CREATE TABLE b (x int); INSERT INTO b VALUES (1); CREATE SCHEMA audit; CREATE TABLE audit.b (x int);"
    "CREATE TABLE part (d int) PARTITION BY RANGE (d);"
    "CREATE TABLE part_1 PARTITION OF part FOR VALUES FROM (0) TO (9); INSERT INTO part VALUES (1);"
)


@pytest.mark.parametrize(
    ("inside", "seen"),
    [
        ("TRUNCATE b", [("b", "truncate", None)]),
        ("TRUNCATE audit.b", [("audit.b", "truncate", None)]),
        ("TRUNCATE part", [("part", "truncate", None)]),
        ("DROP TABLE b", [("b", "drop", None)]),
        ("ALTER TABLE b ADD y int", [("b", "alter", None)]),
        ("CREATE TABLE audit.c (x int)", [("audit.c", "create", None)]),
        ("TRUNCATE b; INSERT INTO b VALUES (2)", [("b", "insert", 1), ("b", "rewrite", None)]),
        ("PERFORM 1 FROM b", []),
    ],
)
@on_a_server
async def test_what_happens_inside_a_function_is_seen(db: Postgres, inside: str, seen: list[Any]) -> None:
    await db.execute(HIDDEN)
    await db.mark()
    await agent(db, f"DO 'BEGIN {inside}; END'")
    assert told(await db.writes()) == seen


@on_a_server
async def test_what_a_statement_says_is_told_once(db: Postgres) -> None:
    await db.execute(HIDDEN)
    await db.mark()
    await agent(db, "TRUNCATE b", "SET search_path = audit", "DROP TABLE b")
    await agent(db, "BEGIN", "DROP TABLE part", "ROLLBACK", "TRUNCATE part", "ALTER TABLE part ADD y int")
    assert told(await db.writes()) == [
        ("audit.b", "drop", None),
        ("b", "drop", None),  # a bare name: the log does not say where it led
        ("b", "truncate", None),
        ("part", "alter", None),
        ("part", "drop", None),
        ("part", "truncate", None),
    ]


@pytest.mark.parametrize(
    "setting",
    ["ALTER ROLE app SET search_path = audit, public", "ALTER DATABASE shop SET search_path = audit, public"],
)
@on_a_server
async def test_a_bare_name_is_of_the_schema_in_which_the_agent_starts(db: Postgres, setting: str) -> None:
    await db.execute(f"{HIDDEN}; {setting}")
    await db.mark()
    await agent(db, "INSERT INTO b VALUES (7)", "INSERT INTO public.b VALUES (7), (8)", "TRUNCATE audit.b")
    found = await db.writes()
    assert told(found) == [("b", "insert", 1), ("b", "truncate", None), ("public.b", "insert", 2)]
    assert {event.details.get("schema") for event in found} == {"audit", None}
    assert (await db.query("SELECT current_schema()", timeout_s=5)).rows == (("audit",),)


@on_a_server
async def test_the_agent_cannot_hide_its_writes(db: Postgres) -> None:
    await db.execute(SEED)
    await db.mark()
    for trick in TRICKS:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            await agent(db, trick)
    await agent(db, "CREATE ROLE reader", "CREATE DATABASE more", "CREATE EXTENSION IF NOT EXISTS pgcrypto")
    assert ("role reader", "create", None) in told(await db.writes())


@on_a_server
async def test_a_session_that_the_agent_left_open_is_ended(db: Postgres) -> None:
    await db.execute(SEED)
    await db.mark()
    session = await asyncio.to_thread(login, db)
    await asyncio.to_thread(session.execute, "BEGIN")
    await asyncio.to_thread(session.execute, "UPDATE customers SET email = 'z'")
    assert told(await db.writes()) == [("customers", "update", 2)]
    assert (await db.query("SELECT count(*) FROM customers WHERE email = 'z'", timeout_s=5)).rows == ((0,),)
    session.close()


@on_a_server
async def test_a_database_that_the_agent_dropped_is_a_result(db: Postgres) -> None:
    await db.execute(SEED)
    await db.mark()
    await agent(db, "DROP DATABASE shop", dbname="postgres")
    assert told(await db.writes()) == [("database shop", "drop", None)]
    with refused("query-failed"):
        await db.query("SELECT 1", timeout_s=5)


def test_a_superuser_that_runs_programs_stays_within_the_walls(sea: Bay, tmp_path: Path) -> None:
    """Before the snapshot the user of the spec is a superuser, as in the official image."""
    planted = tmp_path / "planted"
    tmp_path.chmod(0o777)

    async def scene(db: Postgres) -> None:
        await agent(
            db,
            "CREATE TABLE out (line text)",
            f"COPY out FROM PROGRAM 'ls /proc | grep -c ^[0-9]; cat /etc/shadow; ls /root /work /home; touch {planted};"
            " echo x > /proc/sys/kernel/core_pattern; ls /sys/class/net; echo done'",
        )
        lines = [row[0] for row in (await db.query("SELECT line FROM out", timeout_s=5)).rows]
        assert lines[-1] == "done"
        assert int(lines[0]) < 20
        assert len(lines) == 2

    if "runs unconfined" in " ".join(sea.with_server(_notes)):
        pytest.skip("this machine does not let us confine a server")
    sea.with_server(scene)
    assert not planted.exists()


FILES = (
    "SELECT pg_read_file('/etc/passwd')",
    "SELECT pg_ls_dir('/')",
    "SELECT lo_import('/etc/passwd')",
    "COPY seen FROM '/etc/passwd'",
    "COPY seen TO '/tmp/seen'",
    "COPY seen FROM PROGRAM 'cat /etc/passwd'",
    *(f"GRANT {role} TO app" for role in postgres.FILE_ROLES),
)


@on_a_server
async def test_an_agent_reads_no_file_of_this_machine_and_runs_no_program_there(db: Postgres) -> None:
    await db.execute("CREATE TABLE seen (line text)")
    await db.mark()
    for statement in FILES:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            await agent(db, statement)


async def _notes(db: Postgres) -> tuple[str, ...]:
    return db.notes


def test_a_server_that_cannot_start_shows_its_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(postgres.SERVER, "shared_buffers", "1")
    with (
        bay(ServiceSpec("db", "postgres", env={"POSTGRES_PASSWORD": "p"}), tmp_path) as opened,
        refused("service-failed"),
    ):
        opened.with_server(_notes)


def test_nothing_but_the_socket_is_on_this_machine(sea: Bay) -> None:
    async def scene(db: Postgres) -> Path:
        room = Path(str(db.upstream)).parent
        assert {path.name for path in room.iterdir()} <= {".s.PGSQL.5432", ".s.PGSQL.5432.lock"}
        assert room.stat().st_mode & 0o777 == 0o700
        if os.geteuid() == 0:
            assert room.stat().st_uid != 0
        return room

    assert not sea.with_server(scene).exists()


def test_a_setting_that_changes_how_strings_end_hides_no_write(sea: Bay) -> None:
    async def scene(db: Postgres) -> list[tuple[str, str, int | None]]:
        await db.execute(SEED)
        await db.mark()
        await agent(db, "WITH x AS (SELECT '\\' AS a) INSERT INTO mails (customer) SELECT 1 FROM x")
        off = "SET standard_conforming_strings = off"
        await agent(db, off, "WITH x AS (SELECT '\\' -- ' AS a) DELETE FROM mails USING x")
        await agent(db, off, "WITH x AS (SELECT '\\'' AS a) UPDATE customers SET email = '\\'' FROM x")
        return told(await db.writes())

    assert {(table, op) for table, op, _ in sea.with_server(scene)} == {
        ("mails", "insert"), ("mails", "delete"), ("customers", "update"),
    }  # fmt: skip
