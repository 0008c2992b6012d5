"""`holdfast doctor`, as a person runs it: machine, spec and agent, and exit codes that mean what they say."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from cli import CALM, DOWN, MakeProject, Project, contract, rule

import holdfast

KEY = "sk-1234567890-secret"

ON_WIRE = """
import json, os, pathlib, sys, urllib.request

pathlib.Path("started").touch()


def post(messages):
    tools = [{"type": "function", "function": {"name": "search", "parameters": {"type": "object"}}}]
    body = json.dumps({"model": "gpt-4o", "tools": tools, "messages": messages}).encode()
    request = urllib.request.Request(
        os.environ["OPENAI_BASE_URL"] + "/chat/completions", body, {"content-type": "application/json"}
    )
    with urllib.request.urlopen(request) as reply:
        return json.load(reply)["choices"][0]["message"]


messages = [{"role": "user", "content": sys.stdin.read()}]
said = post(messages)
for call in said.get("tool_calls") or ():
    messages += [said, {"role": "tool", "tool_call_id": call["id"], "content": "a source"}]
    said = post(messages)
print(said["content"])
"""
"""An agent that Holdfast starts, with a tool of its own; no library is needed."""

MODEL = """
replies:
  - match: {tool: search}
    text: "According to {{ result }}."
  - match: {tools: search}
    tool_calls: [{name: search, arguments: {q: x}}]
