import pytest
from check_exhibits import exhibit, of_turns

from holdfast.checks.response.completes import Completes
from holdfast.judge.judge import Judge
from holdfast.model.observation import ENDINGS, Observation, Turn
from holdfast.model.scenario import Scenario
from holdfast.model.spec import AgentSpec, Invariant, Spec
from holdfast.model.task import Task
from holdfast.model.trial import Trial


def test_an_answer_completes():
    assert Completes().decide(exhibit("hi")).passed


@pytest.mark.parametrize("ending", [e for e in ENDINGS if e != "answered"])
def test_every_bad_ending_fails_even_with_partial_text(ending):
    finding = Completes().decide(exhibit("partial", ending=ending, detail="why it ended"))
    assert finding.passed is False
    assert (finding.code, finding.key[0]) == ("ended-as", ending)
    assert "why it ended" in finding.reason


@pytest.mark.parametrize("text", [None, "", "  \n"])
def test_ending_well_without_text_does_not_complete(text):
    assert Completes().decide(of_turns(Turn("?", text))).passed is False


ANSWERED, SILENT, BROKEN = Turn("a", "x"), Turn("b", " "), Turn("c", "x", ending="http_error", detail="500")


@pytest.mark.parametrize(
    ("turns", "outcome", "decides"),
    [
        ((ANSWERED, ANSWERED), "pass", 0),
        ((ANSWERED, SILENT, ANSWERED), "fail", 1),
        ((BROKEN, ANSWERED), "fail", 0),
        ((ANSWERED, SILENT), "fail", 1),
    ],
)
def test_every_turn_must_complete(turns, outcome, decides):
    assert judged("completes", turns) == (outcome, decides)
    opposite = {"pass": "fail", "fail": "pass"}[outcome]
    assert judged("completes", turns, negate=True) == (opposite, decides if outcome == "fail" else 0)


def test_over_last_looks_at_the_last_turn_alone():
    assert judged("completes", (SILENT, ANSWERED), over="last") == ("pass", 1)


@pytest.mark.parametrize(("over", "outcome"), [(None, "fail"), ("last", "pass"), ("any", "pass")])
def test_the_slowest_turn_counts_for_latency(over, outcome):
    turns = (Turn("a", "x", latency_ms=900.0), Turn("b", "y", latency_ms=10.0))
    assert judged("latency", turns, over=over, settings={"max_ms": 500})[0] == outcome


def judged(check, turns, **rule):
    invariant = Invariant("r", check, **rule)
    spec = Spec("c.yaml", AgentSpec(), invariants=(invariant,))
    trial = Trial("t", "contract", Scenario("calm"), Task(("?",) * len(turns)))
    verdict = Judge(spec).judge(invariant, trial, Observation(trial="t", turns=turns))
    return verdict.outcome, verdict.turn
