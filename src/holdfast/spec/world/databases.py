"""Statements that need a database, for a MySQL service without one: its image creates one only if `env` names it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

from holdfast.model.world import CONTAINER, EXTERNAL
from holdfast.protocols.check import TableCheck
from holdfast.reading.file import read_file
from holdfast.reading.node import Node
from holdfast.reading.reader import Reader
from holdfast.service_kinds import get_spoken_traits, get_url
from holdfast.spec.references import find_names
from holdfast.spec.rules.rules import RuleEntry
from holdfast.spec.sections.file import File
from holdfast.spec.sections.world import ServiceEntry

READ = 1_000_000
"""Characters of a file of statements that are examined."""
_NAMED = ("MYSQL_DATABASE", "MARIADB_DATABASE")


def report_database_problems(reader: Reader, file: File, rules: Iterable[RuleEntry], folder: Path) -> None:
    """Report tables without a database name if the service has no default database."""
    bare = {service.name: (n, service) for n, service in enumerate(file.services) if _is_without_database(service)}
    if not bare or reader.has_error("services", "fixtures"):
        return
    for place, name, table in (*_iter_fixture_tables(file, bare, folder), *_iter_rule_tables(rules, bare)):
        index, service = bare[name]
        what = "MYSQL_DATABASE: app in its env" if service.type == CONTAINER else "its name at the end of the url"
        message = f"the table {table[:60]!r} is in no database: {name} has none unless it is named"
        hint = f"give services[{index}] (line {service.at.line}) {what}, or write app.{table[:60]}"
        reader.report(place, message, hint=hint, code="no-database")


def _is_without_database(service: ServiceEntry) -> bool:
    spec = service.spec
    if spec.kind != EXTERNAL:
        return get_spoken_traits(spec).wire == "mysql" and not any(spec.env.get(name) for name in _NAMED)
    url = get_url(spec)
    if get_spoken_traits(spec).wire != "mysql" or find_names(url).has_references:
        return False
    try:
        return not urlsplit(url).path.strip("/")
    except ValueError:
        return False


_Tables = Iterator[tuple[Node, str, str]]
"""The node, the service, the table."""


def _iter_fixture_tables(file: File, bare: Collection[str], folder: Path) -> _Tables:
    for fixture in file.fixtures:
        if fixture.service is None or fixture.service not in bare:
            continue
        # The lexer compiles large patterns at import, and few specs have such fixtures.
        from holdfast.sqltext.bare_table import find_bare_table

        key = "table" if fixture.type == "drift" else "sql" if fixture.sql is not None else "file"
        table = (
            fixture.table
            if fixture.type == "drift"
            else find_bare_table(_read_statements(fixture.sql, fixture.file, folder))
        )
        if table and "." not in table:
            yield fixture.at.get(key), fixture.service, table


def _read_statements(sql: str | None, file: str | None, folder: Path) -> str:
    if sql is not None or file is None or find_names(file).has_references:
        return sql or ""
    text = read_file(folder / file).text  # an unreadable file is reported elsewhere
    return text if len(text) <= READ else text[:READ].rpartition(";")[0]


def _iter_rule_tables(rules: Iterable[RuleEntry], bare: Collection[str]) -> _Tables:
    for rule in rules:
        service = next((one.name for one in rule.traits.services if one.name in bare), "")
        for setting, table in rule.made.tables_read() if service and isinstance(rule.made, TableCheck) else ():
            yield rule.settings_at.find(setting), service, table
