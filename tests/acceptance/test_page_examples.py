"""The example on each page of a fault is run, and met; the rule on each page of a check is run, and judged."""

from __future__ import annotations

from typing import Any

from cli import CALM, MakeProject, Result, contract, rule
from page_examples import PageExample, page_examples, scenarios

from holdfast import plugins

DESK = """
import time

calls = 0


def search(name):
    global calls
    calls += 1
    return {"price": "$24.90", "left": calls, "id": "K1", "sizes": [1, 2, 3, 4]}


def model(question, facts):
    text = f"The kettle costs {facts.get('price')}, according to the stock list. " * 2
    return {"text": text, "finish_reason": "stop"}


def send_mail(to):
    return {}


def answer(question):
    said, begun = [], time.monotonic()
    for attempt in range(4):
        if time.monotonic() - begun > 1:
            break  # late enough
        try:
            said.append(model(question, search("kettle"))["text"])
        except TimeoutError:
            break
        except Exception as failed:
            said.append(f"{type(failed).__name__}")
    return " ".join(map(str, said)) or "I cannot see the stock."
"""
FUNCTIONS = {
    "type": "python",
    "endpoint": "agent:answer",
    "tools": ["agent:search", "agent:send_mail"],
    "llm": "agent:model",
}
# The tools that the rules on the pages of checks name: this agent has them, and does not call them.
NAMED = ("check_balance", "issue_refund", "lookup_order", "market_data_api", "send_payment")


def unmet(result: Result) -> list[str]:
    """Scenarios whose fault was not met, and why."""
    cells = [cell for cell in result.part["cells"] if cell["scenario"] != "calm"]
    return [f"{cell['scenario']}: {cell['outcome']} {cell['reason']}" for cell in cells if not cell["met"]]


def test_the_example_of_every_fault_of_functions_and_of_every_attack_is_met(project: MakeProject) -> None:
    matrix: list[Any] = [CALM, *scenarios("tool_faults", "llm_faults", "context_attacks")]
    assert len(matrix) > 30
    made = project(contract([rule("ends", "ending", one_of=["answered", "raised"])], matrix, agent=FUNCTIONS), DESK)
    result = made.cli("contract", "run", "--json", "--no-report", "-j", "8")
    assert unmet(result) == []
    assert result.code == 0, result.err


def test_the_rule_of_every_check_that_needs_no_world_is_judged(project: MakeProject) -> None:
    shown = [one for one in page_examples() if one.section == "invariants"]
    rules = [{"description": one.name, **one.content[0]} for one in shown if "rule" in one.words and not _in_world(one)]
    assert len(rules) > 20
    down = {"name": "down", "tool_faults": [{"tool": "search", "mode": "error"}]}
    tools = ["agent:search", *(f"agent:{name}" for name in NAMED)]
    source = DESK + "".join(f"\n\ndef {name}():\n    return {{}}\n" for name in NAMED)
    made = project(contract(rules, [CALM, down], agent={**FUNCTIONS, "tools": tools, "isolation": "inline"}), source)
    result = made.cli("contract", "run", "--json", "--no-report")
    wrong = [f"{cell['invariant']}: {cell['reason']}" for cell in result.part["cells"] if cell["outcome"] == "error"]
    assert wrong == []
    counted = {cell["invariant"] for cell in result.part["cells"] if cell["outcome"] in ("pass", "fail")}
    assert len(counted) > len(rules) * 2 / 3, [one["id"] for one in rules if one["id"] not in counted]


def _in_world(one: PageExample) -> bool:
    """Whether its check reads what was left behind, or asks a model."""
    check = plugins.find("checks", one.name)
    return check.traits.reads == "state" or check.traits.asks_model
