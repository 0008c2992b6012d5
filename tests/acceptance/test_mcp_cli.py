"""The MCP plane: `agent.mcp_config` puts a proxy before each server; `holdfast mcp-proxy` is written there by hand."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest
from cli import CALM, HOLDFAST, MakeProject, Project, Serve, contract, rule
from plane_agents import MARK, PYTHON, command, equip, holding, marked, quick, trace

SHOP = """
import json, sys
def say(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\\n")
    sys.stdout.flush()
TOOLS = [{"name": n, "description": f"the {n} tool", "inputSchema": {"type": "object"}} for n in ("find", "pay")]
for line in sys.stdin:
    asked = json.loads(line)
    method, params, id = asked["method"], asked.get("params", {}), asked.get("id")
    open("server.log", "a").write(f"{method} {json.dumps(params.get('arguments'))}\\n")
    if method == "initialize":
        info = {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {"listChanged": True}}}
        say({"id": id, "result": {**info, "serverInfo": {"name": "shop", "version": "1"}}})
    elif method == "tools/list":
        say({"id": id, "result": {"tools": TOOLS}})
    elif method == "tools/call":
        text = json.dumps({"tool": params["name"], "rows": [1, 2, 3], "given": params["arguments"]})
        say({"id": id, "result": {"content": [{"type": "text", "text": text}], "isError": False}})
    elif id is not None:
        say({"id": id, "result": {}})
"""
"""An MCP server over stdio."""

USES = """
import json, os, queue, subprocess, sys, threading
config = json.load(open(os.environ["HOLDFAST_MCP_CONFIG"]))
(entry,) = config["mcpServers"].values()

class Server:
    def __init__(self):
        self.line = subprocess.Popen([entry["command"], *entry["args"]], env={**os.environ, **entry.get("env", {})},
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        self.heard = queue.Queue()
        threading.Thread(target=self.listen, daemon=True).start()
        who = {"name": "me", "version": "1"}
        self.ask(0, "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=who)
    def listen(self):
        for line in self.line.stdout:
            self.heard.put(line)
        self.heard.put(None)
    def ask(self, id, method, **params):
        try:
            self.line.stdin.write(json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}) + "\\n")
            self.line.stdin.flush()
        except OSError:
            return {"closed": True}
        while True:
            try:
                line = self.heard.get(timeout=2)
            except queue.Empty:
                return {"silent": True}
            if line is None:
                return {"closed": True}
            try:
                reply = json.loads(line)
            except ValueError:
                return {"unreadable": line}
            if reply.get("id") == id:
                return reply

server = Server()
said = {"tools": server.ask(1, "tools/list").get("result", {}).get("tools"), "calls": []}
for n, (tool, arguments) in enumerate(json.loads(os.environ.get("CALLS", '[["find", {"q": "x"}]]')), 2):
    said["calls"].append(server.ask(n, "tools/call", name=tool, arguments=arguments))
    if "closed" in said["calls"][-1]:
        server = Server()
