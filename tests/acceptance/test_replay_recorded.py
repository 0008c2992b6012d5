"""`holdfast replay run`: the recorded tools answer, and every report says how the calls and the recording differ."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from cli import MakeProject, Project, contract, python, rule

AGENT = """
def search(query):
    with open("ran.log", "a") as log: log.write(query)
    return "the real thing"

def book(seat):
    return "booked"

def ask(prompt):
    said = []
    for tool, given in ((search, "x"), (search, "y"), (book, 4)):
        try:
            said.append(str(tool(given)))
        except Exception as failure:
            said.append(f"sorry: {failure}")
    return "; ".join(said)
"""
ANSWERS = [
    {"tool": "search", "response": {"rows": 2}},
    {"tool": "search", "status": 503, "response": "down"},
    {"tool": "weather", "response": "sun"},
    {"tool": "weather", "response": "rain"},
]
UNKNOWN = "the recording has no reply for: book(seat=4)"
NEVER = "never called: weather (2 responses)"


def incident(project: MakeProject, answers: list[dict[str, Any]], **agent: Any) -> Project:
    """A project with a session `s1`, whose tools gave these answers."""
    section = python(tools=["agent:search", "agent:book"], **agent)
    found = project(contract([rule("rows", value="rows")], agent=section), AGENT)
    session = {"id": "s1", "input": "hello", "contract": "The contract", "tool_responses": answers}
    (found.folder / "s1.yaml").write_text(yaml.safe_dump(session))
    return found


@pytest.mark.parametrize("isolation", ["fresh", "worker", "inline"])
def test_the_recorded_tools_answer_and_the_reports_say_what_differs(project: MakeProject, isolation: str) -> None:
    found = incident(project, ANSWERS, isolation=isolation)
    shown = found.cli("replay", "run", "-v", "s1.yaml", "-o", "report.html", "-o", "report.json")
    assert shown.code == 0, shown.out + shown.err
    assert f"note: session s1: {UNKNOWN}" in shown.out
    assert f"note: session s1: {NEVER}" in shown.out
    assert not (found.folder / "ran.log").exists()
    told = (found.folder / "report.json").read_text()
    assert json.loads(told)["passed"] is True
    for text in (told, (found.folder / "report.html").read_text()):
        assert UNKNOWN in text
        assert NEVER in text
    assert "{'rows': 2}; sorry: 503 Service Unavailable: down; sorry: book: " in told


def test_live_lets_the_unknown_call_through(project: MakeProject) -> None:
    shown = incident(project, ANSWERS[:2]).cli("replay", "run", "s1.yaml", "--live", "-o", "report.json")
    assert shown.code == 0, shown.out + shown.err
    assert f"note: session s1: {UNKNOWN}; " in shown.out


def test_a_session_whose_tools_no_longer_exist_is_judged_all_the_same(project: MakeProject) -> None:
    shown = incident(project, [{"tool": "gone", "response": 1}]).cli("replay", "run", "-v", "s1.yaml")
    assert shown.code == 1
    assert "session s1: none of " in shown.out
