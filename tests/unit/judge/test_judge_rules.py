from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from golden_words import Golden
from holdfast import plugins
from holdfast.errors import HarnessError
from holdfast.judge import Judge
from holdfast.judge.rule import RuleJudge
from holdfast.model.fingerprint import compute_fingerprint
from holdfast.model.observation import Observation, Turn
from holdfast.model.scenario import Scenario
from holdfast.model.spec import AgentSpec, Invariant, Spec
from holdfast.model.task import Task
from holdfast.model.traits import CheckTraits
from holdfast.model.trial import Trial
from holdfast.model.verdict import Finding, Verdict
from holdfast.protocols.check import Exhibit


@dataclass(frozen=True)
class Has:
    word: str
    traits: ClassVar[CheckTraits] = CheckTraits(polarity="positive", reads="text")

    def decide(self, exhibit: Exhibit) -> Finding:
        at = exhibit.text.find(self.word)
        if at < 0:
            return Finding(False, f"no '{self.word}'")
        return Finding(True, f"found '{self.word}'", marks=((at, at + len(self.word)),))


@dataclass(frozen=True)
class Lacks:
    word: str
    traits: ClassVar[CheckTraits] = CheckTraits(polarity="negative", reads="text")

    def decide(self, exhibit: Exhibit) -> Finding:
        return Finding(self.word not in exhibit.text, f"looked for '{self.word}'")


@dataclass(frozen=True)
class Quick:
    max_ms: float
    traits: ClassVar[CheckTraits] = CheckTraits(polarity="positive", reads="latency")

    def decide(self, exhibit: Exhibit) -> Finding:
        return Finding(exhibit.turn.latency_ms <= self.max_ms, f"took {exhibit.turn.latency_ms:g} ms")


@dataclass(frozen=True)
class Ends:
    one_of: tuple[str, ...]
    traits: ClassVar[CheckTraits] = CheckTraits(polarity="positive", reads="ending")

    def decide(self, exhibit: Exhibit) -> Finding:
        return Finding(exhibit.observation.ending in self.one_of, f"ended in {exhibit.observation.ending}")


@dataclass(frozen=True)
class Graded:
    scores: dict[str, float]
    traits: ClassVar[CheckTraits] = CheckTraits(polarity="positive", reads="text")

    def decide(self, exhibit: Exhibit) -> Finding:
        score = self.scores[exhibit.text]
        return Finding(score >= 0.5, f"scored {score}", "graded", score=score, details={"method": "fake"})


@dataclass(frozen=True)
class Compares:
    traits: ClassVar[CheckTraits] = CheckTraits(polarity="positive", reads="text")

    def decide(self, exhibit: Exhibit) -> Finding:
        if exhibit.control is None:
            return Finding(None, "nothing to compare with")
        return Finding(exhibit.control.turns[-1].text == exhibit.text, "compared")


@dataclass(frozen=True)
class Breaks:
    ours: bool = False
    traits: ClassVar[CheckTraits] = CheckTraits(polarity="negative", reads="text")

    def decide(self, exhibit: Exhibit) -> Finding:
        if self.ours:
            raise HarnessError("pattern over 2 s")
        raise ZeroDivisionError("by zero")


FAKES = {c.__name__.lower(): c for c in (Has, Lacks, Quick, Ends, Graded, Compares, Breaks)}
TRIAL = Trial("abcdefabcdef", "contract", Scenario("s"), Task(("q",)))


@pytest.fixture(autouse=True)
def _fakes(monkeypatch):
    monkeypatch.setattr(plugins, "find", lambda family, name: FAKES.get(name))


def judge(
    check: str,
    settings: dict[str, Any] | None = None,
    *turns: Turn,
    stored: bool = False,
    control: Observation | None = None,
    seen: dict[str, Any] | None = None,
    **rule: Any,
) -> Verdict:
    invariant = Invariant("r", check, settings or {}, **rule)
    spec = Spec(path="c.yaml", agent=AgentSpec(timeout_ms=30_000), invariants=(invariant,))
    return Judge(spec, stored=stored).judge(invariant, TRIAL, Observation(TRIAL.id, turns, **(seen or {})), control)


def said(*texts: str | None) -> tuple[Turn, ...]:
    return tuple(Turn("q", text) for text in texts)


TIMEOUT = Turn("q", None, 30_004.0, "timeout")


# -- plain verdicts -------------------------------------------------------------------------------
def test_a_verdict_carries_outcome_score_reason_and_marks():
    verdict = judge("has", {"word": "source"}, *said("the source"))
    assert verdict == Verdict("abcdefabcdef", "r", "pass", 1.0, "found 'source'", 0, ((4, 10),))
    assert judge("has", {"word": "x"}, *said("y")) == Verdict(
        "abcdefabcdef", "r", "fail", 0.0, "no 'x'", code="check-said", key=(compute_fingerprint("no 'x'"),)
    )


def test_a_score_and_details_of_the_check_are_kept():
    verdict = judge("graded", {"scores": {"a": 0.7}}, *said("a"))
    assert (verdict.outcome, verdict.score, verdict.details) == ("pass", 0.7, {"method": "fake"})


