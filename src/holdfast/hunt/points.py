"""The points of a hunt: the modes that can be tried at a call site, and the scenario that a set of points makes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from functools import cache
from glob import escape
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from holdfast import plugins
from holdfast.hunt.outcomes import Plan, Point, list_bits
from holdfast.hunt.sites import SERVICE_PLANES
from holdfast.model.codec import digest, encode_canonical, to_builtins
from holdfast.model.judged import CallSite, JudgedTrial
from holdfast.model.scenario import Injection, Plane, Scenario, Schedule
from holdfast.model.spec import Spec
from holdfast.model.traits import HuntUse, Rung
from holdfast.planes.injection.active_injection import make_fault
from holdfast.protocols.fault import read_traits

CALM_AGAIN = Scenario("calm-again")
"""Calm trials that a hunt asks for later, to compare causes with: they are not those of the plan."""
MOST_BOUNDARIES = 20
"""Writes of one trial after which the agent is killed."""
MOST_SHORTER = 64
"""Forms of one fault with fewer `times`, or at an earlier call. Bisection needs six trials for so many."""
_COMMON, _FEEDS_WRITE, _SEVERE = 2.0, 1.5, 1.5
"""How much sooner a point is tried if there is public evidence for its mode, if its reply feeds a write, or if a severe
rule is about its target."""
LASTING = len(Rung)
"""What a fault of all further calls adds to its rung: no fault of a single call is a stronger form of an outage."""
_FAMILIES: dict[str, tuple[Plane, ...]] = {
    "tool": ("tool",),
    "tool_result": ("tool",),
    "http": ("tool",),
    "mcp": ("mcp", "tool"),
    "llm": ("llm",),
    "service": ("service",),
    "transaction": ("service",),
    "world": ("world",),
}
"""By the plane of a call: the families of faults that act there."""


BOUNDARY = "world"
"""The plane of the sites *after write k*, at which the agent can be killed."""


class HuntSite(Struct, frozen=True):
    """A call site, and what makes its points worth trying."""

    call: CallSite
    write: bool = False
    """It changes something, or comes after the last call that does."""
    feeds_write: bool = False
    severe: bool = False
    """A rule of high or critical severity names it."""


class HuntPoint(Struct, frozen=True):
    """A site and one mode of its ladder."""

    site: int
    injection: Injection
    how: HuntUse


class Points:
    """The numbered points of one task. Points of sites that appear later are numbered after the others."""

    def __init__(self, spec: Spec, modes: Sequence[str] = ()) -> None:
        """`modes`: only these, and only at writes."""
        self._spec = spec
        self._modes = modes
        self.sites: list[HuntSite] = []
        self.all: list[HuntPoint] = []
        self._numbers: dict[tuple[str, str, int], int] = {}
        self._complete: set[CallSite] = set()
        """Sites that have all the points of their ladder. Those of a known cause may have only some."""
        self._by_content: dict[bytes, int] = {}

    def find_site(self, call: CallSite) -> int | None:
        """Return the number of a site; None if it is not known."""
        return self._numbers.get((call.plane, call.target, call.ordinal))

    def add(self, site: HuntSite) -> list[Point]:
        """Add a site, and those points of its plane's ladder that it does not have yet."""
        if site.call in self._complete:
            return []
        self._complete.add(site.call)
        ladder = [one for one in self._list_modes(site) if _encode_content(one[0]) not in self._by_content]
        if not ladder:
            return []
        number = self._numbers.setdefault((site.call.plane, site.call.target, site.call.ordinal), len(self.sites))
        if number == len(self.sites):
            self.sites.append(site)
        self.sites[number] = site  # a known cause does not say whether its site writes
        return [self._add(site, injection, how, number) for injection, how in ladder]

    def build_plan(self, scenario: Scenario, *, with_shorter: bool = False) -> tuple[Plan, list[Point]]:
        """Return the plan of a scenario's faults, and the points that were added for it.

        `with_shorter` adds the forms of each fault that strike fewer calls, or an earlier one.
        """
        plan, added = 0, []
        for injection in scenario.injections:
            shorter = _list_shorter(injection) if with_shorter else []
            # Points of one rung are weaker the earlier they are added.
            for form in (*shorter, injection):
                if _encode_content(form) not in self._by_content:
                    added.append(self._add_fault(form, injection))
            plan |= 1 << self._by_content[_encode_content(injection)]
        return plan, added

    def _add_fault(self, form: Injection, injection: Injection) -> Point:
        """Add a form of a fault at the site of the fault itself."""
        plane = "http" if injection.match_url else injection.plane
        at = CallSite(plane, injection.match_url or injection.target, _get_ordinal(injection))
        number = self._numbers.setdefault((at.plane, at.target, at.ordinal), len(self.sites))
        if number == len(self.sites):
            self.sites.append(HuntSite(at))
        uses = plugins.get_fault_traits(injection.plane, injection.mode).hunted
        rung = max((how.rung for how in uses), default=Rung.SLOW)
        works = any(how.writes for how in uses)
        how = HuntUse(rung=rung, lasting=injection.schedule.on_call is None, writes=works)
        return self._add(self.sites[number], form, how, number)

    def build_scenario(self, plan: Plan) -> Scenario:
        """Return the scenario in which the plan is run: one fault for each point, in the order of their numbers."""
        if not plan:
            return CALM_AGAIN
        injections = tuple(self.all[number].injection for number in list_bits(plan))
        # Sorted, because the numbers of points depend on the order in which calls were first seen.
        contents = sorted((one.content for one in injections), key=encode_canonical)
        return Scenario(f"hunt-{digest(encode_canonical(contents))[:8]}", injections, steady=True)

    def read_outcome(self, scenario: Scenario, trial: JudgedTrial) -> tuple[int, int]:
        """Return the points that the trial met in this scenario, and the sites that it reached."""
        numbers = [self._by_content[_encode_content(injection)] for injection in scenario.injections]
        met = {numbers[one.index] for one in trial.ledger if one.effect == "met" and one.index < len(numbers)}
        made = (*trial.calls, *list_boundaries(trial))
        reached = {number for call in made if (number := self.find_site(call)) is not None}
        return sum(1 << number for number in met), sum(1 << number for number in reached)

    def count_steps(self, met: int, trial: JudgedTrial) -> tuple[str, ...]:
        """Return, for each point that was met, the calls until the next one; for the last, also how the trial ended."""
        places = {call: place for place, call in reversed(list(enumerate(trial.calls)))}
        # A point that is not at a call, such as a kill after a write, counts as the last.
        at = {number: places.get(self.sites[self.all[number].site].call, len(trial.calls)) for number in list_bits(met)}
        borders = sorted({*at.values(), len(trial.calls)})
        steps = {}
        for number, place in at.items():
            after = next((border for border in borders if border > place), None)
            calls = [f"{call.plane} {call.target}" for call in trial.calls[place + 1 : after]]
            steps[number] = "\n".join([*calls, *([trial.ending] if place == max(at.values()) else [])])
        return tuple(steps[number] for number in list_bits(met))

    def disturbs(self, plan: Plan, planes: Set[str]) -> bool:
        """Whether one of the faults may harm a caller on these planes."""
        faults = (self.all[number].injection for number in list_bits(plan))
        return any(one.plane in planes and not plugins.get_fault_traits(one.plane, one.mode).harmless for one in faults)

    def is_lasting(self, plan: Plan) -> bool:
        """Whether one of the faults acts on more than one call."""
        return any(self.all[number].how.lasting for number in list_bits(plan))

    def _list_modes(self, site: HuntSite) -> Iterator[tuple[Injection, HuntUse]]:
        sweep = bool(self._modes)
        for plane in _FAMILIES.get(site.call.plane, ()):
            for mode, how in list_ladder(plane):
                if sweep and not (mode in self._modes and (site.write or site.call.plane == "transaction")):
                    continue
                injection = place_fault(site.call, plane, mode, how)
                traits = read_traits(make_fault(injection))
                if plane == "service" and (traits.step == "connect") != (site.call.plane == "service"):
                    continue
                results = site.call.plane == "tool_result" and not traits.on_results
                functions = plane == "llm" and traits.wire_only and bool(self._spec.agent.llm)
                if not (results or functions or not traits.on_calls):
                    yield injection, how

    def _add(self, site: HuntSite, injection: Injection, how: HuntUse, number: int) -> Point:
        self._by_content[_encode_content(injection)] = len(self.all)
        self.all.append(HuntPoint(number, injection, how))
        weight = (_COMMON if how.common else 1.0) * (_FEEDS_WRITE if site.feeds_write else 1.0)
        weight *= _SEVERE if site.severe else 1.0
        return Point(
            number,
            how.rung + (LASTING if how.lasting else 0),
            weight,
            separate=site.write or how.writes,
            works=how.writes,
            common=how.common,
            outage=_make_key([injection.plane, injection.target, injection.match_url, how.settings, injection.mode])
            if how.lasting
            else 0,
            key=_make_key(injection.content),
        )


