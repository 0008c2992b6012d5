"""Statements in which every table has its database are never an error, however they are written."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from example_counts import examples
from holdfast.sqltext.bare_table import find_bare_table

names = st.text("abcdefghijklmnopqrstuvwxyz_", min_size=1, max_size=7)
tables = st.builds(
    lambda base, name, form: form.format(base, name), names, names, st.sampled_from(["{}.{}", "`{}`.`{}`"])
)
opaque = st.sampled_from(
    ["' from t '", "'it''s from t'", r"'\' from t'", '"join t"', "/* from t */ 1", "1 -- from t\n", "1"]
)
"""Values, with what only looks like a table in them."""
FORMS = (
    "SELECT {v} FROM {t}",
    "SELECT {v} AS {n} FROM {t} AS {n} JOIN {u} USING ({n})",
    "SELECT {n}.{n}, EXTRACT(YEAR FROM {n}), TRIM({v} FROM {n}) FROM {t} {n}, {u}",
    "SELECT {n} INTO {m} FROM {t}",
    "SELECT {v} FROM {t} FOR SYSTEM_TIME FROM {n} TO {m}",
    "SELECT * FROM (SELECT {v} FROM {t}) AS {n} LEFT JOIN {u} ON {v}",
    "SELECT {v} FROM {t} WHERE {n} IN (SELECT {m} FROM {u}) UNION SELECT {v} FROM {u}",
    "WITH {n} AS (SELECT {v} FROM {t}) SELECT * FROM {n} JOIN {u}",
    "WITH RECURSIVE {n} ({m}) AS (SELECT 1) UPDATE {t} SET {m} = {v}",
    "INSERT INTO {t} ({n}) VALUES ({v}) ON DUPLICATE KEY UPDATE {n} = {v}",
    "INSERT INTO {t} SELECT {v} FROM {u}",
    "REPLACE INTO {t} SET {n} = {v}",
    "UPDATE {t} JOIN {u} SET {n} = {v}",
    "DELETE FROM {t} WHERE {n} = {v}",
    "DELETE FROM {n} USING {t} AS {n} JOIN {u}",
    "DELETE {n}, {m} FROM {t} AS {n} JOIN {u} AS {m}",
    "CREATE TABLE IF NOT EXISTS {t} ({n} int)",
    "CREATE VIEW {t} AS SELECT {v} FROM {u}",
    "CREATE DATABASE {n}",
    "CREATE USER {n}",
    "ALTER TABLE {t} ADD FOREIGN KEY ({n}) REFERENCES {u} ({n}) ON UPDATE CASCADE",
    "DROP TABLE IF EXISTS {t}",
    "TRUNCATE {t}",
    "LOCK TABLES {t} WRITE",
    "GRANT SELECT, UPDATE ON {t} TO {n}",
    "REVOKE SELECT ON {n}.* FROM {m}",
    "SHOW COLUMNS FROM {t}",
    "SET @from = {v}",
    "LOAD DATA INFILE {v} INTO TABLE {t}",
)


@st.composite
def statements(draw: st.DrawFn) -> str:
    form = draw(st.sampled_from(FORMS)).replace(" ", draw(st.sampled_from([" ", "\n", "  ", " /* from t */ "])))
    form = form.lower() if draw(st.booleans()) else form
    return form.format(v=draw(opaque), t=draw(tables), u=draw(tables), n=f"x{draw(names)}", m=f"y{draw(names)}")


@settings(max_examples=examples(300), deadline=None)
@given(made=st.lists(statements(), min_size=1, max_size=4))
def test_a_table_that_has_its_database_is_no_error(made: list[str]) -> None:
    assert find_bare_table(";\n".join(made)) == ""


BARE = (
    "SELECT {v} FROM t",
    "INSERT INTO t VALUES ({v})",
    "UPDATE t SET a = {v}",
    "DELETE FROM t",
    "CREATE TABLE t (a int)",
)


@settings(max_examples=examples(200), deadline=None)
@given(made=st.lists(statements(), max_size=3), bare=st.sampled_from(BARE), value=opaque)
def test_one_that_has_none_is_found_after_any_of_them(made: list[str], bare: str, value: str) -> None:
    assert find_bare_table(";\n".join([*made, bare.format(v=value)])) == "t"


@settings(max_examples=examples(300), deadline=None)
@given(text=st.text(max_size=80))
def test_any_text_can_be_looked_at(text: str) -> None:
    find_bare_table(text)
    assert find_bare_table(f"USE app; {text}") == ""
