"""The doctor's spec part: where each fault will be met, and whether what the run needs is there."""

import asyncio
import json
import os
import socket
import sys
from contextlib import chdir

import pytest
import yaml

from holdfast.doctor.diagnose import examine_spec
from holdfast.doctor.needs import check_needs, find_program_word
from holdfast.execute.resolved_spec import ModelOptions, resolve_agent
from holdfast.planes.handover import Standby, load_address
from holdfast.spec import load

KEY = "sk-this-is-never-to-be-shown"
SCRIPT = {"*": {"script": "model.yaml"}}


def written(folder, agent, matrix=(), **top):
    (folder / "model.yaml").write_text("replies: [{text: hello}]\n")
    (folder / "agent.py").write_text(
        "def ask(prompt): return prompt\ndef search(q): return q\ndef model(q): return q\n"
    )
    contract = {
        "name": "c",
        "invariants": [{"id": "r", "type": "completes"}],
        "chaos_matrix": [{"name": "calm"}, *matrix],
    }
    path = folder / "holdfast.yaml"
    path.write_text(yaml.safe_dump({"agent": agent, "golden_prompts": ["hi"], "contract": contract, **top}))
    return path


def looked(folder, agent, matrix=(), environ=None, replay=None, **top):
    environ = {"PATH": os.environ["PATH"], **(environ or {})}
    spec, problems = load(written(folder, agent, matrix, **top), environ=environ)

    async def main():
        agent = resolve_agent(spec.agent, environ)
        placed = await examine_spec(spec, agent, problems, environ, ModelOptions(None, replay))
        return (*placed, *await check_needs(spec, agent, environ))

    with chdir(folder):
        found = asyncio.run(main())
    assert KEY not in str(found)
    assert all(one.fix for one in found if one.outcome == "not")
    return {one.route: one for one in found}


COMMAND = {"type": "command", "command": f"{sys.executable} agent.py"}
PYTHON = {"type": "python", "endpoint": "agent:ask", "tools": ["agent:search"]}
MCP = {"mcpServers": {"files": {"command": sys.executable}}}


@pytest.mark.parametrize(
    ("agent", "faults", "where"),
    [
        (COMMAND, {"llm_faults": [{"mode": "empty"}]}, "in the model traffic"),
        ({**PYTHON, "llm": "agent:model"}, {"llm_faults": [{"mode": "empty"}]}, "in the model function: agent:model"),
        (PYTHON, {"tool_faults": [{"tool": "search", "mode": "error"}]}, "in the Python function"),
        (
            COMMAND,
            {"tool_faults": [{"tool": "search", "mode": "error"}]},
            "in the tool's result in the model traffic (the tool itself runs)",
        ),
        (
            COMMAND,
            {"tool_faults": [{"tool": "search", "mode": "error", "match_url": "https://a.example/*"}]},
            "at the URL, through the proxy",
        ),
        (COMMAND, {"http_faults": [{"match_url": "a.example", "mode": "down"}]}, "at the URL, through the proxy"),
        ({**COMMAND, "mcp_config": MCP}, {"mcp_faults": [{"tool": "*", "mode": "hang"}]}, "in its MCP traffic"),
        (
            {**COMMAND, "mcp_config": MCP},
            {"mcp_faults": [{"tool": "*", "mode": "tool_poisoning"}]},
            "where its MCP servers list their tools",
        ),
        ({**COMMAND, "mcp_config": MCP}, {"tool_faults": [{"tool": "a", "mode": "timeout"}]}, "in its MCP traffic"),
        (
            {**PYTHON, "mcp_config": MCP},
            {"tool_faults": [{"tool": "search", "mode": "error"}]},
            "in the Python function or in its MCP traffic",
        ),
        (COMMAND, {"context_attacks": [{"type": "memory_poisoning"}]}, "in the prompt"),
        (
            {"endpoint": "http://127.0.0.1:1/", "simulate": "answer"},
            {"llm_faults": [{"mode": "empty"}]},
            "in the agent's answer (agent.simulate): not in its own calls",
        ),
    ],
)
def test_each_fault_is_placed_where_it_will_be_met(tmp_path, agent, faults, where):
    found = looked(tmp_path, agent, [{"name": "storm", **faults}], models=SCRIPT)
    (storm,) = [one for name, one in found.items() if name.startswith("storm: ")]
    assert (storm.outcome, storm.detail) == ("ok", where)
    assert (found["calm"].outcome, found["calm"].code) == ("n/a", "calm")


def test_what_a_profile_leaves_out_is_named_with_the_reason_and_the_way_out(tmp_path):
    found = looked(tmp_path, COMMAND, [{"name": "all", "profile": "top14"}], models=SCRIPT)
    lost = found["all/mcp-session-lost"]
    assert (lost.outcome, lost.code) == ("n/a", "scenario-left-out")
    assert "agent.mcp_config" in lost.fix
    part = looked(tmp_path, COMMAND, [{"name": "slow", "profile": "high_latency"}], models=SCRIPT)
    left, *_ = [one for one in part.values() if one.code == "fault-left-out"]
    assert "match_url" in left.fix


