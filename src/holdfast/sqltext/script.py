"""Splits SQL into statements, also a file as psql and mysql do: rows after a COPY, DELIMITER, client commands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from msgspec import Struct

from holdfast.errors import QueryFailed
from holdfast.sqltext.lexer import SPACE, Dialect, TokenCursor, read_piece

_SPACE = re.compile(rf"[{SPACE}]*")
_PROGRAM = re.compile(r"create\s[^;]{0,300}?\b(?:function|procedure|trigger|event|package)\b", re.IGNORECASE)
"""Statements whose body may contain semicolons."""
_BODY_MARK = re.compile(r"\b(?:begin|case|end)\b", re.IGNORECASE)
_ATOMIC = re.compile(r"\s+atomic\b", re.IGNORECASE)
_END_OF = re.compile(r"\s+(?:(?P<case>case)|if|loop|while|repeat|for)\b", re.IGNORECASE)


class StatementCursor:
    """A position in SQL text that only moves forward, which keeps splitting linear."""

    def __init__(self, sql: str, dialect: Dialect) -> None:
        self.sql = sql
        self.dialect = dialect
        self.at = 0
        self.delimiter = ";"
        self._code_end = 0
        """Up to here there is neither a literal nor a comment."""
        self._opened = False
        """Whether the position is inside a comment that MySQL executes."""
        self._depth = 0
        self._end_case = -1
        """The position of the CASE of an END CASE: it opens nothing."""

    def skip_blank(self) -> bool:
        """Skip space and comments; return whether anything is left."""
        while True:
            self.at = _SPACE.match(self.sql, self.at).end()  # type: ignore[union-attr]  # matches any text
            if self.at >= len(self.sql):
                return False
            if self.at < self._code_end:
                return True
            here = read_piece(self.sql, self.dialect, self.at, self._opened)
            if here.kind != "comment":
                return True
            self.at = here.end

    def skip_statement(self) -> int:
        """Return the end of the statement that begins here; skips its delimiter."""
        # In a stored program semicolons separate its own statements. Its end is where BEGIN, CASE and END balance
        # again; with another DELIMITER that is not needed, because the file says where it ends.
        program = self.delimiter == ";" and _PROGRAM.match(self.sql, self.at) is not None
        self._depth = 0
        while self.at < len(self.sql):
            code, end = self._read_piece()
            delimiter_end = self._find_delimiter(end, program) if code else -1
            if delimiter_end >= 0:
                self.at = delimiter_end + len(self.delimiter)
                return delimiter_end
            self.at = end
        return self.at

    def _read_piece(self) -> tuple[bool, int]:
        """Return whether the current piece is code, and where it ends."""
        if self.at >= self._code_end:
            here = read_piece(self.sql, self.dialect, self.at, self._opened)
            if here.kind != "code":
                self._opened = here.kind == "open" or (self._opened and here.kind != "close")
                return False, here.end
            self._code_end = here.end
        return True, self._code_end

    def _find_delimiter(self, end: int, program: bool) -> int:
        """Return where the statement ends in this code; -1 if it continues."""
        delimiter_at = self.sql.find(self.delimiter, self.at, end)
        if not program:
            return delimiter_at
        at = self.at
        while True:
            self._count_depth(at, end if delimiter_at < 0 else delimiter_at)
            if delimiter_at < 0 or not self._depth:
                return delimiter_at
            at = delimiter_at + 1
            delimiter_at = self.sql.find(self.delimiter, at, end)

    def _count_depth(self, at: int, end: int) -> None:
        """Count BEGIN, CASE and END of a body."""
        for mark in _BODY_MARK.finditer(self.sql, at, end):
            word = mark[0].lower()
            if word == "begin":
                self._depth += self.dialect == "mysql" or _ATOMIC.match(self.sql, mark.end()) is not None
            elif word == "case":
                self._depth += bool(self._depth) and mark.start() != self._end_case
            elif self._depth:
                of = _END_OF.match(self.sql, mark.end()) if self.dialect == "mysql" else None
                self._end_case = of.start("case") if of else -1
                self._depth -= of is None or self._end_case >= 0


def split_statements(sql: str, dialect: Dialect) -> Iterator[str]:
    """Yield the statements of one message to a server, without surrounding white space."""
    cursor = StatementCursor(sql, dialect)
    while cursor.skip_blank():
        start = cursor.at
        if text := sql[start : cursor.skip_statement()].strip(SPACE):
            yield text


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
    script = _Script(sql, dialect)
    while script.skip_blank():
        if script.skip_command():
            continue
        start = script.at
        if text := sql[start : script.skip_statement()].strip(SPACE):
            line, copies = script.count_line(start), dialect == "postgres" and _is_copy_from_stdin(text)
            yield ScriptStatement(text, line, script.read_rows() if copies else None)


class _Script(StatementCursor):
    """A cursor in a file for psql or mysql."""

    _line = 1
    _counted = 0

    def skip_command(self) -> bool:
        """Skip a client command; return whether there was one."""
        command = (_PSQL if self.dialect == "postgres" else _DELIMITER).match(self.sql, self.at)
        if command is None:
            return False
        if self.dialect == "mysql":
            self.delimiter = command[1]
        elif command[1] not in _HARMLESS:
            why = f"line {self.count_line(self.at)}: \\{command[1]} is a command of psql, not SQL; remove it"
            raise QueryFailed(why, code="query-failed")
        self.at = command.end()
        return True

    def read_rows(self) -> str:
        r"""Return the lines after COPY … FROM stdin, up to `\.`."""
        newline = self.sql.find("\n", self.at)
        start = len(self.sql) if newline < 0 else newline + 1
        end = _COPY_END.search(self.sql, start)
        self.at = end.end() if end else len(self.sql)
        return self.sql[start : end.start() if end else len(self.sql)]

    def count_line(self, place: int) -> int:
        """Return the line of a position; positions must come in order, so a long file is counted once."""
        self._line += self.sql.count("\n", self._counted, place)
        self._counted = place
        return self._line


def _is_copy_from_stdin(statement: str) -> bool:
    """Return whether it is COPY … FROM stdin."""
    words = TokenCursor(statement, "postgres")
    return words.skip("copy") and ("from", "stdin") in pairwise(words.read_words())
