"""Operation and table of a statement are read from its text."""

from __future__ import annotations

import time

import pytest

from holdfast.world.services.statements import split
from holdfast.world.services.written_tables import writes_of


def found(sql: str, dialect: str = "postgres") -> list[tuple[str, str]]:
    return [(write.op, write.table) for write in writes_of(sql, dialect)]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("sql", "writes"),
    [
        ("INSERT INTO customers (id) VALUES (1)", [("insert", "customers")]),
        ("insert into public.Customers values (1)", [("insert", "public.customers")]),
        ('UPDATE ONLY "Odd Name" SET a = 1', [("update", "Odd Name")]),
        ("/* hint */ -- why\n DELETE FROM ONLY app.orders WHERE id = 1", [("delete", "app.orders")]),
        ("MERGE INTO stock s USING x ON true WHEN MATCHED THEN UPDATE SET a = 1", [("merge", "stock")]),
        ("TRUNCATE TABLE a, ONLY b CASCADE", [("truncate", "a"), ("truncate", "b")]),
        ("COPY t (a, b) FROM STDIN", [("insert", "t")]),
        ("COPY t TO STDOUT", []),
        ("CREATE TABLE IF NOT EXISTS t (a int)", [("create", "t")]),
        ("CREATE UNIQUE INDEX i ON t (a)", [("create", "t")]),
        ("CREATE INDEX CONCURRENTLY ON t (a)", [("create", "t")]),
        ("ALTER TABLE ONLY t ADD b int", [("alter", "t")]),
        ("DROP TABLE IF EXISTS t CASCADE", [("drop", "t")]),
        ("DROP TABLE a, b.c, d", [("drop", "a"), ("drop", "b.c"), ("drop", "d")]),
        ("DROP INDEX i", [("drop", "index i")]),
        ("CREATE ROLE bob LOGIN", [("create", "role bob")]),
        ("CREATE OR REPLACE FUNCTION f() RETURNS int AS '' LANGUAGE sql", [("create", "function f")]),
        ("REFRESH MATERIALIZED VIEW v", [("refresh", "v")]),
        ("GRANT ALL ON t TO bob", [("grant", "")]),
        ("SELECT * INTO fresh FROM t", [("create", "fresh")]),
        ("SELECT 'insert into t' FROM u FOR UPDATE", []),
        ("WITH d AS (DELETE FROM t RETURNING *) INSERT INTO u SELECT * FROM d", [("delete", "t"), ("insert", "u")]),
        ("WITH d AS (SELECT 1) SELECT * FROM d FOR UPDATE", []),
        ("EXPLAIN ANALYZE UPDATE t SET a = 1", [("update", "t")]),
        ("PREPARE p AS INSERT INTO t VALUES ($1)", [("insert", "t")]),
        ("INSERT INTO t VALUES (1) ON CONFLICT (id) DO UPDATE SET a = 1", [("insert", "t")]),
        ("BEGIN", []),
        ("SET search_path = app", []),
        ("", []),
    ],
)
def test_postgres(sql: str, writes: list[tuple[str, str]]) -> None:
    assert found(sql) == writes


@pytest.mark.parametrize(
    ("sql", "writes"),
    [
        ("REPLACE INTO `t` VALUES (1)", [("replace", "t")]),
        ("INSERT IGNORE INTO shop.`Odd``Name` VALUES (1)", [("insert", "shop.Odd`Name")]),
        ("insert t values (1)", [("insert", "t")]),
        ("DELETE QUICK FROM t", [("delete", "t")]),
        ("UPDATE LOW_PRIORITY t SET a = 1", [("update", "t")]),
        ("LOAD DATA LOCAL INFILE 'x' INTO TABLE t", [("insert", "t")]),
        ("RENAME TABLE t TO u", [("rename", "t")]),
        ("/*!40000 ALTER TABLE `t` DISABLE KEYS */", [("alter", "t")]),
        ("SELECT a INTO @x FROM t", []),
        ("# note\nTRUNCATE t", [("truncate", "t")]),
    ],
)
def test_mysql(sql: str, writes: list[tuple[str, str]]) -> None:
    assert found(sql, "mysql") == writes


def test_a_temporary_table_is_marked() -> None:
    assert [write.temporary for write in writes_of("CREATE TEMP TABLE t (a int)", "postgres")] == [True]
    assert [write.temporary for write in writes_of("CREATE TEMPORARY TABLE t (a int)", "mysql")] == [True]
    assert [write.temporary for write in writes_of("CREATE TABLE template (a int)", "postgres")] == [False]


@pytest.mark.parametrize("dialect", ["postgres", "mysql"])
@pytest.mark.parametrize(
    "part",
    ["/*", "/*!", "'", "create a ", "with insert into ", "insert ignore ", "drop table a, ", "((", "$a$", "copy a ("],
)
def test_hostile_text_takes_no_time(part: str, dialect: str) -> None:
    text = (part * 65_536)[:65_536]
    began = time.process_time()
    for start in ("", "with x as ", "create "):
        writes_of(start + text, dialect)  # type: ignore[arg-type]
        list(split(start + text, dialect))  # type: ignore[arg-type]
    assert time.process_time() - began < 2
