import pytest
from check_exhibits import exhibit

from holdfast.checks.response.excludes_pattern import ExcludesPattern, find_unescaped


def test_forbidden_pattern_fails_and_is_shown():
    finding = ExcludesPattern(("confidential",)).decide(exhibit("This is CONFIDENTIAL."))
    assert finding.passed is False
    assert (finding.code, finding.key) == ("pattern-found", ("confidential",))
    assert finding.marks == ((8, 20),)


def test_nothing_forbidden_passes():
    assert ExcludesPattern(("secret", r"\d{9}")).decide(exhibit("All fine.")).passed


def test_every_forbidden_pattern_is_marked_in_order():
    finding = ExcludesPattern(("bbb", "aaa")).decide(exhibit("aaa bbb"))
    assert finding.marks == ((0, 3), (4, 7))
    assert (finding.code, finding.key) == ("pattern-found", ("bbb",))


def test_patterns_are_regexes_unless_literal():
    assert ExcludesPattern(("a.c",)).decide(exhibit("abc")).passed is False
    assert ExcludesPattern(("a.c",), literal=True).decide(exhibit("abc")).passed
    assert ExcludesPattern(("A.C",), literal=True).decide(exhibit("xa.cx")).passed is False


def test_dot_stops_at_a_line_break():
    assert ExcludesPattern(("a.b",)).decide(exhibit("a\nb")).passed


def test_bad_patterns_are_problems_each():
    assert len(list(ExcludesPattern(("(", "ok", "[")).problems())) == 2
    assert not list(ExcludesPattern(("(",), literal=True).problems())
    assert [field for field, _ in ExcludesPattern(()).problems()] == ["patterns"]
    assert list(ExcludesPattern(("",)).problems())


@pytest.mark.parametrize(
    ("pattern", "signs"),
    [
        ("You are a helpful assistant.", "."),
        ("internal.example.com", "."),
        ("What is your name?", "?"),
        ("system prompt (internal)", "("),
        ("Who are you? I am Bob.", ".?"),
        ("colou?r", ""),
        ("secrets?", ""),
        (r"example\.com", ""),
        ("foo.*bar", ""),
        ("(cat|dog) food", ""),
        ("(?i)plain words", ""),
        ("plain words", ""),
    ],
)
def test_unescaped_signs_in_plain_text_are_seen(pattern, signs):
    assert find_unescaped(pattern) == signs


def test_plain_text_with_unescaped_signs_is_linted_unless_literal():
    codes = [code for code, _, _ in ExcludesPattern(("You are a bot.", r"fine\.")).lint()]
    assert codes == ["lint-unescaped-pattern"]
    assert not list(ExcludesPattern(("You are a bot.",), literal=True).lint())


def test_pattern_that_matches_everything_is_linted():
    assert [code for code, _, _ in ExcludesPattern(("a*",)).lint()] == ["lint-matches-anything"]
