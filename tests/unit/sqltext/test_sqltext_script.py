"""A fixture's text is split as psql and mysql split it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import QueryFailed
from holdfast.sqltext.script import split


def texts(sql: str, dialect: str = "postgres") -> list[str]:
    return [statement.text for statement in split(sql, dialect)]  # type: ignore[arg-type]


def test_a_semicolon_inside_is_not_an_end() -> None:
    for one in [
        "INSERT INTO t VALUES ('a;b')",
        "INSERT INTO t VALUES ('it''s; fine')",
        r"INSERT INTO t VALUES (E'a\';b')",
        'CREATE TABLE "odd;name" (x int)',
        "CREATE FUNCTION f() RETURNS int AS $$ BEGIN; END; $$ LANGUAGE plpgsql",
        "CREATE FUNCTION f() RETURNS int AS $body$ SELECT '$$;'; $body$ LANGUAGE sql",
        "CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT CASE WHEN true THEN 1 END; SELECT 2; END",
        "SELECT 1 /* a; b */ + 1",
        "SELECT 1 -- a; b\n + 1",
        "SELECT a$b$c FROM t",
    ]:
        assert texts(f"{one};\nSELECT 2;") == [one, "SELECT 2"], one


@pytest.mark.parametrize(
    "one",
    [
        r"INSERT INTO t VALUES ('a\';b')",
        "CREATE TABLE `odd;name` (x int)",
        "INSERT INTO t VALUES (1) # a; b\n",
        "INSERT INTO t VALUES (1) -- a; b\n",
        "/*!40101 SET NAMES utf8; */",
        "SELECT 1--1",
    ],
)
def test_mysql_has_its_own_quotes_and_comments(one: str) -> None:
    if one.startswith("/*!"):
        assert texts("/*!40101 SET NAMES utf8 */;", "mysql") == ["/*!40101 SET NAMES utf8 */"]
        return
    assert texts(f"{one};\nSELECT 2;", "mysql") == [one.strip(), "SELECT 2"]


def test_a_delimiter_of_mysql_holds_until_the_next_one() -> None:
    trigger = "CREATE TRIGGER t BEGIN a; b; END"
    assert texts(f"DELIMITER //\n{trigger}//\nDELIMITER ;\nSELECT 1;", "mysql") == [trigger, "SELECT 1"]


def test_each_statement_knows_its_line() -> None:
    found = list(split("-- one\nSELECT 1;\n\n/* two\n */ SELECT\n2;SELECT 3", "postgres"))
    assert [(s.text, s.line) for s in found] == [("SELECT 1", 2), ("SELECT\n2", 5), ("SELECT 3", 6)]


def test_a_dump_brings_the_rows_of_a_copy() -> None:
    sql = "COPY t (a, b) FROM stdin;\n1\tx;y\n2\t\\N\n\\.\n\nSELECT 1;"
    found = list(split(sql, "postgres"))
    assert found[0].data == "1\tx;y\n2\t\\N\n"
    assert found[1].text == "SELECT 1"


def test_what_pg_dump_writes_for_psql_is_passed_over_and_the_rest_refused() -> None:
    assert texts("\\restrict abc\nSELECT 1;\n\\unrestrict abc\n") == ["SELECT 1"]
    with pytest.raises(QueryFailed, match=r"^line 2: \\connect "):
        texts("SELECT 1;\n\\connect other\n")


def test_empty_text_and_lonely_semicolons_are_not_statements() -> None:
    assert texts(" ;; -- nothing\n;") == []


PIECES = st.sampled_from(["a", " ", "1", "'x;y'", '"q;"', "$$;$$", "/* ; */", ",", "(", ")", "\n", "$1", "-"])


@given(st.lists(st.lists(PIECES, min_size=1, max_size=6).map(lambda parts: "x " + " ".join(parts)), max_size=6))
def test_statements_that_are_joined_come_apart_again(statements: list[str]) -> None:
    assert texts(";".join(statements)) == [s.strip() for s in statements]
