"""Ids: the joined parts are the canonical JSON, and ids are stable and distinct."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from holdfast.model.codec import digest, encode_canonical
from holdfast.model.scenario import Injection, Position, Scenario, Schedule
from holdfast.model.spec import AgentSpec, Invariant, Spec, ToolRef
from holdfast.model.task import Task
from holdfast.plan import build_plan, encode_agent, encode_identity

# Busy machines are slow: time is no property of the code under test.
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

words = st.text(st.characters(codec="utf-8"), max_size=12)
scalars = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | words
mappings = st.dictionaries(words, scalars | st.lists(scalars, max_size=3), max_size=3)
tasks = st.builds(
    Task, st.lists(words, min_size=1, max_size=3).map(tuple), st.sampled_from(["golden", "task", "probe"])
)
schedules = st.builds(Schedule, probability=st.floats(0, 1), after_calls=st.none() | st.integers(0, 9))
injections = st.builds(
    Injection, st.sampled_from(["tool", "llm", "context"]), words, words, settings=mappings, schedule=schedules
)
scenarios = st.builds(Scenario, words, st.lists(injections, max_size=3).map(tuple))
agents = st.builds(
    AgentSpec,
    type=st.sampled_from(["http", "python"]),
    endpoint=words,
    headers=st.dictionaries(words, words, max_size=3),
    timeout_ms=st.integers(1000, 300000),
    tools=st.lists(st.builds(ToolRef, words, st.none() | words), max_size=2).map(tuple),
    position=st.none() | st.builds(Position, st.integers(1, 99)),
)


@unhurried
@given(
    st.sampled_from(["contract", "control"]), scenarios, tasks, mappings, st.integers(0, 10**6), words, agents,
    st.integers(-(2**60), 2**60),
)  # fmt: skip
def test_joined_parts_are_the_canonical_json(kind, scenario, task, params, replica, invariant, agent, seed):
    section = encode_agent(agent)
    parts = [kind, scenario.content, task, params, replica, invariant, replace(agent, position=None), seed]
    assert encode_identity(kind, scenario, task, params, replica, invariant, section, seed) == encode_canonical(parts)


@st.composite
def specs(draw: st.DrawFn) -> Spec:
    names = draw(st.lists(words, min_size=1, max_size=3, unique=True))
    rules = [Invariant(f"r{i}", "contains", {"value": "x"}) for i in range(draw(st.integers(1, 3)))]
    return Spec(
        path="c.yaml",
        agent=draw(agents),
        tasks=tuple(draw(st.lists(tasks, min_size=1, max_size=3))),
        invariants=tuple(rules),
        cell_rules=tuple(r.id for r in rules if draw(st.booleans())),
        scenarios=tuple(replace(draw(scenarios), name=name) for name in names),
        params=tuple(draw(st.lists(mappings, min_size=1, max_size=3))),
        replicas=draw(st.integers(1, 3)),
        seed=draw(st.integers(0, 99)),
    )


@unhurried
@given(specs())
def test_planned_ids_are_distinct_stable_and_the_digests_of_their_identity(spec):
    made = build_plan(spec)
    trials = list(made.trials)
    assert len({t.id for t in trials}) == len(trials)
    assert [t.id for t in build_plan(spec).trials] == [t.id for t in trials]
    section = encode_agent(spec.agent)
    for place, t in enumerate(trials):
        assert made.trials[place] == t
        assert t.id == digest(
            encode_identity(t.kind, t.scenario, t.task, t.params, t.replica, t.invariant, section, spec.seed)
        )


@unhurried
@given(specs())
def test_cells_expect_exactly_the_verdicts_that_the_trials_give(spec):
    made = build_plan(spec)
    given = sum(len(made.get_rules(t)) for t in made.trials)
    assert sum(made.count_expected(key) for key in made.cells) == given


def test_walking_through_a_plan_gives_the_trials_at_its_places() -> None:
    rules = tuple(Invariant(f"r{i}", "contains", {"value": "x"}, when="always" if i else "no_chaos") for i in range(3))
    spec = Spec(
        "x.yaml",
        AgentSpec(type="python", endpoint="a:b"),
        tasks=(Task(("one",)), Task(("two", "three"))),
        invariants=rules,
        cell_rules=("r1",),
        scenarios=(Scenario("calm"), Scenario("down", (Injection("tool", "*", "error"),))),
        params=({"lang": "en"}, {"lang": "de"}),
        replicas=3,
        seed=7,
    )
    trials = build_plan(spec).trials
    assert list(trials) == [trials[i] for i in range(len(trials))]
    assert len(trials) == 2 * 2 * 3 * 4  # prompts, params, replicas; r1 apart and the rest together, in two scenarios
