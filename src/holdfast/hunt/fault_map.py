"""The map of an agent: its call sites, what feeds what, and which faults were tried there, over all stored trials."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from holdfast.hunt.planner import HuntPlanner
from holdfast.hunt.points import BOUNDARY, format_site
from holdfast.hunt.sites import SERVICE_PLANES, number_logical_calls
from holdfast.model.judged import CallSite, DataFlow, FeedKind, JudgedTrial
from holdfast.model.observation import FaultMet, Observation
from holdfast.model.scenario import Injection, Scenario
from holdfast.planes.injection.active_injection import make_fault
from holdfast.planes.urls import matches_url
from holdfast.protocols.fault import read_traits

SiteState: TypeAlias = Literal["held", "failed", "not met", "open"]
TrialResult: TypeAlias = Literal["held", "failed", "unjudged"]
ANY_TIME = 0
"""The ordinal of the site of world faults that do not wait for a write."""


class MapLink(Struct, frozen=True):
    """A later appearance of a value from a reply."""

    to: str
    """The name of the call site, `answer`, the path of the file, or the service and table of the row."""
    kind: FeedKind
    values: tuple[str, ...] = ()
    """Some of the values."""


class MappedSite(Struct, frozen=True):
    """A call site, and what its reply feeds."""

    plane: str
    target: str
    on_call: int
    write: bool
    feeds: tuple[str, ...]
    """`charge #1`, `answer`, `file notes.txt`, `row db.orders`."""
    prompt: str = ""
    links: tuple[MapLink, ...] = ()
    """The same as values."""


class SiteMode(Struct, frozen=True):
    """The results of stored trials for one mode at a site."""

    state: SiteState
    n: int = 0
    """Trials of that state."""
    extra: bool = False
    """Hunts do not use this fault here: it was tried, but does not count for the coverage."""


class MapRow(Struct, frozen=True):
    """A call site with every mode of its ladder."""

    plane: str
    target: str
    on_call: int
    modes: dict[str, SiteMode]


class MapCoverage(Struct, frozen=True):
    """The part of the fault space that was tried."""

    total: int
    held: int
    failed: int
    not_met: int
    open: int
    rows: tuple[MapRow, ...]
    extra: int = 0
    """Faults that were met and that hunts do not use."""

    @property
    def percent(self) -> float:
        """Of all faults: those that were met."""
        return 100 * (self.held + self.failed) / self.total if self.total else 0.0


class MapScore(Struct, frozen=True):
    """The score of the newest complete run of a part: it says nothing about faults that were never tried."""

    part: str
    run: str
    score: float


class FaultMap(Struct, frozen=True):
    """`map.json`, and `holdfast map --json`."""

    sites: tuple[MappedSite, ...]
    coverage: MapCoverage
    scores: tuple[MapScore, ...] = ()


class TriedFaults:
    """Counts, over stored trials, which faults were met where, and whether a rule failed then."""

    def __init__(self) -> None:
        self._held = Counter[tuple[CallSite, str]]()
        self._failed = Counter[tuple[CallSite, str]]()
        self._unmet = Counter[tuple[CallSite, str]]()
        self._silent: list[tuple[Injection, int]] = []
        """Faults that never fired in trials, and in how many."""

    def add(self, seen: Observation, scenario: Scenario, result: TrialResult) -> None:
        """One trial. A failure says nothing about single faults if several were met; a trial in which no rule was
        judged says nothing about those that were met."""
        traced = {
            (
                event.plane,
                event.tool.partition(" ")[2] if event.event_type == "http_call" else event.tool,
                event.n,
            ): site
            for events, site in number_logical_calls(seen.trace)
            for event in events
        }
        met: set[tuple[CallSite, str]] = set()
        for fault in seen.ledger:
            site = _locate_fault(fault, scenario, traced)
            if site is not None and fault.effect == "met":
                met.add((site, fault.mode))
            elif site is not None:
                self._unmet[site, fault.mode] += 1
        if result == "held":
            self._held.update(met)
        elif result == "failed" and len(met) == 1:
            self._failed.update(met)
        fired = {fault.index for fault in seen.ledger}
        self._silent += [(one, 1) for index, one in enumerate(scenario.injections) if index not in fired]

    def get_state(self, site: CallSite, mode: str) -> SiteMode:
        """Return the known state of a mode at a site."""
        key = site, mode
        if key in self._failed:
            return SiteMode("failed", self._failed[key])
        if key in self._held:
            return SiteMode("held", self._held[key])
        unmet = self._unmet[key] + sum(n for one, n in self._silent if one.mode == mode and _can_fire_at(one, site))
        return SiteMode("not met", unmet) if unmet else SiteMode("open")

    def list_met_modes(self) -> dict[CallSite, list[str]]:
        """By site: the modes that were met in trials that say something about them."""
        sites: dict[CallSite, list[str]] = {}
        for site, mode in self._held | self._failed:
            sites.setdefault(site, []).append(mode)
        return sites


def _locate_fault(fault: FaultMet, scenario: Scenario, traced: dict[tuple[str, str, int], CallSite]) -> CallSite | None:
    """Return where a fault of the ledger acted."""
    if fault.plane in ("world", "service"):
        if fault.index >= len(scenario.injections):  # the run's spec can no longer be read
            return None
        injection = scenario.injections[fault.index]
        if fault.plane == "world":
            return CallSite(BOUNDARY, "*", _get_write_number(injection))
        return CallSite(_choose_service_plane(injection), fault.target, fault.call)
    return traced.get((fault.plane, fault.target, fault.call))


def _get_write_number(injection: Injection) -> int:
    """Return the write that a fault of the world comes after."""
    return int((injection.settings.get("after_event") or {}).get("write", ANY_TIME))


def _choose_service_plane(injection: Injection) -> str:
    """Connections and transactions are counted separately, and a fault of services waits for one of them."""
    return "service" if read_traits(make_fault(injection)).step in ("connect", "tls") else "transaction"


def _can_fire_at(injection: Injection, site: CallSite) -> bool:
    """Whether a fault could have fired at the site."""
    if injection.plane == "world":
        return site.plane == BOUNDARY and site.ordinal == _get_write_number(injection)
    if injection.schedule.on_call not in (None, site.ordinal):
        return False
    if injection.match_url is not None:
        return site.plane == "http" and matches_url(injection.match_url, site.target)
    if injection.plane == "service":
        return site.plane == _choose_service_plane(injection) and fnmatchcase(site.target, injection.target)
    if injection.plane == "llm":
        return site.plane == "llm"
    return site.plane not in (*SERVICE_PLANES, BOUNDARY, "llm", "http") and fnmatchcase(site.target, injection.target)


def build_fault_map(planner: HuntPlanner, tried: TriedFaults) -> FaultMap:
    """Build the map from the calm trials of a hunt and the faults that stored trials tried."""
    ladders: dict[CallSite, dict[str, None]] = {}
    for hunt in planner.hunts:
        for number, site in enumerate(hunt.points.sites):
            modes = (one.injection.mode for one in hunt.points.all if one.site == number)
            ladders.setdefault(site.call, {}).update(dict.fromkeys(modes))
    met = tried.list_met_modes()
    at_any_time = CallSite(BOUNDARY, "*", ANY_TIME)
    if at_any_time in met:
        ladders[at_any_time] = {}
    rows = []
    for call, ladder in ladders.items():
        states = {mode: tried.get_state(call, mode) for mode in ladder}
        others = sorted(mode for mode in met.get(call, ()) if mode not in ladder)
        states |= {mode: replace(tried.get_state(call, mode), extra=True) for mode in others}
        rows.append(MapRow(call.plane, call.target, call.ordinal, states))
    every = [one for row in rows for one in row.modes.values()]
    counts = Counter(one.state for one in every if not one.extra)
    return FaultMap(
        tuple(_list_sites(planner)),
        MapCoverage(
            sum(counts.values()),
            counts["held"],
            counts["failed"],
            counts["not met"],
            counts["open"],
            tuple(rows),
            sum(one.extra for one in every),
        ),
    )


def _list_sites(planner: HuntPlanner) -> Iterable[MappedSite]:
    for asked, one in planner.choose_calm_trials():
        writes = {*planner.reader.list_writes(one, certain=True), *one.rows}
        for number in one.order or range(len(one.calls)):
            call = one.calls[number]
            links = tuple(_list_links(one, [feed for feed in one.feeds if feed.source == number]))
            feeds = tuple(f"{link.kind} {link.to}" if link.kind in ("file", "row") else link.to for link in links)
            yield MappedSite(call.plane, call.target, call.ordinal, number in writes, feeds, asked, links)


def _list_links(one: JudgedTrial, feeds: Sequence[DataFlow]) -> Iterator[MapLink]:
    for feed in feeds:
        target = None if feed.target is None else one.calls[feed.target]
        name = feed.name or "answer" if target is None else format_site(target.plane, target.target, target.ordinal)
        yield MapLink(name, feed.kind, feed.values)
