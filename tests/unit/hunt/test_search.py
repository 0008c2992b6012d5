"""The search of a hunt, on agents that are pure functions of the plan."""

from __future__ import annotations

from holdfast.hunt.evidence import Plan, PlanOutcome, Point, bits
from holdfast.hunt.search import Search

POINTS = [Point(site, rung) for site in range(3) for rung in range(3)]


def trial(plan: Plan, cause: Plan) -> PlanOutcome:
    return PlanOutcome(plan, plan, 0b111, ("rule",) if plan & cause == cause else ())


def hunted(cause: Plan) -> Search:
    search = Search(POINTS)
    plans = search.next([])
    while plans:
        plans = search.next([trial(plan, cause) for plan in plans])
    return search


def test_a_pair_that_fails_is_found_and_nothing_else() -> None:
    search = hunted(1 << 1 | 1 << 5)
    assert [list(bits(cause.points)) for cause in search.causes] == [[1, 5]]
    assert search.coverage().points.held == 9
