"""Seeded bad data in a table: what real tables look like after a few years. The same luck gives the same damage."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from random import Random

from holdfast.errors import QueryFailed
from holdfast.model.world import DriftKind
from holdfast.protocols import Database
from holdfast.service_kinds import spoken
from holdfast.sqltext.lexer import Dialect
from holdfast.world.services.drift_table import Table, full, literal, quoted, read

_OLD = timedelta(days=365 * 3)


async def drift(database: Database, table: str, rate: float, kinds: Sequence[DriftKind], rng: Random) -> int:
    """Damages about `rate` of the rows, one kind each in turn; how many. A kind that a table forbids is passed over.

    null empties a value · swap exchanges one column's values of two rows · stale sets a date three years back, or gives
    a row the value of the one before it · duplicate writes a row again under a new key.
    """
    found = await read(database, table, _dialect(database))
    wanted = min(len(found.rows), max(1, round(len(found.rows) * rate))) if rate > 0 and found.rows else 0
    chosen = sorted(rng.sample(range(len(found.rows)), wanted))
    statements = []
    for n, row in enumerate(chosen):
        for kind in (*kinds[n % len(kinds) :], *kinds[: n % len(kinds)]):
            statement = DAMAGE[kind](found, row, rng)
            if statement and await _try(database, statement):
                statements.append(statement)
                break
    return len(statements)


async def _try(database: Database, statement: str) -> bool:
    """Whether the table's own rules allow the damage."""
    try:
        await database.execute(statement)
    except QueryFailed:
        return False
    return True


def _dialect(database: Database) -> Dialect:
    return spoken(database.spec).wire or "postgres"


def _null(table: Table, row: int, rng: Random) -> str:
    able = [n for n in table.free if table.columns[n].nullable and table.rows[row][n] is not None]
    return table.change(row, rng.choice(able), None) if able else ""


def _swap(table: Table, row: int, rng: Random) -> str:
    able = [n for n in table.free if any(other[n] != table.rows[row][n] for other in table.rows)]
    if not able:
        return ""
    column = rng.choice(able)
    other = rng.choice([n for n, values in enumerate(table.rows) if values[column] != table.rows[row][column]])
    mine, theirs = table.rows[row][column], table.rows[other][column]
    if (mine is None or theirs is None) and not table.columns[column].nullable:
        return ""
    first, second = table.change(row, column, theirs), table.change(other, column, mine)
    return f"BEGIN;\n{first};\n{second};\nCOMMIT"


def _stale(table: Table, row: int, rng: Random) -> str:
    dated = [n for n in table.free if table.columns[n].dated and table.rows[row][n] is not None]
    if dated:
        column = rng.choice(dated)
        return table.change(row, column, _older(table.rows[row][column]))
    before = table.rows[row - 1] if row else table.rows[-1]
    able = [n for n in table.free if before[n] is not None and before[n] != table.rows[row][n]]
    if not able:
        return ""
    column = rng.choice(able)
    return table.change(row, column, before[column])


def _older(value: str) -> str:
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return value
    older = (moment - _OLD).isoformat(sep=" ")
    return older if len(value) > len("2026-01-01") else older[:10]


def _duplicate(table: Table, row: int, rng: Random) -> str:
    """The row again. A key that the database does not fill in itself counts on from its largest."""
    names, values = [], []
    for n, column in enumerate(table.columns):
        if column.made:
            continue
        value = table.rows[row][n]
        if column.primary:
            others = [other[n] for other in table.rows]
            if not str(value).lstrip("-").isdigit():
                return ""
            value = max(int(other) for other in others) + 1 + row
        names.append(quoted(column.name, table.dialect))
        values.append(literal(value, table.dialect))
    return f"INSERT INTO {full(table.name, table.dialect)} ({', '.join(names)}) VALUES ({', '.join(values)})"  # noqa: S608


DAMAGE: dict[str, Callable[[Table, int, Random], str]] = {
    "null": _null,
    "swap": _swap,
    "stale": _stale,
    "duplicate": _duplicate,
}
