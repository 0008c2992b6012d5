"""Whole agents in replayed sessions: their tools are over HTTP, MCP, or their own, and answer what was recorded."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from mcp_kit import warm_shop

from holdfast.execute.open_site import open_site
from holdfast.execute.trial import run_trial
from holdfast.model.model_spec import ModelSpec
from holdfast.model.observation import Observation
from holdfast.model.scenario import Injection, Scenario, Schedule
from holdfast.model.spec import AgentSpec, Spec, ToolRef
from holdfast.model.task import Task
from holdfast.model.trial import Trial
from http_proxy_kit import Server, served
from planes_kit import answer, replay, uses

OFFLINE = "https://prices.nowhere.test/v1/lamp"


@pytest.fixture
def shop() -> Iterator[Server]:
    with served() as server:
        yield server


def run(
    folder: Path,
    task: Task,
    code: str,
    models: dict[str, ModelSpec] | None = None,
    storm: tuple[Injection, ...] = (),
    **agent: Any,
) -> Observation:
    """One trial of an agent whose `agent.py` has this code."""
    (folder / "agent.py").write_text(dedent(code), encoding="utf-8")
    spec = Spec(
        str(folder / "spec.yaml"),
        AgentSpec(**agent),
        tasks=(task,),
        scenarios=(Scenario("calm", storm),),
        models=models or {},
        retries=0,
    )
    environ = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}

    async def trial() -> Observation:
        site = await open_site(spec, environ=environ, concurrency=1)
        try:
            return await run_trial(site, Trial("0" * 12, "contract", spec.scenarios[0], task))
        finally:
            await site.close()

    return asyncio.run(trial())


# -- tools over HTTP -------------------------------------------------------------------------------
FETCHES = """
import http.server, json, os, sys, urllib.error, urllib.request

def fetch(url):
    try:
        with urllib.request.urlopen(url, timeout=20) as reply:
            return f"{reply.status} {reply.read().decode()}"
    except urllib.error.HTTPError as failed:
        return f"{failed.code} {failed.read().decode()}"
    except OSError as failed:
        return "no connection"

def ask(prompt):
    return "; ".join(map(fetch, prompt.split()))

class Agent(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        prompt = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["input"]
        body = json.dumps({"output": ask(prompt)}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
    def log_message(self, *_): pass

if __name__ == "__main__":
    if "PORT" in os.environ:
        http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Agent).serve_forever()
    print(ask(sys.stdin.read()))
"""
HTTP_AGENTS = {
    "http": {"endpoint": "http://127.0.0.1:{port}/", "command": f"{sys.executable} agent.py"},
    "command": {"type": "command", "command": f"{sys.executable} agent.py"},
    "fresh": {"type": "python", "endpoint": "agent:ask"},
    "worker": {"type": "python", "endpoint": "agent:ask", "isolation": "worker"},
}
every_agent = pytest.mark.parametrize("agent", HTTP_AGENTS.values(), ids=HTTP_AGENTS)


@every_agent
def test_a_tool_over_http_answers_what_was_recorded(tmp_path: Path, shop: Server, agent: dict[str, Any]) -> None:
    url = f"{shop.url}/price"
    task = replay(
        answer(url, {"price": 7}),
        answer(f"{shop.url}/*", "gone", 410),
        answer(url, None, 0),
        answer("*.nowhere.test/*", "from afar"),
        answer("stock", 3),
        prompt=f"{url} {url} {url}?again=1 {OFFLINE} https://other.test/ {url}",
    )
    seen = run(tmp_path, task, FETCHES, **agent)
    assert seen.error == ""
    said = (seen.turns[0].text or "").strip().split("; ")
    assert said == ['200 {"price": 7}', "no connection", "410 gone", "200 from afar", "no connection", "no connection"]
    assert shop.seen == []
    assert [use.is_known for use in seen.recorded] == [True, True, True, True, False, False]
    targets = (": GET https://other.test/", f": GET {url}; ", ": stock (1 response)")
    assert [target in note for target, note in zip(targets, seen.notes[-3:], strict=True)] == [True] * 3


@every_agent
def test_live_asks_the_real_tool_for_what_is_unknown(tmp_path: Path, shop: Server, agent: dict[str, Any]) -> None:
    url = f"{shop.url}/missing"
    seen = run(tmp_path, replay(answer(url, 1), live=True, prompt=f"{url} {url}"), FETCHES, **agent)
    assert (seen.turns[0].text or "").strip() == '200 1; 404 {"error": "no such thing"}'
    assert [path for _, path, _, _ in shop.seen] == ["/missing"]


def test_a_function_that_fetches_is_run_where_only_its_url_was_recorded(tmp_path: Path, shop: Server) -> None:
    url = f"{shop.url}/price"
    agent = {"type": "python", "endpoint": "agent:ask", "tools": (ToolRef("agent:fetch"),)}
    by_url = run(tmp_path, replay(answer(url, 7), prompt=url), FETCHES, **agent)
    assert (by_url.turns[0].text, uses(by_url.recorded)) == ("200 7", [(url, 1, 200)])
    by_name = run(tmp_path, replay(answer("fetch", "named"), prompt=url), FETCHES, **agent)
    assert (by_name.turns[0].text, uses(by_name.recorded)) == ("named", [("fetch", 1, 200)])
    assert shop.seen == []


# -- tools over MCP --------------------------------------------------------------------------------
ASKS_MCP = """
import asyncio, json, os, sys
from mcp import Client, MCPError
from mcp.client.stdio import StdioServerParameters

async def main():
    entry = json.load(open(os.environ["HOLDFAST_MCP_CONFIG"]))["mcpServers"]["shop"]
    server = StdioServerParameters(
        command=entry["command"], args=entry["args"], env={**os.environ, **entry.get("env", {})}
    )
    said = []
    async with Client(server, mode="legacy", read_timeout_seconds=15) as client:
        for tool in sys.stdin.read().split():
            try:
                got = await client.call_tool(tool, {"item": "lamp"})
                said.append(" ".join(block.text for block in got.content))
            except MCPError as refused:
                said.append(f"error {refused.message}")
    print("; ".join(said))

asyncio.run(main())
"""


def test_a_tool_over_mcp_answers_what_was_recorded(tmp_path: Path) -> None:
    first, *rest = warm_shop()
    servers = {"mcpServers": {"shop": {"command": first, "args": rest}}}
    task = replay(
        answer("shop/book", "recorded"),
        answer("shop/book", None, 0),
        answer("describe", {"it": "is"}, 500),
        prompt="book book describe book",
    )
    seen = run(tmp_path, task, ASKS_MCP, type="command", command=f"{sys.executable} agent.py", mcp_config=servers)
    assert seen.error == ""
    assert (seen.turns[0].text or "").strip().split("; ") == [
        "recorded",
        "error book: connection error",
        '500 Internal Server Error: {"it":"is"}',
        "error book: the recording has no reply for this call",
    ]
    assert [": book(item=lamp); " in note for note in seen.notes] == [True]


# -- tools of the agent's framework ----------------------------------------------------------------
OWNS_TOOLS = """
import json, sys
from openai import OpenAI

def price(item):
    with open("ran.log", "a") as log: log.write(item)
    return json.dumps({"price": 12.5})

TOOLS = [{"type": "function", "function": {"name": "price", "parameters": {"type": "object", "properties": {}}}}]

def ask(prompt):
    client, messages = OpenAI(max_retries=2), [{"role": "user", "content": prompt}]
    while True:
        said = client.chat.completions.create(model="gpt-4o", messages=messages, tools=TOOLS).choices[0].message
        if not said.tool_calls:
            return said.content
        messages.append(said)
        for call in said.tool_calls:
            result = price(**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})

