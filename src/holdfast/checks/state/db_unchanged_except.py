"""`db_unchanged_except`: only these tables may have changed."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Annotated, ClassVar, Literal
from weakref import WeakKeyDictionary

from msgspec import Struct

from holdfast.checks.state.databases import database, fingerprints
from holdfast.checks.state.recorded import NOT_RECORDED, SHOWN, record, recorded
from holdfast.checks.wording import shorten
from holdfast.errors import HarnessError, QueryFailed
from holdfast.model.observation import Observation
from holdfast.model.verdict import Finding
from holdfast.model.world import Evidence
from holdfast.protocols import Exhibit, World
from holdfast.reading.durations import Duration
from holdfast.reading.fields import about

_before: WeakKeyDictionary[World, dict[str, dict[str, str]]] = WeakKeyDictionary()
"""What was there when the agent started, by world and service: a check has no memory of its own."""


class Tables(Struct, frozen=True, omit_defaults=True):
    """The tables before and after, each with a mark of its content."""

    before: dict[str, str]
    after: dict[str, str] = {}
    refused: str = ""


@dataclass(frozen=True)
class DbUnchangedExcept:
    """Every table but those named is as it was when the agent started: its rows, its columns, that it is there."""

    service: Annotated[str, about("A Postgres or MySQL service.", min_length=1)]
    tables: Annotated[
        tuple[str, ...], about("Tables that may change: names or globs, with a schema if need be; none: [].")
    ] = ()
    timeout: Annotated[Duration, about("For each statement; over it the check is an error.")] = 30_000

    polarity: ClassVar[Literal["positive", "negative"]] = "positive"
    reads: ClassVar[Literal["state"]] = "state"

    async def foresee(self, world: World) -> None:
        _before.setdefault(world, {})[self.service] = await self._read(world)

    async def gather(self, world: World, seen: Observation) -> Evidence:
        before = _before.get(world, {}).get(self.service)
        if before is None:
            raise HarnessError(NOT_RECORDED)
        try:
            return record([self.service], Tables(before, await self._read(world)))
        except QueryFailed as refused:
            return record([self.service], Tables(before, refused=str(refused)))

    def decide(self, exhibit: Exhibit) -> Finding:
        found = recorded(exhibit, [self.service], Tables)
        if found.refused:
            return Finding(False, f"the tables cannot be read any more: {shorten(found.refused, 150)}")
        names = sorted({*found.before, *found.after})
        changed = [name for name in names if found.before.get(name) != found.after.get(name)]
        wrong = [f"{name} {_how(name, found)}" for name in changed if not self._may_change(name)]
        if not wrong:
            return Finding(True, f"no other table changed, of {len(names)}")
        more = f" (and {len(wrong) - 3} more)" if len(wrong) > 3 else ""
        return Finding(False, shorten(", ".join(wrong[:3]), 180) + more, details={"tables": wrong[:SHOWN]})

    async def _read(self, world: World) -> dict[str, str]:
        try:
            return await fingerprints(database(world, self.service), timeout_s=self.timeout / 1000)
        except TimeoutError as late:
            hint = "raise the rule's timeout"
            raise HarnessError(f"reading the tables took longer than {self.timeout / 1000:g} s: {hint}") from late

    def _may_change(self, name: str) -> bool:
        spellings = (name.lower(), name.rpartition(".")[2].lower())
        return any(fnmatchcase(one, table.lower()) for one in spellings for table in self.tables)


def _how(name: str, found: Tables) -> str:
    if name not in found.before:
        return "was made"
    return "was changed" if name in found.after else "was dropped"
