"""`db_unchanged_except`: only these tables may have changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, ClassVar

from msgspec import Struct
from msgspec.structs import replace

from holdfast.checks.state.recorded import NOT_RECORDED, SHOWN, build_evidence, read_evidence
from holdfast.checks.state.tables import get_database, read_default_schema, read_fingerprints
from holdfast.checks.wording import shorten
from holdfast.errors import HarnessError, QueryFailed
from holdfast.model.observation import Observation
from holdfast.model.traits import CheckTraits, ServiceRead
from holdfast.model.verdict import Finding
from holdfast.model.world import Evidence
from holdfast.protocols.check import Exhibit
from holdfast.protocols.world import World
from holdfast.reading.durations import Duration
from holdfast.reading.fields import about
from holdfast.sqltext.lexer import count_qualifiers, is_covered


class TableMarks(Struct, frozen=True, omit_defaults=True):
    """The tables before and after, as `schema.table`, each with a fingerprint of its content."""

    before: dict[str, str]
    after: dict[str, str] = {}
    refused: str = ""
    default: str | None = None
    """The schema of unqualified names when the agent starts; None if it was not recorded."""


_NAME = "db_unchanged_except"


@dataclass(frozen=True)
class DbUnchangedExcept:
    """All tables except the named ones are unchanged: rows, columns, constraints and existence."""

    service: Annotated[str, about("A PostgreSQL or MySQL service.", min_length=1, examples=["db"])]
    tables: Annotated[
        tuple[str, ...],
        about(
            "Tables that may change: names or globs. A bare name is in the default schema or database; `app.log` names "
            "another schema, `*.log` any.",
            examples=[["mails"]],
        ),
    ] = ()
    timeout: Annotated[Duration, about("The time limit per statement; exceeding it is an error.")] = 30_000

    traits: ClassVar[CheckTraits] = CheckTraits(
        polarity="positive", reads="state", see=("invariants.sql", "invariants.files_changed_only")
    )

    def configured(self) -> CheckTraits:
        return replace(self.traits, services=(ServiceRead("service", self.service, "database"),))

    def tables_read(self) -> Iterable[tuple[str, str]]:
        return [(f"tables[{n}]", table) for n, table in enumerate(self.tables) if "." not in table]

    codes: ClassVar[Mapping[str, str]] = {
        "tables-changed": "Tables changed that must not change.",
        "tables-unchanged": "No other table changed.",
        "tables-unreadable": "The tables can no longer be read.",
    }

    async def foresee(self, world: World) -> None:
        service = get_database(world, self.service)
        with self._limit_time():
            default = await read_default_schema(service, timeout_s=self.timeout / 1000)
        world.foreseen[_NAME, self.service] = TableMarks(await self._read(world), default=default)

    async def gather(self, world: World, observation: Observation) -> Evidence:
        before = world.foreseen.get((_NAME, self.service))
        if not isinstance(before, TableMarks):
            raise HarnessError(NOT_RECORDED, code="check-not-recorded")
        try:
            return build_evidence([self.service], replace(before, after=await self._read(world)))
        except QueryFailed as refused:
            return build_evidence([self.service], replace(before, refused=str(refused)))

    def decide(self, exhibit: Exhibit) -> Finding:
        marks = read_evidence(exhibit, [self.service], TableMarks)
        if marks.refused:
            why = f"the tables can no longer be read: {shorten(marks.refused, 150)}"
            return Finding(False, why, "tables-unreadable", empty=True)
        names = sorted({*marks.before, *marks.after})
        changed = [name for name in names if marks.before.get(name) != marks.after.get(name)]
        wrong = [
            f"{_strip_default_schema(name, marks)} {_describe_change(name, marks)}"
            for name in changed
            if not self._is_allowed(name, marks)
        ]
        if not wrong:
            return Finding(True, f"no other table changed ({len(names)} were compared)", "tables-unchanged")
        more = f" (and {len(wrong) - 3} more)" if len(wrong) > 3 else ""
        why, details = shorten(", ".join(wrong[:3]), 180) + more, {"tables": wrong[:SHOWN]}
        return Finding(False, why, "tables-changed", tuple(wrong[:SHOWN]), details=details)

    async def _read(self, world: World) -> dict[str, str]:
        with self._limit_time():
            return await read_fingerprints(get_database(world, self.service), timeout_s=self.timeout / 1000)

    @contextmanager
    def _limit_time(self) -> Iterator[None]:
        try:
            yield
        except TimeoutError as late:
            hint = "raise the rule's timeout"
            raise HarnessError(
                f"reading the tables took longer than {self.timeout / 1000:g} s: {hint}", code="check-timeout"
            ) from late

    def _is_allowed(self, name: str, marks: TableMarks) -> bool:
        """Return whether the rule allows this table to change.

        A pattern without a schema refers to the default one only; raise HarnessError if that is unknown.
        """
        if marks.default is not None or not count_qualifiers(name):
            return is_covered(self.tables, name, marks.default or "")
        # The default schema is unknown: only a pattern that names its schema decides.
        if is_covered(self.tables, name, ""):
            return True
        if is_covered(self.tables, name, name.rpartition(".")[0]):
            raise HarnessError(f"the default schema was {NOT_RECORDED}: write {name}", code="check-not-recorded")
        return False


def _strip_default_schema(name: str, marks: TableMarks) -> str:
    """Return a table of the default schema without its schema."""
    return name.removeprefix(f"{marks.default}.") if marks.default else name


def _describe_change(name: str, marks: TableMarks) -> str:
    if name not in marks.before:
        return "was made"
    return "was changed" if name in marks.after else "was dropped"