def place_fault(call: CallSite, plane: Plane, mode: str, how: HuntUse) -> Injection:
    """Return a fault at a call site: at that call alone, or from it on."""
    if plane == "world":
        return Injection(plane, "*", mode, {**how.settings, "after_event": {"write": call.ordinal}})
    schedule = Schedule(after_calls=call.ordinal - 1) if how.lasting else Schedule(on_call=call.ordinal)
    if call.plane == "llm":
        # Once: a client library repeats a refused request, and most agents recover by that.
        schedule = replace(schedule, count="logical", times=None if how.lasting else 1)
    url = escape(call.target) if call.plane == "http" else None
    target = "*" if call.plane in ("http", "llm") else escape(call.target)
    return Injection(plane, target, mode, dict(how.settings), schedule, match_url=url)


def list_boundaries(trial: JudgedTrial) -> Iterator[CallSite]:
    """Yield the sites *after write k* of a trial."""
    return (CallSite(BOUNDARY, "*", k) for k in range(1, min(trial.boundaries, MOST_BOUNDARIES) + 1))


@cache
def list_ladder(plane: Plane) -> tuple[tuple[str, HuntUse], ...]:
    """Return the modes of a family that hunts use, from weak to strong."""
    modes = plugins.list_names(f"faults.{plane}")
    uses = [(mode, how) for mode in modes for how in plugins.get_fault_traits(plane, mode).hunted]
    return tuple(sorted(uses, key=lambda one: (one[1].rung, one[0])))