def test_negate_swaps_pass_and_fail_and_takes_one_minus_the_score():
    failed = judge("has", {"word": "$"}, *said("it is $5"), negate=True)
    assert (failed.outcome, failed.score, failed.marks) == ("fail", 0.0, ((6, 7),))
    assert (failed.code, failed.key) == ("check-said", (compute_fingerprint("found '$'"),))
    passed = judge("has", {"word": "$"}, *said("unknown"), negate=True)
    assert (passed.outcome, passed.score, passed.reason) == ("pass", 1.0, "no '$'")
    assert judge("graded", {"scores": {"a": 0.75}}, *said("a"), negate=True).score == 0.25


def test_the_control_reaches_the_check_and_without_one_it_is_unproven():
    calm = Observation("c", said("same"))
    assert judge("compares", None, *said("same"), control=calm).outcome == "pass"
    assert judge("compares", None, *said("other"), control=calm).outcome == "fail"
    assert judge("compares", None, *said("same")).outcome == "unproven"
    assert judge("compares", None, *said("same"), negate=True).outcome == "unproven"


# -- no text --------------------------------------------------------------------------------------
def test_positive_check_without_text_fails_and_names_the_ending():
    verdict = judge("has", {"word": "x"}, TIMEOUT)
    assert (verdict.outcome, verdict.code) == ("fail", "no-answer")
    crash = judge("has", {"word": "x"}, Turn("q", None, ending="crashed", detail="signal 11"))
    assert (crash.code, crash.key) == ("no-answer", ("crashed",))
    status = judge("has", {"word": "x"}, Turn("q", None, ending="http_error", status=503))
    assert (status.code, status.key) == ("no-answer", ("http_error",))


def test_negative_check_without_text_is_unproven():
    verdict = judge("lacks", {"word": "x"}, TIMEOUT)
    assert verdict.outcome == "unproven"
    assert (verdict.code, verdict.key) == ("no-answer", ("timeout",))


def test_negate_turns_the_polarity_for_missing_text():
    assert judge("has", {"word": "x"}, TIMEOUT, negate=True).outcome == "unproven"
    assert judge("lacks", {"word": "x"}, TIMEOUT, negate=True).outcome == "fail"


@pytest.mark.parametrize("text", ["", " \n\t"])
def test_an_empty_or_blank_answer_is_not_text(text):
    assert judge("lacks", {"word": "x"}, *said(text)).outcome == "unproven"
    result = judge("has", {"word": "x"}, *said(text))
    assert (result.code, result.key) == ("no-answer", ("answered",))


def test_latency_without_text_fails_on_a_timeout_and_is_else_unproven():
    assert judge("quick", {"max_ms": 60_000}, TIMEOUT).outcome == "fail"
    assert judge("quick", {"max_ms": 60_000}, Turn("q", None, 5.0, "crashed")).outcome == "unproven"
    assert judge("quick", {"max_ms": 60_000}, TIMEOUT, negate=True).outcome == "unproven"
    assert judge("quick", {"max_ms": 10}, Turn("q", "a", 5.0)).outcome == "pass"


def test_partial_text_is_read_whatever_the_ending():
    partial = Turn("q", "source: half an ans", 30_000.0, "timeout")
    assert judge("has", {"word": "source"}, partial).outcome == "pass"
    assert judge("lacks", {"word": "source"}, partial).outcome == "fail"


def test_checks_on_the_ending_need_no_text():
    assert judge("ends", {"one_of": ["timeout"]}, TIMEOUT).outcome == "pass"
    assert judge("ends", {"one_of": ["answered"]}, TIMEOUT).outcome == "fail"
    assert judge("ends", {"one_of": ["answered"]}, TIMEOUT, negate=True).outcome == "pass"


def test_an_observation_without_turns_is_an_agent_that_said_nothing():
    result = judge("has", {"word": "x"})
    assert (result.code, result.key) == ("no-answer", ("no_answer",))
    assert judge("lacks", {"word": "x"}).outcome == "unproven"
    assert judge("ends", {"one_of": ["no_answer"]}).outcome == "pass"


# -- our side broke -------------------------------------------------------------------------------
def test_our_failure_turns_fails_into_error_and_lets_passes_stand():
    broke = {"error": "ledger lost"}
    failed = judge("has", {"word": "x"}, *said("y"), seen=broke)
    assert (failed.outcome, failed.score) == ("error", 0.0)
    assert (failed.code, failed.key) == ("harness-broke", (compute_fingerprint("ledger lost"),))
    assert judge("has", {"word": "y"}, *said("y"), seen=broke).outcome == "pass"
    assert judge("has", {"word": "y"}, *said("y"), seen=broke, negate=True).outcome == "error"
    assert judge("lacks", {"word": "y"}, TIMEOUT, seen=broke).outcome == "unproven"


def test_our_failure_without_any_turn_is_an_error():
    for check in ("has", "lacks"):
        verdict = judge(check, {"word": "x"}, seen={"error": "could not start"})
        assert (verdict.outcome, verdict.code) == ("error", "harness-broke")


