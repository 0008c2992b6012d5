"""Any text an agent can send is a result: halves of characters, null bytes and bytes that are no text end no run."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli import CALM, MakeProject, Project, Result, Serve, contract, python, rule, tool_fault
from files1 import project as world_project
from files1 import tell
from plane_agents import ECHO, SCRIPTED, command, equip, server
from test_mcp_cli import SERVERS, SHOP, USES

HALVED = [rule("answers", "completes"), rule("whole", value="left\ufffdright")]
NEVER = [rule("no", value="unicorn")]
FILES = ("r.html", "r.json", "r.xml", "r.md")


Ask = Callable[..., Result]


def asking(made: Project, kept_apart: str = "") -> Ask:
    """How a command is given: an inline agent is imported by a process of its own, and not by this one."""
    return made.command if kept_apart == "inline" else made.cli


def reported(made: Project, code: int, kept_apart: str = "") -> Result:
    """A run with every report; each can be read, and the run be judged again from what it stored."""
    ask = asking(made, kept_apart)
    result = ask("contract", "run", "--json", *[part for name in FILES for part in ("-o", name)])
    assert result.code == code, result.out + result.err
    for name in FILES:
        assert (made.folder / name).read_bytes().decode(), name
    ET.parse(made.folder / "r.xml")
    assert json.loads(made.read("r.json")) == result.json
    assert "error" not in result.outcomes.values()
    assert ask("judge", "0001").code == code
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
        (200, b'{"output": "left\xffright"}'),
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
    assert noted(reported(made, 0, kept_apart))


@APART
@pytest.mark.parametrize("what", DOES)
def test_what_a_python_agent_does_with_odd_text_is_its_result(project: MakeProject, kept_apart: str, what: str) -> None:
    matrix = [CALM, *({**tool_fault(mode), "name": mode} for mode in MODES)]
    made = project(contract(NEVER, matrix, agent=python(isolation=kept_apart)), _agent(DOES[what]))
    reported(made, 1, kept_apart)


@APART
@pytest.mark.parametrize("source", [r"import sys; sys.exit('\ud800')", r"raise ImportError('\ud800')"])
def test_an_import_that_fails_with_odd_words_is_told(project: MakeProject, kept_apart: str, source: str) -> None:
    made = project(contract(NEVER, agent=python(isolation=kept_apart)), source)
    ask = asking(made, kept_apart)
    result = ask("contract", "run", "--json")
    assert (result.code, "\ufffd" in result.json["errors"][0]["message"]) == (4, True), result.err
    assert ask("contract", "run").code == 4


def _agent(body: str) -> str:
    return f"def search(query):\n    return [query, '\\ud800']\n\ndef ask(prompt):\n    {body}\n"


# -- commands and servers that Holdfast starts --------------------------------------------------------
PRINTS = {
    "bytes": (r"sys.stdout.buffer.write(b'left\xffright')", {}),
    "nulls": (r"sys.stdout.buffer.write(b'\x00left\xffright\x00'); sys.stderr.buffer.write(b'\xff\x00')", {}),
    "JSON": (r"""print('{"said": "left\\ud800right", "\\udfff": 1}')""", {"response_path": "$.said"}),
}


@pytest.mark.parametrize("what", PRINTS)
def test_bytes_that_are_no_text_are_what_a_command_said(project: MakeProject, what: str) -> None:
    source, settings = PRINTS[what]
    reported(project(contract(HALVED, agent=command(**settings)), f"import sys\n{source}\n"), 0)


def test_a_command_that_fails_with_odd_words_is_judged(project: MakeProject) -> None:
    source = r"import sys; sys.stderr.buffer.write(b'\xff\xed\xa0\x80\x00\n'); sys.exit('\udcff')"
    reported(project(contract(NEVER, agent=command()), source), 1)


def test_half_a_character_of_a_server_that_is_started_is_text(project: MakeProject) -> None:
    source = "import serves\nserves.answer = lambda prompt: 'left\\ud800right'\nserves.main()\n"
    assert noted(reported(equip(project(contract(HALVED, agent=server()), source)), 0))


# -- what goes through the planes ---------------------------------------------------------------------
ANSWERS = [rule("answers", "completes")]
LEFT = """
version: 1
id: notes
task: {prompt: "Write the note."}
agent: {type: command, command: "python bot.py"}
invariants:
  written: {description: "The note is there", check: {type: file_content, path: out/note.txt, contains: done}}
  shown: {description: "It can be read", check: {type: command_exit, command: "cat out/*.txt; ls out"}}
  nothing: {description: "Nothing is changed", check: {type: files_changed_only, paths: [kept/]}}
"""
SPEAKS = r"""
import json, os, sys, talk
call = {"id": "\ud800", "type": "function", "function": {"name": "find", "arguments": "{\"q\": \"\\ud800\"}"}}
result = {"role": "tool", "tool_call_id": "\ud800", "content": "\ud800"}
said = talk.chat([{"role": "user", "content": "\ud800"}], ["find\ud800"], model="m\ud800"), talk.chat(
    [{"role": "assistant", "tool_calls": [call]}, result], ["find"])
