"""PostgreSQL and MariaDB themselves say where a statement ends: one message, as many results as we see statements."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pymysql.constants.CLIENT import MULTI_STATEMENTS
from tcp_kit import Mysql, Postgres, mysql, postgres

from holdfast.sqltext.script import split_statements

BOTH = ["1", "'a;b'", "'it''s;'", "1 /* ; ' */", "1 -- ';\n", "1 AS x$y", "'a'\n';b'", "2*/* ; */3"]
POSTGRES = [
    *BOTH, r"'\'", r"E'\';'", r"e'\\'", "E'a'\n'\\';'", "E'a' -- ' ;\n -- '\n'\\';'", r"U&'\0041;'", "x'1F'",
    "B'1'", "N';'",
    "$$;'$$", "$q$ $$;$$ $q$", "1 AS a$$", "1 AS a$q$", '1 AS "c;""d"', '1 AS U&"c;d"', "1 /* /* ; */ ' */", "1--;",
    "1 AS größe$$", "1 AS \u00a0$$", "1.5e3", "'\\\\'",
]  # fmt: skip
MYSQL = [
    *BOTH, r"'\';'", r"'\\'", '"a;\\"b"', '"it""s;"', "1 AS `c;``d`", "1 # ';\n", "1 #\n", "/*!50000 ';', */ 1", "2--1",
    "/*! '*/' , /* ; */ */ 1", "1 AS 2fa$", "1 AS $$", "x'1F'", "_utf8';'", "1 /* /* ; */", "1 --\t;\n", "1.5e3",
    "'a' ';'", "1 AS `a*/`, /*! 2 */ * /* ; */ 3",
]  # fmt: skip


@pytest.fixture(scope="module")
def pg() -> Iterator[Postgres]:
    with postgres() as server:
        yield server


@pytest.fixture(scope="module")
def my() -> Iterator[Mysql]:
    with mysql() as server:
        yield server


def text(value: str) -> str:
    return f"SELECT {value}\n; SELECT {value} \n;; SELECT 3"


@pytest.mark.parametrize("value", POSTGRES)
def test_postgres_ends_statements_where_we_do(pg: Postgres, value: str) -> None:
    with pg.connect(autocommit=True) as connection:
        cursor = connection.execute(text(value))  # type: ignore[call-overload]
        results = 1
        while cursor.nextset():
            results += 1
        assert cursor.fetchall() == [(3,)]
    assert len(list(split_statements(text(value), "postgres"))) == results == 3


@pytest.mark.parametrize("value", MYSQL)
def test_mariadb_ends_statements_where_we_do(my: Mysql, value: str) -> None:
    connection = my.connect(client_flag=MULTI_STATEMENTS)
    sql = text(value).replace(";;", ";")
    with connection.cursor() as cursor:
        cursor.execute(sql)
        results = 1
        while cursor.nextset():
            results += 1
    connection.close()
    assert len(list(split_statements(sql, "mysql"))) == results == 3
