"""The databases of a world: found by name, with their dialect and default schema."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from holdfast.errors import HarnessError
from holdfast.protocols.service import Database
from holdfast.protocols.world import World
from holdfast.sqltext.lexer import Dialect
from holdfast.sqltext.tables import quote_part

_VERSION = "SELECT version()"
_DEFAULT: dict[Dialect, str] = {"postgres": "SELECT current_schema()", "mysql": "SELECT database()"}
"""Queries for the default schema."""

T = TypeVar("T")


def get_database(world: World, service: str) -> Database:
    """Return the service of that name; raise HarnessError if it is not a database."""
    candidate = world.services.get(service)
    if not isinstance(candidate, Database):
        raise HarnessError(f"{service} is not a Postgres or MySQL service", code="check-service-wrong")
    return candidate


async def read_dialect(of: Database, *, timeout_s: float) -> Dialect:
    """Return the SQL dialect, as the server reports it."""
    rows = await of.query(_VERSION, timeout_s=timeout_s)
    return "postgres" if str(rows.rows[0][0]).startswith("PostgreSQL") else "mysql"


async def read_default_schema(of: Database, *, timeout_s: float) -> str:
    """Return the schema of unqualified names: the first existing one of the search path, or the database.

    "" if none.
    """
    rows = await of.query(_DEFAULT[await read_dialect(of, timeout_s=timeout_s)], timeout_s=timeout_s)
    return quote_part(str(rows.rows[0][0] or ""))


def split_batches(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


def quote_name(name: str, dialect: Dialect) -> str:
    """Return a name as SQL text."""
    sign = '"' if dialect == "postgres" else "`"
    return sign + name.replace(sign, sign * 2) + sign
