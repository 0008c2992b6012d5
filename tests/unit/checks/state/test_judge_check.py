"""`llm_as_judge`: what is shown, what is asked, and how votes decide."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from error_code import has_code
from golden_words import Golden
from holdfast.checks.state.llm_as_judge import LlmAsJudge, Rubric
from holdfast.errors import HarnessError
from holdfast.judge import Judge
from holdfast.model.observation import Observation, Turn
from holdfast.model.spec import AgentSpec, Invariant, Spec
from holdfast.model.verdict import Finding
from holdfast.model.world import Evidence
from holdfast.plan.checks import make_check
from holdfast.protocols.check import Advice, ConsultingCheck, GatheringCheck
from holdfast.protocols.sandbox import FileChange
from judge_kit import parted, rating
from world_kit import SILENT, TRIAL, FakeMock, FakeWorld, request, run, shown

SAID = Observation(TRIAL.id, (Turn("q", "first"), Turn("q", "Dear all, 12.")), output="printed")


class Asked:
    """Says one thing after the other, the last one for ever."""

    def __init__(self, *said: str, notes: tuple[str, ...] = ()) -> None:
        self.said = list(said)
        self.prompts: list[str] = []
        self.how: list[tuple[str, float | None, int]] = []
        self.notes = notes

    async def __call__(
        self,
        model: str,
        system: str,
        prompt: str,
        *,
        temperature: float | None,
        vote: int,
        fits: Callable[[str], bool],
    ) -> Advice:
        self.prompts.append(prompt)
        self.how.append((model, temperature, vote))
        return Advice(self.said.pop(0) if len(self.said) > 1 else self.said[0], f"test/{model}", self.notes)


def judge(**more: Any) -> LlmAsJudge:
    return LlmAsJudge("m", "Kind and right.", **more)


def decided(check: LlmAsJudge, ask: Asked, seen: Observation = SAID, evidence: Evidence | None = None) -> Finding:
    return check.decide(shown(run(check.consult(seen, None, evidence or Evidence(), ask))))


def test_it_gathers_consults_and_needs_a_world_only_for_what_lies_there() -> None:
    assert isinstance(judge(), GatheringCheck)
    assert isinstance(judge(), ConsultingCheck)
    assert not judge().configured().needs_world
    assert not judge(input_from="stdout").configured().needs_world
    assert judge(input_from="workspace").configured().needs_world
    assert judge(input_from="smtp.request_count").configured().needs_world


@pytest.mark.parametrize(("source", "text"), [("agent_output", "Dear all, 12."), ("stdout", "printed")])
def test_what_the_agent_said_is_judged_without_a_world(source: str, text: str) -> None:
    ask = Asked(rating(0.8))
    found = decided(judge(input_from=source, rubric=Rubric(pass_="kind", fail="rude")), ask)
    assert parted(ask.prompts[0])[1] == text
    assert "Passes: kind\nFails: rude" in ask.prompts[0]
    assert (found.passed, found.score) == (True, 0.8)
    assert found.details["model"] == "test/m"
    assert found.details["votes"] == [{"score": 0.8, "passed": True, "reason": "as it is"}]
    assert run(judge(input_from=source).gather(None, SAID)) == Evidence(), "the observation has it already"


def test_the_score_decides_against_the_threshold_and_the_models_own_word_is_only_noted() -> None:
    low = decided(judge(pass_threshold=0.7), Asked(rating(0.69, passed=True)))
    assert (low.passed, low.score, low.details["votes"][0]["passed"]) == (False, 0.69, True)
    assert low.code == "judge-below"
    high = decided(judge(pass_threshold=0.7), Asked(rating(0.7, passed=False)))
    assert (high.passed, high.code) == (True, "judge-above")
    assert decided(judge(), Asked(rating(0.5))).passed, "the default is 0.5"


def test_a_malformed_reply_is_asked_for_once_more_and_then_an_error() -> None:
    ask = Asked("I like it!", rating(0.9))
    assert decided(judge(), ask).score == 0.9
    assert ask.prompts[0] == ask.prompts[1]
    ask = Asked(rating(7))
    with pytest.raises(HarnessError, check=has_code("judge-no-rating")):
        decided(judge(), ask)
    assert len(ask.prompts) == 2


def test_votes_are_asked_one_by_one_and_their_median_counts() -> None:
    ask = Asked(rating(1), rating(0), rating(0.6))
    found = decided(judge(votes=3, temperature=0.4), ask)
    assert (found.score, found.passed) == (0.6, True)
    assert [one["score"] for one in found.details["votes"]] == [1.0, 0.0, 0.6]
    assert ask.how == [("m", 0.4, 0), ("m", 0.4, 1), ("m", 0.4, 2)]
    assert found.code == "judge-above"


@pytest.mark.parametrize("seen", [SILENT, Observation("t", (Turn("q", " \n"),)), Observation("t", (Turn("q"),))])
def test_an_empty_input_fails_without_a_call(seen: Observation) -> None:
    ask = Asked(rating(1))
    found = decided(judge(), ask, seen)
    assert (found.passed, found.score, found.code) == (False, 0.0, "judge-nothing-to-read")
    assert ask.prompts == []


@pytest.mark.parametrize(("negate", "outcome"), [(False, "fail"), (True, "unproven")])
def test_nothing_to_judge_proves_nothing_to_a_rule_that_forbids(negate: bool, outcome: str) -> None:
    rule = Invariant("r", "llm_as_judge", {"model": "m", "criteria": "Kind and right."}, negate=negate)
    check = make_check(rule)
    assert isinstance(check, ConsultingCheck)
    evidence = {"r": run(check.consult(SILENT, None, Evidence(), Asked("")))}
    spec = Spec("c.yaml", AgentSpec(), invariants=(rule,))
    verdict = Judge(spec).judge(rule, TRIAL, Observation(TRIAL.id, evidence=evidence))
    assert (verdict.outcome, verdict.score) == (outcome, 0.0)


def test_the_input_is_cut_to_whole_characters_and_the_reader_told(golden: Golden) -> None:
    ask = Asked(rating(1), notes=("asked without a temperature",))
    found = decided(judge(max_input=5), ask, Observation("t", (Turn("q", "ää€x"),)))
    assert parted(ask.prompts[0])[1] == "ää"
    golden(found.details["notes"])
    assert "only its beginning" in ask.prompts[0]
    whole = decided(judge(max_input=8), ask, Observation("t", (Turn("q", "ää€x"),)))
    golden(whole.details["notes"])


def test_changed_files_are_shown_with_their_paths_up_to_the_limit(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Hello")
    (tmp_path / "b.bin").write_bytes(b"\0\1")
    changes = [
        FileChange("a.txt", "created", 5),
        FileChange("b.bin", "modified", 2),
        FileChange("c.txt", "deleted"),
        FileChange("../out", "created", 1),
    ]
    check, ask = judge(input_from="workspace"), Asked(rating(1))
    world = FakeWorld(tmp_path, changes=changes)
    decided(check, ask, SAID, run(check.gather(world, SAID)))
    text = parted(ask.prompts[0])[1]
    assert "=== created: a.txt (5 bytes)\nHello\n=== modified: b.bin (2 bytes)\n(binary)\n=== deleted: c.txt" in text
    assert "../out is not" in text
    (tmp_path / "a.txt").write_text("x" * 100_000)
    small = judge(input_from="workspace", max_input=100)
    gathered = run(small.gather(world, SAID))
    assert gathered.data["found"]["cut"]
    assert len(gathered.data["found"]["text"]) == 100
    nothing = run(check.gather(FakeWorld(tmp_path), SAID))
    assert decided(check, ask, SAID, nothing).code == "judge-nothing-to-read"


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("last_request.body", '{"text": "two"}'),
        ("requests[0].body.text", "one"),
        ("last_request.headers.x-to", "b"),
        ("request_count", "2"),
        ("requests[7].body", ""),
        ("last_request.body.nothing", ""),
    ],
)
def test_a_field_of_a_mock_is_shown_as_assertions_read_it(tmp_path: Path, field: str, text: str) -> None:
    mock = FakeMock(request(body='{"text": "one"}'), request(body='{"text": "two"}', headers={"X-To": "b"}))
    check, ask = judge(input_from=f"smtp.{field}"), Asked(rating(1))
    found = decided(check, ask, SAID, run(check.gather(FakeWorld(tmp_path, mock), SAID)))
    assert [parted(one)[1] for one in ask.prompts] == ([text] if text else [])
    assert found.passed is bool(text)


def test_a_part_of_a_body_that_was_cut_is_never_guessed(tmp_path: Path) -> None:
    world = FakeWorld(tmp_path, FakeMock(request(body='{"text": "on', cut=True)))
    with pytest.raises(HarnessError, check=has_code("check-input-lost")):
        run(judge(input_from="smtp.last_request.body.text").gather(world, SAID))


def test_what_was_not_gathered_or_was_asked_otherwise_is_never_guessed(tmp_path: Path) -> None:
    check = judge(input_from="workspace")
    with pytest.raises(HarnessError, check=has_code("check-not-recorded")):
        decided(check, Asked(rating(1)))
    with pytest.raises(HarnessError, check=has_code("check-service-wrong")):
        run(judge(input_from="db.request_count").gather(FakeWorld(tmp_path), SAID))
    opinion = run(judge().consult(SAID, None, Evidence(), Asked(rating(1))))
    assert judge(pass_threshold=0.9).decide(shown(opinion)).passed, "the threshold is no part of the question"
    for other in (judge(votes=3), judge(temperature=1.0), judge(rubric=Rubric(fail="x")), LlmAsJudge("n", "Kind.")):
        with pytest.raises(HarnessError, check=has_code("check-not-recorded")):
            other.decide(shown(opinion))


@pytest.mark.parametrize("source", ["answer", "smtp", ".request_count", "smtp.body", "smtp.requests[x]", "smtp."])
def test_an_input_that_nothing_has_is_a_problem(source: str) -> None:
    assert [name for name, _ in judge(input_from=source).problems()] == ["input_from"]
    for good in ("agent_output", "stdout", "workspace", "smtp.last_request.body", "m.requests[3].body.a[0]"):
        assert not list(judge(input_from=good).problems())


def test_a_rule_that_forbids_something_shows_every_reply() -> None:
    rule = Invariant("kind", "llm_as_judge", settings={"model": "m", "criteria": "It insults."}, negate=True)
    ask = Asked(rating(0.0))
    assert decided(make_check(rule), ask).passed is False
    assert "first" in ask.prompts[0]
    assert "Dear all, 12." in ask.prompts[0]
    for other in (replace(rule, negate=False), replace(rule, settings={**rule.settings, "input_from": "agent_output"})):
        decided(make_check(other), ask)
        assert "first" not in ask.prompts[-1]


def test_a_single_reply_is_shown_as_it_is() -> None:
    ask = Asked(rating(1.0))
    finding = decided(judge(input_from="replies"), ask, Observation(TRIAL.id, (Turn("q", "Dear all."),)))
    assert finding.details["input"] == "Dear all."
    assert decided(judge(input_from="replies"), ask, SILENT).code == "judge-nothing-to-read"


LONG = Observation(TRIAL.id, (Turn("q", "a" * 500), Turn("q", "ok"), Turn("q", "You fool! " + "b" * 500)))


def test_every_reply_is_shown_from_its_beginning_within_the_limit(golden: Golden) -> None:
    ask = Asked(rating(0.9))
    decided(judge(input_from="replies", max_input=200), ask, LONG)
    text = parted(ask.prompts[0])[1]
    first, second, third = text.split("\n\n")
    assert first.startswith("=== reply 1 of 3\naaaa")
    assert second == "=== reply 2 of 3\nok"
    assert third.startswith("=== reply 3 of 3\nYou fool! b")
    assert len(first) - 1 <= len(third) <= len(first) + 1, "a short reply leaves its share to the others"
    assert 190 <= len(text.encode()) <= 200
    golden(ask.prompts[0].partition("=== reply 1")[0])


@pytest.mark.parametrize(
    ("negate", "limit", "score", "outcome", "code"),
    [
        (True, 200, 0.0, "unproven", "judge-cut"),
        (True, 20, 0.0, "unproven", "judge-cut"),
        (True, 200, 0.9, "fail", "judge-above"),
        (True, 5000, 0.0, "pass", ""),
        (False, 200, 0.0, "fail", "judge-cut"),
        (False, 200, 0.9, "pass", ""),
    ],
)
def test_what_was_not_shown_is_never_taken_for_harmless(
    negate: bool, limit: int, score: float, outcome: str, code: str
) -> None:
    settings = {"model": "m", "criteria": "It insults.", "max_input": limit}
    rule = Invariant("r", "llm_as_judge", settings, negate=negate)
    check = make_check(rule)
    assert isinstance(check, ConsultingCheck)
    evidence = {"r": run(check.consult(LONG, None, Evidence(), Asked(rating(score))))}
    spec = Spec("c.yaml", AgentSpec(), invariants=(rule,))
    verdict = Judge(spec).judge(rule, TRIAL, replace(LONG, evidence=evidence))
    assert (verdict.outcome, verdict.code) == (outcome, code)