# -- models ---------------------------------------------------------------------------------------
def test_a_scripted_model_is_named(tmp_path):
    found = looked(tmp_path, COMMAND, models=SCRIPT)["model *"]
    assert (found.code, "model.yaml" in found.detail) == ("model-scripted", True)


def test_a_server_of_the_users_is_tried(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        models = {"gpt-4o": {"base_url": f"http://me:{KEY}@127.0.0.1:{port}/v1", "name": "small"}}
        up = looked(tmp_path, COMMAND, models=models)["model gpt-4o"]
    down = looked(tmp_path, COMMAND, models=models)["model gpt-4o"]
    assert (up.outcome, up.code) == ("ok", "server-reachable")
    assert (down.outcome, down.code, down.exit_code) == ("not", "server-unreachable", 3)


@pytest.mark.parametrize(("variable", "outcome"), [("OPENAI_API_KEY", "ok"), ("ANTHROPIC_API_KEY", "unproven")])
def test_a_providers_key_is_looked_for_and_never_shown(tmp_path, variable, outcome):
    models = {"gpt-4o": {"provider": "openai", "name": "gpt-4o-mini"}, "*": {"script": "model.yaml"}}
    found = looked(tmp_path, COMMAND, environ={variable: KEY}, models=models)["model gpt-4o as gpt-4o-mini"]
    assert (found.outcome, "OPENAI_API_KEY" in found.detail) == (outcome, True)


def test_an_ollama_is_tried(tmp_path):
    models = {"*": {"provider": "ollama", "name": "small"}}
    with socket.create_server(("127.0.0.1", 0)) as server:
        host = {"OLLAMA_HOST": f"127.0.0.1:{server.getsockname()[1]}"}
        up = looked(tmp_path, COMMAND, environ=host, models=models)["model * as small"]
    down = looked(tmp_path, COMMAND, environ=host, models=models)["model * as small"]
    assert (up.outcome, up.fix, down.outcome, down.exit_code) == ("ok", "", "not", 3)
    assert down.code == "server-unreachable"


def test_an_entrys_own_key_is_named_by_its_variable(tmp_path):
    models = {"*": {"provider": "anthropic", "name": "claude", "api_key": "${TEAM_KEY}"}}
    found = looked(tmp_path, COMMAND, environ={"TEAM_KEY": KEY}, models=models)["model * as claude"]
    assert (found.code, "TEAM_KEY" in found.detail) == ("model-key-set", True)


def test_without_models_the_providers_that_could_be_asked_are_named(tmp_path):
    storm = [{"name": "s", "llm_faults": [{"mode": "empty"}]}]
    found = looked(tmp_path, COMMAND, storm, environ={"GEMINI_API_KEY": KEY, "OPENAI_BASE_URL": "http://10.0.0.1:9/v1"})
    codes = {route.split()[-1]: finding.code for route, finding in found.items()}
    assert (codes["google"], codes["openai"]) == ("model-key-set", "model-key-missing")
    none = looked(tmp_path, COMMAND, storm)["every model"]
    assert (none.outcome, none.code, none.broken) == ("unproven", "model-key-missing", False)
    assert "script: model.yaml" in none.fix
    assert "--replay" in none.fix


def test_a_key_in_the_agents_own_env_counts(tmp_path):
    agent = {**COMMAND, "env": {"OPENAI_API_KEY": "${TEAM_KEY}"}}
    found = looked(tmp_path, agent, environ={"TEAM_KEY": KEY})
    assert {one.outcome for route, one in found.items() if route.endswith(" openai")} == {"ok"}


def test_a_recording_answers_for_every_model(tmp_path):
    found = looked(tmp_path, COMMAND, replay=tmp_path / "none.jsonl", models=SCRIPT)["every model"]
    assert (found.outcome, found.exit_code) == ("not", 4)
    assert "cannot be read" in found.detail


# -- what must be there -----------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("agent", "outcome"),
    [
        ({"command": f"{sys.executable} agent.py"}, "ok"),
        ({"command": "MODE=1 sh -c true"}, "ok"),
        ({"command": "./run.sh"}, "ok"),
        ({"command": "cd . && true"}, "ok"),
        ({"command": "no-such-program --go"}, "not"),
        ({"command": "$PROGRAM --go"}, "unproven"),
        ({"binary": "run.sh"}, "ok"),
        ({"binary": "no-such-program"}, "not"),
    ],
)
def test_the_agents_program_is_looked_for_and_not_run(tmp_path, agent, outcome):
    (tmp_path / "run.sh").write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    (tmp_path / "run.sh").chmod(0o755)
    found = looked(tmp_path, {"type": "command", **agent}, models=SCRIPT)[f"agent.{next(iter(agent))}"]
    assert (found.outcome, found.exit_code if found.outcome == "not" else 4) == (outcome, 4)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("command", "word"), [("a b", "a"), ("X=1 Y=2 a", "a"), ("'a b' c", "a b"), ("(a)", ""), ("a 'b", ""), ("", "")]
)
def test_the_first_word_of_a_command(command, word):
    assert find_program_word(command) == word


