import pytest
from check_exhibits import exhibit

from error_code import has_code
from holdfast.checks import patterns
from holdfast.checks.response.regex import Regex
from holdfast.errors import HarnessError


def test_regex_searches_anywhere_and_marks_the_match():
    finding = Regex("(?i)(source|according to)").decide(exhibit("Up, According to it."))
    assert finding.passed
    assert finding.marks == ((4, 16),)


def test_regex_dot_matches_line_breaks():
    assert Regex("a.b").decide(exhibit("a\nb")).passed


def test_regex_minds_case_unless_told():
    assert Regex("source").decide(exhibit("SOURCE")).passed is False


def test_reason_of_a_miss_shows_the_pattern():
    finding = Regex("(?i)(source|according to)").decide(exhibit("Up."))
    assert finding.code == "pattern-missing"


@pytest.mark.parametrize("pattern", ["(", "[a", "*a", "(?P<x>a)(?P<x", "a{2,1}", ""])
def test_bad_regex_is_a_problem(pattern):
    assert [field for field, _ in Regex(pattern).problems()] == ["pattern"]


def test_good_regex_has_no_problems_and_no_lint():
    rule = Regex(r"\$[\d,]+\.\d{2}")
    assert not list(rule.problems())
    assert not list(rule.lint())


def test_regex_that_matches_every_answer_is_linted():
    assert [code for code, _, _ in Regex("a*").lint()] == ["lint-matches-anything"]


def test_pattern_over_its_time_limit_is_an_error_of_ours(monkeypatch):
    monkeypatch.setattr(patterns, "LIMIT_S", 0.05)
    with pytest.raises(HarnessError, check=has_code("check-timeout")):
        Regex(r"^(a|aa)+$").decide(exhibit("a" * 60 + "b"))


def test_the_limit_is_two_seconds():
    assert patterns.LIMIT_S == 2.0


def test_patterns_are_compiled_once():
    assert patterns.compile_pattern("abc", "s") is patterns.compile_pattern("abc", "s")
    assert patterns.compile_pattern("abc", "s") is not patterns.compile_pattern("abc", "i")
