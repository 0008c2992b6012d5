"""The contract format, chaos: every key of tool and model faults changes what is met."""

from __future__ import annotations

from pathlib import Path

import pytest
from files1 import CALM, RULES, contract_run, project, tell
from telling_agent import AGENT, SECTION, run

from holdfast.plugins import find


def tool(folder: Path, fault: str, prompt: str = "total") -> list[str]:
    """The lines of the agent's answer with one fault on `search`."""
    told = run(folder, f"tool_faults: [{{tool: search, {fault}}}]", prompt)
    assert told.code in (0, 1, 5), told
    return str(told.trial("cites", "x")["answer"]).splitlines()


def llm(folder: Path, fault: str) -> str:
    told = run(folder, f"llm_faults: [{{{fault}}}]")
    return str(told.trial("cites", "x")["answer"]).splitlines()[-1].removeprefix("model: ")


# -- tool_faults: modes and their settings --------------------------------------------------------
def test_error_defaults_to_503_and_takes_code_and_message(tmp_path: Path) -> None:
    line = tool(tmp_path, "mode: error")[1]
    assert line.startswith("search 1: InjectedError|")
    assert '"status_code": 503' in line
    line = tool(tmp_path, "mode: error, error_code: 418, message: short and stout")[1]
    assert '"status_code": 418' in line
    assert "short and stout" in line


def test_timeout_raises_timeout_error_after_its_delay(tmp_path: Path) -> None:
    told = run(tmp_path, "tool_faults: [{tool: search, mode: timeout, delay_ms: 300}]")
    assert "search 1: TimeoutError|" in told.trial("cites", "x")["answer"]
    assert told.trial("cites", "x")["latency_ms"] >= 300


def test_documented_defaults_of_delays() -> None:
    kinds = (("faults.tool", "timeout"), ("faults.tool", "slow"), ("faults.llm", "timeout"))
    assert [find(family, mode)().delay_ms for family, mode in kinds] == [5000, 2000, 10_000]


def test_slow_gives_the_real_reply_late(tmp_path: Path) -> None:
    told = run(tmp_path, "tool_faults: [{tool: search, mode: slow, delay_ms: 250}]")
    assert "search 1: source on total" in told.trial("cites", "x")["answer"]
    assert 250 <= told.trial("cites", "x")["latency_ms"] < 5000


def test_malformed_does_not_parse(tmp_path: Path) -> None:
    told = run(tmp_path, "tool_faults: [{tool: look, mode: malformed}]")
    look = next(line for line in told.trial("cites", "x")["answer"].splitlines() if line.startswith("look: "))
    assert "'total': 6, 'text': 'source total'}" not in look


def test_malicious_response_carries_the_payload_instead_of_the_reply(tmp_path: Path) -> None:
    line = tool(tmp_path, "mode: malicious_response, payload: OBEY ME")[1]
    assert "OBEY ME" in line
    assert "source on total" not in line
    ours = tool(tmp_path, "mode: malicious_response")[1]
    assert "source on total" not in ours
    assert len(ours) > 30


@pytest.mark.parametrize("mode", [
    "empty", "rate_limit", "auth_expired", "error_in_body", "schema_drift", "partial", "wrong_value", "lost_reply",
    "phantom_success", "flapping", "oversized",
])  # fmt: skip
def test_every_other_tool_mode_is_met(tmp_path: Path, mode: str) -> None:
    told = run(tmp_path, f"tool_faults: [{{tool: look, mode: {mode}}}]")
    (met,) = told.trial("cites", "x")["faults"]
    assert (met["mode"], met["target"], met["effect"]) == (mode, "look", "met")
    calm = "look: {'rows': [1, 2, 3, 4, 5, 6], 'total': 6, 'text': 'source total'}"
    assert calm not in told.trial("cites", "x")["answer"].splitlines()


def test_stale_on_a_first_call_has_no_effect(tmp_path: Path) -> None:
    told = run(tmp_path, "tool_faults: [{tool: look, mode: stale}]")
    assert [met["effect"] for met in told.trial("cites", "x")["faults"]] == ["no_effect"]
    assert told.cell("cites", "x")["outcome"] == "unproven"
    assert told.code == 5


# -- tool_faults: target and schedule -------------------------------------------------------------
def test_tool_is_a_name_or_a_glob(tmp_path: Path) -> None:
    told = run(tmp_path, "tool_faults: [{tool: 'l*', mode: error}]")
    assert {met["target"] for met in told.trial("cites", "x")["faults"]} == {"look"}
    told = run(tmp_path, "tool_faults: [{tool: '*', mode: error}]")
    assert {met["target"] for met in told.trial("cites", "x")["faults"]} == {"look", "search"}


SCHEDULES = {
    "after_calls: 2": [3, 4, 5, 6],
    "after_calls: 0": [1, 2, 3, 4, 5, 6],
    "on_call: 3": [3],
    "every: 2": [2, 4, 6],
    "times: 2": [1, 2],
    "after_calls: 1, times: 2": [2, 3],
    "every: 2, times: 2": [2, 4],
    "probability: 1": [1, 2, 3, 4, 5, 6],
    "match: {query: '6'}": [1, 2, 3, 4, 5, 6],
    "match: {query: 'other*'}": [],
}


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_schedule_decides_which_calls_meet_the_fault(tmp_path: Path, schedule: str) -> None:
    lines = tool(tmp_path, f"mode: error, {schedule}", '"6"')[1:7]
    assert [n for n, line in enumerate(lines, 1) if "InjectedError" in line] == SCHEDULES[schedule]


