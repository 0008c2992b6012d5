"""Rules that pass because nothing called their tool."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from golden_words import Golden
from holdfast.model.observation import Observation, Turn
from holdfast.model.scenario import Scenario
from holdfast.model.spec import AgentSpec, Invariant, Spec
from holdfast.model.task import RecordedUse, Task
from holdfast.model.trace import Cost, TraceEvent
from holdfast.model.trial import Trial
from holdfast.model.world import Isolation
from holdfast.runner.across_trials import DIFFERS, SESSION_NOTES, CalledTools, CalmAnswers, Conditions
from planes_kit import answer, replay


def warned(rule: Invariant, *called: str) -> list[str]:
    tools = CalledTools(Spec("spec.yaml", AgentSpec(), "s", invariants=(rule,)))
    for name in called:
        tools.add(Observation("t", trace=(TraceEvent(0, "tool_call", name), TraceEvent(0, "llm_call", "some-model"))))
    return [warning.text for warning in tools.build_warnings()]


ORDERED = Invariant("refunds", "only_after", {"tool": "isue_refund", "requires": "lookup"})


def test_a_tool_that_no_trial_called_is_named_with_those_that_were() -> None:
    (text,) = warned(ORDERED, "lookup", "issue_refund")
    assert "isue_refund" in text
    assert "issue_refund, lookup" in text


def test_each_name_of_the_rule_counts() -> None:
    assert len(warned(ORDERED)) == 2
    assert warned(ORDERED, "lookup", "isue_refund") == []


@pytest.mark.parametrize(
    "rule",
    [
        Invariant("never", "tool_not_called", {"tool": "drop_table"}),
        Invariant("asks", "tool_called", {"tool": "search"}),
        Invariant("says", "contains", {"value": "x"}),
    ],
)
def test_rules_that_forbid_calls_or_fail_without_them_are_left_alone(rule: Invariant) -> None:
    assert warned(rule, "lookup") == []


def test_a_forbidden_tool_that_looks_like_one_that_was_called_is_suspect() -> None:
    (text,) = warned(Invariant("never", "tool_not_called", {"tool": "isue_refund"}), "issue_refund")
    assert "isue_refund" in text


# Answers of one prompt in calm, compared after the run.


class OneCalm:
    """A spec with one calm scenario and one that is not."""

    class Weather:
        def __init__(self, name: str, calm: bool) -> None:
            self.name = name
            self.calm = calm

    scenarios = (Weather("calm", True), Weather("storm", False))


def trial(scenario: str = "calm", prompt: str = "?", kind: str = "contract") -> Trial:
    return Trial("0", kind, Scenario(scenario), Task((prompt,)))  # type: ignore[arg-type]


def seen(text: str | None, error: str = "") -> Observation:
    return Observation("0", (Turn("?", text),), error=error)


@pytest.mark.parametrize(
    ("asked", "warns"),
    [
        ([(trial(), seen("a")), (trial(), seen("a"))], False),
        ([(trial(), seen("a")), (trial(), seen("b"))], True),
        ([(trial(kind="control", scenario=""), seen("a")), (trial(), seen("b"))], True),
        ([(trial(), seen("a")), (trial("storm"), seen("b"))], False),
        ([(trial(), seen("a")), (trial(prompt="!"), seen("b"))], False),
        ([(trial(), seen("a")), (trial(), seen(None))], False),
        ([(trial(), seen("a")), (trial(), seen("b", "our side"))], False),
    ],
)
def test_two_answers_to_one_prompt_in_calm_are_reported(asked: list[tuple[Trial, Observation]], warns: bool) -> None:
    answers = CalmAnswers(OneCalm())  # type: ignore[arg-type]
    for one, observation in asked:
        answers.add(one, observation)
    assert bool(answers.warning) is warns


@pytest.mark.parametrize(("billed", "warns"), [(True, False), (False, True)])
def test_an_agent_whose_model_samples_is_not_told_of_it(billed: bool, warns: bool) -> None:
    call = TraceEvent(0.0, "llm_call", cost=Cost(model="m", billed=billed))
    answers = CalmAnswers(OneCalm())  # type: ignore[arg-type]
    for text in ("a", "b"):
        answers.add(trial(), replace(seen(text), trace=(call,)))
    assert bool(answers.warning) is warns


# What the worlds of a run have in common.


def test_a_promise_that_one_trial_did_not_keep_is_not_kept() -> None:
    found = Conditions([Isolation("old", True)])
    found.add(Observation("a", isolation=(Isolation("network", True),), notes=("db: 15", "late")))
    found.add(Observation("b", isolation=(Isolation("network", False, "no kernel"),), notes=("db: 15",)))
    found.add(Observation("c", isolation=(Isolation("network", True),), notes=("db: 15", "other")))
    assert found.isolation == (Isolation("old", True), Isolation("network", False, "no kernel"))
    assert found.background == ("db: 15",)


def test_what_each_trial_says_for_itself_is_not_said_of_all() -> None:
    found = Conditions()
    for port in (3000, 41237, 3000):
        found.add(Observation("a", isolation=(Isolation("ingress", True, f"port {port}"), Isolation("mounts", True))))
    assert found.isolation == (Isolation("ingress", True, DIFFERS), Isolation("mounts", True))
    again = Conditions(found.isolation)
    again.add(Observation("b", isolation=(Isolation("ingress", True, "port 3000"),)))
    assert again.isolation == found.isolation


def test_trials_without_a_world_say_nothing() -> None:
    found = Conditions()
    found.add(Observation("a", notes=("a late answer was dropped",)))
    assert (found.isolation, found.notes) == ((), ())


def test_an_ending_that_all_trials_share_is_said_once(golden: Golden) -> None:
    world = (Isolation("network", True),)
    bad, good = Turn("hi", None, 1.0, "crashed", "exit code 1: no module"), Turn("hi", "yes")
    found = Conditions()
    found.add(Observation("a", turns=(bad,), isolation=world))
    assert found.notes == ()  # one trial says it itself
    found.add(Observation("b", turns=(bad,), isolation=world))
    golden(found.notes[0])
    for turns in ((good,), (bad,), (bad,)):
        found.add(Observation("c", turns=turns, isolation=world))
    assert found.notes == ()


def test_what_sessions_lacked_is_said_of_the_whole_each_once(golden: Golden) -> None:
    conditions, task = Conditions(), replay(answer("weather", 1))
    for _ in range(3):
        conditions.note_replay(task, Observation("t", recorded=(RecordedUse("book", 0, "tool", 0, "book(seat=4)"),)))
    golden(conditions.notes)


def test_an_agent_cannot_fill_the_report_of_the_whole() -> None:
    conditions = Conditions()
    for n in range(SESSION_NOTES + 10):
        conditions.note_replay(replay(), Observation("t", recorded=(RecordedUse("t", 0, "tool", 0, f"t({n})"),)))
    assert len(conditions.notes) == SESSION_NOTES
