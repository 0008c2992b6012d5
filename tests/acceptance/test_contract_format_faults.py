"""The contract format, chaos: attacks on the input, faults of tools, `simulate: answer`."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from files1 import (
    CALM,
    RULES,
    Told,
    contract_run,
    http_agent,
    http_section,
    project,
    tell,
)

from page_documents import documents

AGENT = """
import json


def search(query):
    return "source on " + query


def look(query, limit=3):
    return {"rows": [1, 2, 3, 4, 5, 6], "total": 6, "text": "source " + query}


def model(prompt):
    return "The source says that this is a rather long answer with very many words in it, " + prompt


def tried(call, *args):
    try:
        return call(*args)
    except Exception as failure:
        told = {name: getattr(failure, name, None) for name in ("status_code", "retry_after", "body")}
        return f"{type(failure).__name__}|{failure}|{json.dumps(told, default=str)}"


def answer(prompt):
    calls = int(prompt) if prompt.isdigit() else 1
    lines = [f"asked {prompt}"]
    for n in range(calls):
        lines.append(f"search {n + 1}: {tried(search, prompt)}")
    lines.append(f"look: {tried(look, prompt)}")
    lines.append(f"model: {tried(model, prompt)}")
    return "\\n".join(str(line) for line in lines)
"""
SECTION = """
agent: {type: python, endpoint: "bot:answer", tools: ["bot:search", "bot:look"], llm: "bot:model"}
golden_prompts: [%s]
"""


def run(folder: Path, scenario: str, prompt: str = "total", *args: str) -> Told:
    """A run of that one scenario."""
    spec = SECTION % prompt + RULES + CALM + f"  - {{name: x, {scenario}}}\n"
    return contract_run(folder, spec, AGENT, "--scenario", "x", *args)


def source(request: Any) -> Any:
    return {"output": "source"}


# -- faults ---------------------------------------------------------------------------------------


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


def test_simulated_cells_are_marked_in_every_report_even_when_they_pass(tmp_path: Path) -> None:
    told = _simulated(tmp_path, "-o", "r.xml", "-o", "r.md", "-o", "r.html")
    assert told.code == 0
    row = next(line for line in told.out.splitlines() if line.lstrip().startswith("cites"))
    assert row.split()[-3:] == ["✔", "✔", "s"]
    assert "s simulated" in told.out
    xml, md, html = ((tmp_path / f"r.{suffix}").read_text() for suffix in ("xml", "md", "html"))
    cases = {
        case.get("classname"): ElementTree.tostring(case, "unicode")
        for case in ElementTree.fromstring(xml).iter("testcase")
    }
    assert ("simulated" in cases["cut"], "simulated" in cases["no-chaos"]) == (True, False)
    assert "| cites | medium | ✔ | ✔ s |" in md.splitlines()
    assert "s simulated" in md
    matrix = documents(html)["run/matrix"]
    assert [matrix["strings"][flags] for flags in matrix["flags"]] == ["", "simulated"]


# -- context_attacks ------------------------------------------------------------------------------


def test_indirect_injection_comes_with_tool_results(tmp_path: Path) -> None:
    told = run(tmp_path, "context_attacks: [{type: indirect_injection, payloads: [ZEBRA]}]")
    lines = told.trial("cites", "x")["answer"].splitlines()
    assert lines[0] == "asked total"
    assert "source on total" in told.trial("cites", "x")["answer"]
    assert "ZEBRA" in told.trial("cites", "x")["answer"]


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


# -- tool_faults: target and schedule -------------------------------------------------------------


def test_a_match_url_that_no_call_meets_proves_nothing(tmp_path: Path) -> None:
    fault = "  - {name: x, tool_faults: [{tool: search, mode: error, match_url: 'https://api/*'}]}\n"
    project(tmp_path, SECTION % "a" + RULES + CALM + fault, AGENT)
    assert tell(tmp_path, "validate").code == 0
    told = tell(tmp_path, "contract", "run", "--json")
    assert told.code == 5
    assert told.cell("cites", "x")["outcome"] == "unproven"
