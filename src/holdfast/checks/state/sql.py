"""`sql`: the result of a database query."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any, ClassVar

from msgspec import UNSET, Struct
from msgspec.structs import replace

from holdfast.checks.patterns import find_pattern_problem
from holdfast.checks.state.recorded import SHOWN, build_evidence, read_evidence
from holdfast.checks.state.tables import get_database, read_dialect
from holdfast.checks.values import AS_EXPECTED, Expectation, Mismatch, is_equal, select_value_codes, to_number, to_text
from holdfast.checks.wording import shorten
from holdfast.errors import HarnessError, QueryFailed
from holdfast.model.fingerprint import compute_fingerprint
from holdfast.model.observation import Observation
from holdfast.model.traits import CheckTraits, ServiceRead
from holdfast.model.verdict import Finding
from holdfast.model.world import Evidence
from holdfast.protocols.check import Exhibit
from holdfast.protocols.world import World
from holdfast.reading.durations import Duration
from holdfast.reading.fields import about
from holdfast.reading.words import format_plural
from holdfast.sqltext.bare_table import find_bare_table
from holdfast.sqltext.lexer import Dialect, TokenCursor
from holdfast.sqltext.writes import find_writes

_ACTS = frozenset(
    ("call", "do", "copy", "set", "reset", "lock", "flush", "load", "vacuum", "reindex", "cluster", "import")
)
"""First words of statements that do more than read, apart from those that name what they write."""
_READ_ONLY = ("25006", "1792")
"""The SQLSTATEs of PostgreSQL and MySQL for a write in a read-only transaction."""
_WRITING = "the query would write, but a rule may only read"
_NO_ROW = "no-row"
_EXACT_DIGITS = 15
"""Digits that a floating-point number always preserves; a longer decimal arrives from a database as text."""


class QueryAnswer(Struct, frozen=True, omit_defaults=True):
    """The database's result."""

    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Any, ...], ...] = ()
    count: int = 0
    refused: str = ""


