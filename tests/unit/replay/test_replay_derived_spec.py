"""Sessions to the spec that replays them: tasks, and rules of one contract or several."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET
from msgspec.structs import replace
from replay_kit import answered, session

from error_code import has_code
from holdfast.errors import NothingProven, SpecError, UserError
from holdfast.model.scenario import Injection, Scenario
from holdfast.model.session import RecordedSession
from holdfast.model.spec import Spec
from holdfast.model.task import DialogueMessage, Recording
from holdfast.model.world import Forbidden, WorldSpec
from holdfast.plan import build_plan
from holdfast.replay.derived_spec import build_spec, derive_spec, list_unjudged
from holdfast.replay.foreign_trace import SessionsFound
from holdfast.spec import LoadOptions, load

FAILED = answered("search", "down", 503)
RULES = """
    - {id: always, type: completes, description: d}
    - {id: faults, type: completes, description: d, when: tool_faults_active}
    - {id: chaos, type: completes, description: d, when: any_chaos_active}
    - {id: calm, type: completes, description: d, when: no_chaos}
    - {id: models, type: completes, description: d, when: llm_faults_active}
    - {id: probing, type: completes, description: d, probes: [p]}
"""


@pytest.fixture
def spec(tmp_path: Path) -> Spec:
    return made(tmp_path, RULES)


def made(tmp_path: Path, rules: str) -> Spec:
    (tmp_path / "agent.py").write_text("def search(q): return q\ndef ask(prompt): return search(prompt)\n")
    (tmp_path / "holdfast.yaml").write_text(
        'agent: {type: python, endpoint: "agent:ask", tools: ["agent:search"]}\ngolden_prompts: [hello]\n'
        f"contract:\n  name: Shop\n  invariants:{rules}  chaos_matrix: [{{name: calm}}]\n"
    )
    return load(tmp_path / "holdfast.yaml", environ={}, options=LoadOptions(part="replay"))[0]


def judged_by(derived: Spec, id: str) -> list[str]:
    """The rules that judge a session."""
    task = next(one for one in derived.tasks if one.recording is not UNSET and one.recording.session == id)
    return [rule.id for rule in derived.invariants if rule.is_judging(task)]


def test_a_session_is_a_task_with_its_context_and_its_recording(spec: Spec) -> None:
    before = (DialogueMessage("assistant", "How can I help?"),)
    one = session("a", "one", "two", context=before, responses=(FAILED,), expected_failure="broke", name="A")
    derived = build_spec(spec, [one], live=True)
    (task,) = derived.tasks
    assert (task.kind, task.turns, task.context) == ("replay", ("one", "two"), before)
    assert task.recording == Recording("a", (FAILED,), True, "A", "broke", "replay")
    assert (derived.part, derived.matrix, derived.cell_rules) == ("replay", False, ())
    assert [scenario.name for scenario in derived.scenarios] == ["replay"]
    assert derived.scenarios[0].calm


def test_a_recorded_failure_is_a_tool_fault(spec: Spec) -> None:
    derived = build_spec(spec, [session("calm"), session("failed", responses=(FAILED,))], live=False)
    assert judged_by(derived, "calm") == ["always", "calm"]
    assert judged_by(derived, "failed") == ["always", "faults", "chaos"]
    assert {rule.when for rule in derived.invariants} == {"always"}


@pytest.mark.parametrize("rule", ["gone", "calm", "probing", "forbidden http_except"])
def test_a_session_needs_the_rules_that_it_failed(spec: Spec, rule: str) -> None:
    one = session("a", responses=(FAILED,), failed_rules=("always", rule))
    with pytest.raises(UserError, check=has_code("session-rule-missing")) as refused:
        build_spec(spec, [one], live=False)
    assert f"failed rule {rule} " in str(refused.value)


def test_a_session_has_the_rules_that_it_failed(spec: Spec) -> None:
    forbidding = replace(spec, world=WorldSpec(forbidden=Forbidden(http_except=())))
    one = session("a", responses=(FAILED,), failed_rules=("always", "faults", "forbidden http_except"))
    assert len(build_spec(forbidding, [one], live=False).tasks) == 1


def test_the_faults_of_a_session_are_its_weather_and_what_when_sees(spec: Spec) -> None:
    def weather(*planes: Any) -> Scenario:
        return Scenario("storm", tuple(Injection(plane, "*", "error") for plane in planes))

    sessions = [
        session("calm", scenario=weather(), seed=1),
        session("tools", scenario=weather("tool"), seed=2),
        session("models", scenario=weather("llm"), seed=3),
        session("input", scenario=weather("context"), seed=4),
        session("both", scenario=weather("llm"), responses=(FAILED,), seed=5),
        session("calm failure", responses=(FAILED,), scenario=weather(), seed=6),
        session("written", responses=(FAILED,)),
        session("plain"),
    ]
    derived = build_spec(spec, sessions, live=False)
    assert {one.id: judged_by(derived, one.id) for one in sessions} == {
        "calm": ["always", "calm"],
        "tools": ["always", "faults", "chaos"],
        "models": ["always", "chaos", "models"],
        "input": ["always", "chaos"],
        "both": ["always", "chaos", "models"],
        "calm failure": ["always", "calm"],
        "written": ["always", "faults", "chaos"],
        "plain": ["always", "calm"],
    }
    trials = [(one.scenario.name, one.task.recording) for one in build_plan(derived).trials]
    asked = [(scenario, recording.session) for scenario, recording in trials if recording is not UNSET]
    storms = [(f"replay/{name}", name) for name in ("tools", "models", "input", "both")]
    assert asked == [*(("replay", name) for name in ("calm", "calm failure", "written", "plain")), *storms]
    drawn = {recording.session: recording.seed for _, recording in trials if recording is not UNSET}
    own = {"calm": 1, "tools": 2, "models": 3, "input": 4, "both": 5, "calm failure": 6}
    assert drawn == {**own, "written": None, "plain": None}


def test_a_session_may_name_another_contract_from_where_it_lies(spec: Spec, tmp_path: Path) -> None:
    (tmp_path / "replays").mkdir()
    (tmp_path / "other.yaml").write_text(
        "contract: {name: Other, invariants: [{id: always, type: completes}, {id: more, type: completes}]}\n"
    )
    there = session("there", contract="../other.yaml", file=str(tmp_path / "replays/s.yaml"))
    inline = session("inline", contract="other.yaml")
    named = session("named", contract="Shop")
    own = session("own", contract="../holdfast.yaml", file=str(tmp_path / "replays/s.yaml"))
    derived = build_spec(spec, [there, inline, named, own], live=False)
    assert judged_by(derived, "there") == judged_by(derived, "inline") == ["always [Other]", "more"]
    assert judged_by(derived, "named") == judged_by(derived, "own") == ["always", "calm"]


def test_two_contracts_of_one_name_keep_their_rules_apart(spec: Spec, tmp_path: Path) -> None:
    for name in ("one.yaml", "two.yaml"):
        (tmp_path / name).write_text("contract: {name: Other, invariants: [{id: always, type: completes}]}\n")
    sessions = [session("a", contract="one.yaml"), session("b", contract="two.yaml"), session("c")]
    derived = build_spec(spec, sessions, live=False)
    assert judged_by(derived, "a") == ["always [Other]"]
    assert judged_by(derived, "b") == ["always [Other 2]"]


def test_a_script_of_another_contract_lies_next_to_it(spec: Spec, tmp_path: Path) -> None:
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules/other.yaml").write_text(
        "contract: {name: Other, invariants: [{id: s, type: custom, script: judge.py}]}\n"
    )
    derived = build_spec(spec, [session("a", contract="rules/other.yaml")], live=False)
    assert derived.invariants[0].settings["script"] == "rules/judge.py"


@pytest.mark.parametrize(
    ("contract", "hint"),
    [("Shpo", "did you mean Shop?"), ("othr.yaml", "did you mean other.yaml?"), ("zzz", "'Shop'")],
)
def test_a_contract_that_nobody_knows_is_an_error_with_the_near_miss(
    spec: Spec, tmp_path: Path, contract: str, hint: str
) -> None:
    (tmp_path / "other.yaml").write_text("contract: {name: Other, invariants: [{id: a, type: completes}]}\n")
    with pytest.raises(UserError, check=has_code("session-unusable")) as refused:
        build_spec(spec, [session("a", contract=contract, line=7)], live=False)
    assert hint in refused.value.hint
    assert ":7:" in str(refused.value)


def test_a_contract_file_without_a_contract_is_refused_with_its_place(spec: Spec, tmp_path: Path) -> None:
    (tmp_path / "other.yaml").write_text("agent: {}\n")
    with pytest.raises(SpecError):
        build_spec(spec, [session("a", contract="other.yaml")], live=False)


def test_two_sessions_of_one_id_are_refused(spec: Spec) -> None:
    twins = [session("a", file="one.yaml", line=1), session("a", file="two.yaml", line=3)]
    with pytest.raises(UserError, check=has_code("session-unusable")):
        build_spec(spec, twins, live=False)


def test_a_session_that_no_rule_judges_is_not_a_task_and_is_named(tmp_path: Path) -> None:
    spec = made(tmp_path, "\n    - {id: faults, type: completes, description: d, when: tool_faults_active}\n")
    sessions = [session("calm"), session("failed", responses=(FAILED,))]
    derived = build_spec(spec, sessions, live=False)
    assert [one.recording.session for one in derived.tasks if one.recording is not UNSET] == ["failed"]
    assert list_unjudged(derived, sessions) == ("calm",)
    _, warnings = derive_spec(spec, SessionsFound(tuple(sessions)), live=False)
    assert [(one.code, "calm" in one.text) for one in warnings] == [("session-idle", True)]


@pytest.mark.parametrize("sessions", [(), (session("calm"),)])
def test_where_no_session_decides_nothing_is_proven(tmp_path: Path, sessions: tuple[RecordedSession, ...]) -> None:
    spec = made(tmp_path, "\n    - {id: faults, type: completes, description: d, when: tool_faults_active}\n")
    with pytest.raises(NothingProven):
        derive_spec(spec, SessionsFound(sessions), live=False)


def test_a_recorded_tool_that_is_not_declared_any_more_is_named_with_the_near_miss(spec: Spec) -> None:
    tools = (answered("serch", 1), answered("search", 1), answered("https://x/*", 1), answered("srv/tool", 1))
    _, warnings = derive_spec(spec, SessionsFound((session("a", responses=tools),)), live=False)
    (unknown,) = [one.text for one in warnings if one.code == "session-unknown-tool"]
    assert ("serch" in unknown, "search" in unknown) == (True, True)
