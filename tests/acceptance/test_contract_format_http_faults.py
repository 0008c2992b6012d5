"""The contract format, HTTP agents under faults: attacks on the input, `simulate: answer`, secrets, turns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from files1 import (
    CALM,
    RULES,
    HttpAgent,
    Told,
    contract_run,
    errors_of,
    http_agent,
    http_section,
    project,
    stored,
    tell,
    text_of,
)

from page_documents import documents


def source(request: Any) -> Any:
    return {"output": "source"}


# -- faults ---------------------------------------------------------------------------------------
FAULTS = {
    "tool_faults": "[{tool: search, mode: error}]",
    "llm_faults": "[{mode: truncated_response, max_tokens: 1}]",
    "context_attacks": "[{type: indirect_injection}]",
}


@pytest.mark.parametrize("family", FAULTS)
def test_faults_of_a_running_agent_are_refused_with_the_ways_out(tmp_path: Path, family: str) -> None:
    spec = http_section(HttpAgent("http://h")) + RULES + CALM + f"  - {{name: x, {family}: {FAULTS[family]}}}\n"
    (problem,) = errors_of(tmp_path, spec)
    assert problem.code == "unreachable-fault"
    for way in ("agent.command", "agent.gateway", "agent.simulate: answer"):
        assert way in problem.hint


ATTACKS = {
    "memory_poisoning": "payload: ZEBRA",
    "overflow": "inject_tokens: 50",
    "conflicting_context": "",
    "injection_via_context": "",
}


@pytest.mark.parametrize("kind", ATTACKS)
def test_context_attacks_on_the_input_are_met_by_a_running_agent(tmp_path: Path, kind: str) -> None:
    with http_agent(source) as agent:
        attack = f"  - {{name: x, context_attacks: [{{type: {kind}, {ATTACKS[kind]}}}]}}\n"
        told = contract_run(tmp_path, http_section(agent) + RULES + CALM + attack)
        assert told.code == 0, told
        assert told.cell("cites", "x")["met"] is True
        asked = [r.json["input"] for r in agent.asked()]
    changed = [text for text in asked if text != "What is the total?"]
    assert len(changed) == 1
    assert "What is the total?" in changed[0]
    assert len(changed[0]) > len("What is the total?") + 4


def test_an_attack_that_the_template_has_no_place_for_is_noted(tmp_path: Path) -> None:
    more = """, request_template: '{"fixed": "{topic}"}'"""
    attack = "  - {name: x, context_attacks: [{type: memory_poisoning, payload: ZEBRA}]}\n"
    with http_agent(source) as agent:
        spec = http_section(agent, more, prompts='["topic: cats"]')
        told = contract_run(tmp_path, spec + RULES + CALM + attack)
    assert any("did not reach" in note for note in told.trial("cites", "x")["notes"])
    assert [fault["effect"] for fault in told.trial("cites", "x")["faults"]] == ["no_effect"]
    assert told.cell("cites", "x")["outcome"] == "unproven"


# -- agent.simulate: answer -----------------------------------------------------------------------
SIMULATED = CALM + "  - {name: cut, llm_faults: [{mode: truncated_response, max_tokens: 3}]}\n"


def _simulated(folder: Path, *args: str) -> Told:
    with http_agent(lambda r: {"output": "one two three four five source"}) as agent:
        project(folder, http_section(agent, ", simulate: answer") + RULES.replace("source}", "one}") + SIMULATED)
        return tell(folder, "contract", "run", *args)


def test_simulate_answer_damages_the_answer(tmp_path: Path) -> None:
    told = _simulated(tmp_path, "--json")
    assert told.code == 0
    assert "five" not in told.trial("cites", "cut")["answer"]
    assert (told.cell("cites", "cut")["simulated"], told.cell("cites")["simulated"]) == (True, False)
    assert any("simulated" in note for note in told.json["notes"])
    assert any("simulated" in note for note in told.trial("cites", "cut")["notes"])


def test_simulated_cells_are_marked_in_the_terminal_even_when_they_pass(tmp_path: Path) -> None:
    told = _simulated(tmp_path)
    row = next(line for line in told.out.splitlines() if line.lstrip().startswith("cites"))
    assert row.split()[-3:] == ["✔", "✔", "s"]
    assert "s simulated" in told.out


@pytest.mark.parametrize("suffix", ["xml", "md", "html"])
def test_simulated_cells_are_marked_in_files_even_when_they_pass(tmp_path: Path, suffix: str) -> None:
    told = _simulated(tmp_path, "-o", f"r.{suffix}")
    assert told.code == 0
    text = (tmp_path / f"r.{suffix}").read_text()
    if suffix == "xml":
        from xml.etree import ElementTree

        cases = {
            c.get("classname"): ElementTree.tostring(c, "unicode")
            for c in ElementTree.fromstring(text).iter("testcase")
        }
        assert "simulated" in cases["cut"]
        assert "simulated" not in cases["no-chaos"]
    elif suffix == "md":
        row = next(line for line in text.splitlines() if line.startswith("| cites"))
        assert row == "| cites | medium | ✔ | ✔ s |"
        assert "s simulated" in text
    else:
        matrix = documents(text)["run/matrix"]
        assert [matrix["strings"][flags] for flags in matrix["flags"]] == ["", "simulated"]


def test_simulate_on_a_python_agent_is_refused(tmp_path: Path) -> None:
    spec = "agent: {type: python, endpoint: 'bot:answer', simulate: answer}\ngolden_prompts: [x]\n" + RULES + CALM
    (problem,) = errors_of(tmp_path, spec)
    assert problem.path == "agent.simulate"


# -- headers from variables -----------------------------------------------------------------------
def test_headers_from_a_variable_are_masked_in_all_stored_files(tmp_path: Path) -> None:
    secret = "tok-8d1f22aa"
    with http_agent(lambda r: {"output": f"source {r.headers['X-Key']}"}) as agent:
        project(tmp_path, http_section(agent, ', headers: {X-Key: "${MY_KEY}"}') + RULES + CALM)
        told = tell(
            tmp_path, "contract", "run", "-o", "r.json", "-o", "r.md", "-o", "r.xml", "-o", "r.html", MY_KEY=secret
        )
        assert agent.asked()[0].headers["X-Key"] == secret
    assert told.code == 0
    for text in (
        told.out,
        told.err,
        stored(tmp_path),
        *(text_of(tmp_path / f"r.{s}") for s in ("json", "md", "xml", "html")),
    ):
        assert secret not in text


# -- several turns --------------------------------------------------------------------------------
def test_turns_of_a_task_keep_their_cookies_and_are_asked_in_order(tmp_path: Path) -> None:
    with http_agent(lambda r: (200, {"output": "source"}, {"Set-Cookie": "sid=7"})) as agent:
        spec = f"agent: {{endpoint: '{agent.url}/ask'}}\ntask: {{prompt: one, turns: [two, three]}}\n"
        told = contract_run(tmp_path, spec + RULES + CALM, "", "--no-preflight")
        assert told.code == 0
        assert [r.json["input"] for r in agent.asked()] == ["one", "two", "three"]
        assert [r.headers.get("Cookie") for r in agent.asked()] == [None, "sid=7", "sid=7"]
