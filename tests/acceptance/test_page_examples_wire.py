"""The examples on the pages of faults at the wire are run, and met: of model calls, MCP servers and HTTP calls."""

from __future__ import annotations

import json
from typing import Any

import pytest
from cli import CALM, MakeProject, Serve, contract, rule, says
from page_examples import page_examples, scenarios
from plane_agents import PYTHON, SCRIPTED, command, equip, quick
from test_mcp_cli import SERVERS, SHOP, USES
from test_page_examples import unmet

pytestmark = pytest.mark.long  # some forty programs are started, and several examples wait for seconds
ENDS = [rule("ends", "ending", one_of=["answered", "crashed", "timeout"])]

ASKS_MODEL = """
import http.client, json, os, urllib.request
tool = {"type": "function", "function": {"name": "search", "parameters": {"type": "object", "required": ["query"],
        "properties": {"query": {"type": "string"}}}}}
said = []
asked = [{"role": "user", "content": "find it"}]
call = {"id": "c1", "type": "function", "function": {"name": "search", "arguments": '{"query": "a kettle"}'}}
done = [*asked, {"role": "assistant", "tool_calls": [call]}, {"role": "tool", "tool_call_id": "c1", "content": "three"}]
for more in ({"stream": True}, {"tools": [tool]}, {"messages": done, "tools": [tool]}):
    body = {"model": "gpt-4o", "messages": asked, **more}
    headers = {"content-type": "application/json", "authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}
    url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
    try:
        request = urllib.request.Request(url, json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=5) as reply:
            said.append(len(reply.read()))
    except (OSError, http.client.HTTPException) as failed:
        said.append(type(failed).__name__)
print(said)
"""
ASKS_WEB = """
import http.client, sys, urllib.request
for attempt in (1, 2):
    try:
        with urllib.request.urlopen(sys.argv[1], b"{}", timeout=3) as reply:
            print(len(reply.read()))
    except (OSError, http.client.HTTPException) as failed:
        print(type(failed).__name__)
"""
SCRIPT = {"replies": [
    {"match": {"result": "three"}, "text": "There are three."},
    {"match": {"tools": "search"}, "tool_calls": [{"name": "search", "arguments": {"query": "a kettle"}}]},
    {"text": "There are three kettles, and each of them costs as much as the others do today."},
]}  # fmt: skip


def test_the_example_of_every_model_fault_at_the_wire_is_met(project: MakeProject) -> None:
    shown = scenarios("llm_faults", wire=True)
    assert len(shown) >= 7
    made = equip(project(contract(ENDS, [CALM, *shown], agent=command(), models=SCRIPTED), ASKS_MODEL), SCRIPT)
    result = quick(made)
    assert unmet(result) == []
    assert result.code == 0, result.err


def test_the_example_of_every_mcp_fault_is_met(project: MakeProject) -> None:
    shown = scenarios("mcp_faults")
    calls = json.dumps([["search", {"q": "x"}], ["search", {"q": "y"}]])
    agent = command(mcp_config=SERVERS, env={"CALLS": calls})
    made = equip(project(contract(ENDS, [CALM, *shown], agent=agent), USES), shop=SHOP.replace('"find"', '"search"'))
    result = quick(made)
    assert unmet(result) == []
    assert result.code == 0, result.err


def test_the_example_of_every_http_fault_is_met(project: MakeProject, serve: Serve) -> None:
    address = f"{serve(lambda asked: says('x' * 20_000)).url}/stock"
    for_tls = [one.scenario for one in page_examples() if one.name == "tls_error" and one.section == "http_faults"]
    shown: list[Any] = [one for one in scenarios("http_faults") if one not in for_tls]
    for one in shown:
        (fault,) = one["http_faults"]
        assert fault["match_url"] == "https://api.example.com/*"
        fault["match_url"] = f"{address.rsplit('/', 1)[0]}/*"  # a server that is there
    for url, matrix in ((address, [CALM, *shown]), ("https://api.example.com/stock", for_tls)):
        agent = {"type": "command", "command": f"{PYTHON.split()[0]} agent.py {url}"}
        result = quick(project(contract(ENDS, matrix, agent=agent), ASKS_WEB), "--no-preflight")
        assert unmet(result) == []
        assert result.code == 0, result.err
