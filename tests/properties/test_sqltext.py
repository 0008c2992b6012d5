"""SQL text comes back from its tokens and statements, and all who read it agree."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from example_counts import examples
from holdfast.sqltext.lexer import Dialect, tokenize
from holdfast.sqltext.script import split, split_statements
from holdfast.sqltext.transaction import parse_transaction
from holdfast.sqltext.writes import find_writes

dialects = st.sampled_from(["postgres", "mysql"])
WORDS = """' " ` '' \\ E' U&' x' $$ $a$ $1 a$ /* */ /*!40101 /*M! -- # ; ( ) , . * - / é ’ 1 1.5 2fa begin atomic case
end if create function trigger insert into with as select update t copy from stdin explain analyze set
autocommit = // delimiter"""
pieces = st.sampled_from([*WORDS.split(), "-- ", "\n", "\r", " ", "\u00a0", "\x00", "begin atomic", "delimiter //"])
texts = st.one_of(
    st.text(max_size=80), st.lists(pieces, max_size=40).map("".join), st.lists(pieces, max_size=40).map(" ".join)
)


@settings(max_examples=examples(500), deadline=None)
@given(sql=texts, dialect=dialects)
def test_the_tokens_are_the_text(sql: str, dialect: Dialect) -> None:
    found = list(tokenize(sql, dialect))
    assert "".join(token.text for token in found) == sql
    assert all(token.text and sql.startswith(token.text, token.at) for token in found)


@settings(max_examples=examples(500), deadline=None)
@given(sql=texts, dialect=dialects)
def test_a_statement_is_a_part_of_the_text_that_ends_outside_of_literals(sql: str, dialect: Dialect) -> None:
    at = 0
    for statement in split_statements(sql, dialect):
        at = sql.index(statement, at) + len(statement)
        assert list(split_statements(statement, dialect)) == [statement]


NAMES = st.from_regex(r"[a-z_]{1,6}", fullmatch=True).map(lambda name: f"x{name}")
COMMON = ["1", "'a;b'", "'it''s'", "1 -- ';\n"]
VALUES: dict[Dialect, list[str]] = {
    "postgres": [*COMMON, r"'\'", r"E'\';'", "$$;'$$", "$q$ $$;$$ $q$", "U&'\\0041;'", '"c;d"', "/* ; /* ; */ ' */ 1"],
    "mysql": [*COMMON, r"'\';'", '"a;\\"b"', "`c;d`", "/* ; ' */ 1", "1 # ';\n", "/*!50000 1 */", "2--1"],
}
FORMS = {
    "INSERT INTO {t} VALUES ({v})": ("write", "insert"),
    "UPDATE {t} SET a = {v} WHERE b = {v}": ("write", "update"),
    "DELETE FROM {t} WHERE a = {v}": ("write", "delete"),
    "WITH x AS (SELECT {v}) INSERT INTO {t} SELECT {v}": ("write", "insert"),
    "WITH x AS (SELECT {v}) SELECT * FROM {t}": ("read", ""),
    "SELECT {v} FROM {t} FOR UPDATE": ("read", ""),
    "(SELECT {v} FROM {t})": ("read", ""),
    "TRUNCATE TABLE {t}": ("write", "truncate"),
    "CREATE TABLE IF NOT EXISTS {t} (a int DEFAULT 1)": ("write", "create"),
    "CREATE INDEX i ON {t} (a)": ("write", "create"),
    "DROP TABLE IF EXISTS {t}": ("write", "drop"),
    "ALTER TABLE {t} ADD b int": ("write", "alter"),
    "EXPLAIN DELETE FROM {t} WHERE a = {v}": ("read", ""),
    "EXPLAIN ANALYZE DELETE FROM {t} WHERE a = {v}": ("write", "delete"),
    "SET a = {v}": ("session", ""),
    "BEGIN": ("begin", ""),
    "COMMIT": ("commit", ""),
    "ROLLBACK": ("rollback", ""),
}
Made = tuple[str, str, str, str]
"""A statement, its kind, its operation, its table."""


@st.composite
def made(draw: st.DrawFn, dialect: Dialect) -> Made:
    form = draw(st.sampled_from(sorted(FORMS)))
    table, value = draw(NAMES), draw(st.sampled_from(VALUES[dialect]))
    text = form.format(t=f"app.{table}", v=value)
    gap = draw(st.sampled_from([" ", "\n", "\t ", " /* ; ' */ "]))
    text = text.replace(" VALUES", f"{gap}VALUES").replace(" WHERE", f"{gap}WHERE").replace(" TABLE", f"{gap}TABLE")
    return (text.lower() if draw(st.booleans()) else text, *FORMS[form], f"app.{table}")


several = dialects.flatmap(lambda dialect: st.tuples(st.just(dialect), st.lists(made(dialect), max_size=6)))


@settings(max_examples=examples(400), deadline=None)
@given(several)
def test_a_script_comes_apart_into_its_statements(given: tuple[Dialect, list[Made]]) -> None:
    dialect, parts = given
    script = "".join(f"-- a; b\n{text};\n/* c; d */ ; " for text, *_ in parts)
    expected = [text.strip() for text, *_ in parts]
    assert [statement.text for statement in split(script, dialect)] == expected
    assert list(split_statements(script, dialect)) == expected


@settings(max_examples=examples(400), deadline=None)
@given(several)
def test_a_plane_and_an_audit_read_the_same(given: tuple[Dialect, list[Made]]) -> None:
    dialect, parts = given
    seen = parse_transaction(";".join(text for text, *_ in parts), dialect)
    assert [one.kind for one in seen] == [kind for _, kind, *_ in parts]
    for one, (text, kind, op, table) in zip(seen, parts, strict=True):
        audited = [(write.op, write.table) for write in find_writes(text, dialect)]
        assert audited == ([(op, table)] if kind == "write" else [])
        assert one.table == (table if kind == "write" else "")


@settings(max_examples=examples(500), deadline=None)
@given(sql=texts, dialect=dialects)
def test_what_an_audit_sees_written_a_plane_does_too(sql: str, dialect: Dialect) -> None:
    seen = {one.verb: one.kind for text in split_statements(sql, dialect) for one in parse_transaction(text, dialect)}
    audited = [text for text in split_statements(sql, dialect) if find_writes(text, dialect)]
    for text in audited:
        (one,) = parse_transaction(text, dialect)
        assert one.kind == "write" or one.verb == "PREPARE"
    assert bool(audited) <= bool({"write", "session"} & set(seen.values()))
