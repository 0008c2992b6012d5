"""The contract format, chaos: context attacks, profiles, and faults that are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from files1 import CALM, RULES, contract_run, errors_of, http_agent, project, spec_of, tell
from telling_agent import AGENT, SECTION, run

# -- context_attacks ------------------------------------------------------------------------------


def test_indirect_injection_comes_with_tool_results(tmp_path: Path) -> None:
    told = run(tmp_path, "context_attacks: [{type: indirect_injection, payloads: [ZEBRA]}]")
    lines = told.trial("cites", "x")["answer"].splitlines()
    assert lines[0] == "asked total"
    assert "source on total" in told.trial("cites", "x")["answer"]
    assert "ZEBRA" in told.trial("cites", "x")["answer"]


# -- profiles -------------------------------------------------------------------------------------
PROFILES = {
    "api_outage": {"tool", "llm"}, "degraded_llm": {"llm"}, "hostile_tools": {"tool", "context"},
    "high_latency": {"tool", "llm"}, "indirect_injection": {"context"}, "cascading_failure": {"tool", "llm"},
    "model_version_drift": {"llm"},
}  # fmt: skip


@pytest.mark.parametrize("name", PROFILES)
def test_every_documented_profile_has_its_faults(tmp_path: Path, name: str) -> None:
    spec = spec_of(tmp_path, SECTION % "a" + RULES + CALM + f"  - {{name: x, profile: {name}}}\n")
    scenario = spec.get_scenario("x")
    assert {injection.plane for injection in scenario.injections} == PROFILES[name]
    assert scenario.left_out == ()


def test_faults_of_a_profile_that_the_agent_cannot_meet_are_left_out_by_name(tmp_path: Path) -> None:
    section = (SECTION % "a").replace(', llm: "bot:model"', ", isolation: inline")
    spec = section + RULES + CALM + "  - {name: x, profile: api_outage}\n"
    assert spec_of(tmp_path, spec).get_scenario("x").left_out == ("llm timeout",)
    told = contract_run(tmp_path, spec, AGENT.replace("model(prompt)", "str(prompt)"))
    assert [note for note in told.json["notes"] if "llm timeout" in note]


def test_profile_option_adds_a_scenario(tmp_path: Path) -> None:
    project(tmp_path, SECTION % "total" + RULES, AGENT)
    told = tell(tmp_path, "contract", "run", "--json", "--profile", "degraded_llm")
    assert [cell["scenario"] for cell in told.contract["cells"]] == ["no-chaos", "degraded_llm"]
    wrong = tell(tmp_path, "contract", "run", "--profile", "degraded_lm")
    assert wrong.code == 4
    assert "did you mean degraded_llm?" in wrong.err


# -- chaos ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", [
    "tool_faults: [{mode: error}]",
    "tool_faults: [{tool: search}]",
    "tool_faults: [{tool: search, mode: error, error_code: 42}]",
    "tool_faults: [{tool: search, mode: error, delay_ms: 5}]",
    "tool_faults: [{tool: search, mode: error, probability: 2}]",
    "tool_faults: [{tool: search, mode: error, after_calls: -1}]",
    "tool_faults: [{tool: search, mode: error, raises: KeyError}]",
    "tool_faults: {tool: search, mode: error}",
    "llm_faults: [{mode: response_drift, drift_type: moody}]",
    "llm_faults: [{mode: response_drift, severity: huge}]",
    "llm_faults: [{mode: truncated_response, retry_after_s: 1}]",
    "llm_faults: [{}]",
    "context_attacks: [{type: overflow, inject_tokens: 0}]",
    "context_attacks: [{type: memory_poisoning, strategy: sideways}]",
    "context_attacks: [{payload: x}]",
    "context_attacks: {memory_poisoned: {}}",
    "tool_faults:",
])  # fmt: skip
def test_a_wrong_fault_is_an_error(tmp_path: Path, fault: str) -> None:
    found = errors_of(tmp_path, SECTION % "a" + RULES + CALM + f"  - name: x\n    {fault}\n")
    assert len(found) == 1, found
    assert found[0].path.startswith("chaos_matrix[1].")


# -- an agent that Holdfast did not start ---------------------------------------------------------
def test_simulated_tool_error_and_timeout_are_endings(tmp_path: Path) -> None:
    def ended(mode: str) -> Any:
        with http_agent(lambda r: {"output": "source"}) as agent:
            section = f"agent: {{endpoint: {agent.url}/ask, simulate: answer}}\ngolden_prompts: [x]\n"
            told = contract_run(
                tmp_path, section + RULES + CALM + f"  - {{name: x, tool_faults: [{{tool: any, mode: {mode}}}]}}\n"
            )
            return told.trial("cites", "x")["ending"], told.cell("cites", "x")["simulated"]

    assert ended("error") == ("http_error", True)
    assert ended("timeout, delay_ms: 1") == ("timeout", True)
