"""`sql`: what a query finds in a database."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any, ClassVar

from msgspec import UNSET, Struct
from msgspec.structs import replace

from holdfast.checks.patterns import fault_in, search
from holdfast.checks.state.databases import database, dialect_of
from holdfast.checks.state.json_equality import as_number, as_text, same
from holdfast.checks.state.recorded import SHOWN, record, recorded
from holdfast.checks.wording import shorten
from holdfast.errors import HarnessError, QueryFailed
from holdfast.model.fingerprint import fingerprint
from holdfast.model.observation import Observation
from holdfast.model.traits import CheckTraits, ServiceRead
from holdfast.model.verdict import Finding
from holdfast.model.world import Evidence
from holdfast.protocols.check import Exhibit
from holdfast.protocols.world import World
from holdfast.reading.durations import Duration
from holdfast.reading.fields import about
from holdfast.sqltext.lexer import Dialect
from holdfast.sqltext.token_cursor import TokenCursor
from holdfast.sqltext.writes import writes_of

_ACTS = frozenset(
    ("call", "do", "copy", "set", "reset", "lock", "flush", "load", "vacuum", "reindex", "cluster", "import")
)
"""First words of statements that do more than read, beside those that name what they write."""
_READ_ONLY = ("25006", "1792")
"""What PostgreSQL and MySQL say to a write in a transaction that only reads."""
_WRITING = "it would write, and a rule only reads: its transaction is read-only"
_NO_ROW = "the query gave no row"
_EXACT_DIGITS = 15
"""Digits that a floating-point number always keeps; a longer decimal comes from a database as text."""


class QueryAnswer(Struct, frozen=True, omit_defaults=True):
    """What the database said."""

    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Any, ...], ...] = ()
    count: int = 0
    refused: str = ""


@dataclass(frozen=True)
class Sql:
    """A query's first value, or its number of rows, is as expected; all that is given must be true."""

    service: Annotated[str, about("A Postgres or MySQL service.", min_length=1, examples=["db"])]
    query: Annotated[str, about("One statement.", min_length=1, examples=["SELECT count(*) FROM refunds"])]
    equals: Annotated[Any, about("The first column of the first row.", examples=[1])] = UNSET
    at_least: Annotated[float | None, about("The value is not less.")] = None
    at_most: Annotated[float | None, about("The value is not more.")] = None
    matches: Annotated[str | None, about("A regex that matches the value.")] = None
    one_of: Annotated[tuple[Any, ...] | None, about("The value is one of these.", min_length=1)] = None
    rows: Annotated[int | None, about("The number of rows.", ge=0)] = None
    timeout: Annotated[Duration, about("Over it the check is an error.")] = 30_000

    traits: ClassVar[CheckTraits] = CheckTraits(
        polarity="positive", reads="state", see=("invariants.db_unchanged_except",)
    )

    def configured(self) -> CheckTraits:
        return replace(self.traits, services=(ServiceRead("service", self.service, "database"),))

    def tables_read(self) -> Iterable[tuple[str, str]]:
        from holdfast.sqltext.bare_table import bare_table

        return [("query", table)] if (table := bare_table(self.query)) else []

    codes: ClassVar[Mapping[str, str]] = {
        "no-row": "The query found nothing.",
        "query-refused": "The database refused the query.",
        "rows-above": "The query found too many rows.",
        "rows-below": "The query found too few rows.",
        "value-above": "The value is too large.",
        "value-as-expected": "The value is as expected.",
        "value-below": "The value is too small.",
        "value-differs": "The value is another one.",
        "value-no-match": "The value does not match the pattern.",
        "value-no-number": "The value is not a number.",
    }

    async def foresee(self, world: World) -> None:
        found = database(world, self.service)
        if writes(self.query, await dialect_of(found, timeout_s=self.timeout / 1000)):
            raise HarnessError(_WRITING)
        await found.prepare(self.query)

    async def gather(self, world: World, seen: Observation) -> Evidence:
        limit_s = self.timeout / 1000
        try:
            found = await database(world, self.service).query(self.query, timeout_s=limit_s)
        except QueryFailed as refused:
            if refused.state in _READ_ONLY:  # by a function, maybe: no doing of the agent's
                raise HarnessError(f"{_WRITING}: {refused}") from refused
            return record([self.service, self.query], QueryAnswer(refused=str(refused)))
        except TimeoutError as late:
            hint = "make it faster, or raise the rule's timeout"
            raise HarnessError(f"the query took longer than {limit_s:g} s: {hint}") from late
        return record([self.service, self.query], QueryAnswer(found.columns, found.rows, found.count))

    def decide(self, exhibit: Exhibit) -> Finding:
        found = recorded(exhibit, [self.service, self.query], QueryAnswer)
        if found.refused:
            why = f"{shorten(self.service, 40)} refused the query: {shorten(found.refused, 150)}"
            return Finding(False, why, "query-refused", (fingerprint(found.refused),), empty=True)
        details = {"columns": list(found.columns), "rows": [list(row) for row in found.rows[:SHOWN]]}
        wrong = next(self._wrong(found), None)
        if wrong is None:
            return Finding(True, self._right(found), "value-as-expected", details=details)
        return Finding(False, wrong[1], wrong[0], details=details, empty=wrong[0] == "no-row")

    def _wrong(self, found: QueryAnswer) -> Iterator[tuple[str, str]]:
        """Everything in which the answer is not as expected."""
        if self.rows is not None and found.count != self.rows:
            yield _side(found.count, self.rows, "rows"), f"the query gave {_rows(found.count)}, not {self.rows}"
        if not self._reads_value():
            return
        if not found.rows or not found.rows[0]:
            if not (self.equals is None and self._reads_only_equals()):
                yield "no-row", _NO_ROW
            return
        value = found.rows[0][0]
        shown = _shown(value)
        if self.equals is not UNSET and not equal(value, self.equals):
            yield "value-differs", f"the value is {shown}, not {_shown(self.equals)}"
        if self.one_of is not None and not any(equal(value, one) for one in self.one_of):
            yield "value-differs", f"the value is {shown}, none of {_shown(list(self.one_of))}"
        if self.matches is not None and (value is None or search(self.matches, as_text(value), "") is None):
            yield "value-no-match", f"the value {shown} does not match {shorten(self.matches)}"
        yield from _beyond(value, self.at_least, self.at_most)

    def _right(self, found: QueryAnswer) -> str:
        if not self._reads_value():
            return f"the query gave {_rows(found.count)}"
        return f"the value is {_shown(found.rows[0][0])}" if found.rows else _NO_ROW

    def _reads_value(self) -> bool:
        return self.equals is not UNSET or not self._reads_only_equals()

    def _reads_only_equals(self) -> bool:
        return all(one is None for one in (self.at_least, self.at_most, self.matches, self.one_of))

    def problems(self) -> Iterable[tuple[str, str]]:
        if writes(self.query, "postgres") and writes(self.query, "mysql"):  # which one it is, is not known here
            yield "query", _WRITING
        if self.matches is not None and (fault := fault_in(self.matches)):
            yield "matches", fault
        if not self._reads_value() and self.rows is None:
            yield "", "needs at least one of equals, at_least, at_most, matches, one_of, rows"


