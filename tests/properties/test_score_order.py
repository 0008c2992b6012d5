"""Aggregating as results come equals aggregating at the end, in any order; a violation never helps."""

from __future__ import annotations

from random import Random
from typing import Any, NamedTuple

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from holdfast.model.observation import FaultMet, Observation
from holdfast.model.scenario import Injection, Scenario
from holdfast.model.spec import AgentSpec, Aggregation, Invariant, Scoring, Spec
from holdfast.model.task import Task
from holdfast.model.trial import Trial
from holdfast.model.verdict import Verdict
from holdfast.plan import Plan, build_plan
from holdfast.score import ScoreOptions, Tally, score_contract
from holdfast.score.cell import count_needed, decide_prompt

# Busy machines are slow: time is no property of the code under test.
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

SCENARIOS = (
    Scenario("calm"),
    Scenario("tool", (Injection("tool", "search", "error"),)),
    Scenario("mixed", (Injection("llm", "*", "empty"), Injection("tool", "s*", "slow"))),
)
HOWS = [
    Aggregation(),
    Aggregation("any"),
    Aggregation("majority"),
    Aggregation("at_least", 1),
    Aggregation("rate", 0.6),
]
WHENS = ["always", "tool_faults_active", "llm_faults_active", "any_chaos_active", "no_chaos"]


class Result(NamedTuple):
    trial: Trial
    observation: Observation
    verdict: Verdict


rules = st.builds(
    Invariant,
    id=st.just(""),
    check=st.just("contains"),
    settings=st.just({"value": "x"}),
    severity=st.sampled_from(["critical", "high", "medium", "low"]),
    when=st.sampled_from(WHENS),
    probes=st.sampled_from([(), (), ("leak?", "again?")]),
    replica_aggregation=st.none() | st.sampled_from(HOWS),
)


@st.composite
def runs(draw: st.DrawFn) -> tuple[Spec, Plan, list[Result]]:
    """A small contract, and everything that one run of it gave."""
    some = draw(st.lists(rules, min_size=1, max_size=3))
    named = tuple(replace(rule, id=f"r{i}") for i, rule in enumerate(some))
    spec = Spec(
        path="c.yaml",
        agent=AgentSpec(),
        tasks=tuple(Task((f"q{i}",)) for i in range(draw(st.integers(1, 3)))),
        invariants=named,
        cell_rules=tuple(r.id for r in named if draw(st.booleans())),
        scenarios=SCENARIOS[: draw(st.integers(1, 3))],
        params=draw(st.sampled_from([({},), ({"m": 1}, {"m": 2})])),
        replicas=draw(st.integers(1, 3)),
        scoring=Scoring(replica_aggregation=draw(st.sampled_from(HOWS))),
    )
    made, rng = build_plan(spec), Random(draw(st.integers(0, 2**32)))
    return spec, made, [result for trial in made.trials for result in _results(rng, made, trial)]


def _results(rng: Random, made: Plan, trial: Trial) -> list[Result]:
    """Drawn by a seeded generator: hypothesis itself would need seconds for so many choices."""
    effects: list[Any] = ["met", "no_effect"]
    seen = Observation(
        trial.id,
        ledger=tuple(
            FaultMet(rng.randrange(3), "answer", "t", "m", 1, rng.choice(effects))
            for _ in range(rng.choice((0, 0, 1, 2)))
        ),
        calls=rng.choice([{}, {"search": 1}, {"llm:ask": 1}]),
        concurrent=rng.random() < 0.1,
        simulated=rng.random() < 0.1,
    )
    outcomes: list[Any] = ["pass", "pass", "pass", "fail", "error", "unproven"]
    return [
        Result(trial, seen, Verdict(trial.id, rule.id, rng.choice(outcomes), 0.0, f"{trial.id} {rule.id}"))
        for rule in made.get_rules(trial)
    ]


def tallied(spec: Spec, made: Plan, results: list[Result]) -> Tally:
    tally = Tally(spec, made)
    for result in results:
        tally.add(*result)
    return tally


