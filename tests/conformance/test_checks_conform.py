"""What every check promises, tried on all of them."""

import dataclasses
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace as replaced

from example_counts import examples
from holdfast import plugins
from holdfast.checks.state.command_exit import ExitRecord
from holdfast.checks.state.db_unchanged_except import TableMarks
from holdfast.checks.state.mock_requests import MockRequests, StoredRequest
from holdfast.checks.state.paths import PathState
from holdfast.checks.state.recorded import NOT_RECORDED, build_evidence
from holdfast.checks.state.sql import QueryAnswer
from holdfast.errors import HarnessError
from holdfast.judge.rule import RuleJudge
from holdfast.model import codec
from holdfast.model.observation import ENDINGS, Observation, Turn
from holdfast.model.spec import Invariant
from holdfast.model.trace import Cost, TraceEvent
from holdfast.model.verdict import Finding
from holdfast.model.world import Evidence
from holdfast.plan.checks import make_check
from holdfast.protocols.check import Exhibit, GatheringCheck
from holdfast.reading.fields import get_keys
from refused import refused

SETTINGS = {
    "behavior_unchanged": [{}, {"baseline": "It is 4.", "method": "semantic"}],
    "completes": [{}],
    "contains": [{"value": "a"}],
    "contains_any": [{"values": ("a", "ß")}],
    "ending": [{"one_of": ("answered", "timeout")}],
    "excludes_pattern": [{"patterns": ("ab+", r"\d")}, {"patterns": ("a.b",), "literal": True}],
    "excludes_pii": [{}, {"entities": ("email",), "allow": ("*@example.com",)}],
    "json_field": [
        {"path": "$..a", "equals": None},
        {"path": "a.0", "matches": "x", "contains": "y", "value_type": "string"},
    ],
    "latency": [{"max_ms": 10}],
    "max_calls": [{"max": 3}, {"max": 0, "tool": "a*", "plane": "tool"}],
    "max_cost": [{"max_usd": 0.5}],
    "max_tokens": [{"max": 100}, {"max": 1, "count": "output"}],
    "only_after": [{"tool": "a", "requires": "b"}, {"tool": "a*", "requires": "https://*", "successful": False}],
    "output_not_empty": [{}],
    "recovers_within_ms": [{"max_ms": 100}, {"max_ms": 0, "tool": "a"}],
    "refusal_check": [{}],
    "regex": [{"pattern": "a.b"}],
    "retries_within": [{"max": 2}, {"max": 0, "tool": "a"}],
    "side_effect_once": [{"tool": "a"}, {"tool": "https://*", "key": "order"}],
    "similarity": [{"expected": "It is 4."}, {"expected": "It is 4.", "method": "semantic"}],
    "system_prompt_leak_probe": [{"patterns": ("you are",)}],
    "tool_called": [{"tool": "a"}, {"tool": "*", "at_least": 2, "at_most": 3, "arguments": {"q": "x*", "n": 1}}],
    "tool_not_called": [{"tool": "a"}, {"tool": "POST https://*"}],
    "tool_order": [{"tools": ("a", "b")}, {"tools": ("*", "https://*"), "strict": True}],
    "valid_json": [{}, {"schema": {"type": "object"}, "path": "$..a"}],
}
OF_STATE = {
    "claim_matches_state": [{"claims": [{"says": "sent", "did": {"type": "http_call", "host": "smtp"}}]}],
    "command_exit": [{"command": "npm test"}, {"command": "x", "exit_code": 3, "timeout": 5}],
    "custom": [{"script": "a.py"}, {"script": "a.py", "runs_in": "sandbox"}],
    "db_unchanged_except": [{"service": "db"}, {"service": "db", "tables": ["a", "b.*"]}],
    "file_absent": [{"path": "a"}],
    "file_content": [{"path": "a", "contains": "x", "not_contains": "y", "pattern": "^z"}],
    "file_exists": [{"path": "a/b"}],
    "files_changed_only": [{}, {"paths": ["src/", "*.md"]}],
    "http_mock_assertions": [{"service": "s", "assertions": [{"field": "request_count", "equals": 1}]}],
    "llm_as_judge": [
        {"model": "m", "criteria": "c"},
        {"model": "m", "criteria": "c", "input_from": "s.last_request.body", "rubric": {"pass": "p"}, "votes": 3},
    ],
    "sql": [
        {"service": "db", "query": "SELECT 1", "equals": None},
        {"service": "db", "query": "q", "one_of": [1, "a"]},
    ],
}
"""Checks of the state, by settings as a file has them: they need evidence, and without it say so."""
CHECKS = [
    pytest.param(plugins.find("checks", n)(**s), id=f"{n}-{i}")
    for n, all in SETTINGS.items()
    for i, s in enumerate(all)
]
CLASSES = [pytest.param(plugins.find("checks", name), id=name) for name in plugins.BUILT_IN["checks"]]
ODD = [
    "",
    "\x00",
    "a" * 100_000,
    "1" * 100_000,
    "[" * 100_000,
    '{"a":' * 20_000,
    "é\u0301\u202e😀" * 20_000,
    " \n" * 50_000,
]
finding_of = codec.create_decoder(Finding)
slow_is_fine = settings(deadline=None, max_examples=examples(60), suppress_health_check=[HealthCheck.too_slow])


