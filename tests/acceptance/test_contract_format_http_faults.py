"""The contract format, HTTP agents under faults: attacks on the input, `simulate: answer`, secrets, turns."""

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


# -- several turns --------------------------------------------------------------------------------
def test_turns_of_a_task_keep_their_cookies_and_are_asked_in_order(tmp_path: Path) -> None:
    with http_agent(lambda r: (200, {"output": "source"}, {"Set-Cookie": "sid=7"})) as agent:
        spec = f"agent: {{endpoint: '{agent.url}/ask'}}\ntask: {{prompt: one, turns: [two, three]}}\n"
        told = contract_run(tmp_path, spec + RULES + CALM, "", "--no-preflight")
        assert told.code == 0
        assert [r.json["input"] for r in agent.asked()] == ["one", "two", "three"]
        assert [r.headers.get("Cookie") for r in agent.asked()] == [None, "sid=7", "sid=7"]
