"""The map of an agent: its call sites, what feeds what, and which faults were tried there, over all stored trials."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from holdfast.hunt.planner import HuntPlanner
from holdfast.hunt.points import site_name
from holdfast.hunt.sites import numbered_calls
from holdfast.model.judged import CallSite
from holdfast.model.observation import Observation

SiteState: TypeAlias = Literal["held", "failed", "not met", "open"]
_Key: TypeAlias = tuple[str, str, int, str]


class MappedSite(Struct, frozen=True):
    """A call site, and the later sites that its reply feeds."""

    plane: str
    target: str
    on_call: int
    write: bool
    feeds: tuple[str, ...]
    """`charge #1`, or `answer`."""
    prompt: str = ""


class SiteMode(Struct, frozen=True):
    """What stored trials say of one mode at a site."""

    state: SiteState
    n: int = 0
    """Trials of that state."""


class MapRow(Struct, frozen=True):
    """A call site with every mode of its ladder."""

    plane: str
    target: str
    on_call: int
    modes: dict[str, SiteMode]


class MapCoverage(Struct, frozen=True):
    """How much of the fault space was tried."""

    total: int
    held: int
    failed: int
    not_met: int
    open: int
    rows: tuple[MapRow, ...]

    @property
    def percent(self) -> float:
        """Of all faults: those that were met."""
        return 100 * (self.held + self.failed) / self.total if self.total else 0.0


class FaultMap(Struct, frozen=True):
    """`holdfast map --json`."""

    sites: tuple[MappedSite, ...]
    coverage: MapCoverage


class TriedFaults:
    """Counts, over stored trials, which faults were met where, and whether a rule failed then."""

    def __init__(self) -> None:
        self._held = Counter[_Key]()
        self._failed = Counter[_Key]()
        self._unmet = Counter[_Key]()

    def add(self, seen: Observation, *, failed: bool) -> None:
        """One trial. A failure says nothing about single faults if several were met."""
        places = {(event.plane, event.tool, event.n): site for event, site in numbered_calls(seen.trace)}
        places |= {(p, t.partition(" ")[2], n): site for (p, t, n), site in places.items() if p == "http"}
        met: set[_Key] = set()
        for fault in seen.ledger:
            site = places.get((fault.plane, fault.target, fault.call))
            if site is not None:
                key = site.plane, site.target, site.ordinal, fault.mode
                if fault.effect == "met":
                    met.add(key)
                else:
                    self._unmet[key] += 1
        if not failed:
            self._held.update(met)
        elif len(met) == 1:
            self._failed.update(met)

    def state(self, site: CallSite, mode: str) -> SiteMode:
        """What is known of a mode at a site."""
        key = site.plane, site.target, site.ordinal, mode
        if key in self._failed:
            return SiteMode("failed", self._failed[key])
        if key in self._held:
            return SiteMode("held", self._held[key])
        return SiteMode("not met", self._unmet[key]) if key in self._unmet else SiteMode("open")


def fault_map(planner: HuntPlanner, tried: TriedFaults) -> FaultMap:
    """The map, from the calm trials of a hunt and what stored trials tried."""
    rows: dict[CallSite, MapRow] = {}
    for hunt in planner.hunts:
        for number, site in enumerate(hunt.points.sites):
            modes = dict.fromkeys(one.injection.mode for one in hunt.points.all if one.site == number)
            states = {mode: tried.state(site.call, mode) for mode in modes}
            rows[site.call] = MapRow(site.call.plane, site.call.target, site.call.ordinal, states)
    counts = Counter(one.state for row in rows.values() for one in row.modes.values())
    coverage = MapCoverage(
        sum(counts.values()), counts["held"], counts["failed"], counts["not met"], counts["open"], tuple(rows.values())
    )
    return FaultMap(tuple(_sites(planner)), coverage)


def _sites(planner: HuntPlanner) -> Iterable[MappedSite]:
    for task, one in planner.calm_of_tasks():
        writes = planner.writes(one, certain=True)
        names = [site_name(call.plane, call.target, call.ordinal) for call in one.calls]
        for number, call in enumerate(one.calls):
            fed: Sequence[Any] = [feed.target for feed in one.feeds if feed.source == number]
            feeds = tuple("answer" if target is None else names[target] for target in fed)
            yield MappedSite(call.plane, call.target, call.ordinal, number in writes, feeds, task.prompt)