def test_a_fixed_port_must_be_free(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        agent = {"endpoint": f"http://127.0.0.1:{server.getsockname()[1]}/ask", "command": "true"}
        taken = looked(tmp_path, agent, models=SCRIPT)["agent.endpoint"]
    free = looked(tmp_path, agent, models=SCRIPT)["agent.endpoint"]
    any_ = looked(tmp_path, {**agent, "endpoint": "http://127.0.0.1:{port}/ask"}, models=SCRIPT)["agent.endpoint"]
    assert (taken.outcome, taken.exit_code, "{port}" in taken.fix) == ("not", 3, True)
    assert (free.outcome, any_.outcome) == ("ok", "ok")
    assert (free.code, any_.code) == ("port-free", "port-free")


def test_an_agent_in_a_world_is_looked_for_on_the_path_that_it_has_there(tmp_path):
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "only-here").write_text("#!/bin/sh\n")
    (tools / "only-here").chmod(0o755)
    environ = {"PATH": str(tools), "HOME": str(tmp_path)}
    wanted = [("python agent.py", "not", "ok"), ("only-here", "ok", "ok"), ("no-one", "not", "not")]
    for command, outside, inside in wanted:
        agent = {"type": "command", "command": command}
        found = [
            looked(tmp_path, {**agent, **more}, environ=environ, models=SCRIPT) for more in ({}, {"sandbox": True})
        ]
        assert [one["agent.command"].outcome for one in found] == [outside, inside], command
        if command == "only-here":
            told = f"{tools}/only-here; folders of its programs that the agent sees, read-only: {tools}/only-here"
            assert found[1]["agent.command"].detail == told
        if command == "no-one":
            assert "inside, PATH is " in found[1]["agent.command"].fix
            assert "agent.dir: /that/folder" in found[1]["agent.command"].fix


@pytest.mark.parametrize(
    ("program", "line"),
    [("claude", "npm install -g @anthropic-ai/claude-code"), ("aider", "pip install aider-chat")],
)
def test_a_known_program_that_is_missing_comes_with_the_install_command(tmp_path, program, line):
    for more in ({}, {"sandbox": True}):
        agent = {"type": "command", "command": f"{program} --yes", **more}
        found = looked(tmp_path, agent, environ={"PATH": str(tmp_path)}, models=SCRIPT)
        assert line in found["agent.command"].fix


def test_an_agent_in_a_world_has_every_port_to_itself(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        endpoint = f"http://127.0.0.1:{server.getsockname()[1]}/ask"
        agent = {"endpoint": endpoint, "command": "true", "sandbox": True}
        assert looked(tmp_path, agent, models=SCRIPT)["agent.endpoint"].outcome == "ok"


def test_a_running_agent_must_take_connections(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        agent = {"endpoint": f"http://127.0.0.1:{server.getsockname()[1]}/ask"}
        assert looked(tmp_path, agent)["agent.endpoint"].outcome == "ok"
    gone = looked(tmp_path, agent)["agent.endpoint"]
    assert (gone.outcome, gone.exit_code) == ("not", 3)


def test_a_gateway_must_be_running(tmp_path):
    agent = {"endpoint": "http://127.0.0.1:1/ask", "gateway": True}
    found = looked(tmp_path, agent, models=SCRIPT)["agent.gateway"]
    assert (found.outcome, found.exit_code) == ("not", 3)
    assert "holdfast gateway" in found.fix
    folder = tmp_path / ".holdfast"
    folder.mkdir()
    path = written(tmp_path, agent, models=SCRIPT)

    async def main():
        standby = Standby(folder, load_address(folder))
        await standby.open()
        try:
            spec, _ = load(path, environ={})
            return await check_needs(spec, spec.agent, {})
        finally:
            await standby.close()

    with chdir(tmp_path):
        found = {one.route: one for one in asyncio.run(main())}["agent.gateway"]
        stale = folder / "gateway.sock"
        stale.write_text("")
        gone = looked(tmp_path, agent, models=SCRIPT)["agent.gateway"]
    assert found.outcome == "ok", found
    assert (gone.outcome, gone.code) == ("not", "gateway-missing")


def test_the_commands_and_addresses_of_mcp_servers_are_looked_for(tmp_path):
    servers = {"here": {"command": "sh"}, "not": {"command": "no-such"}, "web": {"url": "http://127.0.0.1:1/mcp"}}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    found = looked(tmp_path, {**COMMAND, "mcp_config": "mcp.json"}, models=SCRIPT)
    outcomes = {name: (one.outcome, one.exit_code) for name, one in found.items() if name.startswith("mcp server")}
    assert outcomes == {"mcp server here": ("ok", 0), "mcp server not": ("not", 4), "mcp server web": ("not", 3)}
