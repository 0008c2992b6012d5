"""Traces of launched agents: every call on every plane, each rule on calls, `--otlp`, and the timeline of the page."""

from __future__ import annotations

import html
import json
from typing import Any

from cli import CALM, Asked, MakeProject, Project, Reply, Serve, contract, rule, rundir
from files1 import text_of
from plane_agents import MARKET, command, equip, quick, trace
from test_mcp_cli import SERVERS, SHOP

BUSY = """
import json, os, subprocess, sys, talk
def market_data_api(symbol):
    return json.dumps({"symbol": symbol, "price": 12.5})
print(talk.work(sys.stdin.read(), {"market_data_api": market_data_api}))
for _ in range(2):  # one write, done twice
    talk.request("POST", os.environ["URL"], '{"pay": 5}', {"content-type": "application/json"}, proxy=True)
(entry,) = json.load(open(os.environ["HOLDFAST_MCP_CONFIG"]))["mcpServers"].values()
call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "find", "arguments": {"q": "x"}}}
subprocess.run([entry["command"], *entry["args"]], env={**os.environ, **entry["env"]}, input=json.dumps(call) + "\\n",
               stdout=subprocess.DEVNULL, text=True)
"""
"""Calls its model twice, a tool of its own, a URL twice, and an MCP tool."""

PRICED = {"*": {"script": "model.yaml", "input_usd": 1000000, "output_usd": 1000000}}


def paid(asked: Asked) -> Reply:
    return 200, "{}"


def busy(project: MakeProject, serve: Serve, rules: list[dict[str, Any]], *matrix: dict[str, Any]) -> Project:
    url = serve(paid).url
    watched = {"name": "watched", "http_faults": [{"match_url": f"{url}/*", "mode": "latency", "delay_ms": 1}]}
    agent = command(env={"URL": f"{url}/pay"}, mcp_config=SERVERS)
    spec = contract(rules, [watched, *matrix], agent=agent, models=PRICED, isolation="scenario")
    return equip(project(spec, BUSY), MARKET, shop=SHOP)


CHECKS = {
    "tool_called": ({"tool": "market_data_api"}, {"tool": "send_mail"}),
    "tool_not_called": ({"tool": "send_mail"}, {"tool": "find"}),
    "tool_order": ({"tools": ["market_data_api", "find"]}, {"tools": ["find", "market_data_api"]}),
    "max_calls": ({"max": 2, "plane": "llm"}, {"max": 1, "plane": "llm"}),
    "max_tokens": ({"max": 1000}, {"max": 3}),
    "max_cost": ({"max_usd": 1000}, {"max_usd": 1}),
    "side_effect_once": ({"tool": "find"}, {"tool": "http://*/pay"}),
}


def test_each_rule_on_calls_holds_and_is_broken_on_what_a_launched_agent_did(
    project: MakeProject, serve: Serve
) -> None:
    rules = []
    for name, (good, bad) in CHECKS.items():
        rules += [rule(f"{name}-holds", name, **good), rule(f"{name}-breaks", name, **bad)]
    result = quick(busy(project, serve, rules), "--no-preflight")
    outcomes = {name: outcome for (name, _), outcome in result.outcomes.items()}
    reasons = {cell["invariant"]: cell["trials"][0]["reason"] for cell in result.part["cells"]}
    for name in CHECKS:
        assert outcomes[f"{name}-holds"] == "pass", reasons[f"{name}-holds"]
        assert outcomes[f"{name}-breaks"] == "fail", reasons[f"{name}-breaks"]


def test_retries_and_recovery_are_judged_on_the_wire(project: MakeProject) -> None:
    source = """
import sys, talk
prompt = sys.stdin.read()
for _ in range(4):
    said = talk.ask(prompt)
    if "failed" not in said:
        break
print(said)
"""
    rules = [
        rule("three", "retries_within", max=3),
        rule("one", "retries_within", max=1),
        rule("soon", "recovers_within_ms", max_ms=20_000),
        rule("at-once", "recovers_within_ms", max_ms=0),
    ]
    heals = {"name": "heals", "llm_faults": [{"mode": "server_error", "times": 2}]}
    never = {"name": "never", "llm_faults": [{"mode": "server_error"}]}
    spec = contract(
        rules, [heals, never], agent=command(), models={"*": {"script": "model.yaml"}}, isolation="scenario"
    )
    found = equip(project(spec, source), {"replies": [{"text": "fine"}]})
    assert quick(found, "--no-preflight").outcomes == {
        ("three", "heals"): "pass", ("one", "heals"): "fail", ("soon", "heals"): "pass", ("at-once", "heals"): "fail",
        ("three", "never"): "pass", ("one", "never"): "fail", ("soon", "never"): "fail", ("at-once", "never"): "fail",
    }  # fmt: skip


