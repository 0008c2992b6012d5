"""Any text an agent can send is a result: halves of characters, null bytes and bytes that are no text end no run."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

import pytest
from cli import CALM, MakeProject, Project, Result, Serve, contract, python, rule, tool_fault

HALVED = [rule("answers", "completes"), rule("whole", value="left\ufffdright")]
NEVER = [rule("no", value="unicorn")]
FILES = ("r.html", "r.json", "r.xml", "r.md")


def reported(made: Project, code: int) -> Result:
    """The real command with every report; each can be read, and the run be judged again from what it stored."""
    result = made.command("contract", "run", "--json", *[part for name in FILES for part in ("-o", name)])
    assert result.code == code, result.out + result.err
    for name in FILES:
        assert (made.folder / name).read_bytes().decode(), name
    ET.parse(made.folder / "r.xml")
    assert json.loads(made.read("r.json")) == result.json
    assert "error" not in result.outcomes.values()
    assert made.command("judge", "0001").code == code
    return result


def noted(result: Result) -> bool:
    return any("\ufffd" in note for trial in result.trials for note in trial["notes"])


# -- HTTP ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "body",
    [
        rb'{"output": "left\ud800right"}',
        rb'{"output": "left\udfffright"}',
        rb'["left\ud800right"]',
        b'{"output": "left\xffright"}',
        b"left\xffright",
    ],
)
def test_a_reply_with_what_is_no_character_is_an_answer(project: MakeProject, serve: Serve, body: bytes) -> None:
    section = serve(lambda asked: (200, body)).section()
    assert noted(reported(project(contract(HALVED, agent=section)), 0))


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, b"left\x00right"),
        (200, rb'{"output": "left\u0000right"}'),
        (200, rb'{"output": {"left\ud800": "\udfff", "right": 1}}'),
        (200, rb'{"error": "left\ud800", "output": "right"}'),
        (500, rb'{"error": "left\ud800"}'),
        (200, b"\xff\xfe\x00"),
        (500, b"\xff\xfe\x00"),
    ],
)
def test_whatever_a_reply_holds_is_judged(project: MakeProject, serve: Serve, status: int, body: bytes) -> None:
    section = serve(lambda asked: (status, body)).section()
    reported(project(contract(NEVER, agent=section)), 1)


# -- Python -------------------------------------------------------------------------------------------
APART = pytest.mark.parametrize("kept_apart", ["fresh", "worker", "inline"])
MODES = ("error", "malformed", "partial", "wrong_value", "schema_drift", "stale", "oversized", "empty")
SAYS = {
    "text": r"return 'left\ud800right'",
    "an object": r"return type('Reply', (), {'text': 'left\ud800right'})()",
    "pieces": r"yield 'left\ud800'; yield 'right'",
    "JSON": r"return {'left\ud800right': '\udfff'}",
}
DOES = {
    "raises": r"raise ValueError('\ud800\x00')",
    "raises its own": r"raise type('E\ud800', (Exception,), {})('\udfff')",
    "exits": r"import sys; sys.exit('\ud800')",
    "prints": r"print('\ud800\x00')",
    "complains": r"import sys; sys.stderr.write('\ud800\x00\n'); sys.stderr.flush()",
    "sets a variable": r"import os; os.environ['X'] = '\udcff'; return os.environ['X']",
    "makes a file": r"open('\udcff.txt', 'w').close(); import os; return os.listdir('.')",
    "calls": r"search('\ud800' * 9000); search({'\ud800': '\x00'}); search(['\udfff']); return 'done'",
}


@APART
@pytest.mark.parametrize("what", SAYS)
def test_half_a_character_of_a_python_agent_is_text(project: MakeProject, kept_apart: str, what: str) -> None:
    made = project(contract(HALVED, agent=python(isolation=kept_apart)), _agent(SAYS[what]))
    assert noted(reported(made, 0))


@APART
@pytest.mark.parametrize("what", DOES)
def test_what_a_python_agent_does_with_odd_text_is_its_result(project: MakeProject, kept_apart: str, what: str) -> None:
    matrix = [CALM, *({**tool_fault(mode), "name": mode} for mode in MODES)]
    made = project(contract(NEVER, matrix, agent=python(isolation=kept_apart)), _agent(DOES[what]))
    reported(made, 1)


def _agent(body: str) -> str:
    return f"def search(query):\n    return [query, '\\ud800']\n\ndef ask(prompt):\n    {body}\n"