def test_a_check_that_raises_is_an_error_verdict_never_a_pass(golden: Golden):
    verdict = judge("breaks", None, *said("a"))
    assert (verdict.outcome, verdict.score) == ("error", 0.0)
    reason, _, place = verdict.reason.partition(" (")
    golden(reason)
    assert re.fullmatch(r".+\.py:\d+\)", place)
    assert judge("breaks", None, *said("a"), negate=True).outcome == "error"
    result = judge("breaks", {"ours": True}, *said("a"))
    assert (result.code, result.key) == ("check-raised", ("HarnessError", compute_fingerprint("pattern over 2 s")))


@pytest.mark.parametrize("score", [1.5, -0.1, float("nan")])
def test_a_score_outside_0_to_1_is_an_error(score):
    assert judge("graded", {"scores": {"a": score}}, *said("a")).outcome == "error"


# -- several turns --------------------------------------------------------------------------------
def test_positive_checks_read_the_last_turn():
    verdict = judge("has", {"word": "x"}, *said("no", "x"))
    assert (verdict.outcome, verdict.turn) == ("pass", 1)
    assert judge("has", {"word": "x"}, *said("x", "no")).outcome == "fail"
    assert judge("has", {"word": "x"}, *said("x", None)).outcome == "fail"


def test_negative_checks_read_every_turn():
    verdict = judge("lacks", {"word": "x"}, *said("a", "x", "b"))
    assert (verdict.outcome, verdict.turn) == ("fail", 1)
    assert judge("lacks", {"word": "x"}, *said("a", "b")).outcome == "pass"
    negated = judge("has", {"word": "x"}, *said("x", "b"), negate=True)
    assert (negated.outcome, negated.turn) == ("fail", 0)


def test_negative_checks_read_whatever_text_there_is():
    assert judge("lacks", {"word": "x"}, *said("a", None)).outcome == "pass"
    assert judge("lacks", {"word": "x"}, *said("x", None)).outcome == "fail"
    assert judge("lacks", {"word": "x"}, *said(None, None)).outcome == "unproven"


def test_over_says_which_turns_are_read():
    turns = said("x", "no")
    assert judge("has", {"word": "x"}, *turns, over="any").outcome == "pass"
    assert judge("has", {"word": "x"}, *turns, over="all").outcome == "fail"
    assert judge("has", {"word": "x"}, *said("x", None), over="all").outcome == "fail"
    assert judge("lacks", {"word": "x"}, *turns, over="last").outcome == "pass"
    assert judge("lacks", {"word": "x"}, *turns, over="any").outcome == "pass"


def test_the_lowest_score_decides_all_and_the_highest_any():
    scores = {"scores": {"a": 0.9, "b": 0.6, "c": 0.8}}
    worst = judge("graded", scores, *said("a", "b", "c"), over="all")
    assert (worst.outcome, worst.score, worst.turn) == ("pass", 0.6, 1)
    best = judge("graded", scores, *said("b", "a", "c"), over="any")
    assert (best.outcome, best.score, best.turn) == ("pass", 0.9, 1)


# -- judged again ---------------------------------------------------------------------------------
def test_a_negative_pass_on_a_masked_answer_is_unproven_when_judged_again(golden: Golden):
    masked = {"masked": True}
    again = judge("lacks", {"word": "x"}, *said("a"), seen=masked, stored=True)
    assert again.outcome == "unproven"
    golden(again.reason)
    assert judge("lacks", {"word": "x"}, *said("a"), seen=masked).outcome == "pass"
    assert judge("lacks", {"word": "a"}, *said("a"), seen=masked, stored=True).outcome == "fail"
    assert judge("lacks", {"word": "x"}, *said("a"), stored=True).outcome == "pass"
    assert judge("has", {"word": "a"}, *said("a"), seen=masked, stored=True).outcome == "pass"
    assert judge("has", {"word": "x"}, *said("a"), seen=masked, stored=True, negate=True).outcome == "unproven"
    assert judge("ends", {"one_of": ["timeout"]}, *said("a"), seen=masked, stored=True, negate=True).outcome == "pass"


@pytest.mark.parametrize(
    "found",
    [Finding("no", "bad"), Finding(True, "ok", "code", {"a": 1}), Finding(False, "no", 7), Finding(1, "one")],  # type: ignore[arg-type]
)
def test_a_finding_of_the_wrong_types_is_an_error(found: Finding) -> None:
    rule = RuleJudge(Invariant("r", "has", {"word": "x"}), 1000)
    assert rule._to_outcome(found)[0] == "error"


def test_a_check_that_leaves_the_program_is_an_error() -> None:
    rule = RuleJudge(Invariant("r", "has", {"word": "x"}), 1000)

    def leave(_: object) -> Finding:
        raise SystemExit(0)

    rule.decide = leave  # type: ignore[assignment]
    outcome, finding = rule.judge_turn(Turn("q", "x"), Observation("t"), None)
    assert (outcome, finding.code, finding.key[0]) == ("error", "check-raised", "SystemExit")