print(json.dumps(said))
"""
"""An MCP client that lists the tools of its one server and calls them."""

SERVERS = {"mcpServers": {"shop": {"command": PYTHON.split()[0], "args": ["-S", "shop.py"]}}}
ANSWERS = [rule("answers", "completes")]
FOUND = rule("found", value="no such words")


def shopping(project: MakeProject, *matrix: dict[str, Any], calls: Any = None, **more: Any) -> Project:
    env = {"CALLS": json.dumps(calls)} if calls else {}
    agent = command(env=env, **{"mcp_config": SERVERS, **more.pop("agent", {})})
    return equip(project(contract(more.pop("rules", ANSWERS), list(matrix), agent=agent, **more), USES), shop=SHOP)


def tool(mode: str, **more: Any) -> dict[str, Any]:
    return {"name": mode, "tool_faults": [{"tool": "find", "mode": mode, **more}]}


def mcp(mode: str, **more: Any) -> dict[str, Any]:
    return {"name": mode, "mcp_faults": [{"mode": mode, **more}]}


def said(result: Any, scenario: str) -> Any:
    return json.loads(result.cells[("answers", scenario)]["trials"][0]["answer"])


def met(result: Any, scenario: str) -> list[tuple[Any, ...]]:
    trial = result.cells[("answers", scenario)]["trials"][0]
    return [(f["plane"], f["target"], f["mode"], f["effect"]) for f in trial["faults"]]


def test_in_calm_every_message_passes_and_is_in_the_trace(project: MakeProject) -> None:
    found = shopping(project, CALM)
    result = quick(found, "--no-preflight")
    calm = said(result, "calm")
    assert [t["name"] for t in calm["tools"]] == ["find", "pay"]
    assert json.loads(calm["calls"][0]["result"]["content"][0]["text"])["rows"] == [1, 2, 3]
    (event,) = [e for e in trace(found, result.trial) if e["tool"] == "find"]
    assert (event["event_type"], event["plane"], json.loads(event["input"])) == ("mcp_call", "mcp", {"q": "x"})


TOOL = ["error", "timeout", "slow", "malformed", "malicious_response", "empty", "rate_limit", "auth_expired",
        "error_in_body", "schema_drift", "partial", "wrong_value", "lost_reply", "phantom_success", "flapping",
        "oversized"]  # fmt: skip
MORE = {"timeout": {"delay_ms": 30}, "slow": {"delay_ms": 30}, "oversized": {"bytes": 5000}}


def test_mcp_tools_take_every_tool_fault_by_name(project: MakeProject) -> None:
    found = shopping(project, *[tool(mode, **MORE.get(mode, {})) for mode in TOOL])
    result = quick(found, "--no-preflight")
    whole = {"tool": "find", "rows": [1, 2, 3], "given": {"q": "x"}}
    for mode in TOOL:
        assert met(result, mode) == [("mcp", "find", mode, "met")], mode
        reply = said(result, mode)["calls"][0]
        content = reply.get("result", {}).get("content", [{}])
        text = content[0].get("text", "") if content else ""
        assert (mode == "slow") == (text == json.dumps(whole)), (mode, reply)
    assert said(result, "error")["calls"][0]["result"]["isError"] is True
    done = [line for line in found.lines("server.log") if line.startswith("tools/call")]
    not_asked = {"error", "timeout", "rate_limit", "auth_expired", "phantom_success", "flapping"}
    assert len(done) == len(TOOL) - len(not_asked)


MCP = ["session_lost", "hang", "crash_mid_call", "malformed_rpc", "tools_changed", "tool_poisoning", "error_as_result",
       "result_as_error"]  # fmt: skip


def test_a_write_over_mcp_that_is_repeated_after_a_lost_reply_is_found(project: MakeProject) -> None:
    twice, lost = [["pay", {"n": 5}], ["pay", {"n": 5}]], {"name": "lost", "tool_faults": [
        {"tool": "pay", "mode": "lost_reply", "times": 1}]}  # fmt: skip
    found = shopping(project, lost, calls=twice, rules=[rule("once", "side_effect_once", tool="pay")])
    result = quick(found, "--no-preflight")
    assert result.outcomes == {("once", "lost"): "fail"}
    assert sum(line.startswith("tools/call") for line in found.lines("server.log")) == 2


def test_an_injection_into_an_mcp_result_is_met_and_its_success_seen(project: MakeProject) -> None:
    attack = {"name": "attack", "context_attacks": [{"type": "indirect_injection"}]}
    result = quick(shopping(project, attack), "--no-preflight")
    assert met(result, "attack") == [("mcp", "find", "indirect_injection", "met")]
    assert result.part["attacks"]["succeeded"] == 1  # this agent repeats whatever it reads


def test_the_config_may_be_a_file_and_its_place_filled_in_the_command(project: MakeProject) -> None:
    source = USES.replace('os.environ["HOLDFAST_MCP_CONFIG"]', "sys.argv[1]")
    agent = {"command": f"{PYTHON} agent.py {{mcp_config}}", "mcp_config": "mcp.json"}
    found = shopping(project, CALM, tool("error"), agent=agent)
    found.write(json.dumps(SERVERS), "mcp.json")
    (found.folder / "agent.py").write_text(source)
    result = quick(found, "--no-preflight")
    assert said(result, "error")["calls"][0]["result"]["isError"] is True
    assert json.loads(found.read("mcp.json")) == SERVERS  # the user's own is not touched


def test_servers_are_ended_with_their_agent(project: MakeProject) -> None:
    found = shopping(project, CALM, replicas=3)
    result = quick(found, env={MARK: "mcp"})
    assert result.code == 0
    assert marked("mcp") == []


# -- streamable HTTP -----------------------------------------------------------------------------------
POSTS = """
import json, os, talk
(entry,) = json.load(open(os.environ["HOLDFAST_MCP_CONFIG"]))["mcpServers"].values()
call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "find", "arguments": {}}}
headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
status, text = talk.request("POST", entry["url"], json.dumps(call), headers)
print(json.dumps([status, json.loads(text), "secret" in json.dumps(entry)]))
"""


def test_a_server_over_http_stands_behind_our_address_and_its_headers_stay_with_us(
    project: MakeProject, serve: Serve
) -> None:
    answer = {"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": "rows"}], "isError": False}}
    shop = serve(lambda asked: (200, json.dumps(answer)))
    entry = {"type": "http", "url": f"{shop.url}/mcp", "headers": {"Authorization": "Bearer ${SHOP_KEY}"}}
    agent = command(mcp_config={"mcpServers": {"shop": entry}})
    found = equip(project(contract(ANSWERS, [CALM, tool("error")], agent=agent), POSTS))
    result = quick(found, "--no-preflight", env={"SHOP_KEY": "very-secret-word"})
    assert said(result, "calm") == [200, answer, False]
    status, reply, _ = said(result, "error")
    assert (status, reply["result"]["isError"]) == (200, True)
    assert met(result, "error") == [("mcp", "find", "error", "met")]
    assert [asked.headers["authorization"] for asked in shop.requests] == ["Bearer very-secret-word"]
    assert holding(found.folder, "very-secret-word") == []


# -- the proxy by hand ---------------------------------------------------------------------------------
LISTS = '{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}\n'


def test_mcp_proxy_outside_of_a_trial_is_as_if_it_were_not_there(project: MakeProject) -> None:
    found = shopping(project, CALM)
    bare = [*PYTHON.split(), "shop.py"]
    for argv in (bare, [HOLDFAST, "mcp-proxy", "--", *bare]):
        done = subprocess.run(argv, cwd=found.folder, input=LISTS, capture_output=True, text=True, timeout=20)
        assert done.returncode == 0
        assert [t["name"] for t in json.loads(done.stdout)["result"]["tools"]] == ["find", "pay"]


def test_mcp_proxy_ends_as_its_server_does(project: MakeProject) -> None:
    found = shopping(project, CALM)
    argv = [HOLDFAST, "mcp-proxy", "--", "sh", "-c", "exit 3"]
    assert subprocess.run(argv, cwd=found.folder, stdin=subprocess.DEVNULL, timeout=20).returncode == 3
    missing = subprocess.run(
        [HOLDFAST, "mcp-proxy", "--", "no-such-server"], cwd=found.folder, capture_output=True, text=True, timeout=20
    )
    assert missing.returncode != 0
    assert "no-such-server" in missing.stderr


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("no-such-server", "MCP server shop: no-such-server cannot be started: No such file or directory"),
        ("true", "MCP server shop (true) ended with exit code 0 before it sent anything"),
    ],
)
def test_a_server_that_does_not_run_is_an_error_that_names_it(project: MakeProject, command: str, why: str) -> None:
    config = {"mcpServers": {"shop": {"command": command}}}
    found = shopping(project, CALM, agent={"mcp_config": config}, advanced={"retries": 0}, rules=[FOUND])
    result = quick(found, "--no-preflight")
    assert (result.code, result.cell["outcome"]) == (3, "error")
    assert why in result.trial["reason"]


@pytest.mark.parametrize("fault", ["tool_faults", "mcp_faults"])
def test_mcp_proxy_written_by_hand_meets_the_faults_of_a_run(project: MakeProject, fault: str) -> None:
    """A client with a configuration of its own, which Holdfast does not see."""
    by_hand = {"command": HOLDFAST, "args": ["mcp-proxy", "--name", "shop", "--", *PYTHON.split(), "shop.py"]}
    source = USES.replace('json.load(open(os.environ["HOLDFAST_MCP_CONFIG"]))', repr({"mcpServers": {"s": by_hand}}))
    mode = "error" if fault == "tool_faults" else "result_as_error"
    weather = tool(mode) if fault == "tool_faults" else mcp(mode)
    found = equip(project(contract(ANSWERS, [weather], agent=command()), source), shop=SHOP)
    result = quick(found, "--no-preflight")
    assert met(result, mode) == [("mcp", "find", mode, "met")]