def exhibit(text: str, ending: str = "answered") -> Exhibit:
    turn = Turn(asked="?", text=text, latency_ms=5.0, ending=ending)
    calm = Observation(trial="c", turns=(Turn(asked="?", text="It is 4."),))
    return Exhibit(text=text, turn=turn, observation=Observation(trial="t", turns=(turn,)), control=calm)


def holds(check, shown: Exhibit) -> None:
    """Same exhibit, same finding; a finding a person can read, that can be stored and read back."""
    finding = check.decide(shown)
    assert isinstance(finding, Finding)
    assert check.decide(shown) == finding
    assert finding.reason
    assert len(finding.reason) <= 240
    assert "\n" not in finding.reason
    assert all(0 <= start <= end <= len(shown.text) for start, end in finding.marks)
    assert finding.score is None or 0 <= finding.score <= 1
    assert finding_of.decode(codec.encode(finding)) == finding


def test_every_built_in_check_is_tried():
    assert {*SETTINGS, *OF_STATE} == set(plugins.BUILT_IN["checks"])


@pytest.mark.parametrize("kind", CLASSES)
def test_check_is_a_frozen_dataclass_with_contract_polarity_and_reads(kind):
    assert dataclasses.is_dataclass(kind)
    assert kind.__dataclass_params__.frozen
    assert kind.__doc__
    assert not kind.__doc__.startswith(f"{kind.__name__}(")
    assert kind.traits.polarity in ("positive", "negative")
    assert kind.traits.reads in ("text", "ending", "latency", "trace", "state")


@pytest.mark.parametrize("kind", CLASSES)
def test_settings_are_described_and_never_the_contract_of_the_rule_itself(kind):
    assert all(field.hint.description for field in get_keys(kind))
    judged_elsewhere = {"id", "type", "severity", "when", "negate", "over", "probes", "weight", "gate", "description"}
    assert not judged_elsewhere & {field.name for field in dataclasses.fields(kind)}


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_convert_from_plain_data(name):
    import msgspec

    for given_settings in SETTINGS[name]:
        plain = json.loads(json.dumps(given_settings))
        built = msgspec.convert(plain, plugins.find("checks", name))
        assert built == plugins.find("checks", name)(**given_settings)


@pytest.mark.parametrize("check", CHECKS)
def test_good_settings_have_no_problems(check):
    assert not list(check.problems() if hasattr(check, "problems") else ())
    assert not list(check.lint() if hasattr(check, "lint") else ())


