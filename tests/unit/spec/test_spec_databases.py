"""A MySQL service without a database: what needs one is told before anything runs."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.spec.world import READ
from holdfast.sqltext.bare_table import find_bare_table

BASE = "version: 1\nid: t\nagent: {type: command, command: a}\ntask: {prompt: p}\n"
NONE = 'services:\n  - {name: db, image: "mysql:8"}\n'
NAMED = 'services:\n  - {name: db, image: "mysql:8", env: {MYSQL_DATABASE: app}}\n'
CALM = "invariants: {r: {description: d, check: {type: completes}}}\n"


def test_a_table_without_its_database_is_found() -> None:
    for sql, table in [
        ("SELECT count(*) FROM customers", "customers"),
        ("select 1 from `order`", "order"),
        ("SELECT 1 FROM app.customers JOIN orders ON 1", "orders"),
        ("INSERT INTO t (a) VALUES (1)", "t"),
        ("CREATE TABLE IF NOT EXISTS t (a int)", "t"),
        ("CREATE DATABASE app; CREATE TABLE t (a int)", "t"),
        ("UPDATE t SET a = 1", "t"),
        ("TRUNCATE t", "t"),
        ("DROP TABLE IF EXISTS t", "t"),
        ("DELETE FROM t WHERE a IN (SELECT b FROM app.s)", "t"),
        ("DELETE FROM app.t WHERE a IN (SELECT b FROM s)", "s"),
        ("SELECT EXTRACT(YEAR FROM d) FROM t", "t"),
        ("--\nSELECT 1 FROM t", "t"),
        ("LOAD DATA INFILE 'x' INTO TABLE t", "t"),
        ("BEGIN; INSERT IGNORE INTO t VALUES (1); COMMIT", "t"),
        ("TRUNCATE TABLE t", "t"),
        ("SET NAMES utf8; GRANT ALL ON app.* TO bob; UPDATE LOW_PRIORITY t SET a = 1", "t"),
        ("SELECT 'it''s; \\' FROM x' FROM t", "t"),
        ("(" * 200 + "SELECT 1 FROM t" + ")" * 200, "t"),
    ]:
        assert find_bare_table(sql) == table, (sql, table)


def test_what_needs_no_database_is_left_alone() -> None:
    for sql in [
        "SELECT 1",
        "SELECT 1 FROM dual",
        "SELECT count(*) FROM app.customers",
        "SELECT count(*) FROM `app`.`customers`",
        "SELECT count(*) FROM app . customers",
        "SELECT count(*) FROM information_schema.tables",
        "CREATE DATABASE app; USE app; CREATE TABLE t (a int)",
        "SELECT EXTRACT(YEAR FROM d), TRIM(LEADING 'x' FROM e) FROM app.t",
        "WITH x AS (SELECT 1 FROM app.t) SELECT * FROM x",
        "SELECT 'from t' -- from t\nFROM app.t /* from t */ # from t",
        'SELECT "from t" FROM app.t',
        "INSERT INTO app.t VALUES (1) ON DUPLICATE KEY UPDATE a = 2",
        "ALTER TABLE app.t ADD FOREIGN KEY (a) REFERENCES app.s (a) ON UPDATE CASCADE",
        "SELECT a FROM app.t FOR UPDATE SKIP LOCKED",
        "SHOW TABLES FROM app",
        "SELECT * FROM JSON_TABLE('[1]', '$[*]' COLUMNS (a int PATH '$')) AS j",
        "CREATE PROCEDURE app.p() BEGIN DECLARE n int; SELECT count(*) INTO n FROM app.t; END",
        "SELECT count(*) FROM {{ params.database }}.t",
        "REVOKE SELECT ON app.* FROM bob",
        "GRANT SELECT ON app.* TO bob",
        "DELETE FROM t1 USING app.t1 JOIN app.t2",
        "DELETE t1 FROM app.t1 JOIN app.t2",
        "SELECT a INTO x FROM app.t",
        "SELECT a INTO @x FROM app.t",
        "SELECT a FROM app.t FOR SYSTEM_TIME FROM a TO b",
        "SELECT t.from, @from FROM app.t",
        "SELECT a FROM app.t WHERE (b, c) IN (SELECT d, e FROM app.s)",
        "SELECT * FROM (SELECT a FROM app.t) AS t JOIN app.s USING (a)",
        "CREATE TABLE app.t LIKE app.s",
        "SELECT * FROM seq_1_to_9",
        "SELECT 1 FROM app_{{ params.n }}.t",
        "CREATE DATABASE app /*!32312 IF NOT EXISTS */; /*!40101 USE app */; INSERT INTO t VALUES (1)",
        "SOURCE other.sql; INSERT INTO t VALUES (1)",
        "DELIMITER //\nINSERT INTO t VALUES (1)//",
        "SET @@sql_mode = 'ANSI_QUOTES'; INSERT INTO t VALUES (\"'\")",
    ]:
        assert find_bare_table(sql) == "", sql


def test_long_statements_are_read_once() -> None:
    for part in ["a", " ", "(", ")", "a ", "a(", "'", '"', "`", "/*", "-- \n", "\\", "from ", ";", "/*!"]:
        assert find_bare_table("SELECT 1 WHERE " + part * 20_000) == "", part


def test_a_statement_that_is_cut_by_our_limit_is_not_looked_at(file: Any) -> None:
    start = "-- all of it\n".ljust(READ - len("; INSERT INTO ap"), " ")
    (file.folder / "seed.sql").write_text(f"{start}; INSERT INTO app.t VALUES (1)")
    assert file.spec(BASE + NONE + CALM + "fixtures: [{type: sql, service: db, file: seed.sql}]\n")


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("fixtures: [{type: sql, service: db, sql: 'CREATE TABLE t (a int)'}]\n", "fixtures[0].sql"),
        ("fixtures: [{type: sql, service: db, file: seed.sql}]\n", "fixtures[0].file"),
        ("fixtures: [{type: drift, service: db, table: t}]\n", "fixtures[0].table"),
    ],
)
def test_fixtures_that_need_a_database_are_errors(file: Any, text: str, path: str) -> None:
    (file.folder / "seed.sql").write_text("-- all of it\nINSERT INTO t VALUES (1);\n")
    found = file.error(BASE + NONE + CALM + text)
    assert (found.path, found.code) == (path, "no-database")
    assert "MYSQL_DATABASE: app" in found.hint
    assert "app.t" in found.hint
    assert file.spec(BASE + NAMED + CALM + text)


@pytest.mark.parametrize(
    ("check", "path"),
    [
        ("{type: sql, service: db, query: 'SELECT 1 FROM t', equals: 1}", "invariants.r.check.query"),
        ("{type: db_unchanged_except, service: db, tables: [app.s, t]}", "invariants.r.check.tables[1]"),
    ],
)
def test_rules_that_need_a_database_are_errors(file: Any, check: str, path: str) -> None:
    found = file.error(f"{BASE}{NONE}invariants: {{r: {{description: d, check: {check}}}}}\n")
    assert (found.path, found.code) == (path, "no-database")
    other = NONE.replace("mysql:8", "postgres:16")
    assert file.spec(f"{BASE}{other}invariants: {{r: {{description: d, check: {check}}}}}\n")


@pytest.mark.parametrize(
    ("url", "wrong"),
    [
        ("mysql://h", True),
        ("mysql://h/", True),
        ("mysql://h/app", False),
        ("${DB_URL:-x}", False),
        ("redis://h", False),
    ],
)
def test_an_external_database_has_its_name_in_its_url(file: Any, url: str, wrong: bool) -> None:
    service = f"services: [{{name: db, type: external, url: '{url}'}}]\n"
    text = BASE + service + CALM + "fixtures: [{type: sql, service: db, sql: 'DELETE FROM t'}]\n"
    codes = [one.code for one in file.errors(text)] if wrong else []
    assert codes == (["no-database"] if wrong else [])
    assert wrong or file.spec(text)
