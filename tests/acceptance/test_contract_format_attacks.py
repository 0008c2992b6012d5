"""The contract format, chaos: context attacks, profiles, and faults that are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from files1 import CALM, RULES, contract_run, errors_of, http_agent, project, spec_of, tell
from telling_agent import AGENT, SECTION, run


# -- context_attacks ------------------------------------------------------------------------------
def asked(folder: Path, attack: str) -> str:
    told = run(folder, f"context_attacks: {attack}")
    (met,) = told.trial("cites", "x")["faults"]
    assert met["effect"] == "met"
    return str(told.trial("cites", "x")["answer"]).partition("\nsearch 1: ")[0].removeprefix("asked ")


@pytest.mark.parametrize(("strategy", "wanted"), [("prepend", "start"), ("append", "end"), ("replace", "alone")])
def test_memory_poisoning_payload_and_strategy(tmp_path: Path, strategy: str, wanted: str) -> None:
    text = asked(tmp_path, f"[{{type: memory_poisoning, payload: ZEBRA, strategy: {strategy}}}]")
    place = {"start": text.find("ZEBRA") < text.find("total"), "end": 0 <= text.find("total") < text.find("ZEBRA")}
    assert "ZEBRA" in text
    assert place.get(wanted, "total" not in text)


def test_the_dict_form_is_the_list_form(tmp_path: Path) -> None:
    text = asked(tmp_path, "{memory_poisoning: {payload: ZEBRA, strategy: replace}}")
    assert "ZEBRA" in text
    assert "total" not in text


def test_payloads_are_chosen_from(tmp_path: Path) -> None:
    text = asked(tmp_path, "[{type: injection_via_context, payloads: [ZEBRA, OKAPI]}]")
    assert ("ZEBRA" in text) != ("OKAPI" in text)


def test_overflow_tokens_and_place(tmp_path: Path) -> None:
    short, long = (asked(tmp_path, f"[{{type: overflow, inject_tokens: {n}}}]") for n in (20, 400))
    assert len(long) > 5 * len(short)
    assert short.endswith("total")
    assert asked(tmp_path, "[{type: overflow, inject_tokens: 20, inject_at: end}]").startswith("total")


def test_conflicting_context_keeps_the_question(tmp_path: Path) -> None:
    assert "total" in asked(tmp_path, "[{type: conflicting_context}]")


def test_indirect_injection_comes_with_tool_results(tmp_path: Path) -> None:
    told = run(tmp_path, "context_attacks: [{type: indirect_injection, payloads: [ZEBRA]}]")
    lines = told.trial("cites", "x")["answer"].splitlines()
    assert lines[0] == "asked total"
    assert "source on total" in told.trial("cites", "x")["answer"]
    assert "ZEBRA" in told.trial("cites", "x")["answer"]


def test_trigger_probability_is_probability(tmp_path: Path) -> None:
    spec = spec_of(
        tmp_path,
        SECTION % "a"
        + RULES
        + CALM
        + "  - {name: x, context_attacks: [{type: overflow, trigger_probability: 0.25}]}\n",
    )
    assert spec.scenario("x").injections[0].schedule.probability == 0.25
    told = run(tmp_path, "context_attacks: [{type: memory_poisoning, payload: ZEBRA, trigger_probability: 0}]")
    assert "ZEBRA" not in told.trial("cites", "x")["answer"]
    assert told.code == 5


# -- profiles -------------------------------------------------------------------------------------
PROFILES = {
    "api_outage": {"tool", "llm"}, "degraded_llm": {"llm"}, "hostile_tools": {"tool", "context"},
    "high_latency": {"tool", "llm"}, "indirect_injection": {"context"}, "cascading_failure": {"tool", "llm"},
    "model_version_drift": {"llm"},
}  # fmt: skip


@pytest.mark.parametrize("name", PROFILES)
def test_every_documented_profile_has_its_faults(tmp_path: Path, name: str) -> None:
    spec = spec_of(tmp_path, SECTION % "a" + RULES + CALM + f"  - {{name: x, profile: {name}}}\n")
    scenario = spec.scenario("x")
    assert {injection.plane for injection in scenario.injections} == PROFILES[name]
    assert scenario.left_out == ()


def test_a_profile_comes_before_the_scenarios_own_faults(tmp_path: Path) -> None:
    own = "  - {name: x, profile: degraded_llm, tool_faults: [{tool: search, mode: error}]}\n"
    modes = [i.mode for i in spec_of(tmp_path, SECTION % "a" + RULES + CALM + own).scenario("x").injections]
    assert modes == ["rate_limit", "truncated_response", "error"]


def test_faults_of_a_profile_that_the_agent_cannot_meet_are_left_out_by_name(tmp_path: Path) -> None:
    section = (SECTION % "a").replace(', llm: "bot:model"', ", isolation: inline")
    spec = section + RULES + CALM + "  - {name: x, profile: api_outage}\n"
    assert spec_of(tmp_path, spec).scenario("x").left_out == ("llm timeout",)
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
def test_the_chaos_section_does_not_leak_into_the_contracts_scenarios(tmp_path: Path) -> None:
    spec = SECTION % "total" + RULES + CALM + "chaos: {tool_faults: [{tool: search, mode: error}]}\n"
    told = contract_run(tmp_path, spec, AGENT)
    assert told.trial("cites")["faults"] == []
    assert "source on total" in told.trial("cites")["answer"]


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
