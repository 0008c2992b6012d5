"""Operation and table of a statement are read from its text."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.sqltext.transaction import parse_transaction
from holdfast.sqltext.writes import find_writes


def found(sql: str, dialect: str = "postgres") -> list[tuple[str, str]]:
    return [(write.op, write.table) for write in find_writes(sql, dialect)]  # type: ignore[arg-type]


def test_postgres() -> None:
    for sql, writes in [
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
        (r"WITH x AS (SELECT '\' AS a) INSERT INTO t SELECT 1", [("insert", "t")]),
        (r"WITH x AS (SELECT E'\' AS a) INSERT INTO t SELECT 1", []),
        ("WITH x AS (SELECT $a$ INSERT INTO u $$ $a$) INSERT INTO t SELECT 1", [("insert", "t")]),
        ("/* a /* b */ DROP TABLE u */ DELETE FROM t", [("delete", "t")]),
        ("WITH x AS (SELECT 1) SELECT * INTO fresh FROM x", [("create", "fresh")]),
        ("WITH x AS (SELECT 1 AS update FROM u) SELECT t.delete FROM x", []),
        ("EXPLAIN UPDATE t SET a = 1", []),
        ("EXPLAIN (ANALYZE, BUFFERS) DELETE FROM t", [("delete", "t")]),
        ("EXPLAIN (ANALYZE false) DELETE FROM t", []),
        ("COPY (DELETE FROM t RETURNING *) TO STDOUT", [("delete", "t")]),
        ("COPY (SELECT a FROM t) TO STDOUT", []),
        ("UPDATE quick SET a = 1", [("update", "quick")]),
        ("UPDATE ONLY (t) SET a = 1", [("update", "t")]),
        ('INSERT INTO "a.b"."c""d" VALUES (1)', [("insert", '"a.b".c"d')]),
        ("INSERT INTO a . /* of */ b VALUES (1)", [("insert", "a.b")]),
        ("CREATE RULE r AS ON INSERT TO t DO NOTHING", [("create", "t")]),
        ("CREATE TRIGGER g BEFORE UPDATE OF a ON t EXECUTE FUNCTION f()", [("create", "t")]),
        ("(((DELETE FROM t", [("delete", "t")]),
        ("BEGIN", []),
        ("SET search_path = app", []),
        ("", []),
    ]:
        assert found(sql) == writes, (sql, writes)


def test_mysql() -> None:
    for sql, writes in [
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
        (r"WITH x AS (SELECT '\' AS a) INSERT INTO t SELECT 1", []),
        (r"WITH x AS (SELECT '\'' AS a) UPDATE t SET a = 1", [("update", "t")]),
        ('INSERT INTO "t" VALUES ("insert into u")', [("insert", "t")]),
        ("/*!40000 DROP TABLE `a*/`, /* c */ b */", [("drop", "a*/"), ("drop", "b")]),
        ("CREATE DEFINER = `root`@`%` TRIGGER g BEFORE INSERT ON t FOR EACH ROW SET @a = 1", [("create", "t")]),
        ("INSERT INTO 2fa VALUES (1)", [("insert", "2fa")]),
        ("ANALYZE FORMAT=JSON UPDATE t SET a = 1", [("update", "t")]),
        ("ANALYZE TABLE t", []),
        ("SELECT 1--1 INTO @a", []),
    ]:
        assert found(sql, "mysql") == writes, (sql, writes)


@pytest.mark.parametrize(
    ("dialect", "sql", "temporary"),
    [
        ("postgres", "CREATE TEMP TABLE t (a int)", True),
        ("mysql", "CREATE TEMPORARY TABLE t (a int)", True),
        ("postgres", "CREATE TABLE template (a int)", False),
    ],
)
def test_a_temporary_table_is_marked(dialect: Any, sql: str, temporary: bool) -> None:
    assert [write.temporary for write in find_writes(sql, dialect)] == [temporary]


SLASHED = "WITH x AS (SELECT '\\' AS a) INSERT INTO orders SELECT 1"


def test_a_backslash_that_ends_a_string_hides_no_write_from_planes_or_audits() -> None:
    """PostgreSQL's strings are standard ones; MySQL would read on to the next quote."""
    assert [(one.op, one.table) for one in find_writes(SLASHED, "postgres")] == [("insert", "orders")]
    assert [one.kind for one in parse_transaction(SLASHED, "postgres")] == ["write"]
    closed = "WITH x AS (SELECT '\\\\' AS a) INSERT INTO orders SELECT 1"
    assert [(one.op, one.table) for one in find_writes(closed, "mysql")] == [("insert", "orders")]
    assert [one.kind for one in parse_transaction(closed, "mysql")] == ["write"]
    escaped = "WITH x AS (SELECT E'\\' INSERT INTO a' AS a) SELECT 1"
    assert list(find_writes(escaped, "postgres")) == []
