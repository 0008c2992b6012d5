"""Who answers a model call, what it means when nobody does, and that no key is ever stored or shown."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from cli import CALM, Asked, MakeProject, Project, Reply, Serve, contract, rule, rundir
from plane_agents import ASKS, ECHO, SCRIPTED, command, equip, holding, ledger, quick, run, server

KEY = "sk-correct-horse-battery-staple"
LIMIT = {"name": "limit", "llm_faults": [{"mode": "rate_limit"}]}
RULES = [rule("echoes", value="you said"), rule("polite", "excludes_pattern", patterns=["swine"])]
NO_KEYS = dict.fromkeys(
    ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "OPENAI_BASE_URL"), ""
)


def made(
    project: MakeProject, models: Any = None, *, matrix: Any = (CALM,), source: str = ASKS, **more: Any
) -> Project:
    spec = contract(more.pop("rules", RULES), list(matrix), agent=more.pop("agent", command()), **more)
    if models is not None:
        spec["models"] = models
    return equip(project(spec, source), ECHO)


def completion(text: str, status: int = 200) -> Reply:
    if status != 200:
        return status, json.dumps({"error": {"message": text, "type": "x", "code": None, "param": None}})
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
    return 200, json.dumps({"id": "c", "object": "chat.completion", "model": "m", "choices": [choice], "usage": usage})


def echo(asked: Asked) -> Reply:
    return completion("you said " + json.loads(asked.body)["messages"][-1]["content"])


# -- upstreams -------------------------------------------------------------------------------------
def test_models_sends_calls_to_any_compatible_server_with_its_key(project: MakeProject, serve: Serve) -> None:
    upstream = serve(echo)
    models = {"gpt-*": {"base_url": f"{upstream.url}/v1", "api_key": "${UP_KEY}", "name": "local-7b"}}
    found = made(project, models)
    result = run(found, env={**NO_KEYS, "UP_KEY": KEY})
    assert result.code == 0, result.err
    (asked, *_) = upstream.requests
    assert asked.path == "/v1/chat/completions"
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert json.loads(asked.body)["model"] == "local-7b"
    assert result.cells[("echoes", "calm")]["trials"][0]["trace"]["input_tokens"] == 3


def test_the_users_own_provider_address_and_key_are_the_upstream(project: MakeProject, serve: Serve) -> None:
    upstream = serve(echo)
    found = made(project)
    result = quick(found, env={**NO_KEYS, "OPENAI_BASE_URL": f"{upstream.url}/v1", "OPENAI_API_KEY": KEY})
    assert result.code == 0, result.err
    assert {a.headers["authorization"] for a in upstream.requests} == {f"Bearer {KEY}"}


def test_with_no_upstream_no_script_and_no_recording_the_trial_is_an_error_that_names_the_three_ways(
    project: MakeProject,
) -> None:
    found = made(project)
    result = quick(found, "--no-preflight", env=NO_KEYS)
    assert result.code == 3
    assert result.outcomes[("echoes", "calm")] == "error"
    reason = result.cells[("echoes", "calm")]["trials"][0]["reason"]
    assert all(word in reason for word in ("gpt-4o", "key", "script: model.yaml", "--replay FILE"))
    shown = found.command("contract", "run", env=NO_KEYS)
    assert shown.code == 3
    assert "--replay FILE" in shown.err


def test_a_script_without_a_rule_for_the_request_is_an_error_that_quotes_it(project: MakeProject) -> None:
    found = made(project, SCRIPTED)
    found.write({"replies": [{"match": {"prompt": "bye"}, "text": "bye"}]}, "model.yaml")
    result = quick(found, "--no-preflight")
    assert (result.code, result.outcomes[("echoes", "calm")]) == (3, "error")
    assert "model.yaml: " in result.trials[0]["reason"]
    assert "'hello'" in result.trials[0]["reason"]


def test_a_scripted_reply_is_named_where_it_decides_and_the_run_says_once_that_its_model_was_a_script(
    project: MakeProject,
) -> None:
    found = made(project, SCRIPTED, rules=[rule("never", value="a word that no rule says")])
    found.write({"replies": [{"match": {"prompt": "bye"}, "text": "bye"}, {"text": "you said"}]}, "model.yaml")
    result = run(found)
    assert result.outcomes[("never", "calm")] == "fail"
    assert result.part["spent"] | {"calls": 0} == {
        "calls": 0, "retries": 0, "input_tokens": 0, "output_tokens": 0, "cost_usd": None, "unpriced": [],
        "scripted": result.part["spent"]["calls"],
    }  # fmt: skip
    trace = next((rundir(found) / "traces").iterdir()).read_text()
    assert {json.loads(line).get("script") for line in trace.splitlines()} == {"model.yaml:5"}
    shown = found.command("contract", "run", "--no-preflight")
    assert (shown.out.count("script model.yaml:5"), shown.out.count(" was a script")) == (1, 1)
    assert "tokens" not in shown.out


# -- failures that no fault made -------------------------------------------------------------------
def test_an_upstream_that_is_down_is_an_error_and_no_failure_of_the_agent(project: MakeProject) -> None:
    models = {"*": {"base_url": "http://127.0.0.1:9/v1", "name": "m"}}
    result = quick(made(project, models), "--no-preflight", env=NO_KEYS)
    assert result.code == 3
    assert result.outcomes == {("echoes", "calm"): "error", ("polite", "calm"): "pass"}  # passes stand
    assert result.part["score"] == 100.0
    assert "127.0.0.1:9" in result.cells[("echoes", "calm")]["trials"][0]["reason"]


@pytest.mark.parametrize("status", [500, 429, 401])
def test_an_upstreams_own_failure_is_told_apart_from_an_injected_one(
    project: MakeProject, serve: Serve, status: int
) -> None:
    upstream = serve(lambda asked: completion("not today", status))
    models = {"*": {"base_url": f"{upstream.url}/v1", "name": "m"}}
    found = made(project, models, matrix=[CALM, LIMIT], advanced={"retries": 0})
    result = quick(found, "--no-preflight", env=NO_KEYS)
    assert result.code == 1  # the injected one counts
    assert result.outcomes == {
        ("echoes", "calm"): "error", ("polite", "calm"): "pass",
        ("echoes", "limit"): "fail", ("polite", "limit"): "pass",
    }  # fmt: skip
    assert str(status) in result.cells[("echoes", "calm")]["trials"][0]["reason"]
    assert {entry[1:] for entry in ledger(found)} == {("llm", "gpt-4o", 1, "rate_limit", "met")}
    calm = quick(found, "--no-preflight", "--scenario", "calm", env=NO_KEYS)
    assert calm.code == 3


def test_a_trial_that_the_provider_failed_is_repeated_and_then_stands(project: MakeProject, serve: Serve) -> None:
    times = iter([503])
    upstream = serve(lambda asked: completion("busy", next(times)) if times.__length_hint__() else echo(asked))
    models = {"*": {"base_url": f"{upstream.url}/v1", "name": "m"}}
    result = quick(made(project, models, rules=RULES[:1]), "--no-preflight", env=NO_KEYS)
    assert (result.code, result.outcomes[("echoes", "calm")]) == (0, "pass")


def test_a_slow_upstream_is_an_error_and_an_agent_that_dawdles_itself_is_not(
    project: MakeProject, serve: Serve
) -> None:
    def late(asked: Asked) -> Reply:
        time.sleep(2.5 if "hurry" not in asked.body else 0)
        return echo(asked)

    models = {"*": {"base_url": f"{serve(late).url}/v1", "name": "m"}}
    source = "import sys, time, talk\np = sys.stdin.read()\nprint(talk.ask(p), flush=True)\ntime.sleep(60)\n"
    spec = {"agent": command(timeout=2000), "rules": [rule("done", "completes")], "source": source}
    found = made(project, models, prompts=("wait", "hurry"), **spec)
    result = quick(found, "--no-preflight", env=NO_KEYS)
    slow, own = result.trials
    assert (slow["outcome"], own["outcome"], own["ending"]) == ("error", "fail", "timeout")
    assert " ms for gpt-4o until " in slow["reason"]


APOLOGISES = """
import json, os, sys, urllib.request
body = json.dumps({"model": "gpt-4o", "messages": [{"role": "user", "content": sys.stdin.read()}]}).encode()
url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
request = urllib.request.Request(url, body, {"content-type": "application/json", "authorization": "Bearer k"})
try:
    print(json.load(urllib.request.urlopen(request, timeout=1.5))["choices"][0]["message"]["content"])