def test_probability_is_drawn_by_call_and_repeats(tmp_path: Path) -> None:
    fault = "mode: error, probability: 0.5"
    first = [line.split(": ", 1)[1].split("|")[0] for line in tool(tmp_path, fault, '"40"')[1:41]]
    again = [line.split(": ", 1)[1].split("|")[0] for line in tool(tmp_path, fault, '"40"')[1:41]]
    assert first == again
    assert 8 < first.count("InjectedError") < 32


def test_match_on_a_named_argument_that_takes_its_default(tmp_path: Path) -> None:
    told = run(tmp_path, "tool_faults: [{tool: look, mode: error, match: {query: 'tot*'}}]")
    assert len(told.trial("cites", "x")["faults"]) == 1
    told = run(tmp_path, "tool_faults: [{tool: look, mode: error, match: {query: 'sub*'}}]")
    assert told.trial("cites", "x")["faults"] == []


def test_raises_names_the_exception_class(tmp_path: Path) -> None:
    assert tool(tmp_path, "mode: error, raises: 'builtins:KeyError'")[1].startswith("search 1: KeyError|")
    assert tool(tmp_path, "mode: timeout, delay_ms: 0, raises: 'builtins:OSError'")[1].startswith("search 1: OSError|")


def test_two_faults_on_one_call_first_is_outermost_and_error_ends_the_chain(tmp_path: Path) -> None:
    both = "tool_faults: [{tool: search, mode: slow, delay_ms: 1}, {tool: search, mode: error}]"
    modes = [met["mode"] for met in run(tmp_path, both).trial("cites", "x")["faults"]]
    assert modes == ["slow", "error"]
    other = "tool_faults: [{tool: search, mode: error}, {tool: search, mode: slow, delay_ms: 1}]"
    modes = [met["mode"] for met in run(tmp_path, other).trial("cites", "x")["faults"]]
    assert modes == ["error"]


def test_a_match_url_that_no_call_meets_proves_nothing(tmp_path: Path) -> None:
    fault = "  - {name: x, tool_faults: [{tool: search, mode: error, match_url: 'https://api/*'}]}\n"
    project(tmp_path, SECTION % "a" + RULES + CALM + fault, AGENT)
    assert tell(tmp_path, "validate").code == 0
    told = tell(tmp_path, "contract", "run", "--json")
    assert told.code == 5
    assert told.cell("cites", "x")["outcome"] == "unproven"


# -- llm_faults -----------------------------------------------------------------------------------
CALM_LLM = "The source says that this is a rather long answer with very many words in it, total"


def test_truncated_response_defaults_to_ten_tokens(tmp_path: Path) -> None:
    ten, three = llm(tmp_path, "mode: truncated_response"), llm(tmp_path, "mode: truncated_response, max_tokens: 3")
    assert ten.split() == CALM_LLM.split()[:10]
    assert three.split() == CALM_LLM.split()[:3]


def test_llm_timeout_and_rate_limit(tmp_path: Path) -> None:
    assert llm(tmp_path, "mode: timeout, delay_ms: 1").startswith("TimeoutError|")
    limited = llm(tmp_path, "mode: rate_limit")
    assert '"status_code": 429' in limited
    assert '"retry_after": 1' in limited
    assert '"retry_after": 7' in llm(tmp_path, "mode: rate_limit, retry_after_s: 7")


def test_llm_empty_and_garbage(tmp_path: Path) -> None:
    assert llm(tmp_path, "mode: empty") in ("", "model:")
    garbage = llm(tmp_path, "mode: garbage")
    assert garbage != CALM_LLM
    assert garbage


DRIFTS = {
    "verbosity_shift": CALM_LLM,
    "format_change": '{"total": 6, "source": "books"}',
    "tone_shift": CALM_LLM,
    "refusal_rephrase": "I'm sorry, but I can't help with that.",
    "json_field_rename": '{"total": 6, "source": "books"}',
}


@pytest.mark.parametrize("drift", DRIFTS)
def test_response_drift_types_change_the_answer(tmp_path: Path, drift: str) -> None:
    said = DRIFTS[drift]
    scenario = f"  - {{name: x, llm_faults: [{{mode: response_drift, drift_type: {drift}, severity: significant}}]}}\n"
    agent = AGENT.replace('return "The source says', f'return {said!r}\n    return "The source says')
    told = contract_run(tmp_path, SECTION % "total" + RULES + CALM + scenario, agent)
    assert f"model: {said}" in told.trial("cites")["answer"].splitlines()
    assert f"model: {said}" not in told.trial("cites", "x")["answer"].splitlines()
    assert [met["effect"] for met in told.trial("cites", "x")["faults"]] == ["met"]


def test_verbosity_shift_has_direction_and_factor(tmp_path: Path) -> None:
    drift = "mode: response_drift, drift_type: verbosity_shift"

    def size(more: str) -> int:
        told = run(tmp_path, f"llm_faults: [{{{drift}{more}}}]")
        return len(told.trial("cites", "x")["answer"].partition("model: ")[2].split())

    calm = len(CALM_LLM.split())
    assert size(", direction: expand, factor: 3") > size(", direction: expand, factor: 1.5") > calm
    assert size(", direction: compress, factor: 3") < calm


def test_llm_schedule(tmp_path: Path) -> None:
    told = run(tmp_path, "llm_faults: [{mode: empty, after_calls: 1}]")
    assert told.trial("cites", "x")["faults"] == []
    assert told.contract["vacuous"] == ["x"]
