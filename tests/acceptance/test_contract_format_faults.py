"""The contract format, chaos: every key of tool and model faults changes what is met."""

from __future__ import annotations

from pathlib import Path

from files1 import CALM, RULES, project, tell
from telling_agent import AGENT, SECTION, run


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


def test_slow_gives_the_real_reply_late(tmp_path: Path) -> None:
    told = run(tmp_path, "tool_faults: [{tool: search, mode: slow, delay_ms: 250}]")
    assert "source on total" in told.trial("cites", "x")["answer"]
    assert 250 <= told.trial("cites", "x")["latency_ms"] < 5000


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