@unhurried
@given(runs(), st.randoms(use_true_random=False))
def test_the_order_of_adding_never_changes_the_result(run, rng):
    spec, made, results = run
    shuffled = list(results)
    rng.shuffle(shuffled)
    one, other = tallied(spec, made, results), tallied(spec, made, shuffled)
    assert list(one.iter_cells()) == list(other.iter_cells())
    assert score_contract(one, ScoreOptions()) == score_contract(other, ScoreOptions())
    cut = rng.randrange(len(results) + 1)
    part, same_part = results[:cut], rng.sample(results[:cut], cut)
    assert list(tallied(spec, made, part).iter_cells()) == list(tallied(spec, made, same_part).iter_cells())


@unhurried
@given(runs(), st.randoms(use_true_random=False))
def test_cells_that_stop_once_decided_are_the_same_in_any_order(run, rng):
    spec, _, results = run
    made = build_plan(spec, sequential=True)
    shuffled = rng.sample(results, len(results))
    one, other = tallied(spec, made, results), tallied(spec, made, shuffled)
    assert list(one.iter_cells()) == list(other.iter_cells())
    assert score_contract(one, ScoreOptions()) == score_contract(other, ScoreOptions())


@unhurried
@given(runs())
def test_cells_decided_as_results_come_are_those_of_the_end(run):
    spec, made, results = run
    tally = Tally(spec, made)
    came = [cell for result in results if (cell := tally.add(*result)) is not None]
    at_end = [replace(c, fails_in_calm=False) for c in tally.iter_cells() if c.outcome != "n/a"]
    assert sorted(came, key=str) == sorted(at_end, key=str)
    assert len(came) == sum(made.is_applicable(key) for key in made.cells)
    assert tally.trials == len(made.trials)


@unhurried
@given(runs())
def test_streaming_equals_a_plain_count_over_all_verdicts(run):
    """The rules of combining written out once more, without any state."""
    spec, made, results = run
    cells = dict(zip(made.cells, tallied(spec, made, results).iter_cells(), strict=True))
    for key, cell in cells.items():
        if not made.is_applicable(key):
            assert cell.outcome == "n/a"
            continue
        rule, scenario = spec.get_invariant(key.invariant), spec.get_scenario(key.scenario)
        mine = [
            r
            for r in results
            if (r.verdict.invariant, r.trial.scenario.name, r.trial.params)
            == (key.invariant, key.scenario, spec.params[key.params])
        ]
        how = rule.replica_aggregation or spec.scoring.replica_aggregation
        prompts = []
        for task in made.get_tasks(rule.id):
            outcomes = [r.verdict.outcome for r in mine if r.trial.task == task]
            counts = [outcomes.count(o) for o in ("pass", "fail", "error")]
            prompts.append(decide_prompt(*counts, spec.replicas, count_needed(how, spec.replicas)))
        expected = next((o for o in ("fail", "error", "unproven") if o in prompts), "pass")
        planes = {"tool_faults_active": ("tool", "mcp"), "llm_faults_active": ("llm",)}.get(rule.when)
        met = any(
            f.effect == "met"
            and f.index < len(scenario.injections)
            and (planes is None or scenario.injections[f.index].plane in planes)
            for r in mine
            for f in r.observation.ledger
        )
        if expected == "pass" and not scenario.calm and not met:
            expected = "unproven"
        assert (cell.outcome, cell.met) == (expected, met)


@unhurried
@given(runs(), st.data())
def test_a_violated_verdict_never_raises_a_score(run, data):
    spec, made, results = run
    if not results:
        return
    at = data.draw(st.integers(0, len(results) - 1))
    hit = results[at]
    worse = [*results[:at], hit._replace(verdict=replace(hit.verdict, outcome="fail")), *results[at + 1 :]]
    before, after = (score_contract(tallied(spec, made, r), ScoreOptions(min_score=50))[0] for r in (results, worse))
    if before.value is not None and after.value is not None:
        assert after.value <= before.value
    assert before.exit_code != 1 or after.exit_code == 1


@unhurried
@given(runs())
def test_a_score_is_null_exactly_when_nothing_counted_and_never_minus_zero(run):
    spec, made, results = run
    found = score_contract(tallied(spec, made, results), ScoreOptions())[0]
    assert (found.value is None) == (found.judged == 0)
    assert str(found.value) != "-0.0"
    assert sum(found.counts.values()) == len(made.cells)
    assert found.total == len(made.cells) - found.counts["n/a"]
    assert found.passed == (found.exit_code == 0)
    if found.value is not None:
        assert found.interval is not None
        assert 0.0 <= found.interval.low <= found.value <= found.interval.high <= 100.0
        assert found.interval.low < found.interval.high