@pytest.mark.parametrize("check", CHECKS)
@slow_is_fine
@given(text=st.text())
def test_check_is_pure_and_never_raises_on_any_text(check, text):
    holds(check, exhibit(text))


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("odd", range(len(ODD)))
def test_check_never_raises_on_odd_text(check, odd):
    holds(check, exhibit(ODD[odd]))


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("ending", ENDINGS)
def test_check_never_raises_on_any_ending(check, ending):
    holds(check, exhibit("partial", ending))


GARBLED = [None, [], {}, {"of": "x"}, {"of": None, "found": 4}, "text", 7]


@pytest.mark.parametrize("name", OF_STATE)
def test_check_of_the_state_takes_plain_settings_and_says_what_was_not_recorded(name):
    for plain in OF_STATE[name]:
        check = make_check(Invariant("r", name, plain))
        assert isinstance(check, GatheringCheck)
        assert not list(check.problems() if hasattr(check, "problems") else ())
        for evidence in [None, *(Evidence(data) for data in GARBLED)]:
            with refused("check-not-recorded") as told:
                check.decide(replaced(exhibit("x"), evidence=evidence))
            assert str(told.value) == NOT_RECORDED
        with pytest.raises(HarnessError, match="disk full"):
            check.decide(replaced(exhibit("x"), evidence=Evidence(error="disk full")))


LEFT = PathState("outside", "a is outside the workspace")
LOCKED = PathState("out_of_reach", "a cannot be read: Permission denied")
NO_REQUEST = {"service": "s", "assertions": [{"field": "last_request.body", "contains": "x"}]}
INTO_TEXT = {"service": "s", "assertions": [{"field": "last_request.body.a", "contains": "x"}]}
FORM = MockRequests((StoredRequest("POST", "/", body="a=x"),))
RAN_BY = ["npm test", 120_000]
NOTHING_THERE = [
    ("command_exit", {"command": "npm test"}, RAN_BY, ExitRecord(127), "unproven"),
    ("command_exit", {"command": "npm test"}, RAN_BY, ExitRecord(126), "unproven"),
    ("command_exit", {"command": "npm test"}, RAN_BY, ExitRecord(timed_out=True), "unproven"),
    ("command_exit", {"command": "npm test"}, RAN_BY, ExitRecord(signal=9), "unproven"),
    ("db_unchanged_except", {"service": "db"}, ["db"], TableMarks({}, refused="gone", default=""), "unproven"),
    ("file_absent", {"path": "a"}, ["a"], LEFT, "fail"),
    ("file_absent", {"path": "a"}, ["a"], LOCKED, "unproven"),
    ("file_exists", {"path": "a"}, ["a"], LEFT, "fail"),
    ("file_exists", {"path": "a"}, ["a"], LOCKED, "unproven"),
    ("file_content", {"path": "a", "contains": "x"}, ["a", "content"], LEFT, "fail"),
    ("file_content", {"path": "a", "contains": "x"}, ["a", "content"], LOCKED, "unproven"),
    ("file_content", {"path": "a", "contains": "x"}, ["a", "content"], PathState("nothing"), "unproven"),
    ("file_content", {"path": "a", "contains": "x"}, ["a", "content"], PathState("folder"), "unproven"),
    ("http_mock_assertions", NO_REQUEST, ["s"], MockRequests(), "unproven"),
    ("http_mock_assertions", INTO_TEXT, ["s"], FORM, "unproven"),
    ("sql", {"service": "db", "query": "q", "equals": 1}, ["db", "q"], QueryAnswer(refused="no table"), "unproven"),
    ("sql", {"service": "db", "query": "q", "equals": 1}, ["db", "q"], QueryAnswer(("a",)), "unproven"),
]
NO_LOOK = {"claim_matches_state", "custom", "files_changed_only", "llm_as_judge"}
"""Nothing there is unproven or an error whichever way round, or there is always something (see their own tests)."""


