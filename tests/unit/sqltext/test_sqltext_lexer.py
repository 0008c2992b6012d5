"""Tokens of SQL text in both dialects."""

from __future__ import annotations

import time

import pytest

from holdfast.sqltext.lexer import Dialect, format_name, is_covered, tokenize
from holdfast.sqltext.script import split
from holdfast.sqltext.transaction import parse_transaction
from holdfast.sqltext.writes import find_writes

SHORT = {"word": "w", "name": "n", "string": "s", "number": "#", "comment": "c", "open": "<", "close": ">"}


def read(sql: str, dialect: Dialect) -> list[str]:
    """Each token as its kind and its text, signs as they are; space is left out."""
    found = [token for token in tokenize(sql, dialect) if token.kind != "space"]
    return [f"{SHORT[token.kind]}:{token.text}" if token.kind in SHORT else token.text for token in found]


def test_postgres() -> None:
    for sql, expected in [
        ("a.B = 1", ["w:a", ".", "w:B", "=", "#:1"]),
        ("'it''s'x", ["s:'it''s'", "w:x"]),
        (r"'\' a", [r"s:'\'", "w:a"]),
        (r"E'\' a'b", [r"s:E'\' a'", "w:b"]),
        ("e'\\'a'\n'\\'b'c", ["s:e'\\'a'\n'\\'b'", "w:c"]),
        ("E'a' -- '\n -- '\n'\\'b'c", ["s:E'a' -- '\n -- '\n'\\'b'", "w:c"]),
        (r"E'a' '\'b", ["s:E'a'", r"s:'\'", "w:b"]),
        (r"nameE'\'b", ["w:nameE", r"s:'\'", "w:b"]),
        (r"U&'\'b U&" + '"c"', [r"s:U&'\'", "w:b", 'n:U&"c"']),
        ("x'1F' B'1'", ["s:x'1F'", "s:B'1'"]),
        ('"a""b"', ['n:"a""b"']),
        ("$$a'$$b", ["s:$$a'$$", "w:b"]),
        ("$a$ $$ $b$ $a$b", ["s:$a$ $$ $b$ $a$", "w:b"]),
        ("a$$b$$ $1$$;$$", ["w:a$$b$$", "$", "#:1", "s:$$;$$"]),
        ("$1a$", ["$", "#:1a", "$"]),
        ("a--b\nc--", ["w:a", "c:--b", "w:c", "c:--"]),
        ("/* a /* b */ c */ d", ["c:/* a /* b */ c */", "w:d"]),
        ("/* a /* b */ c", ["c:/* a /* b */ c"]),
        ("a*/b", ["w:a", "*", "/", "w:b"]),
        ("#`", ["#", "`"]),
        ("1.5e3 1_0", ["#:1.5e3", "#:1_0"]),
        ("größe’s", ["w:größe’s"]),
        ("'open", ["s:'open"]),
    ]:
        assert read(sql, "postgres") == expected, (sql, expected)


def test_mysql() -> None:
    for sql, expected in [
        (r"'\' a'b", [r"s:'\' a'", "w:b"]),
        (r"'it''s\\'b", [r"s:'it''s\\'", "w:b"]),
        (r'"a\"b""c"d', [r's:"a\"b""c"', "w:d"]),
        ("`a``b\\`c", ["n:`a``b\\`", "w:c"]),
        ("a -- b\nc--1 d--", ["w:a", "c:-- b", "w:c", "-", "-", "#:1", "w:d", "c:--"]),
        ("a#b\nc", ["w:a", "c:#b", "w:c"]),
        ("/* a /* b */ c", ["c:/* a /* b */", "w:c"]),
        ("/*!40101 SET a = '*/' */b", ["<:/*!40101", "w:SET", "w:a", "=", "s:'*/'", ">:*/", "w:b"]),
        ("/*M!100 a /* b */ c */", ["<:/*M!100", "w:a", "c:/* b */", "w:c", ">:*/"]),
        ("2*/* ; */3*/", ["#:2", "*", "c:/* ; */", "#:3", "*", "/"]),
        ("$$ a$b @@c", ["w:$$", "w:a$b", "@", "@", "w:c"]),
        ("2fa.3 1.5e3", ["w:2fa", ".", "#:3", "#:1.5e3"]),
        ("'open\\", ["s:'open\\"]),
    ]:
        assert read(sql, "mysql") == expected, (sql, expected)


def test_a_token_knows_where_it_begins() -> None:
    sql = "SELECT 'a;b' /* c */, \"d\"\nFROM e"
    assert all(sql.startswith(token.text, token.at) for token in tokenize(sql, "postgres"))


HOSTILE = [
    "'", '"', "`", "''", "\\'", "E'", "E'\\", "E''\n", "E''--\n", "U&'", "$$", "$a", "$a$", "/*", "*/", "/*!",
    "/* /* */", "--", "-- ", "-- \n", "#", ";", "(", "\n", " ", "1.", "1a", "a", "a,", "a.", "with ", "insert into ",
    "for update ", "case ", "create ", "create trigger begin ", "begin ", "end; ", "drop table a, ", "copy a (",
    "copy a from stdin;\n", "`x`", "E'\\''", "(1,'a'),", "delimiter '\n", "delimiter /*\n", "\\echo '\n",
    "explain (analyze ", "begin atomic; ",
]  # fmt: skip


def _read_all(text: str, dialect: Dialect) -> None:
    for _ in tokenize(text, dialect):
        pass
    parse_transaction(text, dialect)
    find_writes(text, dialect)
    for _ in split(text, dialect):
        pass


@pytest.mark.slow
def test_hostile_text_is_read_in_no_time() -> None:
    """A reader that looks at a place as often as there are others needs minutes."""
    for part in HOSTILE:
        for dialect in ["postgres", "mysql"]:
            began = time.process_time()
            for start in ("", "with x as ", "create function "):
                _read_all((start + part * 8_000)[:8_000], dialect)
            assert time.process_time() - began < 0.2, (part, dialect)


@pytest.mark.slow
@pytest.mark.parametrize("dialect", ["postgres", "mysql"])
def test_a_long_statement_is_read_in_seconds(dialect: Dialect) -> None:
    began, row = time.process_time(), "(1,'a'),"
    _read_all(f"insert into t values {row * (200_000 // len(row))}", dialect)
    assert time.process_time() - began < 2


# Names of tables, and which of them a list covers.


def test_a_bare_name_is_of_the_default_schema_alone() -> None:
    for allowed, name, default, covered in [
        ("a", "public.a", "public", True),
        ("A", "public.a", "public", True),
        ("a*", "public.abc", "public", True),
        ("a", "app.a", "public", False),
        ("a", "app.a", "app", True),
        ("a", "app.a", "", False),
        ("a", "a", "", True),
        ("public.a", "public.a", "public", True),
        ("app.a", "app.a", "public", True),
        ("*.a", "app.a", "public", True),
        ("*", "app.a", "public", False),
        ("app.*", "app.public.a", "public", False),
        ("*.*.a", "app.public.a", "public", True),
        ("*.*.a", "app.a", "public", False),
        ("app.*", 'app."b.c"', "public", True),
        ("app.a", 'public."app.a"', "public", False),
    ]:
        assert is_covered([allowed], name, default) is covered, (allowed, name, default, covered)


def test_a_dot_in_a_name_is_not_a_schema() -> None:
    assert format_name("a.b", "c") == '"a.b".c'
    assert format_name("a", "b.c") == 'a."b.c"'
