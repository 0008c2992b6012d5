"""What SQL text does to a transaction, as far as its words tell: a function that writes is not seen."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

Kind = Literal["begin", "commit", "rollback", "write", "read", "session"]
Dialect = Literal["postgres", "mysql"]

TEXT_KEPT = 200


class TransactionStatement(NamedTuple):
    """One statement."""

    kind: Kind
    verb: str
    table: str = ""
    """What is written to, where the words tell."""
    text: str = ""
    """Shortened."""
    ends: bool = False
    """It commits what went before, and itself."""
    autocommit: bool | None = None
    """What it sets autocommit to."""


# An unclosed literal or comment reaches to the end: so each byte is looked at once, whatever is sent.
_COMMENT = r"/\*.*?(?:\*/|\Z)|--[^\n]*+"
_IDENTIFIER = r"\"(?:[^\"]|\"\")*+\"?|`[^`]*+`?"
_STRINGS: dict[Dialect, str] = {
    "postgres": r"[eE]'(?:[^'\\]|''|\\.)*+'?|'(?:[^']|'')*+'?|\$((?:[A-Za-z_]\w*)?)\$.*?(?:\$\1\$|\Z)",
    "mysql": r"'(?:[^'\\]|''|\\.)*+'?|#[^\n]*+",
}
_OPAQUE: dict[Dialect, re.Pattern[str]] = {
    dialect: re.compile(f"{strings}|{_COMMENT}|{_IDENTIFIER}", re.DOTALL) for dialect, strings in _STRINGS.items()
}
_WORD = re.compile(r"[A-Za-z_]+")
_NAME = r"([\w.$\"`]+)"
_TABLE = re.compile(
    rf"\b(?:INTO|UPDATE(?:\s+ONLY)?|DELETE\s+FROM(?:\s+ONLY)?|TRUNCATE(?:\s+TABLE)?|COPY|"
    rf"TABLE(?:\s+IF\s+(?:NOT\s+)?EXISTS)?)\s+{_NAME}",
    re.IGNORECASE,
)
_INSIDE = re.compile(r"\b(INSERT|UPDATE|DELETE|MERGE)\b(?!\s+OF\b)", re.IGNORECASE)
_LOCKING = re.compile(r"\bFOR\s+(?:NO\s+KEY\s+)?UPDATE\b", re.IGNORECASE)
_AUTOCOMMIT = re.compile(r"\bAUTOCOMMIT\s*=\s*(\w+)", re.IGNORECASE)
_FROM = re.compile(r"\bFROM\b", re.IGNORECASE)

_WRITES = frozenset((
    "INSERT", "UPDATE", "DELETE", "MERGE", "REPLACE", "TRUNCATE", "CREATE", "ALTER", "DROP", "GRANT", "REVOKE",
    "COMMENT", "REFRESH", "CALL", "DO", "EXECUTE", "LOAD", "IMPORT", "RENAME",
))  # fmt: skip
_READS = frozenset(("SELECT", "VALUES", "TABLE", "EXPLAIN", "DESCRIBE", "DESC", "FETCH"))
_DEFINING = frozenset(("CREATE", "ALTER", "DROP", "TRUNCATE", "RENAME", "GRANT", "REVOKE"))
"""What MySQL commits by itself."""


def statements(sql: str, dialect: Dialect) -> list[TransactionStatement]:
    """The statements of one message, in order."""
    plain = _OPAQUE[dialect].sub(_blank, sql)
    return [_statement(part, dialect) for part in plain.split(";") if _WORD.search(part)]


def _blank(found: re.Match[str]) -> str:
    """Comments and strings say nothing about what a statement does; names do."""
    text = found[0]
    if text[0] in '"`':
        return text.replace(";", "_")
    return "''" if text[0] in "'eE$" else " "


def _statement(text: str, dialect: Dialect) -> TransactionStatement:
    words = [word.upper() for word in _WORD.findall(text[:500])]
    verb = words[0]
    kind = _kind(verb, words[1:], text)
    shown = " ".join(text[: 2 * TEXT_KEPT].split())[:TEXT_KEPT]
    found = _TABLE.search(text) if kind == "write" else None
    table = found[1].replace('"', "").replace("`", "") if found else ""
    ends = dialect == "mysql" and verb in _DEFINING and words[1:2] != ["TEMPORARY"]
    switch = _AUTOCOMMIT.search(text) if dialect == "mysql" and verb == "SET" else None
    autocommit = None if switch is None else switch[1].upper() in ("1", "ON", "TRUE")
    return TransactionStatement(kind, verb, table, shown, ends, autocommit)


def _kind(verb: str, more: list[str], text: str) -> Kind:
    if verb == "BEGIN" or (verb == "START" and more[:1] == ["TRANSACTION"]):
        return "begin"
    if verb in ("COMMIT", "END") and more[:1] != ["PREPARED"]:
        return "commit"
    if verb in ("ROLLBACK", "ABORT"):
        back_to = "TO" in more[:3] or more[:1] == ["PREPARED"]
        return "session" if back_to else "rollback"
    if verb == "COPY":
        return "write" if _FROM.search(text) else "read"
    if verb == "WITH":
        return "write" if _INSIDE.search(_LOCKING.sub(" ", text)) else "read"
    if verb in _WRITES:
        return "write"
    return "read" if verb in _READS else "session"