def list_sweep_modes() -> list[str]:
    """Return the modes that a sweep of writes can use."""
    families = {family for families in _FAMILIES.values() for family in families}
    return sorted({mode for family in families for mode, how in list_ladder(family) if how.writes})


def build_full_scenario() -> Scenario:
    """Return a scenario with every fault that a hunt may invent: each site must be opened for all of them."""
    planes = {plane: families for plane, families in _FAMILIES.items() if plane not in (*SERVICE_PLANES, BOUNDARY)}
    faults = [
        place_fault(CallSite(plane, "*", 1), family, mode, how)
        for plane, families in planes.items()
        for family in families
        for mode, how in list_ladder(family)
    ]
    return Scenario("hunt", tuple(replace(one, match_url="*") if one.match_url else one for one in faults))


def format_site(plane: str, target: str, ordinal: int) -> str:
    """`charge #1`, `model call 2`, `db connection 1`, `db transaction 2`, `after write 3`, `world`."""
    if plane == BOUNDARY:
        return f"after write {ordinal}" if ordinal else "world"
    if plane == "llm":
        return f"model call {ordinal}"
    kinds = {"service": "connection", "transaction": "transaction"}
    return f"{target} {kinds[plane]} {ordinal}" if plane in kinds else f"{target} #{ordinal}"


def describe_fault(injection: Injection) -> dict[str, Any]:
    """Return a fault in the form that a hunt's JSON uses."""
    schedule = to_builtins(injection.schedule)
    target = injection.match_url or injection.target
    on_call = {"on_call": _get_ordinal(injection)}
    head = {"plane": injection.plane, "target": target, **on_call, "mode": injection.mode}
    return {**head, **injection.settings, **schedule}


def _get_ordinal(injection: Injection) -> int:
    schedule, event = injection.schedule, injection.settings.get("after_event")
    return event["write"] if event else schedule.on_call or (schedule.after_calls or 0) + 1


def _make_key(content: object) -> int:
    return int(digest(encode_canonical(content)), 16)


def _encode_content(injection: Injection) -> bytes:
    return encode_canonical(injection.content)


def _list_shorter(injection: Injection) -> list[Injection]:
    """Return the fault with fewer `times`, from one up, or at earlier calls, from the first on."""
    plan = injection.schedule
    if plan.on_call is not None:
        earlier = range(max(1, plan.on_call - MOST_SHORTER), plan.on_call)
        return [replace(injection, schedule=replace(plan, on_call=call)) for call in earlier]
    if plan.times is None or plan.after_event is not None:
        return []
    fewer = [replace(plan, times=times) for times in range(2, min(plan.times, MOST_SHORTER))]
    once = replace(plan, on_call=(plan.after_calls or 0) + (plan.every or 1), after_calls=None, every=None, times=None)
    return [replace(injection, schedule=one) for one in (once, *fewer)]