def test_calls_of_all_planes_are_one_list_in_order_with_tokens_and_cost(project: MakeProject, serve: Serve) -> None:
    found = busy(project, serve, [rule("any", "completes")])
    result = quick(found, "--no-preflight")
    events = trace(found, result.trial)
    kinds = [(event["event_type"], event["plane"]) for event in events]
    assert kinds == [
        ("llm_call", "llm"), ("tool_call", "tool_result"), ("llm_call", "llm"), ("http_call", "http"),
        ("http_call", "http"), ("mcp_call", "mcp"),
    ]  # fmt: skip
    assert [event["ts"] for event in events] == sorted(event["ts"] for event in events)
    costs = [event["cost"] for event in events if "cost" in event]
    assert all(cost["estimated_usd"] == cost["input_tokens"] + cost["output_tokens"] > 0 for cost in costs)
    used = result.trial["trace"]
    assert used["calls"] == 6
    assert (used["scripted"], used["input_tokens"], used["output_tokens"]) == (2, 0, 0)  # a script uses no tokens
    assert not any(cost["billed"] for cost in costs)
    assert used["cost_usd"] is None  # a script was asked, and nobody bills that


def test_otlp_gives_genai_spans_with_the_verdicts(project: MakeProject, serve: Serve) -> None:
    found = busy(project, serve, [rule("any", "completes")])
    result = quick(found, "--no-preflight", "--otlp", "spans.jsonl")
    bodies = [json.loads(line) for line in found.lines("spans.jsonl")]
    spans = [s for b in bodies for r in b["resourceSpans"] for scope in r["scopeSpans"] for s in scope["spans"]]
    assert sorted(span["name"].split()[0] for span in spans) == sorted(
        ["invoke_agent", "chat", "chat", "execute_tool", "execute_tool", "POST", "POST"]
    )
    (root,) = [span for span in spans if "parentSpanId" not in span]
    assert {span.get("parentSpanId", root["spanId"]) for span in spans} == {root["spanId"]}
    assert {span["traceId"] for span in spans} == {root["traceId"]}
    assert len(root["traceId"]) == 32
    (event,) = root["events"]
    assert event["name"] == "gen_ai.evaluation.result"
    chat = next(span for span in spans if span["name"].startswith("chat"))
    attributes = {a["key"]: a["value"] for a in chat["attributes"]}
    assert attributes["gen_ai.request.model"] == {"stringValue": "gpt-4o"}
    assert attributes["holdfast.script"]["stringValue"].startswith("model.yaml:")
    assert not [key for key in attributes if key.startswith("gen_ai.usage.")]  # a script uses no tokens
    assert result.code == 0


def test_otlp_to_a_collector(project: MakeProject, serve: Serve) -> None:
    collector = serve(lambda asked: (200, "{}"))
    found = busy(project, serve, [rule("any", "completes")])
    assert quick(found, "--no-preflight", "--otlp", collector.url).code == 0
    assert {asked.path for asked in collector.requests} == {"/v1/traces"}
    assert collector.requests[0].headers["content-type"] == "application/json"


def test_the_page_has_the_timeline_of_a_trial_and_loads_nothing_from_elsewhere(
    project: MakeProject, serve: Serve
) -> None:
    found = busy(project, serve, [rule("never", value="zebra")])
    assert found.command("contract", "run", "--no-preflight").code == 1
    page = rundir(found) / "report.html"
    for word in ("market_data_api", "gpt-4o", "/pay", "find", "latency"):
        assert word in text_of(page), word
    assert "Content-Security-Policy\" content=\"default-src 'none'" in html.unescape(page.read_text())


def test_a_call_that_was_under_way_when_the_agent_died_is_in_its_trace(project: MakeProject) -> None:
    source = """
import os, sys, talk, threading, time
threading.Thread(target=talk.ask, args=("hello",), daemon=True).start()
time.sleep(0.3)
os._exit(3)
"""
    spec = contract([rule("any", "completes")], [CALM], agent=command(), models={"*": {"script": "model.yaml"}})
    found = equip(project(spec, source), {"replies": [{"text": "late", "delay_ms": 1500}]})
    result = quick(found, "--no-preflight")
    (event,) = trace(found, result.trial)
    assert result.trial["ending"] == "crashed"
    assert (event["tool"], event["error_type"]) == ("gpt-4o", "client_gone")


def test_a_declared_call_that_nobody_was_seen_making_may_have_been_made(project: MakeProject) -> None:
    """The model asks for a tool, and the agent ignores it."""
    source = "import sys, talk\nprint(talk.chat([{'role': 'user', 'content': 'x'}], ['market_data_api'])[0])\n"
    rules = [
        rule("called", "tool_called", tool="market_data_api"),
        rule("few", "max_calls", max=1),
        rule("more", "max_calls", max=2),
    ]
    spec = contract(rules, [CALM], agent=command(), models={"*": {"script": "model.yaml"}}, isolation="scenario")
    found = equip(project(spec, source), MARKET)
    result = quick(found, "--no-preflight")
    assert [e.get("phase", "done") for e in trace(found, result.trials[0])] == ["done", "declared"]
    assert result.outcomes[("few", "calm")] == "unproven"
    assert result.outcomes[("more", "calm")] == "pass"
    assert result.outcomes[("called", "calm")] != "pass"


def test_the_run_folder_holds_a_trace_a_trial_as_it_happens(project: MakeProject, serve: Serve) -> None:
    found = busy(project, serve, [rule("any", "completes")])
    result = quick(found)
    files = sorted(path.stem for path in (rundir(found) / "traces").iterdir())
    assert result.trial["id"] in files
    assert len(files) == 2  # and the preflight's
