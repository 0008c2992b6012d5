"""`hunt --sweep killed,lost_reply`: an agent that writes again after it was killed is found, its fixed twin is not."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
import yaml
from world_runs import ran, spec_of

HOLDFAST = str(Path(sys.executable).with_name("holdfast"))
AGENT = """
    import http.client, json, os

    def pay(order, **headers):
        line = http.client.HTTPConnection(os.environ["PAY_HOST"], int(os.environ["PAY_PORT"]), timeout=10)
        headers = {"content-type": "application/json", **headers}
        line.request("POST", "/charges", json.dumps({"order": order, "amount": 142}), headers)
        line.getresponse().read()

    def defect():
        pay("A-7781")

    def key():
        pay("A-7781", **{"idempotency-key": "order-A-7781"})

    def journal():
        if os.path.exists("journal"):
            return
        with open("journal", "w") as file:
            file.write("A-7781: a charge began")
        pay("A-7781")

    def journal_too_late():
        if os.path.exists("journal"):
            return
        pay("A-7781")
        with open("journal", "w") as file:
            file.write("A-7781: paid")

    def answer(prompt):
        try:
            %s()
        except OSError:
            return "A-7781: nobody knows whether it was paid"
        return "A-7781: paid, or look at the journal"
"""
SCRIPT = """
    from agent_code import answer
    print(answer("go"))
"""
SERVER = """
    import json, os
    from http.server import BaseHTTPRequestHandler, HTTPServer
    from agent_code import answer

    class Desk(BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            body = json.dumps({"output": answer("go")}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *words):
            pass

    HTTPServer(("127.0.0.1", int(os.environ["PORT"])), Desk).serve_forever()
"""
KINDS: dict[str, dict[str, Any]] = {
    "command": {"type": "command", "command": "python3 script.py", "dir": "./code"},
    "python": {"type": "python", "endpoint": "agent_code:answer", "dir": "./code"},
    "http": {
        "type": "http",
        "endpoint": "http://127.0.0.1:{port}/ask",
        "command": "python3 server.py",
        "response_path": "output",
        "dir": "./code",
    },
}
BANK = {
    "name": "pay",
    "type": "http_mock",
    "default_response": 404,
    "routes": [{"method": "POST", "path": "/charges", "status": 201, "response": "{}"}],
}
ONCE = {"once": {"description": "d", "check": {"type": "side_effect_once", "tool": "http://pay/*"}}}


def sweep(folder: Path, kind: str, variant: str) -> dict[str, Any]:
    """What a sweep of this agent finds."""
    code = folder / "code"
    code.mkdir()
    (code / "agent_code.py").write_text(textwrap.dedent(AGENT % variant))
    (code / "script.py").write_text(textwrap.dedent(SCRIPT))
    (code / "server.py").write_text(textwrap.dedent(SERVER))
    (folder / "spec.yaml").write_text(yaml.safe_dump(spec_of(KINDS[kind], services=[BANK], invariants=ONCE)))
    words = [HOLDFAST, "hunt", "spec.yaml", "--sweep", "killed,lost_reply", "--max-trials", "40", "--json"]
    printed = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    found: dict[str, Any] = json.loads(printed.stdout)
    assert "causes" in found, printed.stdout + printed.stderr
    return {**found, "exit": printed.returncode}


@pytest.mark.parametrize("kind", KINDS)
def test_an_agent_that_pays_again_after_it_was_killed_is_found(tmp_path: Path, kind: str) -> None:
    found = sweep(tmp_path, kind, "defect")
    (cause,) = found["causes"]
    assert (cause["rules"], cause["code"], found["exit"]) == (["once"], "done-twice", 1)
    assert [(fault["mode"], fault["after_event"]) for fault in cause["faults"]] == [("killed", {"write": 1})]


@pytest.mark.parametrize("kind", KINDS)
def test_an_agent_that_is_killed_between_its_write_and_its_note_of_it_is_found(tmp_path: Path, kind: str) -> None:
    """The kill comes before the reply: how fast the agent is does not matter."""
    found = sweep(tmp_path, kind, "journal_too_late")
    (cause,) = found["causes"]
    assert [(fault["mode"], fault["after_event"]) for fault in cause["faults"]] == [("killed", {"write": 1})]
    assert (cause["failed"], found["flaky"]) == (cause["runs"], [])


FUNCTION = """
    import os

    def charge(order):
        return "receipt-90412"

    def answer(prompt):
        if not os.path.exists("journal"):
            charge("A-7781")
            with open("journal", "w") as file:
                file.write("A-7781: paid")
        return "A-7781: paid"
"""


def test_a_python_agent_is_killed_before_its_function_returns(tmp_path: Path) -> None:
    agent = {**KINDS["python"], "tools": ["agent_code:charge"]}
    once = {"once": {"description": "d", "check": {"type": "side_effect_once", "tool": "charge"}}}
    spec = spec_of(agent, invariants=once)
    killed = [{"name": "killed", "world_faults": [{"mode": "killed", "after_event": {"write": 1}}]}]
    found = ran(tmp_path, {**spec, "chaos_matrix": killed}, files={"code/agent_code.py": FUNCTION})
    assert [(event.tool, event.phase) for event in found.only.trace] == [("charge", "done"), ("charge", "done")]
    assert [verdict.code for verdict in found.verdicts] == ["done-twice"]


@pytest.mark.parametrize(("kind", "variant"), [("command", "journal"), ("python", "key"), ("http", "journal")])
def test_its_fixed_twin_is_not(tmp_path: Path, kind: str, variant: str) -> None:
    found = sweep(tmp_path, kind, variant)
    assert (found["causes"], found["flaky"], found["exit"]) == ([], [], 0)
    assert {mode: state for row in found["matrix"] for mode, state in row["states"].items()} == {
        "killed": "held",
        "lost_reply": "held",
    }


ASKED = """
    import os, time
    def answer(prompt):
        with open("asked", "a") as file:
            file.write(prompt + "\\n")
        with open("asked") as file:
            if file.read().split() == ["one", "two"]:
                time.sleep(600)
        return prompt
"""


@pytest.mark.parametrize("kind", ["command", "python", "http"])
def test_an_agent_that_was_killed_is_asked_only_what_it_had_not_answered(tmp_path: Path, kind: str) -> None:
    script = "import os\nfrom agent_code import answer\nprint(answer(os.environ['HOLDFAST_PROMPT']))\n"
    server = (
        textwrap.dedent(SERVER)
        .replace("self.rfile", "asked = self.rfile")
        .replace('"go"', 'json.loads(asked)["input"]')
    )
    files = {"code/agent_code.py": ASKED, "code/script.py": script, "code/server.py": server}
    agent = {**KINDS[kind], "timeout": "8s"}
    agent |= {"prompt": "env"} if kind == "command" else {}
    storm = [{"name": "storm", "world_faults": [{"mode": "killed", "after_ms": 4000}]}]
    left = {"type": "file_content", "path": "asked", "pattern": "^one\ntwo\ntwo\nthree\n$"}
    spec = spec_of(
        agent,
        task={"turns": ["one", "two", "three"]},
        chaos_matrix=storm,
        invariants={"asked": {"description": "d", "check": left}},
    )
    found = ran(tmp_path, spec, files=files)
    assert [(turn.asked, turn.text.strip()) for turn in found.only.turns] == [(n, n) for n in ("one", "two", "three")]
    assert (found.case.status, found.case.reason) == ("pass", "")
