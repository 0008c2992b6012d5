import pytest
from check_exhibits import exhibit, of_turns

from holdfast.checks.response.completes import Completes
from holdfast.model.observation import ENDINGS, Turn


def test_an_answer_completes():
    assert Completes().decide(exhibit("hi")).passed


@pytest.mark.parametrize("ending", [e for e in ENDINGS if e != "answered"])
def test_every_bad_ending_fails_even_with_partial_text(ending):
    finding = Completes().decide(exhibit("partial", ending=ending, detail="why it ended"))
    assert finding.passed is False
    assert ending in finding.reason
    assert "why it ended" in finding.reason


@pytest.mark.parametrize("text", [None, "", "  \n"])
def test_ending_well_without_text_does_not_complete(text):
    assert Completes().decide(of_turns(Turn("?", text))).passed is False


def test_a_bad_ending_of_an_earlier_turn_is_named():
    finding = Completes().decide(of_turns(Turn("a", "x", ending="http_error", detail="500"), Turn("b", "y")))
    assert finding.passed is False
    assert finding.reason == "turn 1 ended in http_error: 500"