"""

COMMAND = {"type": "command", "command": f"{sys.executable} agent.py"}
SCRIPT = {"*": {"script": "model.yaml"}}
MODEL_DOWN = {"name": "model-down", "llm_faults": [{"mode": "rate_limit"}]}


def on_wire(
    project: MakeProject, *matrix: dict[str, Any], agent: dict[str, Any] = COMMAND, source: str = ON_WIRE, **top: Any
) -> Project:
    models = top.pop("models", SCRIPT)
    made = project(
        contract([rule("cites", value="source")], [CALM, *matrix], agent=agent, models=models, **top), source
    )
    (made.folder / "model.yaml").write_text(MODEL)
    return made


def found(result: Any, part: str) -> dict[str, Any]:
    entries = result.json[part]["findings"] if part == "agent" else result.json[part]
    assert all(entry["fix"] for entry in entries if entry["ok"] is False)
    return {entry["route"]: entry for entry in entries}


def test_without_a_spec_the_machine_alone_is_tried(tmp_path: Path, project: MakeProject) -> None:
    made = project("", name="empty")
    (made.folder / "holdfast.yaml").unlink()
    result = made.command("doctor")
    assert (result.code, result.err) == (0, "")
    assert "✔ ok        openai responses" in result.out
    assert "holdfast.yaml" in result.out
    assert "\x1b" not in result.out
    result = made.cli("doctor", "--json")
    assert (result.code, result.json["spec"], result.json["agent"]) == (0, None, None)
    assert {"route", "ok", "detail", "fix"} <= set(result.json["machine"][0])


def test_a_started_agent_runs_once_and_its_calls_are_listed(project: MakeProject) -> None:
    mail = {"name": "mail-down", "tool_faults": [{"tool": "mail", "mode": "error"}]}
    made = on_wire(project, MODEL_DOWN, DOWN, mail)
    result = made.cli("doctor", "--json")
    assert result.code == 0, result.out
    calls = [(c["plane"], c["target"], c["calls"]) for c in result.json["agent"]["calls"]]
    assert calls == [("llm", "gpt-4o", 2), ("tool_result", "search", 1)]
    agent, spec = found(result, "agent"), found(result, "spec")
    assert result.json["agent"]["answer"].startswith("According to")
    assert (agent["down waits for search"]["ok"], agent["mail-down waits for mail"]["ok"]) == (True, None)
    assert agent["mail-down waits for mail"]["code"] == "target-not-called"
    assert spec["model-down: llm rate_limit"]["code"] == "fault-placed"
    assert spec["model *"]["code"] == "model-scripted"
    assert not (made.folder / ".holdfast").exists()


def test_no_agent_starts_none(project: MakeProject) -> None:
    made = on_wire(project, MODEL_DOWN)
    result = made.cli("doctor", "--no-agent", "--json")
    assert (result.code, result.json["agent"]) == (0, None)
    assert not (made.folder / "started").exists()


def test_the_functions_of_a_python_agent_are_listed(project: MakeProject) -> None:
    result = project(contract([rule("cites", value="source")], [CALM, DOWN])).cli("doctor", "--json")
    assert result.code == 0, result.out + result.err
    assert found(result, "spec")["down: tool error on search"]["code"] == "fault-placed"
    assert found(result, "agent")["down waits for search"]["code"] == "target-called"


def test_a_fault_that_nothing_can_meet_gives_the_usual_errors(project: MakeProject) -> None:
    timeout = {"name": "t", "tool_faults": [{"tool": "search", "mode": "timeout"}]}
    result = on_wire(project, timeout).cli("doctor", "--json")
    assert result.code == 4
    assert [one["code"] for one in result.json["errors"]] == ["unreachable-fault"]


def test_a_program_that_is_not_there_is_4_and_nothing_is_asked(project: MakeProject) -> None:
    agent = {"type": "command", "command": "no-such-program"}
    result = on_wire(project, MODEL_DOWN, agent=agent).cli("doctor", "--json")
    assert result.code == result.json["exit_code"] == 4
    assert found(result, "spec")["agent.command"]["code"] == "program-missing"
    assert result.json["agent"] is None


def test_an_agent_that_never_becomes_ready_is_4_with_what_it_said(project: MakeProject) -> None:
    agent = {"endpoint": "http://127.0.0.1:{port}/", "command": f"{sys.executable} agent.py"}
    result = on_wire(project, MODEL_DOWN, agent=agent, source="raise SystemExit('no such table')").cli(
        "doctor", "--json"
    )
    assert result.code == 4
    assert found(result, "agent")["agent"]["code"] == "agent-not-ready"
    assert "no such table" in str(result.json["agent"]["notes"])


@pytest.mark.parametrize("more", [(), ("--no-agent",)])
def test_a_model_server_that_is_down_is_3(project: MakeProject, more: tuple[str, ...]) -> None:
    models = {"*": {"base_url": "http://127.0.0.1:1/v1"}}
    result = on_wire(project, MODEL_DOWN, models=models, advanced={"retries": 0}).cli("doctor", "--json", *more)
    assert result.code == 3
    assert found(result, "spec")["model *"]["code"] == "server-unreachable"


def test_an_agent_that_ends_badly_in_calm_is_3(project: MakeProject) -> None:
    result = on_wire(project, MODEL_DOWN, source="raise SystemExit(7)").cli("doctor", "--json")
    assert result.code == 3
    assert found(result, "agent")["answer"]["code"] == "not-answered"


def test_secrets_are_masked_everywhere(project: MakeProject) -> None:
    agent = {**COMMAND, "env": {"TOKEN": "${TOKEN}", "OPENAI_API_KEY": "${TOKEN}"}}
    source = "import os, sys\nprint('my source is', os.environ['TOKEN'])\nprint(os.environ['TOKEN'], file=sys.stderr)\n"
    made = on_wire(project, MODEL_DOWN, agent=agent, source=source, models={"gpt-5": {"script": "model.yaml"}})
    for options in ((), ("--json",)):
        result = made.cli("doctor", *options, env={"TOKEN": KEY})
        assert KEY not in result.out + result.err
        assert "my source is [masked]" in result.out
        assert "OPENAI_API_KEY is set" in result.out


def test_an_mcp_server_is_looked_for_and_met(project: MakeProject) -> None:
    server = str(Path(holdfast.__file__).parent / "doctor" / "mcp_server.py")
    source = (
        "import json, os, subprocess\n"
        "entry = json.load(open(os.environ['HOLDFAST_MCP_CONFIG']))['mcpServers']['box']\n"
        "server = subprocess.Popen([entry['command'], *entry['args']], env=entry['env'], stdin=-1, stdout=-1)\n"
        "call = {'id': 1, 'method': 'tools/call', 'params': {'name': 'echo', 'arguments': {}}, 'jsonrpc': '2.0'}\n"
        "server.stdin.write(json.dumps(call).encode() + b'\\n'); server.stdin.flush()\n"
        "print('source', server.stdout.readline().decode())\n"
        "server.stdin.close(); server.wait()\n"
    )
    agent = {**COMMAND, "mcp_config": {"mcpServers": {"box": {"command": sys.executable, "args": [server]}}}}
    hang = {"name": "hang", "mcp_faults": [{"tool": "echo", "mode": "hang"}]}
    result = on_wire(project, hang, agent=agent, source=source).cli("doctor", "--json")
    assert result.code == 0, json.dumps(result.json, indent=1)
    assert found(result, "spec")["mcp server box"]["ok"] is True
    assert found(result, "spec")["hang: mcp hang on echo"]["code"] == "fault-placed"
    assert found(result, "agent")["hang waits for echo"]["ok"] is True
    assert {entry["route"] for entry in result.json["machine"] if entry["needed"]} >= {"mcp over stdio", "ollama"}
