"""Doubly escaped patterns, and what each check makes of one."""

from __future__ import annotations

import pytest
from check_exhibits import exhibit

from holdfast.checks.patterns import explain_dead_pattern, search
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
    PRINTED, f"({PRINTED})", f"(?:{PRINTED})?", r"\\$ \\d", r"\\$5", r"^\\$\\d", r"(?i)\\$\w", r"a(b|c)\\$[0-9]+",
    r"[$]\\$\\.", r"(\\$5)?", r"\\d{3}-\\d{2}", r"\\d+\\.\\d{2}", r"\\bsecret\\b", r"a|\\$5", r"\\$\d*", r"\\$",
    r"\\w+@", r"[\\d,]+", r"(?:\\$5)?foo", r"https?:\\/\\/", r"\\(555\\)", r"(?x)\\$ # a comment",
]  # fmt: skip
LIVE = [
    MENDED, "$a", "a^", "(?!)", "costs $5", r"\d{3}", r"C:\\Windows", r"C:\\dir\\backup", r"\\\\server\\share", r"\\\.",
    r"[\\$]5", r"[\\]d", r"[\\.]", r"[^\\]+", r"\\n", r"(a\\)",
]  # fmt: skip


@pytest.mark.parametrize("pattern", DEAD)
def test_a_doubly_escaped_pattern_is_recognised(pattern):
    assert explain_dead_pattern(pattern)


@pytest.mark.parametrize("pattern", LIVE)
def test_no_other_pattern_is_called_doubly_escaped(pattern):
    """A backslash before a word or in a set, and what is no pattern without it, is meant as it is."""
    assert explain_dead_pattern(pattern) is None


def test_the_reason_gives_the_corrected_pattern():
    assert f"write {MENDED}," in explain_dead_pattern(PRINTED)


def test_a_search_for_a_doubly_escaped_pattern_is_unproven():
    with pytest.raises(NothingToJudge, match="doubled"):
        search(PRINTED, "anything", "s")


def test_a_pattern_that_is_forbidden_by_its_check_and_asked_for_by_the_rule_has_a_fitting_reason():
    outcome, found = judged("excludes_pii", "hello", negate=True)
    assert (outcome, found.code) == (
        "fail",
        "pii-missing",
    )


def judged(check: str, text: str, *, negate: bool = False, **settings):
    rule = RuleJudge(Invariant("r", check, settings=settings, negate=negate), 1000)
    turn = Turn("?", text=text)
    return rule.judge_turn(turn, Observation(trial="t", turns=(turn,)), None)


@pytest.mark.parametrize("negate", [False, True])
@pytest.mark.parametrize(
    ("check", "settings"),
    [
        ("regex", {"pattern": PRINTED}),
        ("regex", {"pattern": f"({PRINTED})?"}),
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


def test_plain_text_is_not_a_pattern():
    assert ExcludesPattern((PRINTED,), literal=True).decide(exhibit("x")).passed is True
    assert not list(ExcludesPattern((PRINTED,), literal=True).lint())


def test_dead_patterns_are_linted():
    assert [code for code, *_ in Regex(PRINTED).lint()] == ["lint-never-matches"]
    assert [field for _, field, _ in ExcludesPattern(("x", PRINTED)).lint()] == ["patterns[1]"]
    assert [code for code, *_ in ValidJson(schema={"not": {"pattern": PRINTED}}).lint()] == ["lint-never-matches"]
