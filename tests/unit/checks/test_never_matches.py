"""Patterns that can never match, and what each check makes of one."""

from __future__ import annotations

import pytest
from check_exhibits import exhibit

from holdfast.checks.never_matches import never_matches
from holdfast.checks.patterns import search, why_never
from holdfast.checks.response.excludes_pattern import ExcludesPattern
from holdfast.checks.response.regex import Regex
from holdfast.checks.response.system_prompt_leak_probe import SystemPromptLeakProbe
from holdfast.checks.response.valid_json import ValidJson
from holdfast.errors import NothingToJudge
from holdfast.judge.rule import RuleJudge
from holdfast.model.observation import Observation, Turn
from holdfast.model.spec import Invariant

PRINTED = r"\\$[\\d,]+\\.\\d{2}"
MENDED = r"\$[\d,]+\.\d{2}"

DEAD = [
    PRINTED, "$a", "a^", r"a\A", r"\Za", r"a\bb", "(?!)", "(?=a)b", r"[^\s\S]", r"[^\w\W]x", "a(?:$b|^c|(?!))",
    r"(?:a\bb)+", "(?<=a)^", "(?<!a)(?<=a)b", "x(?!y)y", r"$\n\n", r"\b\B", "(?:^a){2}", "(?i)a(?=b)C", r"\w\b\w",
    r"(?=\d)\D", r"^\\$\\d", "(?m)$a", "(?m)a^", "(?=[a-f])[g-z]", r"(?=\s)\w", "(?![a-z])[a-z]+", r"(?!$)\Z",
    "$(?=a)", r"\\$\d{1,3}(,\d{3})*", "(?>a^)", "(a)?(?(1)$x|^y)z^", "(?:a{3,5}^)+?", r"(?s:$)(?i:[^\n])",
]  # fmt: skip
LIVE = [
    "a$", "$", "^", r"$\n", r"$\n?$", "a*^b", r"(?m)$\na", r"(?m)a\n^b", r"\ba", r"a\b", r"a\b.b", r"(?=a)\w", r"[^\s]",
    "(?i)(?=k)\u212a", "(?i)(?=\u017f)s", r"(a)\1\b", "(?<=a)b", "(?<!a)b", "(?!ab)a", "(?!a*+a)a", "a?^b", "(?:a|^)b",
    "(?:foo){e<=1}$x", r"\B", r"(?!\B)", "(?!(?:a|b)c)a", r"\\$", r"\\$\s", "(x)?(?(1)$a|b)", "a{0}^b", r"\s\b",
    r"(?a)é\bf", r"(?a)(?=é)\W", "(?i)(?=É)é", r"[一-龥]\b。", "(?:(?=a))*b", "(?x)$ a", r"[[:alpha:]]\b.", r"\p{L}^",
    r"\\d+\\.\\d{2}", r"a ?\bb", r"a(?:b|-)?\bc", r"ab{2,3} {0,1}\bc",
]  # fmt: skip


@pytest.mark.parametrize("pattern", DEAD)
def test_a_dead_pattern_is_proven_dead(pattern):
    assert never_matches(pattern)


@pytest.mark.parametrize("flags", ["", "s", "i"])
@pytest.mark.parametrize("pattern", LIVE)
def test_a_pattern_that_could_match_is_not(pattern, flags):
    assert not never_matches(pattern, flags)


def test_flags_count():
    assert never_matches(r"$.")
    assert not never_matches(r"$.", "s")
    assert never_matches("(?=a)A")
    assert not never_matches("(?=a)A", "i")


def test_a_pattern_too_large_to_be_proven_could_match():
    assert not never_matches("(?:a|b|c|d|e|f|g|h)?" * 3000 + "$a")


def test_the_mended_pattern_is_told():
    assert why_never(PRINTED, "s").endswith(f"its backslashes are doubled; write {MENDED}")
    assert "write" not in why_never(r"a\bb")


@pytest.mark.parametrize(
    ("pattern", "why", "mended"),
    [
        ("$foo", "$ is the end of the text", r"\$foo"),
        ("costs $5, or $6", "$ is the end of the text", r"costs \$5, or \$6"),
        (r"[$]\$$5", "$ is the end of the text", r"[$]\$\$5"),
        ("a^b", "^ is the start of the text", r"a\^b"),
        ("a^", "^ is the start of the text", r"a\^"),
    ],
)
def test_a_sign_that_was_meant_as_it_is_is_told_of(pattern, why, mended):
    assert why_never(pattern).endswith(f": {why}; write {mended}")
    assert search(mended, pattern.replace("\\", "").replace("[$]", "$"), "") is not None


def test_a_pattern_that_can_never_match_is_unproven():
    with pytest.raises(NothingToJudge, match="can never match"):
        search(PRINTED, "anything", "s")


def test_a_pattern_that_is_forbidden_by_its_check_and_asked_for_by_the_rule_has_a_fitting_reason():
    outcome, found = judged("excludes_pii", "hello", negate=True)
    assert (outcome, found.reason) == (
        "fail",
        "no personal data found, and this rule, being negated, asks for the opposite",
    )


def judged(check: str, text: str, *, negate: bool = False, **settings):
    rule = RuleJudge(Invariant("r", check, settings=settings, negate=negate), 1000)
    turn = Turn("?", text=text)
    return rule.turn(turn, Observation(trial="t", turns=(turn,)), None)


@pytest.mark.parametrize("negate", [False, True])
@pytest.mark.parametrize(
    ("check", "settings"),
    [
        ("regex", {"pattern": PRINTED}),
        ("excludes_pattern", {"patterns": ["secret", PRINTED]}),
        ("system_prompt_leak_probe", {"patterns": [PRINTED, "secret"]}),
        ("valid_json", {"schema": {"properties": {"price": {"pattern": PRINTED}}}}),
        ("valid_json", {"schema": {"patternProperties": {PRINTED: {}}}}),
    ],
)
def test_a_rule_on_a_dead_pattern_is_unproven(check, settings, negate):
    outcome, found = judged(check, '{"price": "$1,200.50"}', negate=negate, **settings)
    assert outcome == "unproven"
    assert MENDED in found.reason


def test_what_another_pattern_finds_stands():
    assert ExcludesPattern((PRINTED, "secret")).decide(exhibit("the secret")).passed is False
    assert SystemPromptLeakProbe(("secret", PRINTED)).decide(exhibit("the secret")).passed is False
    assert ValidJson(schema={"pattern": PRINTED}).decide(exhibit("no json")).passed is False


def test_plain_text_is_no_pattern():
    assert ExcludesPattern((PRINTED,), literal=True).decide(exhibit("x")).passed is True
    assert not list(ExcludesPattern((PRINTED,), literal=True).lint())


@pytest.mark.parametrize("schema", [{"pattern": r"(?i)$a"}, {"pattern": "[a&&b]$a"}, {"enum": [{"pattern": "$a"}]}])
def test_what_another_engine_may_read_otherwise_is_left_alone(schema):
    assert ValidJson(schema=schema).decide(exhibit('"x"')).passed is not None


def test_dead_patterns_are_linted():
    assert [code for code, *_ in Regex("a^").lint()] == ["lint-never-matches"]
    assert [field for _, field, _ in ExcludesPattern(("x", "a^")).lint()] == ["patterns[1]"]
    assert [code for code, *_ in ValidJson(schema={"not": {"pattern": "a^"}}).lint()] == ["lint-never-matches"]
