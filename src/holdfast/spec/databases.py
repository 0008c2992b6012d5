"""Statements that need a database, for a MySQL service that has none: its image makes one only if `env` names it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

from holdfast.reading.node import Node
from holdfast.reading.reader import Reader
from holdfast.spec.references import names
from holdfast.spec.rules import Rule
from holdfast.spec.sections.file import File
from holdfast.spec.sections.world import ServiceEntry
from holdfast.spec.surroundings import service_kind
from holdfast.spec.variants import spot

READ = 1_000_000
"""Bytes of a file of statements that are looked at."""
_NAMED = ("MYSQL_DATABASE", "MARIADB_DATABASE")
_OPAQUE = re.compile(
    r"/\*.*?(?:\*/|\Z)|--(?=\s|\Z)[^\n]*+|#[^\n]*+|'(?:[^'\\]|''|\\.)*+'?|\"(?:[^\"\\]|\"\"|\\.)*+\"?", re.DOTALL
)
_CLAUSE = re.compile(r"\bon\s+(?:duplicate\s+key\s+)?update\b|\bfor\s+update\b[\s\w]*", re.IGNORECASE)
"""What has an UPDATE and no table after it."""
_INNERMOST = re.compile(r"\(([^()]*)\)")
_SELECTS = re.compile(r"\bselect\b", re.IGNORECASE)
_LAST = re.compile(r"\s*use\b|\s*create\b.*?\b(?:procedure|function|trigger|event)\b", re.IGNORECASE | re.DOTALL)
"""From here on a database is chosen, or names are not only those of tables."""
_SHOWS = re.compile(r"\s*show\b", re.IGNORECASE)
_NESTED = 50
_DEFINED = re.compile(r"(\w+)\s*(?:\([^()]*\)\s*)?\bas\s*\(", re.IGNORECASE)
_TABLE = re.compile(
    r"(?:\binto|\bupdate|\btable(?:\s+if\s+(?:not\s+)?exists)?|\btruncate(?!\s+table)|\bfrom|\bjoin)\s+"
    r"(?!(?:select|ignore|low_priority|lateral|table|outfile|dumpfile|on)\b)(`[^`]+`|[A-Za-z_]\w*)(?!\w|\s*\.)(?P<call>\s*\[)?",
    re.IGNORECASE,
)
_NO_TABLES = frozenset(("dual",))


def database_problems(reader: Reader, file: File, rules: Iterable[Rule], folder: Path) -> None:
    """Reports what names a table without its database, where the service has no database by itself."""
    bare = {service.name: (n, service) for n, service in enumerate(file.services) if _has_none(service)}
    if not bare or reader.failed("services", "fixtures"):
        return
    for place, where, name, table in (*_fixtures(file, bare, folder), *_rules(rules, bare)):
        index, service = bare[name]
        what = "MYSQL_DATABASE: app in its env" if service.type == "container" else "its name at the end of the url"
        message = f"{table[:60]!r} is a table of no database: {name} has none unless it is named"
        hint = f"give services[{index}] (line {service.at.line}) {what}, or write app.{table[:60]}"
        reader.error(place, where, message, hint=hint, code="no-database")


def _has_none(service: ServiceEntry) -> bool:
    if service.type == "container":
        return service_kind(service.image or "") == "mysql" and not any(service.env.get(name) for name in _NAMED)
    if service.type != "external" or names(service.url or "").any:
        return False
    try:
        parts = urlsplit(service.url or "")
    except ValueError:
        return False
    return parts.scheme.partition("+")[0] in ("mysql", "mariadb") and not parts.path.strip("/")


_Found = Iterator[tuple[Node, str, str, str]]
"""Where it is, its path, the service, the table."""


def _fixtures(file: File, bare: Collection[str], folder: Path) -> _Found:
    for index, fixture in enumerate(file.fixtures):
        if fixture.service is None or fixture.service not in bare:
            continue
        key = "table" if fixture.type == "drift" else "sql" if fixture.sql is not None else "file"
        table = fixture.table if fixture.type == "drift" else bare_table(_statements(fixture.sql, fixture.file, folder))
        if table and "." not in table:
            yield fixture.at.get(key), f"fixtures[{index}].{key}", fixture.service, table


def _statements(sql: str | None, file: str | None, folder: Path) -> str:
    if sql is not None or file is None or names(file).any:
        return sql or ""
    try:
        with (folder / file).open("rb") as opened:
            return opened.read(READ).decode("utf-8", "replace")
    except OSError:
        return ""  # a file that is not there is reported elsewhere


def _rules(rules: Iterable[Rule], bare: Collection[str]) -> _Found:
    for rule in rules:
        kind, settings = rule.invariant.check, rule.invariant.settings
        service = str(settings.get("service", ""))
        if service not in bare:
            continue
        if kind == "sql" and (table := bare_table(str(settings["query"]))):
            yield *spot(rule.settings_at, rule.settings_path, "query"), service, table
        for n, table in enumerate(settings.get("tables", ()) if kind == "db_unchanged_except" else ()):
            if "." not in table:
                yield *spot(rule.settings_at, rule.settings_path, f"tables[{n}]"), service, table


def bare_table(sql: str) -> str:
    """The first table that statements name without its database, before any USE; empty if there is none."""
    plain = _CLAUSE.sub(" ", _OPAQUE.sub(" '' ", sql))
    own = {found[1].lower() for found in _DEFINED.finditer(plain)} | _NO_TABLES
    for statement in _flat(plain).split(";"):
        if _LAST.match(statement):
            return ""
        for found in _TABLE.finditer(statement) if not _SHOWS.match(statement) else ():
            name = found[1].strip("`")
            called = found["call"] and found[0].split()[0].lower() in ("from", "join")
            if not called and name.lower() not in own:
                return name
    return ""


def _flat(sql: str) -> str:
    """Without what is in parentheses, but for the queries there: a function may have a FROM of its own."""
    for _ in range(_NESTED):
        flat = _INNERMOST.sub(lambda found: f" {found[1]} " if _SELECTS.search(found[1]) else " [] ", sql)
        if flat == sql:
            return sql
        sql = flat
    return ""  # nobody writes such statements