@dataclass(frozen=True)
class Sql:
    """The result of a query meets all given conditions."""

    service: Annotated[str, about("A PostgreSQL or MySQL service.", min_length=1, examples=["db"])]
    query: Annotated[str, about("One statement.", min_length=1, examples=["SELECT count(*) FROM refunds"])]
    equals: Annotated[Any, about('The value in the first column of the first row. 1 and "1" differ.', examples=[1])] = (
        UNSET
    )
    at_least: Annotated[float | None, about("The lowest value that passes.")] = None
    at_most: Annotated[float | None, about("The highest value that passes.")] = None
    matches: Annotated[str | None, about("A regular expression that matches the value.")] = None
    one_of: Annotated[tuple[Any, ...] | None, about("The values that pass.", min_length=1)] = None
    rows: Annotated[int | None, about("The number of rows.", ge=0)] = None
    timeout: Annotated[Duration, about("The time limit; exceeding it is an error.")] = 30_000

    traits: ClassVar[CheckTraits] = CheckTraits(
        polarity="positive", reads="state", see=("invariants.db_unchanged_except",)
    )

    def configured(self) -> CheckTraits:
        return replace(self.traits, services=(ServiceRead("service", self.service, "database"),))

    def tables_read(self) -> Iterable[tuple[str, str]]:
        return [("query", table)] if (table := find_bare_table(self.query)) else []

    codes: ClassVar[Mapping[str, str]] = {
        "no-row": "The query found nothing.",
        "query-refused": "The database refused the query.",
        "rows-above": "The query found too many rows.",
        "rows-below": "The query found too few rows.",
        **select_value_codes("value-lacks", "value-wrong-type"),
    }

    async def foresee(self, world: World) -> None:
        service = get_database(world, self.service)
        if is_write(self.query, await read_dialect(service, timeout_s=self.timeout / 1000)):
            raise HarnessError(_WRITING, code="check-writes")
        await service.prepare(self.query)

    async def gather(self, world: World, observation: Observation) -> Evidence:
        limit_s = self.timeout / 1000
        try:
            rows = await get_database(world, self.service).query(self.query, timeout_s=limit_s)
        except QueryFailed as refused:
            if refused.state in _READ_ONLY:  # perhaps by a function: not the agent's doing
                raise HarnessError(f"{_WRITING}: {refused}", code="check-writes") from refused
            return build_evidence([self.service, self.query], QueryAnswer(refused=str(refused)))
        except TimeoutError as late:
            hint = "make it faster, or raise the rule's timeout"
            raise HarnessError(f"the query took longer than {limit_s:g} s: {hint}", code="check-timeout") from late
        return build_evidence([self.service, self.query], QueryAnswer(rows.columns, rows.rows, rows.count))

    def decide(self, exhibit: Exhibit) -> Finding:
        answer = read_evidence(exhibit, [self.service, self.query], QueryAnswer)
        if answer.refused:
            why = f"{shorten(self.service, 40)} refused the query: {shorten(answer.refused, 150)}"
            return Finding(False, why, "query-refused", (compute_fingerprint(answer.refused),), empty=True)
        details = {"columns": list(answer.columns), "rows": [list(row) for row in answer.rows[:SHOWN]]}
        wrong = next(self._find_mismatches(answer), None)
        if wrong is None:
            return Finding(True, self._describe_match(answer), AS_EXPECTED, details=details)
        return Finding(False, wrong.why, wrong.code, wrong.key, details=details, empty=wrong.code == _NO_ROW)

    def _find_mismatches(self, answer: QueryAnswer) -> Iterator[Mismatch]:
        """Yield every condition that the result does not meet."""
        if self.rows is not None and answer.count != self.rows:
            # One row too many and one too few are two causes.
            code = "rows-above" if answer.count > self.rows else "rows-below"
            yield Mismatch(code, (), f"the query returned {format_plural(answer.count, 'row')}, not {self.rows}")
        expected = self._expected
        if expected.empty:
            return
        if not answer.rows or not answer.rows[0]:
            if expected != Expectation(None):
                yield Mismatch(_NO_ROW, (), "the query returned no row")
            return
        value = answer.rows[0][0]
        for one in expected.find_mismatches(value, _format_value(value), equal=is_equal_value, readings=_get_readings):
            yield one._replace(why=f"the value {one.why}")

    def _describe_match(self, answer: QueryAnswer) -> str:
        if self._expected.empty:
            return f"the query returned {format_plural(answer.count, 'row')}"
        return f"the value is {_format_value(answer.rows[0][0])}" if answer.rows else "the query returned no row"

    @property
    def _expected(self) -> Expectation:
        return Expectation(self.equals, UNSET, self.matches, self.at_least, self.at_most, self.one_of)

    def problems(self) -> Iterable[tuple[str, str]]:
        if is_write(self.query, "postgres") and is_write(self.query, "mysql"):  # which condition it is, is unknown here
            yield "query", _WRITING
        yield from find_pattern_problem("matches", self.matches)
        if self._expected.empty and self.rows is None:
            yield "", "needs at least one of equals, at_least, at_most, matches, one_of, rows"


def is_write(query: str, dialect: Dialect) -> bool:
    """Return whether the statement does more than read, judging by its text."""
    cursor = TokenCursor(query, dialect)
    cursor.skip_all(("(",))
    return cursor.word in _ACTS or bool(find_writes(query, dialect)) or (dialect == "mysql" and _has_outfile(query))


def _has_outfile(query: str) -> bool:
    """Return whether it is SELECT … INTO OUTFILE or DUMPFILE."""
    words = list(TokenCursor(query, "mysql").read_words())
    return any(word == "into" and after in ("outfile", "dumpfile") for word, after in pairwise(words))


def is_equal_value(value: Any, wanted: Any) -> bool:
    """Return whether a value of a database equals the expected one; MySQL's booleans are 1 and 0."""
    if isinstance(wanted, bool):
        return value is wanted or (type(value) is int and value == int(wanted))
    # A decimal that a float cannot hold arrives as text, and is compared without rounding.
    if isinstance(value, str) and isinstance(wanted, int | float) and sum(map(str.isdigit, value)) > _EXACT_DIGITS:
        number = int(value) if isinstance(wanted, int) and value.lstrip("-").isdecimal() else to_number(value)
        return number == wanted
    return is_equal(value, wanted)


def _get_readings(value: Any) -> Iterable[str]:
    """Return the text that a pattern is matched against; NULL has none."""
    return () if value is None else (to_text(value),)


def _format_value(value: Any) -> str:
    return shorten(f'"{value}"' if isinstance(value, str) else to_text(value))