def writes(query: str, dialect: Dialect) -> bool:
    """Whether the statement does more than read, so far as its text says."""
    cursor = TokenCursor(query, dialect)
    cursor.skip_all(("(",))
    return cursor.word in _ACTS or bool(writes_of(query, dialect)) or (dialect == "mysql" and _leaves_file(query))


def _leaves_file(query: str) -> bool:
    """SELECT … INTO OUTFILE or DUMPFILE."""
    words = list(TokenCursor(query, "mysql").words())
    return any(word == "into" and after in ("outfile", "dumpfile") for word, after in pairwise(words))


def equal(value: Any, wanted: Any) -> bool:
    """Whether a value of a database is the one that is wanted; MySQL's booleans are 1 and 0."""
    if isinstance(wanted, bool):
        return value is wanted or (type(value) is int and value == int(wanted))
    if isinstance(value, str) and isinstance(wanted, int | float) and sum(map(str.isdigit, value)) > _EXACT_DIGITS:
        number = int(value) if isinstance(wanted, int) and value.lstrip("-").isdecimal() else as_number(value)
        return number == wanted
    return same(value, wanted)


def _beyond(value: Any, least: float | None, most: float | None) -> Iterator[tuple[str, str]]:
    if least is None and most is None:
        return
    number = as_number(value)
    if number is None:
        yield "value-no-number", f"the value is {_shown(value)}, which is no number"
    elif least is not None and number < least:
        yield "value-below", f"the value is {number:g}, less than {least:g}"
    elif most is not None and number > most:
        yield "value-above", f"the value is {number:g}, more than {most:g}"


def _side(found: float, wanted: float, what: str) -> str:
    """One too many and one too few are two causes."""
    return f"{what}-above" if found > wanted else f"{what}-below"


def _shown(value: Any) -> str:
    return shorten(f'"{value}"' if isinstance(value, str) else as_text(value))


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count} rows"
