"""The search of a hunt, on agents that are pure functions of the plan."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from holdfast.hunt.evidence import STEP_PASSES, Trials
from holdfast.hunt.outcomes import Coverage, Failure, Plan, PlanOutcome, Point, Portion, list_bits
from holdfast.hunt.search import Search

SITES = MODES = 3
POINTS = [Point(site, rung) for site in range(SITES) for rung in range(MODES)]
Kind = tuple[int, int]


@dataclass(frozen=True)
class Agent:
    """Treats the modes of a class alike; ends at a cutter; fails when it meets every class of a cause."""

    classes: tuple[int, ...]
    cuts: frozenset[Kind] = frozenset()
    causes: tuple[frozenset[Kind], ...] = ()
    shows_steps: bool = True

    def kind(self, number: int) -> Kind:
        return number // MODES, self.classes[number]

    def run(self, plan: Plan) -> PlanOutcome:
        met, reached = 0, (1 << SITES) - 1
        for number in list_bits(plan):
            met |= 1 << number
            if self.kind(number) in self.cuts:
                reached = (1 << number // MODES + 1) - 1
                break
        kinds = {self.kind(number) for number in list_bits(met)}
        failures = tuple(Failure(f"rule-{n}") for n, cause in enumerate(self.causes) if cause <= kinds)
        steps = tuple(str(self.kind(number)) for number in list_bits(met)) if self.shows_steps else ()
        return PlanOutcome(plan, met, reached, failures, str(sorted(kinds)), steps=steps)


OWN = Agent(tuple(range(MODES)) * SITES)
"""An agent that distinguishes all modes."""


def planted(*causes: Plan) -> Agent:
    return Agent(
        OWN.classes, causes=tuple(frozenset(OWN.kind(number) for number in list_bits(cause)) for cause in causes)
    )


def hunt(search: Search, run: Callable[[Plan], PlanOutcome], most: int = 2000) -> list[list[Plan]]:
    """All rounds of a hunt."""
    rounds: list[list[Plan]] = []
    plans = search.next([])
    while plans and sum(map(len, rounds)) < most:
        rounds.append(plans)
        plans = search.next([run(plan) for plan in plans])
    return rounds


def plan(*numbers: int) -> Plan:
    return sum(1 << number for number in numbers)


kinds = st.tuples(st.integers(0, SITES - 1), st.integers(0, MODES - 1))
agents = st.builds(
    Agent,
    st.tuples(*[st.integers(0, MODES - 1)] * SITES * MODES),
    st.frozensets(kinds, max_size=3),
    st.lists(st.frozensets(kinds, min_size=1, max_size=3), max_size=2).map(tuple),
    st.booleans(),
)


# -- fragile agents, lost replies, broken checks -------------------------------------------------------------------
def test_a_fragile_agent_is_soon_tried_with_one_fault_at_a_time() -> None:
    points = [Point(site, rung) for site in range(8) for rung in range(6)]
    search = Search(points, order=1)
    rounds = hunt(search, lambda one: _run_fragile_site(one, 6))
    sizes = [one.bit_count() for plans in rounds for one in plans]
    assert max(sizes[20:]) == 1
    # Each once, confirmed once, and a few more for the first shrinks.
    met = [one.met for one in search.trials.outcomes[: 9 * len(points) // 4]]
    assert all(1 << number in met for number in range(len(points)))


def _run_fragile_site(tried: Plan, modes: int, code: str = "", step: str = "") -> PlanOutcome:
    met = tried & -tried
    reached = (1 << ((met.bit_length() - 1) // modes + 1)) - 1 if met else 255
    failures = (Failure("crashes", code or str(met)),) if met else ()
    return PlanOutcome(tried, met, reached, failures, str(met), steps=(step or str(met),) if met else ())


def test_faults_with_public_evidence_do_not_wait_behind_lookalikes() -> None:
    """Every fault ends the agent in the same way, so after the first one the others look like the same cause."""
    points = [
        Point(site, rung, weight=2.0 if rung < 3 else 1.0, common=rung < 3) for site in range(4) for rung in range(8)
    ]
    search = Search(points, order=1)
    hunt(search, lambda one: _run_fragile_site(one, 8, code="crash", step="end"), 40)
    states = {(one.site, one.rung): search.closed.get_point_state(number) for number, one in enumerate(points)}
    assert {states[place] for place in states if place[1] < 3} == {"failed"}
    assert "open" in states.values()


def test_an_outage_that_begins_at_another_call_waits_for_other_faults() -> None:
    points = [replace(one, weight=2.0, common=True, outage=1) if one.rung == 2 else one for one in POINTS]
    outages = sum(1 << number for number, one in enumerate(points) if one.outage)

    def run(tried: Plan) -> PlanOutcome:
        outcome = planted(1 << 6).run(tried)
        return replace(outcome, failures=(*outcome.failures, *[Failure("ends")] * bool(tried & outages)))

    search = Search(points, order=1)
    trials = [plan for plans in hunt(search, run) for plan in plans]
    last = max(next(n for n, plan in enumerate(trials) if plan >> at & 1) for at in range(9) if not outages >> at & 1)
    assert sum(trials.index(1 << number) > last for number in list_bits(outages)) == 2
    assert {one.points for one in search.causes} == {1 << number for number in (*list_bits(outages), 6)}


def test_a_lost_reply_is_not_hidden_behind_a_weaker_cause_at_the_same_call() -> None:
    points = [Point(0, 1), Point(0, 2), Point(0, 8, separate=True, works=True)]
    search = Search(points)
    hunt(search, lambda one: PlanOutcome(one, one, 1, (Failure("once"),) if one else (), str(one), steps=("s",)))
    assert {one.points for one in search.causes} == {plan(0), plan(2)}


@pytest.mark.parametrize("noisy", [False, True])
def test_minimality_does_not_rest_on_a_trial_whose_check_broke(noisy: bool) -> None:
    failure = Failure("rule-0")

    def run(tried: Plan) -> PlanOutcome:
        met = tried & plan(0, 3)
        fails = (failure,) if met == plan(0, 3) else ()
        broken = ("rule-0",) if met == plan(0) else ()
        return PlanOutcome(tried, tried, 7, fails, str(met), judged=not broken, broken_rules=broken)

    search = Search(POINTS[:6], noisy=noisy)
    hunt(search, run)
    assert not search.causes
    assert (plan(0, 3), failure) in [(one.points, one.failure) for one in search.flaky]
    assert len(search.trials.of_plan[plan(0)]) <= 8


@pytest.mark.parametrize("noisy", [False, True])
def test_minimality_does_not_rest_on_a_larger_plan_that_left_the_rule_unproven(noisy: bool) -> None:
    """A larger plan in which the agent gave no answer says nothing about its parts."""
    failure = Failure("rule-0")
    trials = Trials(POINTS[:6], noisy=noisy)
    for _ in range(STEP_PASSES):
        silent = plan(0, 3)
        trials.add(PlanOutcome(silent, silent, 7, unproven_rules=("rule-0",)))
    assert not trials.has_passed(plan(0), failure)
    assert trials.has_passed(plan(0), Failure("rule-1"))
    assert trials.has_passed(plan(0, 3), failure)  # its own trials did not fail


# -- causes --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("cause", [plan(4), plan(1, 5), plan(2, 3), plan(0, 4, 8)])
def test_a_cause_is_found_alone_and_proven(cause: Plan) -> None:
    search, agent = Search(POINTS), planted(cause)
    hunt(search, agent.run)
    if cause.bit_count() < 3:
        assert [(one.points, one.failed, one.runs) for one in search.causes] == [
            (cause, *search.trials.count(cause, Failure("rule-0")))
        ]
    for one in search.causes:
        assert one.failed == one.runs >= 1
        smaller = [one.points & ~(1 << number) for number in list_bits(one.points)]
        assert all(not outcome.failures for rest in smaller for outcome in search.trials.of_plan.get(rest, ()))
        # A hunt that was not cut short has also run every smaller plan by itself.
        assert all(rest in search.trials.of_plan for rest in smaller if rest)
        assert search.shrink_steps[one.points, one.failure]


@pytest.mark.parametrize("cause", [plan(0, 4, 8), plan(2, 3, 7), plan(1, 5, 6)])
def test_strength_three_meets_every_triple(cause: Plan) -> None:
    search, agent = Search(POINTS, order=3), planted(cause)
    hunt(search, agent.run)
    assert [one.points for one in search.causes] == [cause]
    held = [one.met for one in search.trials.outcomes if not one.failures]
    triples = [plan(*chosen) for chosen in product(range(3), range(3, 6), range(6, 9)) if plan(*chosen) != cause]
    assert all(any(not triple & ~met for met in held) for triple in triples)


@pytest.mark.parametrize(("cause", "order"), [(plan(6, 10, 14, 18), 1), (plan(6, 10, 14), 2)])
def test_a_cause_of_more_faults_than_asked_for_is_shrunk_after_the_open_points(cause: Plan, order: int) -> None:
    """On a slow agent the budget would otherwise go to a cause that the user did not ask for."""
    points = [Point(site, rung) for site in range(6) for rung in range(4)]
    search = Search(points, order=order)

    def run(tried: Plan) -> PlanOutcome:
        fails = () if cause & ~tried else (Failure("rule-0"),)
        steps = tuple(str(number) for number in list_bits(tried))
        return PlanOutcome(tried, tried, 63, fails, str(tried), steps=steps)

    outcomes = [run(cause | plan(0, 20))]
    while plans := search.next(outcomes):
        if search.causes:
            break
        outcomes = [run(one) for one in plans]
    assert [one.points for one in search.causes] == [cause]
    states = {search.closed.get_point_state(number) for number in range(len(points))}
    assert "open" not in states


def test_the_weakest_faults_of_a_cause_are_reported() -> None:
    agent = Agent((0, 1, 1) * SITES, causes=(frozenset({(0, 1), (2, 1)}),))
    search = Search(POINTS)
    hunt(search, agent.run)
    assert [one.points for one in search.causes] == [plan(1, 7)]


def test_a_cause_holds_no_fault_that_was_not_met() -> None:
    agent = Agent(OWN.classes, cuts=frozenset({(1, 0)}), causes=(frozenset({(0, 0), (1, 0)}),))
    search = Search(POINTS, known={plan(0, 3, 6): ()})
    hunt(search, agent.run)
    assert [one.points for one in search.causes] == [plan(0, 3)]


def test_two_rules_that_one_plan_breaks_are_two_causes() -> None:
    search = Search(POINTS)
    hunt(search, planted(plan(1, 5), plan(1, 8)).run)
    assert {(one.points, one.failure) for one in search.causes} == {
        (plan(1, 5), Failure("rule-0")),
        (plan(1, 8), Failure("rule-1")),
    }


def test_known_plans_come_first_and_those_that_pass_are_fixed() -> None:
    search = Search(POINTS, known={plan(1, 5): (), plan(2, 3): ()})
    rounds = hunt(search, planted(plan(1, 5)).run)
    assert rounds[:2] == [[plan(1, 5), plan(2, 3)], [plan(2, 3)]]
    assert search.fixed == [plan(2, 3)]
    assert [one.points for one in search.causes] == [plan(1, 5)]


def test_a_known_plan_whose_faults_are_not_met_is_not_fixed() -> None:
    search = Search(POINTS, known={plan(0, 3): (), plan(1, 4): ()})
    hunt(search, Agent(OWN.classes, cuts=frozenset({(0, 0)})).run)
    assert (search.fixed, search.undecided) == ([plan(1, 4)], [plan(0, 3)])


@given(agents, st.integers(1, 60))
@settings(max_examples=100, deadline=None)
def test_a_cause_failed_as_often_as_it_was_run_by_itself(agent: Agent, budget: int) -> None:
    """Also if the budget ends the hunt early: what is not confirmed by then is flaky."""
    search = Search(POINTS)
    hunt(search, agent.run, budget)
    for one in search.causes:
        assert one.failed == one.runs >= 1
        failed = [run for run in search.trials.outcomes if one.failure in run.failures]
        assert sum(not one.points & ~run.met for run in failed) >= 2
        for rest in (one.points & ~(1 << number) for number in list_bits(one.points)):
            passed = [run for run in search.trials.outcomes if one.failure not in run.failures]
            assert not rest or any(not rest & ~run.met or rest == run.plan for run in passed)
    assert all(one.failed >= 1 for one in search.flaky)
    failed = {failure for one in search.trials.outcomes if one.met for failure in one.failures}
    assert failed == {one.failure for one in [*search.causes, *search.flaky]}


def test_the_steps_lead_from_the_plan_that_failed_first_to_the_cause() -> None:
    search = Search(POINTS)
    hunt(search, planted(plan(1, 5)).run)
    first = next(one for one in search.trials.outcomes if one.failures)
    steps = search.shrink_steps[plan(1, 5), Failure("rule-0")]
    assert [plan for plan, _, _ in (steps[0], steps[-1])] == [first.plan, plan(1, 5)]
    assert all(runs for _, _, runs in steps)


def test_what_fails_once_is_flaky() -> None:
    failed: list[Plan] = []

    def run(asked: Plan) -> PlanOutcome:
        once = asked if asked >> 4 & 1 and not failed else 0
        failed.extend([once] if once else [])
        return PlanOutcome(asked, asked, 7, (Failure("rule"),) if once else ())

    search = Search(POINTS)
    hunt(search, run)
    assert search.causes == []
    assert [(one.failure, one.failed) for one in search.flaky] == [(Failure("rule"), 1)]


def test_shrinking_one_plan_tries_nothing_else() -> None:
    failed, failure = plan(1, 5, 8), Failure("rule-0")
    shrink = Search(POINTS, order=0, known={failed: (failure.rule,)}, only=failure)
    rounds = hunt(shrink, planted(plan(1, 5), plan(8)).run)
    assert [one.points for one in shrink.causes] == [plan(1, 5)]
    assert sum(map(len, rounds)) <= 12


def test_points_at_a_site_that_only_a_fault_leads_to_are_tried_with_that_fault() -> None:
    def run(asked: Plan) -> PlanOutcome:
        reached = 0b1111 if asked >> 4 & 1 else 0b0111
        met = asked if asked >> 4 & 1 else asked & ~plan(9, 10)
        return PlanOutcome(asked, met, reached, (Failure("rule"),) if met >> 10 & 1 else ())

    search = Search(POINTS)
    plans = search.next([])
    search.add_points([Point(3, 0), Point(3, 1)])
    while plans:
        plans = search.next([run(asked) for asked in plans])
    assert [one.points for one in search.causes] == [plan(4, 10)]
    assert search.closed.get_point_state(9) == "held"


def retrying(asked: Plan, leads: Plan, causes: tuple[Plan, ...] = ()) -> PlanOutcome:
    """Sites 0 to 2 are always reached; site 3 only after one of the faults that lead to it."""
    reached = 0b1111 if asked & leads else 0b0111
    met = asked if asked & leads else asked & ~plan(9, 10, 11)
    failures = tuple(Failure(f"rule-{n}") for n, cause in enumerate(causes) if not cause & ~met)
    return PlanOutcome(asked, met, reached, failures, f"{reached} {met & leads:b}")


def hunt_with_retry(leads: Plan, *causes: Plan) -> Search:
    search = Search(POINTS)
    plans, known = search.next([retrying(0, leads)]), False
    for _ in range(200):
        if not known and any(retrying(asked, leads).reached >> 3 for asked in plans):
            search.add_points([Point(3, rung) for rung in range(MODES)])
            known = True
        plans = search.next([retrying(asked, leads, causes) for asked in plans])
        if not plans:
            return search
    raise AssertionError("the hunt does not end")


@pytest.mark.parametrize("first", [3, 4, 5])
@pytest.mark.parametrize("late", [9, 10, 11])
def test_a_pair_at_a_retry_is_found_whichever_fault_leads_to_the_retry(first: int, late: int) -> None:
    search = hunt_with_retry(plan(3, 4, 5), plan(first, late))
    assert [one.points for one in search.causes] == [plan(first, late)]
    assert search.closed.count_coverage().pairs.open == 0


def test_a_pair_at_a_retry_that_the_fault_does_not_lead_to_is_infeasible() -> None:
    search = hunt_with_retry(plan(4))
    pairs = search.closed.count_coverage().pairs
    assert (pairs.infeasible, pairs.open) == (6, 0)
    assert len(search.trials.outcomes) < 60


def test_a_fault_elsewhere_and_one_at_a_retry_are_tried_with_the_fault_that_leads_there() -> None:
    search = hunt_with_retry(plan(4), plan(4, 7, 10))
    assert plan(4, 7, 10) in [one.points for one in search.causes]


def test_the_search_for_the_fault_that_leads_to_a_retry_waits_for_the_usual_calls() -> None:
    """Nearly every agent retries in the first plan; a trial for each fault of it would use a small budget up."""
    search = Search(POINTS, order=1)
    plans, before = search.next([retrying(0, plan(4))]), list[Plan]()
    while any(search.closed.get_point_state(number) == "open" for number in range(len(POINTS))):
        if not before:
            search.add_points([Point(3, rung) for rung in range(MODES)])
        before += plans
        plans = search.next([retrying(asked, plan(4)) for asked in plans])
    assert len(before) == MODES
    while plans:
        plans = search.next([retrying(asked, plan(4)) for asked in plans])
    assert {search.closed.get_point_state(number) for number in range(len(POINTS), len(search.points))} == {"held"}


# -- the statement ----------------------------------------------------------------------------------------------------
def brute_force(agent: Agent) -> tuple[dict[str, int], dict[str, int]]:
    """The states of all points and pairs, from a trial of every plan there is."""
    choices = [[0, *(1 << site * MODES + mode for mode in range(MODES))] for site in range(SITES)]
    outcomes = [agent.run(sum(chosen)) for chosen in product(*choices)]
    failing = [one.met for one in outcomes if one.failures]

    def state(points: Plan) -> str:
        if any(not met & ~points for met in failing):
            return "failed"
        met = [one for one in outcomes if not points & ~one.met]
        return "held" if any(not one.failures for one in met) else "open" if met else "infeasible"

    apart = [pair for pair in combinations(range(len(POINTS)), 2) if POINTS[pair[0]].site != POINTS[pair[1]].site]
    states = [[state(1 << n) for n in range(len(POINTS))], [state(plan(*pair)) for pair in apart]]
    singles, pairs = (
        {name: found.count(name) for name in ("held", "failed", "infeasible", "open")} for found in states
    )
    return singles, pairs


def counts(coverage: Coverage) -> tuple[dict[str, int], dict[str, int]]:
    names = ("held", "failed", "infeasible", "open")
    singles, pairs = coverage.points, coverage.pairs
    return {n: getattr(singles, n) for n in names}, {n: getattr(pairs, n) for n in names}


@pytest.mark.slow
@given(agents)
@settings(max_examples=300, deadline=None)
def test_the_statement_is_that_of_a_trial_of_every_plan(agent: Agent) -> None:
    search = Search(POINTS)
    hunt(search, agent.run)
    assert counts(search.closed.count_coverage()) == brute_force(agent)
    assert [search.closed.get_point_state(n) for n in range(9)].count(
        "held"
    ) == search.closed.count_coverage().points.held


def test_a_point_is_held_only_if_a_rule_was_judged() -> None:
    search = Search(POINTS)
    rounds = hunt(search, lambda asked: PlanOutcome(asked, asked, 7, judged=not asked & plan(4)))
    points = search.closed.count_coverage().points
    assert (points.held, points.open, search.closed.get_point_state(4)) == (8, 1, "open")
    assert sum(asked == plan(4) for plans in rounds for asked in plans) == 1


def test_a_point_that_is_met_only_in_trials_that_fail_is_not_infeasible() -> None:
    search = Search(POINTS)
    hunt(search, lambda asked: PlanOutcome(asked, asked & ~plan(4) or asked & plan(8), 7))
    assert search.closed.get_point_state(4) == "infeasible"
    search = Search(POINTS, known={plan(1, 5): ()})
    search.next([PlanOutcome(plan(5), 0, 7), PlanOutcome(plan(1, 5), plan(1, 5), 7, (Failure("rule"),))])
    assert search.closed.get_point_state(5) == "open"


# -- rounds -----------------------------------------------------------------------------------------------------------
@given(agents, st.integers(0, 9))
@settings(max_examples=50, deadline=None)
def test_the_order_in_which_trials_end_changes_nothing(agent: Agent, seed: int) -> None:
    def shuffled(search: Search) -> list[list[Plan]]:
        draw, rounds, plans = random.Random(seed), [], search.next([])
        while plans:
            rounds.append(plans)
            plans = search.next(draw.sample([agent.run(asked) for asked in plans], len(plans)))
        return rounds

    one, other = Search(POINTS), Search(POINTS)
    assert shuffled(one) == hunt(other, agent.run)
    assert one.causes == other.causes


def noisy_run(cause: Plan, seed: int) -> Callable[[Plan], PlanOutcome]:
    draw = random.Random(seed)

    def run(asked: Plan) -> PlanOutcome:
        fails = draw.random() < (0.7 if asked & cause == cause else 0.02)
        return PlanOutcome(asked, asked, 7, (Failure("rule"),) if fails else ())

    return run


def test_with_noise_a_cause_is_compared_with_calm() -> None:
    search = Search(POINTS, noisy=True)
    hunt(search, noisy_run(plan(1, 5), 3), 300)
    (cause,) = search.causes
    assert cause.points == plan(1, 5)
    assert cause.runs >= 5
    assert cause.calm_runs >= 10


def test_two_runs_of_one_plan_that_differ_reveal_the_noise() -> None:
    wrong = noticed = 0
    for seed in range(30):
        search = Search(POINTS)
        hunt(search, noisy_run(plan(1, 5), seed), 300)
        wrong += sum(one.points != plan(1, 5) for one in search.causes)
        noticed += search.trials.noisy
    assert wrong <= 1
    assert noticed > 10


def test_noise_that_shows_late_forgets_no_site_that_only_a_fault_leads_to() -> None:
    search = Search(POINTS)
    search.next([OWN.run(asked) for asked in search.next([])])
    search.add_points([Point(3, 0)])
    search.next([PlanOutcome(plan(4), plan(4), 0b1111)])
    search.expect_noise()
    assert search.trials.ways.build_own_plan(1 << 9) == plan(4, 9)


def test_noise_alone_is_no_cause() -> None:
    wrong = 0
    for seed in range(30):
        search = Search(POINTS, noisy=True)
        hunt(search, noisy_run(1 << 63, seed), 200)
        wrong += len(search.causes)
    assert wrong <= 1


# -- bad input --------------------------------------------------------------------------------------------------------
def test_without_points_there_is_nothing_to_try() -> None:
    search = Search([])
    assert search.next([]) == []
    assert search.closed.count_coverage().pairs.total == 0


def test_a_hunt_that_stops_after_three_trials_says_what_is_open() -> None:
    search = Search(POINTS)
    search.next([OWN.run(asked) for asked in search.next([])[:3]])
    points = search.closed.count_coverage().points
    assert points.held + points.open == points.total == 9
    assert search.closed.count_coverage().pairs.open > 0


@pytest.mark.slow
def test_five_thousand_sites_are_planned() -> None:
    points = [Point(site, rung) for site in range(5000) for rung in range(3)]
    search = Search(points)
    plans = search.next([])
    for _ in range(3):
        plans = search.next([PlanOutcome(asked, asked, (1 << 5000) - 1) for asked in plans])
    assert plans
    assert search.closed.count_coverage().points.total == 15000


@pytest.mark.parametrize("noisy", [False, True])
def test_every_point_a_cutter(noisy: bool) -> None:
    agent = Agent(OWN.classes, cuts=frozenset(product(range(SITES), range(MODES))))
    search = Search(POINTS, noisy=noisy)
    rounds = hunt(search, agent.run, 600)
    assert sum(map(len, rounds)) < 600
    assert search.closed.count_coverage().points.held == 9
    assert search.closed.count_coverage().pairs.held == 0


@pytest.mark.parametrize("noisy", [False, True])
def test_every_trial_fails(noisy: bool) -> None:
    search = Search(POINTS, noisy=noisy)
    rounds = hunt(search, lambda asked: PlanOutcome(asked, asked, 7, (Failure("rule"),)), 600)
    assert sum(map(len, rounds)) < 600
    assert all(one.points.bit_count() == 1 for one in search.causes)


def test_what_the_budget_left_unconfirmed_has_the_order_of_the_rules() -> None:
    # A set of texts has another order in every process. Of ten rules it is right by chance in one of 3,628,800.
    failures = tuple(Failure(f"rule-{n}", f"code-{n}") for n in range(10))
    search = Search(POINTS)
    (first, *_) = search.next([])
    search.next([PlanOutcome(first, first, 7, failures, "failed")])
    assert [one.failure for one in search.flaky] == list(failures)


def test_failures_that_never_repeat_are_flaky_and_the_hunt_ends() -> None:
    keys = iter(range(10**6))
    search = Search(POINTS)
    rounds = hunt(search, lambda asked: PlanOutcome(asked, asked, 7, (Failure(f"rule-{next(keys)}"),)), 600)
    assert search.causes == []
    assert sum(map(len, rounds)) <= 600


# -- shards --------------------------------------------------------------------------------------------------------
KEYED = [Point(one.site, one.rung, key=number * 7919 % 1009) for number, one in enumerate(POINTS)]


@pytest.mark.parametrize("of", [1, 2, 3, 5])
def test_every_point_and_every_pair_belongs_to_one_shard(of: int) -> None:
    portions = [Portion(KEYED, number, of) for number in range(of)]
    for one, other in combinations(range(len(KEYED)), 2):
        assert sum(portion.points >> one & 1 for portion in portions) == 1
        assert sum(portion.contains(plan(one)) for portion in portions) == 1
        for portion in portions:
            owned = portion.contains(plan(one, other))
            assert portion.find_partners(one) >> other & 1 == portion.find_partners(other) >> one & 1 == owned
        assert sum(portion.contains(plan(one, other)) for portion in portions) == 1


@given(agents, st.integers(2, 3))
@settings(max_examples=40, deadline=None)
def test_the_trials_of_all_shards_leave_little_to_do(agent: Agent, of: int) -> None:
    alone = Search(KEYED)
    hunt(alone, agent.run)
    outcomes = []
    for number in range(of):
        shard = Search(KEYED, shard=(number, of))
        hunt(shard, agent.run)
        outcomes += [one for one in shard.trials.outcomes if one not in outcomes]
    joined = Search(KEYED)
    plans = joined.next(outcomes)
    while plans:
        plans = joined.next([agent.run(one) for one in plans])
    # A hunt of pairs may meet three faults together by chance, and does not promise it.
    small = [{one.failure for one in search.causes if one.points.bit_count() < 3} for search in (joined, alone)]
    assert small[0] == small[1]
    assert joined.closed.count_coverage().points.open == alone.closed.count_coverage().points.open
    assert joined.closed.count_coverage().pairs.open == alone.closed.count_coverage().pairs.open
