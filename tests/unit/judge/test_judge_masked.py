"""Stored observations whose secrets are masked: what a mask may hide is undecided, and nothing else is."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.checks.state.command_exit import ExitRecord
from holdfast.checks.state.paths import PathState
from holdfast.checks.state.recorded import build_evidence
from holdfast.judge import Judge
from holdfast.model.observation import Observation, Turn
from holdfast.model.spec import AgentSpec, Invariant, Spec
from holdfast.model.trace import TraceEvent
from holdfast.model.verdict import Verdict
from world_kit import TRIAL

FILE = build_evidence(["out.txt", "content"], PathState("file", content="pw=[masked]"))
RAN = build_evidence(["true", 120_000], ExitRecord(0, stdout="[masked]"))
CALL = TraceEvent(0.1, "tool_call", "pay", "tool", 1, input='{"card": "[masked]"}')
ASKED = TraceEvent(0.1, "llm_call", "m", "llm", 1, input="my key is [masked]")
WEB = TraceEvent(0.1, "http_call", "GET http://h/[masked]", "http", 1)


def judged(check: str, settings: dict[str, Any], *, stored: bool = True, control: Any = None, **seen: Any) -> Verdict:
    rule = Invariant("r", check, settings, negate=seen.pop("negate", False))
    judge = Judge(Spec("c.yaml", AgentSpec(), invariants=(rule,)), stored=stored)
    turns = (Turn("q", "the answer"),)
    if "found" in seen:
        seen["evidence"] = {"r": seen.pop("found")}
    return judge.judge(rule, TRIAL, Observation(TRIAL.id, turns, **seen), control)


@pytest.mark.parametrize("negate", [False, True])
@pytest.mark.parametrize("wanted", [{"not_contains": "hunter2"}, {"contains": "hunter2"}, {"pattern": "^pw=h"}])
def test_masked_evidence_is_undecided(wanted: dict[str, str], negate: bool) -> None:
    again = judged("file_content", {"path": "out.txt", **wanted}, found=FILE, negate=negate)
    assert (again.outcome, again.score) == ("unproven", 0.0)
    assert again.code == "masked"
    assert judged("file_content", {"path": "out.txt", **wanted}, found=FILE, stored=False).outcome != "unproven"


def test_what_was_decided_without_the_text_stands() -> None:
    assert judged("command_exit", {"command": "true"}, found=RAN).outcome == "pass"
    assert judged("command_exit", {"command": "true"}, found=RAN, negate=True).outcome == "fail"


@pytest.mark.parametrize(
    ("check", "settings", "event", "outcome"),
    [
        ("tool_called", {"tool": "pay", "arguments": {"card": "42*"}}, CALL, "unproven"),
        ("tool_called", {"tool": "pay"}, CALL, "pass"),
        ("tool_not_called", {"tool": "pay"}, CALL, "fail"),
        ("tool_not_called", {"tool": "http://h/hunter2"}, WEB, "unproven"),
        ("side_effect_once", {}, CALL, "unproven"),
        ("retries_within", {"max": 1}, CALL, "unproven"),
        ("max_calls", {"max": 5, "plane": "tool"}, CALL, "pass"),
        ("max_calls", {"max": 5, "plane": "llm"}, ASKED, "pass"),
        ("max_calls", {"max": 5}, WEB, "unproven"),
    ],
)
def test_a_masked_call_is_undecided_for_rules_that_read_it(
    check: str, settings: dict[str, Any], event: TraceEvent, outcome: str
) -> None:
    assert judged(check, settings, trace=(event,)).outcome == outcome


def test_a_masked_answer_that_is_compared_with_is_undecided() -> None:
    calm = Observation("c", (Turn("q", "[masked] and more"),), masked=True)
    again = judged("behavior_unchanged", {}, control=calm)
    assert again.outcome == "unproven"
    assert again.code == "masked"
    assert judged("contains", {"value": "x"}, control=calm).outcome == "fail"


def test_a_claim_is_undecided_if_the_answer_was_masked() -> None:
    from holdfast.checks.state.claim_matches_state import Deeds, DoneClaims

    claim = {"says": "hunter2", "did": {"type": "command", "command": "ls"}}
    found = build_evidence(["type=command command=ls"], DoneClaims((Deeds(),)))
    assert judged("claim_matches_state", {"claims": [claim]}, found=found, masked=True).outcome == "unproven"
    assert judged("claim_matches_state", {"claims": [claim]}, found=found).outcome == "pass"
