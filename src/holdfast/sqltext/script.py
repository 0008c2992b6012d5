"""Splits a file of SQL into statements, as psql and mysql do: rows after a COPY, DELIMITER, client commands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from msgspec import Struct

from holdfast.errors import QueryFailed
from holdfast.sqltext.cursor import StatementCursor, TokenCursor
from holdfast.sqltext.lexer import SPACE, Dialect

_COPY_END = re.compile(r"^\\\.\r?\n?", re.MULTILINE)
_PSQL = re.compile(r"\\([\w?!]+)[^\n]*")
_DELIMITER = re.compile(r"delimiter[ \t]+(\S+)[^\n]*", re.IGNORECASE)
_HARMLESS = frozenset({"restrict", "unrestrict", "echo", "encoding"})
"""psql commands without a meaning here; pg_dump writes the first two."""


class ScriptStatement(Struct, frozen=True):
    """One statement of a file, its position, and the rows that follow a COPY."""

    text: str
    line: int
    data: str | None = None


def split(sql: str, dialect: Dialect) -> Iterator[ScriptStatement]:
    """Yield every statement in order; QueryFailed for a command that only an interactive client supports."""
    yield from _Script(sql, dialect).split()


class _Script:
    def __init__(self, sql: str, dialect: Dialect) -> None:
        self._sql = sql
        self._dialect = dialect
        self._cursor = StatementCursor(sql, dialect)
        self._line = 1
        self._counted = 0

    def split(self) -> Iterator[ScriptStatement]:
        cursor = self._cursor
        while cursor.skip_blank():
            if self._skip_command():
                continue
            start = cursor.at
            text = self._sql[start : cursor.skip_statement()].strip(SPACE)
            if text:
                line = self._count_line(start)
                copies = self._dialect == "postgres" and _is_copy_from_stdin(text)
                yield ScriptStatement(text, line, self._read_rows() if copies else None)

    def _skip_command(self) -> bool:
        """Skip a client command; return whether there was one."""
        cursor = self._cursor
        command = (_PSQL if self._dialect == "postgres" else _DELIMITER).match(self._sql, cursor.at)
        if command is None:
            return False
        if self._dialect == "mysql":
            cursor.delimiter = command[1]
        elif command[1] not in _HARMLESS:
            line = self._count_line(cursor.at)
            raise QueryFailed(
                f"line {line}: \\{command[1]} is a command of psql, not SQL; take it out", code="query-failed"
            )
        cursor.at = command.end()
        return True

    def _read_rows(self) -> str:
        r"""Return the lines after COPY … FROM stdin, up to `\.`."""
        cursor = self._cursor
        newline = self._sql.find("\n", cursor.at)
        start = len(self._sql) if newline < 0 else newline + 1
        end = _COPY_END.search(self._sql, start)
        cursor.at = end.end() if end else len(self._sql)
        return self._sql[start : end.start() if end else len(self._sql)]

    def _count_line(self, place: int) -> int:
        """Return the line of a position; positions must come in order, so a long file is counted once."""
        self._line += self._sql.count("\n", self._counted, place)
        self._counted = place
        return self._line


def _is_copy_from_stdin(statement: str) -> bool:
    """Whether it is COPY … FROM stdin."""
    words = TokenCursor(statement, "postgres")
    return words.skip("copy") and ("from", "stdin") in pairwise(words.read_words())
