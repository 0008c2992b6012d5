"""A real MariaDB or MySQL for every trial: fresh, confined, audited."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pymysql
import pytest
from servers_kit import Bay, bay, on_a_server, told

from holdfast.errors import QueryFailed
from holdfast.model.world import ServiceSpec
from holdfast.protocols.service import Database
from holdfast.world.services.mysql.server import Mysql
from refused import refused

SPEC = ServiceSpec(
    "db",
    "mysql",
    image="mysql:8",
    env={"MYSQL_ROOT_PASSWORD": "r00t", "MYSQL_DATABASE": "my_shop", "MYSQL_USER": "app", "MYSQL_PASSWORD": "p'w"},
    wait_for="mysqladmin ping",
)
SEED = """
CREATE TABLE customers (id int PRIMARY KEY, email varchar(50), paid decimal(8, 2), seen datetime, ok boolean);
INSERT INTO customers VALUES (1, 'a@x', 1.10, '2026-01-01 10:00:00', true), (2, 'b;x', NULL, NULL, false);
CREATE TABLE mails (id int AUTO_INCREMENT PRIMARY KEY, customer int);
"""


@on_a_server
async def test_a_query_whose_connection_is_lost_is_not_called_too_slow(db: Mysql) -> None:
    asked = asyncio.create_task(db.query("SELECT sleep(20)", timeout_s=30))
    root = {"user": "root", "password": "r00t"}
    running = "SELECT id FROM information_schema.processlist WHERE info LIKE 'SELECT sleep%'"
    while not (found := await agent(db, running, **root)):
        await asyncio.sleep(0.05)
    await agent(db, f"KILL CONNECTION {found[0][0]}", "SELECT 1", **root)
    with refused("service-failed"):
        await asked


TRICKS = (
    "SET GLOBAL general_log = 0",
    "SET SESSION sql_log_off = 1",
    "SET GLOBAL userstat = 0",
    "SET GLOBAL general_log_file = '/data/x'",
    "GRANT SUPER ON *.* TO root@localhost",
    "SHUTDOWN",
)


@pytest.fixture(scope="module")
def sea(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bay]:
    with bay(SPEC, tmp_path_factory.mktemp("my")) as opened:
        yield opened


def login(db: Mysql, **other: Any) -> Any:
    how = {"user": "app", "password": "p'w", "database": "my_shop", **other}
    return pymysql.connect(unix_socket=str(db.upstream), ssl_disabled=True, autocommit=True, **how)


async def agent(db: Mysql, *statements: str, **other: Any) -> list[Any]:
    def work() -> list[Any]:
        session = login(db, **other)
        try:
            with session.cursor() as cursor:
                for statement in statements:
                    cursor.execute(statement)
                return list(cursor.fetchall())
        finally:
            session.close()

    return await asyncio.to_thread(work)


@on_a_server
async def test_it_is_a_database_as_the_spec_asks_for(db: Mysql) -> None:
    assert isinstance(db, Database)
    assert await agent(db, "SELECT current_user(), database()") == [("app@%", "my_shop")]
    assert await agent(db, "SELECT 1", user="root", password="r00t") == [(1,)]
    assert db.variables["URL"].format(host="db", port=3306) == "mysql://app:p%27w@db:3306/my_shop"
    assert re.search("mysql:8 .* M", db.notes[0])


@on_a_server
async def test_the_agent_must_know_the_password_and_stays_in_its_database(db: Mysql) -> None:
    wrong = ({"password": "no"}, {"user": "root", "password": ""}, {"user": "holdfast_observer", "password": ""})
    for how in wrong:
        with pytest.raises(pymysql.err.OperationalError, match="Access denied"):
            login(db, **how)
    with pytest.raises(pymysql.err.OperationalError, match="denied"):
        await agent(db, "CREATE DATABASE mine")


@on_a_server
async def test_values_of_a_query_are_json(db: Mysql) -> None:
    await db.execute(SEED)
    found = await db.query("SELECT id, paid, seen, ok FROM customers ORDER BY id", timeout_s=5)
    assert found.rows == ((1, 1.1, "2026-01-01T10:00:00", 1), (2, None, None, 0))
    assert found.columns == ("id", "paid", "seen", "ok")
    many = await db.query("WITH RECURSIVE n AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM n WHERE x < 900)"
                          " SELECT * FROM n", timeout_s=5, keep=2)  # fmt: skip
    assert (many.rows, many.count) == (((1,), (2,)), 900)
    assert (await db.query("SELECT count(*) FROM customers WHERE email LIKE 'a%'", timeout_s=5)).rows == ((1,),)


@on_a_server
async def test_a_query_only_reads_and_ends_in_time(db: Mysql) -> None:
    await db.execute(SEED)
    with pytest.raises(QueryFailed, match="READ ONLY transaction") as raised:
        await db.query("DELETE FROM customers", timeout_s=5)
    assert raised.value.state == "25006"
    with refused("query-failed"):
        await db.query("COMMIT; DELETE FROM customers", timeout_s=5)
    with pytest.raises(TimeoutError, match=r"longer than 0\.2 s"):
        await db.query("SELECT count(*) FROM information_schema.columns a, information_schema.columns b,"
                       " information_schema.columns c", timeout_s=0.2)  # fmt: skip


@on_a_server
async def test_preparing_and_fixtures_tell_what_is_wrong(db: Mysql) -> None:
    await db.execute(SEED)
    await db.prepare("SELECT count(*) FROM customers WHERE email LIKE '%x'")
    with pytest.raises(QueryFailed, match="custmers"):
        await db.prepare("SELECT count(*) FROM custmers")
    with refused("query-failed"):
        await db.execute("CREATE TABLE t (x int PRIMARY KEY); INSERT INTO t VALUES (1);\nINSERT INTO t VALUES (1)")
    await db.execute(
        "DELIMITER //\nCREATE TRIGGER g BEFORE INSERT ON mails FOR EACH ROW BEGIN SET @a = 1; SET @b = 2; END//"
    )


@on_a_server
async def test_writes_of_the_agent_are_told_and_nobody_elses(db: Mysql) -> None:
    await db.execute(SEED + "CREATE PROCEDURE pay() UPDATE customers SET paid = 0;")
    await db.mark()
    await db.query("SELECT 1", timeout_s=5)
    await agent(
        db,
        "INSERT INTO mails (customer) VALUES (1),\n(2)",
        "CREATE TEMPORARY TABLE scratch (x int)",
        "INSERT INTO scratch VALUES (1)",
        "CREATE TABLE extra (x int)",
        "DELETE FROM extra WHERE x = 9",
        "CALL pay()",
    )
    assert told(await db.writes()) == [("customers", "write", 2), ("extra", "create", None), ("mails", "insert", 2)]


@pytest.mark.parametrize(
    ("inside", "seen"),
    [
        ("TRUNCATE b", [("b", "truncate", None)]),
        ("TRUNCATE m", [("m", "truncate", None)]),
        ("TRUNCATE `we-ird`", [("we-ird", "truncate", None)]),
        ("TRUNCATE part", [("part", "truncate", None)]),
        ("DROP TABLE b", [("b", "drop", None)]),
        ("ALTER TABLE m ADD y int", [("m", "alter", None)]),
        ("CREATE TABLE c (x int)", [("c", "create", None)]),
        ("DELETE FROM m", [("m", "truncate", None)]),  # MariaDB does not count it
        ("DELETE FROM m WHERE x = 1", [("m", "write", 1)]),
        ("SELECT 1 FROM b", []),
    ],
)
@on_a_server
async def test_what_happens_inside_a_procedure_is_seen(db: Mysql, inside: str, seen: list[Any]) -> None:
    await db.execute(
        "CREATE TABLE b (x int); INSERT INTO b VALUES (1); CREATE TABLE m (x int) ENGINE = MyISAM;"
        "INSERT INTO m VALUES (1); CREATE TABLE `we-ird` (x int); INSERT INTO `we-ird` VALUES (1);"
        f"CREATE TABLE part (x int) PARTITION BY HASH (x) PARTITIONS 2; CREATE PROCEDURE hide() {inside};"
    )
    await db.mark()
    await agent(db, "CALL hide()")
    wanted = [(table, "rewrite" if table == "part" else op, rows) for table, op, rows in seen]
    assert told(await db.writes()) in (seen, wanted)  # how many rows a part has, InnoDB only guesses


@on_a_server
async def test_what_a_statement_says_is_told_once(db: Mysql) -> None:
    await db.execute(SEED)
    await db.mark()
    await agent(db, "TRUNCATE mails", "ALTER TABLE customers ADD y int", "OPTIMIZE TABLE mails")
    found = await db.writes()
    assert told(found) == [("customers", "alter", None), ("mails", "truncate", None)]
    assert {event.details["schema"] for event in found} == {"my_shop"}


@on_a_server
async def test_another_database_is_named_and_root_cannot_hide(db: Mysql) -> None:
    await db.execute(SEED)
    await db.mark()
    root = {"user": "root", "password": "r00t"}
    for trick in TRICKS:
        with pytest.raises(pymysql.err.OperationalError, match="denied"):
            await agent(db, trick, **root)
    await agent(db, "CREATE DATABASE other", "USE other", "CREATE TABLE z (a int)", "INSERT INTO z VALUES (1)", **root)
    assert set(told(await db.writes())) >= {("database other", "create", None), ("other.z", "insert", 1)}


@on_a_server
async def test_a_session_that_the_agent_left_open_is_ended(db: Mysql) -> None:
    await db.execute(SEED)
    await db.mark()
    session = await asyncio.to_thread(login, db)
    with session.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("UPDATE customers SET email = 'z'")
    assert told(await db.writes()) == [("customers", "update", 2)]
    assert (await db.query("SELECT count(*) FROM customers WHERE email = 'z'", timeout_s=5)).rows == ((0,),)


@on_a_server
async def test_a_database_that_the_agent_dropped_is_a_result(db: Mysql) -> None:
    await db.mark()
    await agent(db, "DROP DATABASE my_shop")
    assert told(await db.writes()) == [("database my_shop", "drop", None)]
    with pytest.raises(QueryFailed, match="my_shop"):
        await db.query("SELECT 1", timeout_s=5)


FILES = [
    "SELECT load_file('/etc/passwd')",
    "SELECT load_file('/proc/self/environ')",
    "SELECT load_file('/sockets/accounts.sql')",
]


@pytest.mark.parametrize("other", [{}, {"user": "root", "password": "r00t"}])
@on_a_server
async def test_an_agent_reads_no_file_of_this_machine(db: Mysql, other: dict[str, str]) -> None:
    await db.mark()
    if other:  # root may write to the table of accounts, and so give itself any power
        with suppress(pymysql.Error):
            all_powers = "JSON_SET(Priv, '$.access', 18446744073709551615)"
            await agent(db, f"UPDATE mysql.global_priv SET Priv = {all_powers}", "FLUSH PRIVILEGES", **other)
    for read in FILES:
        assert await agent(db, read, **other) == [(None,)]
    for statement in ("LOAD DATA INFILE '/etc/passwd' INTO TABLE t", "SELECT 1 INTO OUTFILE '/tmp/x'"):
        with pytest.raises(pymysql.Error):
            await agent(db, "CREATE TABLE IF NOT EXISTS my_shop.t (a text)", "USE my_shop", statement, **other)


def test_a_mode_that_changes_how_strings_end_hides_no_write(sea: Bay) -> None:
    async def scene(db: Mysql) -> list[tuple[str, str, int | None]]:
        await db.execute(SEED)
        await db.mark()
        mode = "SET SESSION sql_mode = CONCAT(@@sql_mode, ',NO_BACKSLASH_ESCAPES')"
        await agent(db, mode, "INSERT INTO mails (customer) WITH x AS (SELECT '\\' AS a) SELECT 1 FROM x")
        await agent(db, mode, "SELECT '\\' AS a; -- '", "DELETE FROM customers WHERE email = '\\' OR id = 2")
        return told(await db.writes())

    found = sea.with_server(scene)
    assert {table for table, _, _ in found} == {"customers", "mails"}