except Exception:
    print("sorry, no model")
"""
"""An agent with a time limit of its own, which goes on without its model."""


def test_an_upstream_that_is_slow_for_the_agents_own_client_is_no_fail_of_its(
    project: MakeProject, serve: Serve
) -> None:
    def late(asked: Asked) -> Reply:
        time.sleep(2.5)
        return echo(asked)

    models = {"*": {"base_url": f"{serve(late).url}/v1", "name": "m"}}
    found = made(project, models, source=APOLOGISES, advanced={"retries": 0})
    result = quick(found, "--no-preflight", env=NO_KEYS)
    assert (result.code, sorted(result.outcomes.values())) == (3, ["error", "pass"])
    assert " ms for gpt-4o and " in result.trials[0]["reason"]


def test_a_page_where_a_model_should_be_is_an_error_that_names_the_address(project: MakeProject, serve: Serve) -> None:
    portal = serve(lambda asked: (200, "<html><body>Sign in to continue</body></html>"))
    models = {"*": {"base_url": f"{portal.url}/wrong", "name": "m"}}
    found = made(project, models, source=APOLOGISES, advanced={"retries": 0})
    result = quick(found, "--no-preflight", env=NO_KEYS)
    assert (result.code, sorted(result.outcomes.values())) == (3, ["error", "pass"])
    assert f"{portal.url}/wrong/chat/completions answered 200 with text/html" in result.trials[0]["reason"]


# -- keys ------------------------------------------------------------------------------------------
SHOWS = """
import os, sys, talk
print(talk.ask(sys.stdin.read()))
print("my key is", os.environ["OPENAI_API_KEY"])
print("on stderr", os.environ["OPENAI_API_KEY"], file=sys.stderr)
"""


def test_no_key_is_anywhere_in_the_run_its_reports_or_its_recording(project: MakeProject, serve: Serve) -> None:
    upstream = serve(lambda asked: completion("you said " + asked.headers["authorization"]))
    found = made(project, source=SHOWS, matrix=[CALM, LIMIT])
    env = {**NO_KEYS, "OPENAI_BASE_URL": f"{upstream.url}/v1", "OPENAI_API_KEY": KEY}
    reports = ["-o", "a.html", "-o", "a.json", "-o", "a.xml", "-o", "a.md", "--otlp", "t.jsonl", "--record", "c.jsonl"]
    result = found.command("contract", "run", "-v", *reports, env=env)
    assert upstream.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert holding(found.folder, KEY) == []
    assert KEY not in result.out + result.err
    answers = [t["answer"] for t in json.loads(found.read("a.json"))["parts"]["contract"]["cells"][0]["trials"]]
    assert ["[masked]" in answer for answer in answers] == [True]
    assert len(list(rundir(found).rglob("*"))) > 5


def test_a_key_of_models_never_reaches_the_agent(project: MakeProject, serve: Serve) -> None:
    upstream = serve(echo)
    models = {"*": {"base_url": f"{upstream.url}/v1", "api_key": "${UP_KEY}", "name": "m"}}
    source = ASKS + "import os\nprint(os.environ['OPENAI_API_KEY'])\n"
    result = quick(made(project, models, source=source), "--no-preflight", env={**NO_KEYS, "UP_KEY": KEY})
    assert KEY not in result.out
    assert "holdfast-no-key" in result.trials[0]["answer"]


def test_a_key_that_only_the_agent_knows_passes_through_and_is_nowhere_kept(project: MakeProject, serve: Serve) -> None:
    upstream = serve(echo)
    source = f"import sys, talk\nprint(talk.ask(sys.stdin.read(), key={KEY!r}))\n"
    found = made(project, source=source)
    result = quick(found, "--record", "calls.jsonl", env={**NO_KEYS, "OPENAI_BASE_URL": f"{upstream.url}/v1"})
    assert result.code == 0, result.err
    assert {asked.headers["authorization"] for asked in upstream.requests} == {f"Bearer {KEY}"}
    assert holding(found.folder, KEY) == ["agent.py"]


# -- faults in the shape of each provider ------------------------------------------------------------


def test_a_python_agent_meets_the_same_through_its_own_environment(project: MakeProject) -> None:
    source = "import talk\ndef ask(prompt):\n    return talk.ask(prompt)\n"
    agent = {"type": "python", "endpoint": "agent:ask"}
    found = made(project, SCRIPTED, source=source, matrix=[CALM, LIMIT], agent=agent, rules=RULES[:1])
    result = quick(found, "--concurrency", "2", "--replicas", "3")
    assert result.outcomes == {("echoes", "calm"): "pass", ("echoes", "limit"): "fail"}
    assert {t["answer"] for t in result.cells[("echoes", "limit")]["trials"]} == {"model failed: 429"}


def test_an_http_agent_meets_them_too(project: MakeProject) -> None:
    found = made(project, SCRIPTED, source="import serves\nserves.main()\n", matrix=[CALM, LIMIT], agent=server())
    result = quick(found)
    assert result.outcomes[("echoes", "limit")] == "fail"
    assert result.outcomes[("polite", "limit")] == "pass"
