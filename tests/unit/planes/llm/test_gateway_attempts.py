"""Repetitions of a client library are told apart from the agent's own calls."""

from holdfast.planes.llm.attempts import Attempts


def attempt(attempts, body, told=None, *, well=True):
    key, retry = attempts.which(told, body)
    attempts.ended(key, retry, well=well)
    return retry


def test_a_library_that_counts_is_believed():
    attempts = Attempts()
    assert [attempt(attempts, b"x", told, well=False) for told in ("0", "1", "2")] == [0, 1, 2]
    assert attempt(attempts, b"x", "0") == 0  # the same again, by the agent itself


def test_the_same_body_after_a_failure_is_a_repetition():
    attempts = Attempts()
    assert attempt(attempts, b"x", well=False) == 0
    assert attempt(attempts, b"x", well=False) == 1
    assert attempt(attempts, b"x") == 2


def test_the_same_body_after_a_success_is_a_call_of_its_own():
    attempts = Attempts()
    assert [attempt(attempts, b"x"), attempt(attempts, b"x")] == [0, 0]


def test_another_body_is_another_call():
    attempts = Attempts()
    assert [attempt(attempts, b"x", well=False), attempt(attempts, b"y")] == [0, 0]


def test_a_counter_that_is_not_one_is_not_believed():
    attempts = Attempts()
    assert attempt(attempts, b"x", "many", well=False) == 0
    assert attempt(attempts, b"x", "99999999999") == 1000
