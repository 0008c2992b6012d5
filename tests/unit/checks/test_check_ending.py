from check_exhibits import exhibit, of_turns

from holdfast.checks.response.ending import Ending
from holdfast.model.fingerprint import compute_fingerprint
from holdfast.model.observation import Turn


def test_ending_one_of():
    rule = Ending(("answered", "http_error"))
    assert rule.decide(exhibit("x")).passed
    assert rule.decide(exhibit("", ending="http_error")).passed
    finding = rule.decide(exhibit("", ending="timeout", detail="after 30000 ms"))
    assert finding.passed is False
    assert (finding.code, finding.key) == ("ended-as", ("timeout", compute_fingerprint("after 30000 ms")))


def test_ending_reads_the_turn_under_judgement():
    turns = (Turn("a", "x", ending="timeout"), Turn("b", "y"))
    assert Ending(("timeout",)).decide(of_turns(*turns, judged=0)).passed
    assert Ending(("timeout",)).decide(of_turns(*turns, judged=1)).passed is False


def test_unknown_ending_is_a_problem_with_the_near_miss():
    ((field, message),) = Ending(("timeuot",)).problems()
    assert field == "one_of[0]"
    assert "did you mean timeout?" in message
    assert [field for field, _ in Ending(()).problems()] == ["one_of"]
    assert not list(Ending(("timeout",)).problems())
