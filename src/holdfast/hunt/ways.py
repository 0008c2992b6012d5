"""Call sites that calm trials do not reach, such as retries and fallbacks, and the faults that lead to them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from holdfast.hunt.outcomes import Plan, PlanOutcome, Point, list_bits

MOST_WAYS = 16
"""Fault sets that are remembered as ways to one site."""


class Ways:
    """The ways to the sites that only a fault leads to."""

    def __init__(self, points: Sequence[Point], at_site: dict[int, int]) -> None:
        """`points` and `at_site` grow as points are added."""
        self._points = points
        self._at_site = at_site
        self.to: dict[int, list[Plan]] = {}
        """By site that calm trials do not reach: the smallest sets of faults under which the agent reached it."""
        self.late = 0
        """The points of these sites."""

    def expect(self, sites: Iterable[int]) -> None:
        """Register sites that calm trials do not reach."""
        for site in sites:
            self.to.setdefault(site, [])
            self.late |= self._at_site[site]

    def add(self, outcome: PlanOutcome) -> None:
        """Remember what a trial met before it reached such a site."""
        for site, ways in self.to.items():
            met = outcome.met & ~self._at_site[site]
            if outcome.reached >> site & 1 and all(way & ~met for way in ways):
                smallest = [met, *(way for way in ways if met & ~way)]
                self.to[site] = sorted(smallest, key=lambda way: (way.bit_count(), way))[:MOST_WAYS]

    def build_own_plan(self, points: Plan, avoid: int = 0) -> Plan:
        """Return the smallest plan that is expected to meet the points: with the faults that lead to their sites."""
        return self.complete(points, avoid) or points

    def complete(self, plan: Plan, avoid: int = 0) -> Plan:
        """Return the plan with the faults that lead to its sites; 0 if no fitting ones do. Those to avoid come
        last.
        """
        waiting = plan & self.late
        while waiting:
            number = waiting.bit_length() - 1
            waiting ^= 1 << number
            ways = self.to[self._points[number].site]
            if any(not way & ~plan for way in ways):
                continue
            occupied = self._find_points_at_sites(plan) & ~plan
            fitting = [way for way in ways if not way & occupied]
            if not fitting:
                return 0
            way = min(fitting, key=lambda way: bool(way & avoid))
            # A fault on the way may itself be at a site that only another fault leads to.
            waiting |= way & ~plan & self.late
            plan |= way
        return plan

    def is_own(self, pair: Plan, plan: Plan) -> bool:
        """Whether the plan has nothing but the pair and a way to its sites."""
        leads = plan & ~pair
        sites = (self._points[number].site for number in list_bits(pair & self.late))
        return self.build_own_plan(pair) == plan or (leads > 0 and any(leads in self.to[site] for site in sites))

    def _find_points_at_sites(self, plan: Plan) -> int:
        sites = 0
        for number in list_bits(plan):
            sites |= self._at_site[self._points[number].site]
        return sites