if __name__ == "__main__":
    print(ask(sys.stdin.read()))
"""
MODEL = """
replies:
  - match: {tool: price}
    text: "I read: {{ result }}"
  - match: {tools: price}
    tool_calls: [{name: price, arguments: {item: lamp}}]
"""
OWNERS = {name: HTTP_AGENTS[name] for name in ("command", "fresh")}


@pytest.mark.parametrize("agent", OWNERS.values(), ids=OWNERS)
@pytest.mark.parametrize(
    ("recorded", "read"),
    [
        (answer("price", {"price": 3}, latency_ms=50), '{"price": 3}'),
        (answer("price", None, 503), "Error: 503 Service Unavailable"),
        (answer("other", 1), "Error: price: the recording has no reply for this call"),
    ],
    ids=["value", "error", "unknown"],
)
def test_the_model_of_an_agent_that_owns_its_tools_reads_the_recorded_result(
    tmp_path: Path, agent: dict[str, Any], recorded: Any, read: str
) -> None:
    (tmp_path / "model.yaml").write_text(MODEL)
    models = {"*": ModelSpec("script", script="model.yaml")}
    seen = run(tmp_path, replay(recorded, prompt="How much?"), OWNS_TOOLS, models, **agent)
    assert seen.error == ""
    assert (seen.turns[0].text or "").strip() == f"I read: {read}"
    assert (tmp_path / "ran.log").read_text() == "lamp"
    ran = "the model received the recorded result, but the tool also ran: price"
    assert (ran in seen.notes) == (recorded.tool == "price")


def test_a_librarys_retry_of_a_model_call_does_not_take_the_next_response(tmp_path: Path) -> None:
    (tmp_path / "model.yaml").write_text(MODEL)
    models = {"*": ModelSpec("script", script="model.yaml")}
    storm = (Injection("llm", "*", "server_error", {"status": 500}, Schedule(on_call=2)),)
    task = replay(answer("price", "first"), answer("price", "second"), prompt="How much?")
    seen = run(tmp_path, task, OWNS_TOOLS, models, storm, **HTTP_AGENTS["command"])
    assert (seen.turns[0].text or "").strip() == "I read: first"
    assert [(met.call, met.effect) for met in seen.ledger] == [(2, "met")]  # and the library asked again
    assert uses(seen.recorded) == [("price", 1, 200)]