url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
odd = talk.request("POST", url, b'{"model": "m", "messages": [{"role": "user", "content": "\xff"}]}')
print(json.dumps([status for status, _ in (*said, odd)]), talk.ask("again"))
"""
CRIES = r"""
import base64, os, socket, sys
from urllib.parse import urlsplit
proxy, own = urlsplit(os.environ["HTTP_PROXY"]), urlsplit(os.environ["OPENAI_BASE_URL"])
word = b"proxy-authorization: Basic " + base64.b64encode(f"{proxy.username}:{proxy.password}".encode()) + b"\r\n"
said = []
for line in (b"GET http://[::1 HTTP/1.1", b"CONNECT \xff:1 HTTP/1.1", b"CONNECT a:x HTTP/1.1",
             b"GET http://a:-1 HTTP/1.1", b"GET http://a/ HTTP/1.1\r\ncontent-length: -1",
             b"GET http://a/ HTTP/1.1\r\nx: a\rb",
             b"POST " + own.path.encode() + b"/chat/completions HTTP/1.1\r\nx\0: y", b"\xff", b"GET http:// HTTP/1.1"):
    with socket.create_connection((proxy.hostname, proxy.port)) as client:
        client.sendall(line + b"\r\n" + word + b"\r\n")
        said.append(client.recv(100).split()[1:2])
print(*[status[0].decode() for status in said])
"""
DOWN = {"name": "down", "llm_faults": [{"mode": "garbage"}], "tool_faults": [{"tool": "find", "mode": "malformed"}]}


def test_half_a_character_in_model_calls_ends_nothing(project: MakeProject) -> None:
    spec = contract(ANSWERS, [CALM, DOWN], agent=command(), models=SCRIPTED)
    reported(equip(project(spec, SPEAKS), ECHO), 0)


def test_hostile_requests_to_the_proxy_get_400_and_are_notes_of_the_trial(project: MakeProject) -> None:
    rules = [rule("answers", "completes"), rule("refused", value=" ".join(["400"] * 9))]
    spec = contract(rules, [CALM], agent=command(), models=SCRIPTED)
    result = reported(equip(project(spec, CRIES), ECHO), 0)
    assert any("400" in note for note in result.trials[0]["notes"])


FETCHES = r"""
import http.client, os
from base64 import b64encode
from urllib.parse import urlsplit
proxy = urlsplit(os.environ["HTTP_PROXY"])
word = "Basic " + b64encode(f"{proxy.username}:{proxy.password}".encode()).decode()
line = http.client.HTTPConnection(proxy.hostname, proxy.port)
head = {"Proxy-Authorization": word, "Content-Type": "application/json", "Idempotency-Key": "\xff"}
line.request("POST", os.environ["URL"] + "/%ff?%ed%a0%80=%00", b'{"q": "\\ud800\xff", "\\udfff": "\x00"}', head)
print(line.getresponse().status)
"""


@pytest.mark.parametrize("mode", ["malformed", "partial", "schema_drift", "wrong_value"])
def test_half_a_character_in_http_bodies_ends_nothing(project: MakeProject, serve: Serve, mode: str) -> None:
    there = serve(
        lambda asked: (200, rb'{"rows": [{"a": "\ud800", "n": 12}, {"a": "b", "n": 34}], "\udfff": "\ud800"}')
    )
    fault = {"tool": "rows", "match_url": f"{there.url}/*", "mode": mode}
    matrix = [CALM, {"name": "bad", "tool_faults": [fault]}]
    made = project(contract(ANSWERS, matrix, agent=command(env={"URL": there.url})), FETCHES)
    reported(made, 0)


@pytest.mark.parametrize(
    "fault", [{"mode": "malformed"}, {"mode": "schema_drift"}, {"mode": "oversized", "bytes": 5000}]
)
def test_half_a_character_in_mcp_calls_and_results_ends_nothing(project: MakeProject, fault: dict[str, Any]) -> None:
    calls = [["find", {"q": "\ud800", "\udfff": ["\0"]}], ["no\ud800", {"q": "x"}]]
    agent = command(env={"CALLS": json.dumps(calls)}, mcp_config=SERVERS)
    matrix = [CALM, {"name": "bad", "tool_faults": [{"tool": "find", **fault}]}]
    reported(equip(project(contract(ANSWERS, matrix, agent=agent), USES), shop=SHOP), 0)


def test_odd_names_and_bytes_in_files_are_what_the_agent_left(tmp_path: Path) -> None:
    agent = r"""
import os, sys
os.mkdir("out")
open("out/note.txt", "wb").write(b"done \xff\xed\xa0\x80\x00")
open(b"out/\xff\xed\xa0\x80\n.txt", "wb").write(b"\xff")
os.symlink(b"\xff", b"out/\xfe")
sys.stdout.buffer.write(b"\xff ok \xed\xa0\x80\x00")
"""
    world_project(tmp_path, LEFT, agent)
    told = tell(tmp_path, "run", "--json", *[part for name in FILES for part in ("-o", name)])
    (case,) = told.json["parts"]["scenario"]["cases"]
    outcomes = {v["invariant"]: v["outcome"] for v in case["replicas"][0]["verdicts"]}
    assert (told.code, outcomes) == (1, {"written": "pass", "shown": "pass", "nothing": "fail"}), told.out + told.err
    for name in FILES:
        assert (tmp_path / name).read_bytes().decode(), name
    assert tell(tmp_path, "judge", "0001").code == 1
