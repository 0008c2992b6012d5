"""What SQL text does to a transaction."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.sqltext.transaction import transaction_statements


def kinds(sql, dialect="postgres"):
    return [one.kind for one in transaction_statements(sql, dialect)]


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
    assert transaction_statements(sql, "postgres")[0].table == table


def test_several_statements_are_told_apart_outside_of_literals():
    sql = "BEGIN; INSERT INTO a VALUES ('x; COMMIT'); /* ; */ UPDATE \"b;c\" SET d = $q$;$q$; COMMIT;"
    assert kinds(sql) == ["begin", "write", "write", "commit"]
    assert kinds(" ; ;; ") == []
    assert kinds("") == []


def test_backslashes_escape_only_where_the_dialect_says_so():
    assert kinds(r"SELECT 'a\'; DELETE FROM b; --'") == ["read", "write"]
    assert kinds(r"SELECT 'a\'; DELETE FROM b; --'", "mysql") == ["read"]
    assert kinds(r"SELECT E'a\'; DELETE FROM b; --'") == ["read"]


def test_the_body_of_a_program_is_no_statement_of_its_own():
    atomic = "CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT CASE WHEN true THEN 1 END; SELECT 2; END"
    assert kinds(f"{atomic}; COMMIT") == ["write", "commit"]
    body = "BEGIN IF a THEN SELECT 1; END IF; CASE b WHEN 1 THEN DELETE FROM c; END\nCASE; SELECT 2; END"
    assert kinds(f"CREATE DEFINER=`a`@`b` PROCEDURE p() {body}; COMMIT", "mysql") == ["write", "commit"]
    assert kinds("CREATE PROCEDURE p() DELETE FROM a; COMMIT", "mysql") == ["write", "commit"]
    assert kinds("BEGIN NOT ATOMIC DELETE FROM a", "mysql") == ["write"]


def test_a_comment_that_mysql_runs_is_part_of_the_statement():
    (alter,) = transaction_statements("/*!40000 ALTER TABLE `a` DISABLE KEYS */", "mysql")
    assert (alter.kind, alter.table, alter.text) == ("write", "a", "ALTER TABLE `a` DISABLE KEYS")
    assert kinds("/*!40000 ALTER TABLE `a` DISABLE KEYS */") == []


def test_the_text_is_short_and_without_values():
    sql = """INSERT  INTO "a;b" -- now\n VALUES ('secret', $x$secret$x$, E'se\\'cret')"""
    assert transaction_statements(sql, "postgres")[0].text == """INSERT INTO "a;b" VALUES ('', '', '')"""
    assert len(transaction_statements("SELECT " + "1, " * 1_000, "postgres")[0].text) == 200


def test_mysql_commits_definitions_by_itself_and_sets_autocommit():
    (create,) = transaction_statements("CREATE TABLE `a` (b int)", "mysql")
    assert (create.ends, create.table) == (True, "a")
    assert not transaction_statements("CREATE TEMPORARY TABLE a (b int)", "mysql")[0].ends
    assert not transaction_statements("CREATE TABLE a (b int)", "postgres")[0].ends
    assert transaction_statements("SET AUTOCOMMIT = 0", "mysql")[0].autocommit is False
    assert transaction_statements("SET @@session.autocommit=ON", "mysql")[0].autocommit is True
    assert transaction_statements("SET NAMES utf8", "mysql")[0].autocommit is None
    assert transaction_statements("SET @autocommit = 1", "mysql")[0].autocommit is None
    assert transaction_statements("SET NAMES utf8, SESSION autocommit := 0", "mysql")[0].autocommit is False
    assert not transaction_statements("CREATE OR REPLACE TEMPORARY TABLE a (b int)", "mysql")[0].ends
    assert kinds("# a note\nSELECT 1", "mysql") == ["read"]


@given(st.text(alphabet="'\"`$-/*#;\\ aE\n", max_size=200), st.sampled_from(["postgres", "mysql"]))
def test_any_text_can_be_read(sql, dialect):
    assert all(one.kind for one in transaction_statements(sql, dialect))
