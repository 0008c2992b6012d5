"""What SQL text does to a transaction."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.sqltext.transaction import parse_transaction


def kinds(sql, dialect="postgres"):
    return [one.kind for one in parse_transaction(sql, dialect)]


def test_kind():
    for sql, kind in [
        ("BEGIN", "begin"),
        ("begin transaction isolation level serializable", "begin"),
        ("START TRANSACTION", "begin"),
        ("COMMIT", "commit"),
        ("END", "commit"),
        ("ROLLBACK", "rollback"),
        ("ABORT", "rollback"),
        ("ROLLBACK TO SAVEPOINT a", "session"),
        ("SAVEPOINT a", "session"),
        ("RELEASE SAVEPOINT a", "session"),
        ("SET search_path = x", "session"),
        ("SHOW server_version", "session"),
        ("select 1", "read"),
        ("SELECT * FROM a FOR UPDATE", "read"),
        ("VALUES (1)", "read"),
        ("EXPLAIN DELETE FROM a", "read"),
        ("INSERT INTO a VALUES (1)", "write"),
        ("update a set b = 1", "write"),
        ("DELETE FROM a", "write"),
        ("TRUNCATE a", "write"),
        ("CREATE TABLE a (b int)", "write"),
        ("COPY a FROM STDIN", "write"),
        ("COPY a TO STDOUT", "read"),
        ("COPY (SELECT 1) TO STDOUT", "read"),
        ("CALL pay(1)", "write"),
        ("WITH x AS (SELECT 1) SELECT * FROM x", "read"),
        ("WITH x AS (SELECT 1 FROM a FOR UPDATE) SELECT * FROM x", "read"),
        ("WITH x AS (INSERT INTO a VALUES (1) RETURNING b) SELECT * FROM x", "write"),
        ("/* INSERT */ SELECT 'DELETE FROM a'", "read"),
        ("-- a note\nINSERT INTO a VALUES (1)", "write"),
        ("(SELECT 1)", "read"),
        ("SELECT 1 INTO a", "write"),
        ("EXPLAIN ANALYZE DELETE FROM a", "write"),
        ("COPY (SELECT 1 FROM a) TO STDOUT", "read"),
        ("PREPARE p AS INSERT INTO a VALUES (1)", "session"),
        ("EXECUTE p", "write"),
        ("COMMIT PREPARED 'a'", "session"),
    ]:
        assert kinds(sql) == [kind], (sql, kind)


@pytest.mark.parametrize(
    ("sql", "table"),
    [
        ("INSERT INTO customers (a) VALUES (1)", "customers"),
        ('INSERT INTO "public"."Customers" VALUES (1)', "public.Customers"),
        ("UPDATE ONLY customers SET a = 1", "customers"),
        ("DELETE FROM shop.customers WHERE a = 'x'", "shop.customers"),
        ("TRUNCATE TABLE customers", "customers"),
        ("DROP TABLE IF EXISTS customers", "customers"),
        ("WITH x AS (SELECT 1) INSERT INTO customers SELECT * FROM x", "customers"),
    ],
)
def test_table(sql, table):
    assert parse_transaction(sql, "postgres")[0].table == table


def test_several_statements_are_distinguished_outside_of_literals():
    sql = "BEGIN; INSERT INTO a VALUES ('x; COMMIT'); /* ; */ UPDATE \"b;c\" SET d = $q$;$q$; COMMIT;"
    assert kinds(sql) == ["begin", "write", "write", "commit"]
    assert kinds(" ; ;; ") == []
    assert kinds("") == []


ATOMIC = "CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT CASE WHEN true THEN 1 END; SELECT 2; END"
BODY = "BEGIN IF a THEN SELECT 1; END IF; CASE b WHEN 1 THEN DELETE FROM c; END\nCASE; SELECT 2; END"
ALTER = "ALTER TABLE `a` DISABLE KEYS"


@pytest.mark.parametrize(
    ("dialect", "sql", "expected"),
    [
        # A backslash escapes only where the dialect says so.
        ("postgres", r"SELECT 'a\'; DELETE FROM b; --'", ["read", "write"]),
        ("mysql", r"SELECT 'a\'; DELETE FROM b; --'", ["read"]),
        ("postgres", r"SELECT E'a\'; DELETE FROM b; --'", ["read"]),
        # The body of a program is not a statement of its own.
        ("postgres", f"{ATOMIC}; COMMIT", ["write", "commit"]),
        ("mysql", f"CREATE DEFINER=`a`@`b` PROCEDURE p() {BODY}; COMMIT", ["write", "commit"]),
        ("mysql", "CREATE PROCEDURE p() DELETE FROM a; COMMIT", ["write", "commit"]),
        ("mysql", "BEGIN NOT ATOMIC DELETE FROM a", ["write"]),
        # MySQL runs such a comment.
        ("postgres", f"/*!40000 {ALTER} */", []),
        ("mysql", "# a note\nSELECT 1", ["read"]),
    ],
)
def test_kinds_of_a_dialect(dialect, sql, expected):
    assert kinds(sql, dialect) == expected


def test_a_comment_that_mysql_runs_is_part_of_the_statement():
    (alter,) = parse_transaction(f"/*!40000 {ALTER} */", "mysql")
    assert (alter.kind, alter.table, alter.text) == ("write", "a", ALTER)


def test_the_text_is_short_and_without_values():
    sql = """INSERT  INTO "a;b" -- now\n VALUES ('secret', $x$secret$x$, E'se\\'cret')"""
    assert parse_transaction(sql, "postgres")[0].text == """INSERT INTO "a;b" VALUES ('', '', '')"""
    assert len(parse_transaction("SELECT " + "1, " * 1_000, "postgres")[0].text) == 200


@pytest.mark.parametrize(
    ("dialect", "sql", "ends"),
    [
        ("mysql", "CREATE TABLE `a` (b int)", True),
        ("mysql", "CREATE TEMPORARY TABLE a (b int)", False),
        ("mysql", "CREATE OR REPLACE TEMPORARY TABLE a (b int)", False),
        ("postgres", "CREATE TABLE a (b int)", False),
    ],
)
def test_mysql_commits_definitions_by_itself(dialect, sql, ends):
    (create,) = parse_transaction(sql, dialect)
    assert (create.ends, create.table) == (ends, "a")


@pytest.mark.parametrize(
    ("sql", "autocommit"),
    [
        ("SET AUTOCOMMIT = 0", False),
        ("SET @@session.autocommit=ON", True),
        ("SET NAMES utf8", None),
        ("SET @autocommit = 1", None),
        ("SET NAMES utf8, SESSION autocommit := 0", False),
    ],
)
def test_mysql_sets_autocommit(sql, autocommit):
    assert parse_transaction(sql, "mysql")[0].autocommit is autocommit


@given(st.text(alphabet="'\"`$-/*#;\\ aE\n", max_size=200), st.sampled_from(["postgres", "mysql"]))
def test_any_text_can_be_read(sql, dialect):
    assert all(one.kind for one in parse_transaction(sql, dialect))
