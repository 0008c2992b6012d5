"""SQL text into statements, as psql and mysql read a file: quotes, comments, COPY data, DELIMITER. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from holdfast.errors import QueryFailed

Dialect = Literal["postgres", "mysql"]

_COMMENT = {
    "postgres": r"--[^\n]*|/\*.*?(?:\*/|\Z)",
    "mysql": r"--(?=\s|\Z)[^\n]*|\#[^\n]*|/\*(?!!|M!).*?(?:\*/|\Z)",
}
_QUOTED = {
    "postgres": r"\b[eE]'(?:[^'\\]|\\.|'')*'?|'[^']*'?|\"[^\"]*\"?"
    r"|(?<![\w$])\$(?P<tag>(?:[^\W\d]\w*)?)\$.*?(?:\$(?P=tag)\$|\Z)",
    "mysql": r"'(?:[^'\\]|\\.|'')*'?|\"(?:[^\"\\]|\\.|\"\")*\"?|`[^`]*`?",
}
_BODY = r"|(?P<body>\bbegin\s+atomic\b)|(?P<more>\bcase\b)|(?P<less>\bend\b)"
"""A function's body in standard SQL holds semicolons of its own; so does a CASE in it."""
_BLANK = {dialect: re.compile(rf"(?:\s+|{comment})*", re.DOTALL) for dialect, comment in _COMMENT.items()}
_COPY = re.compile(r"copy\s.*\bfrom\s+stdin\b", re.IGNORECASE | re.DOTALL)
_COPY_END = re.compile(r"^\\\.\r?\n?", re.MULTILINE)
_PSQL = re.compile(r"\\([\w?!]+)[^\n]*")
_DELIMITER = re.compile(r"delimiter[ \t]+(\S+)[^\n]*", re.IGNORECASE)
_HARMLESS = frozenset({"restrict", "unrestrict", "echo", "encoding"})
"""Commands of psql's own that mean nothing here; pg_dump writes the first two."""


class ScriptStatement(Struct, frozen=True):
    """One statement of a file, where it starts, and the rows that follow a COPY."""

    text: str
    line: int
    data: str | None = None


def split(sql: str, dialect: Dialect) -> Iterator[ScriptStatement]:
    """Every statement in order; QueryFailed at a command that only an interactive client knows."""
    yield from _Splitter(sql, dialect).statements()


class _Splitter:
    def __init__(self, sql: str, dialect: Dialect) -> None:
        self._sql = sql
        self._dialect = dialect
        self._at = 0
        self._line = 1
        self._counted = 0
        self._set_delimiter(";")

    def statements(self) -> Iterator[ScriptStatement]:
        while self._begin():
            start = self._at
            end = self._end()
            text = self._sql[start:end].strip()
            if text:
                line = self._line_at(start)
                copies = self._dialect == "postgres" and _COPY.match(text)
                yield ScriptStatement(text, line, self._rows() if copies else None)

    def _set_delimiter(self, text: str) -> None:
        body = _BODY if self._dialect == "postgres" else ""
        pattern = rf"(?P<end>{re.escape(text)})|{_COMMENT[self._dialect]}|{_QUOTED[self._dialect]}{body}"
        self._marks = re.compile(pattern, re.DOTALL | re.IGNORECASE)

    def _begin(self) -> bool:
        """Goes to where the next statement starts, past comments and commands of the client; whether there is one."""
        while True:
            blank = _BLANK[self._dialect].match(self._sql, self._at)
            self._at = blank.end() if blank else self._at
            command = (_PSQL if self._dialect == "postgres" else _DELIMITER).match(self._sql, self._at)
            if command is None:
                return self._at < len(self._sql)
            if self._dialect == "mysql":
                self._set_delimiter(command[1])
            elif command[1] not in _HARMLESS:
                line = self._line_at(self._at)
                raise QueryFailed(f"line {line}: \\{command[1]} is a command of psql, not SQL; take it out")
            self._at = command.end()

    def _end(self) -> int:
        """Where the statement ends; goes past it."""
        depth = 0
        for mark in self._marks.finditer(self._sql, self._at):
            kind = mark.lastgroup
            if kind == "end" and not depth:
                self._at = mark.end()
                return mark.start()
            if kind == "body" or (kind == "more" and depth):
                depth += 1
            elif kind == "less" and depth:
                depth -= 1
        self._at = len(self._sql)
        return self._at

    def _rows(self) -> str:
        """The lines after COPY … FROM stdin, up to `\\.`."""
        newline = self._sql.find("\n", self._at)
        start = len(self._sql) if newline < 0 else newline + 1
        end = _COPY_END.search(self._sql, start)
        self._at = end.end() if end else len(self._sql)
        return self._sql[start : end.start() if end else len(self._sql)]

    def _line_at(self, place: int) -> int:
        """Places are asked for in order, so that a long file is counted once."""
        self._line += self._sql.count("\n", self._counted, place)
        self._counted = place
        return self._line