def judged(name: str, plain: dict, evidence: Evidence, *, negate: bool) -> str:
    rule = RuleJudge(Invariant("r", name, plain, negate=negate), 1000)
    turn = Turn("?", "x")
    return rule.judge_trial(turn, Observation("t", (turn,), evidence={"r": evidence}), None)[0]


def test_every_check_of_the_state_is_tried_on_nothing():
    assert {name for name, *_ in NOTHING_THERE} | NO_LOOK == set(OF_STATE)


@pytest.mark.parametrize(("name", "plain", "about", "found", "negated"), NOTHING_THERE)
def test_negation_never_makes_a_pass_of_nothing_to_look_at(name, plain, about, found, negated):
    evidence = build_evidence(about, found)
    assert judged(name, plain, evidence, negate=False) == "fail"
    assert judged(name, plain, evidence, negate=True) == negated


COUNTED = {"service": "s", "assertions": [{"field": "request_count", "at_least": 1}]}
WITHOUT = {"service": "s", "assertions": [{"field": "last_request.headers.x-key", "contains": "x"}]}


@pytest.mark.parametrize(
    ("name", "plain", "about", "found"),
    [
        ("file_exists", {"path": "a"}, ["a"], PathState("nothing")),
        ("http_mock_assertions", COUNTED, ["s"], MockRequests()),
        ("http_mock_assertions", WITHOUT, ["s"], FORM),
        ("command_exit", {"command": "npm test"}, RAN_BY, ExitRecord(exit_code=1)),
        ("sql", {"service": "db", "query": "q", "rows": 1}, ["db", "q"], QueryAnswer(("a",))),
    ],
)
def test_an_absence_that_is_what_was_asked_for_is_a_pass_of_a_negated_rule(name, plain, about, found):
    assert judged(name, plain, build_evidence(about, found), negate=True) == "pass"


NAMES = st.sampled_from(["a", "b", "POST https://x.example/p", "GET https://x.example/", "odd-model", ""]) | st.text()
EVENTS = st.builds(
    TraceEvent,
    ts=st.floats(0, 100),
    event_type=st.sampled_from(["llm_call", "tool_call", "mcp_call", "http_call"]),
    tool=NAMES,
    plane=st.sampled_from(["tool", "llm", "tool_result", "http", "mcp", ""]),
    retry=st.integers(0, 3),
    phase=st.sampled_from(["done", "declared", "unfinished"]),
    duration_ms=st.floats(0, 10_000),
    status=st.none() | st.integers(100, 599),
    error_type=st.sampled_from(["", "TimeoutError"]),
    input=st.sampled_from(['{"q":"x","n":1}', '{"order":1,"idempotency_key":"k"}', "[]", ""]) | st.text(),
    write=st.booleans(),
    digest=st.sampled_from(["", "d"]),
    idempotency=st.sampled_from(["", "k"]),
    cost=st.none() | st.builds(Cost, st.just("m"), st.integers(0, 99), st.integers(0, 99), st.none() | st.floats(0, 1)),
    fault=st.sampled_from(["", "error", "lost_reply", "slow+error", "slow", "hang", "no-such-mode"]),
)
OF_CALLS = [check for check in CHECKS if check.values[0].traits.reads == "trace"]


@pytest.mark.parametrize("check", OF_CALLS)
@slow_is_fine
@given(trace=st.lists(EVENTS, max_size=8))
def test_check_of_calls_is_pure_on_any_trace_and_raises_only_what_is_ours_to_say(check, trace):
    turn = Turn(asked="?", ending="crashed")
    shown = Exhibit("", turn, Observation("t", (turn,), trace=tuple(sorted(trace, key=lambda e: e.ts))))
    said = "unknown"
    try:
        holds(check, shown)
    except HarnessError as unknown:
        said = str(unknown)
    assert "not known" in said or "too long" in said or "unknown" in said
