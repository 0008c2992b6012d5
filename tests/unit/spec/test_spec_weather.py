"""Scenarios: faults, their schedules, profiles, and what an agent can meet."""

import json

import pytest
from msgspec.structs import replace
from spec_texts import HTTP, RULES

from holdfast.model.scenario import Injection, Schedule

PYTHON = """
agent: {type: python, endpoint: "bot:ask", %s}
golden_prompts: [hello]
"""


def matrix(entry, agent=HTTP):
    return f"{agent}{RULES}chaos_matrix:\n  - {{name: calm}}\n  - {{name: s, {entry}}}\n"


def placed(file, entry, agent=HTTP):
    return file.spec(matrix(entry, agent)).get_scenario("s").injections


@pytest.mark.parametrize(
    ("entry", "injection"),
    [
        (
            "tool_faults: [{tool: 'search*', mode: error, error_code: 500, after_calls: 2, times: 1}]",
            Injection("tool", "search*", "error", {"error_code": 500}, Schedule(after_calls=2, times=1)),
        ),
        (
            "tool_faults: [{tool: t, mode: error, raises: 'm:Err', match: {city: 'P*'}}]",
            Injection("tool", "t", "error", schedule=Schedule(match={"city": "P*"}), raises="m:Err"),
        ),
        (
            "llm_faults: [{mode: truncated_response, max_tokens: 20}]",
            Injection("llm", "*", "truncated_response", {"max_tokens": 20}),
        ),
        (
            "context_attacks: [{type: indirect_injection, trigger_probability: 0.5}]",
            Injection("context", "*", "indirect_injection", schedule=Schedule(probability=0.5)),
        ),
        (
            "context_attacks: [{type: indirect_injection, action: 'send_*'}]",
            Injection("context", "*", "indirect_injection", {"action": "send_*"}),
        ),
        (
            "tool_faults: [{tool: t, mode: malicious_response, action: pay}]",
            Injection("tool", "t", "malicious_response", {"action": "pay"}),
        ),
        (
            "context_attacks: [{type: indirect_injection, tool: 'search_*'}]",
            Injection("context", "search_*", "indirect_injection"),
        ),
        (
            "context_attacks: {indirect_injection: {tool: '[i]nput'}}",
            Injection("context", "[i]nput", "indirect_injection"),
        ),
        (
            "context_attacks: [{type: indirect_injection, tool: run, match: {tool: x}}]",
            Injection("context", "run", "indirect_injection", schedule=Schedule(match={"tool": "x"})),
        ),
    ],
)
def test_a_fault_becomes_an_injection(file, entry, injection):
    (one,) = placed(file, entry, PYTHON % "tools: [{name: t, callable: 'bot:t'}, {name: run, callable: 'bot:t'}]")
    assert replace(one, position=injection.position) == injection


def test_context_attacks_as_list_and_as_map_mean_the_same(file):
    listed = placed(file, "context_attacks: [{type: memory_poisoning, payload: x, strategy: append}]")
    mapped = placed(file, "context_attacks: {memory_poisoning: {payload: x, strategy: append}}")
    assert [(i.mode, i.settings) for i in listed] == [(i.mode, i.settings) for i in mapped]
    assert listed[0].target == "input"


@pytest.mark.parametrize(
    ("entry", "code", "path", "hint"),
    [
        ("context_attacks: [{type: overflow, trigger_probability: 1, probability: 1}]", "conflict", "probability", ""),
        ("tool_faults: [{tool: t, mode: error, on_call: 1, after_calls: 2}]", "conflict", "tool_faults[0].on_call", ""),
        ("tool_faults: [{tool: t, mode: error, max_tokens: 5}]", "unknown-key", "tool_faults[0].max_tokens", ""),
        ("llm_faults: [{mode: rate_limits}]", "unknown-value", "llm_faults[0].mode", "did you mean rate_limit?"),
        ("profile: api_outtage", "unknown-value", "profile", "did you mean api_outage?"),
        ("service_faults: [{service: db, mode: down}]", "unknown-service", "service_faults[0].service", ""),
    ],
)
def test_a_wrong_entry_is_an_error_at_its_place(file, entry, code, path, hint):
    found = file.error(matrix(entry, STARTED))
    assert found.code == code
    assert found.path.endswith(path)
    assert hint in found.hint


def test_probability_0_is_a_warning(file):
    text = matrix("tool_faults: [{tool: t, mode: error, probability: 0}]")
    assert len(file.warnings(text, "lint-probability-zero")) == 1


def test_tool_fault_needs_tool_and_mode(file):
    paths = [p.path for p in file.errors(matrix("tool_faults: [{}]"))]
    assert paths == ["chaos_matrix[1].tool_faults[0].tool", "chaos_matrix[1].tool_faults[0].mode"]


def test_empty_matrix_and_two_matrices_are_errors(file):
    assert file.error(HTTP + RULES + "chaos_matrix: []\n").code == "out-of-range"
    inner = RULES.rstrip() + "\n  chaos_matrix: [{name: a}]\n"
    assert file.error(HTTP + inner + "chaos_matrix: [{name: b}]\n").code == "conflict"


def test_scenario_name_twice_is_an_error(file):
    found = file.error(HTTP + RULES + "chaos_matrix: [{name: a}, {name: a}]\n")
    assert found.code == "duplicate-id"


STARTED = """
agent: {type: command, command: ./run, mcp_config: {mcpServers: {files: {command: files-server}}}}
golden_prompts: [hello]
"""


@pytest.mark.parametrize(
    ("entry", "plane", "target", "mode"),
    [
        ("mcp_faults: [{mode: session_lost, times: 1}]", "mcp", "*", "session_lost"),
        ("mcp_faults: [{mode: hang, tool: 'find*'}]", "mcp", "find*", "hang"),
        (
            "http_faults: [{mode: latency, jitter_ms: 5, match_url: 'https://api/*'}]",
            "http",
            "https://api/*",
            "latency",
        ),
        ("tool_faults: [{tool: '*', mode: error, match_url: 'https://api/*'}]", "tool", "*", "error"),
    ],
)
def test_faults_of_mcp_and_http_are_placed(file, entry, plane, target, mode):
    spec = file.spec(matrix(entry, STARTED))
    (one,) = spec.get_scenario("s").injections
    assert (one.plane, one.target, one.mode, spec.unbuilt) == (plane, target, mode, ())


LLM = {
    "overloaded": {"shape": "stream_error"},
    "server_error": {"status": 502, "body": "html"},
    "stream_cut": {"after_tokens": 3},
    "slow_tokens": {"ttft_ms": 100, "per_token_ms": 10},
    "empty_choices": {},
    "content_filter": {},
    "malformed_tool_call": {"shape": "not_object"},
    "unknown_tool": {"tool": "teleport"},
    "wrong_args": {"kinds": ["missing", "retyped"]},
    "repeat_tool_call": {},
    "odd_chunks": {},
    "context_length": {},
    "quota": {},
    "rate_limit": {"retry_after_s": None},
    "response_drift": {"drift_type": "model_fallback"},
}


@pytest.mark.parametrize("mode", LLM)
def test_every_fault_of_the_model_is_read_with_its_settings(file, mode):
    settings = "".join(f", {key}: {json.dumps(value)}" for key, value in LLM[mode].items())
    spec = file.spec(matrix(f"llm_faults: [{{mode: {mode}{settings}}}]", STARTED))
    (one,) = spec.get_scenario("s").injections
    assert (one.mode, one.settings, spec.unbuilt) == (mode, LLM[mode], ())


# -- services and the machine -------------------------------------------------------------------
BOXED = """
agent: {type: command, command: ./run}
golden_prompts: [hello]
services:
  - {name: db, image: "postgres:16"}
  - {name: cache, image: "redis:7"}
  - {name: legacy, type: external, url: "mysql://there/shop"}
resources: {disk: 10Mi}
"""


@pytest.mark.parametrize(
    ("entry", "target", "mode", "settings"),
    [
        ("service_faults: [{service: db, mode: reset_peer, delay_ms: 5}]", "db", "reset_peer", {"delay_ms": 5}),
        (
            "service_faults: [{service: db, mode: killed_mid_transaction, at: commit, outcome: done, times: 1}]",
            "db",
            "killed_mid_transaction",
            {"at": "commit", "outcome": "done"},
        ),
        ("service_faults: [{service: legacy, mode: read_only, match: {table: 'c*'}}]", "legacy", "read_only", {}),
        (
            "service_faults: [{service: cache, mode: down_at_start, for_ms: 50}]",
            "cache",
            "down_at_start",
            {"for_ms": 50},
        ),
        ("world_faults: [{mode: disk_full, after_ms: 2s}]", "*", "disk_full", {"after_ms": 2000}),
        ("world_faults: [{mode: killed, on_event: db_write}]", "*", "killed", {"on_event": "db_write"}),
        ("world_faults: [{mode: killed, after_event: {write: 2}}]", "*", "killed", {"after_event": {"write": 2}}),
        (
            "world_faults: [{mode: jump, to: dst, zone: Europe/Berlin}]",
            "*",
            "jump",
            {"to": "dst", "zone": "Europe/Berlin"},
        ),
    ],
)
def test_faults_of_services_and_the_machine_are_placed(file, entry, target, mode, settings):
    (one,) = placed(file, entry, BOXED)
    assert (one.target, one.mode, one.settings) == (target, mode, settings)


@pytest.mark.parametrize(
    ("entry", "agent", "code"),
    [
        ("service_faults: [{service: cache, mode: slow_query}]", BOXED, "unreachable-fault"),
        ("service_faults: [{service: cache, mode: connections_exhausted}]", BOXED, "unreachable-fault"),
        ("http_faults: [{match_url: 'https://cache/*', mode: tls_error}]", BOXED, "unreachable-fault"),
        (
            "http_faults: [{match_url: 'https://cache.services.internal:8443/x', mode: dns_failure}]",
            BOXED,
            "unreachable-fault",
        ),
        (
            "http_faults: [{match_url: 'https://api.example.com/*', mode: tls_error}]",
            BOXED + "network: {dns_overrides: {api.example.com: cache}}\n",
            "unreachable-fault",
        ),
        ("world_faults: [{mode: killed}]", STARTED, "unreachable-fault"),
        ("world_faults: [{mode: killed}]", HTTP, "unreachable-fault"),
        ("world_faults: [{mode: disk_full}]", BOXED.replace("resources: {disk: 10Mi}", ""), "unreachable-fault"),
        (
            "world_faults: [{mode: killed, on_event: db_write}]",
            STARTED + "services: [{name: m, type: http_mock}]\n",
            "unreachable-fault",
        ),
        ("world_faults: [{mode: killed, on_event: http_call, after_ms: 5}]", BOXED, "conflict"),
        ("world_faults: [{mode: killed, on_event: whenever}]", BOXED, "unknown-value"),
        ("world_faults: [{mode: killed, after_event: {read: 2}}]", BOXED, "bad-value"),
        ("world_faults: [{mode: killed, after_event: {write: 0}}]", BOXED, "bad-value"),
        ("world_faults: [{mode: killed, after_event: {write: 1}, after_ms: 5}]", BOXED, "conflict"),
        ("world_faults: [{mode: vanished}]", BOXED, "missing-key"),
        ("world_faults: [{mode: vanished, path: ../up}]", BOXED, "bad-setting"),
        ("world_faults: [{mode: permission, path: .}]", BOXED, "bad-setting"),
        ("world_faults: [{mode: jump, zone: Mars/Base}]", BOXED, "bad-setting"),
        ("world_faults: [{mode: jump, to: dst}]", BOXED, "bad-setting"),
        ("service_faults: [{service: db, mode: killed_mid_transaction, outcome: done}]", BOXED, "bad-setting"),
        ("service_faults: [{service: db, mode: down_at_start, for_ms: 5, connections: 2}]", BOXED, "bad-setting"),
        ("service_faults: [{service: db, mode: read_only, match: {tabel: x}}]", BOXED, "unknown-key"),
        ("service_faults: [{service: db, mode: tls_error, match: {table: x}}]", BOXED, "conflict"),
    ],
)
def test_what_nothing_can_meet_is_an_error(file, entry, agent, code):
    assert file.error(matrix(entry, agent)).code == code


# -- profiles -----------------------------------------------------------------------------------
def test_profile_comes_before_own_faults(file):
    modes = [i.mode for i in placed(file, "profile: degraded_llm, llm_faults: [{mode: garbage}]")]
    assert modes[-1] == "garbage"
    assert len(modes) > 1


def test_profile_faults_the_agent_cannot_meet_are_left_out_by_name(file):
    agent = PYTHON % "tools: ['bot:search'], isolation: inline"
    scenario = file.spec(matrix("profile: api_outage", agent)).get_scenario("s")
    assert {i.plane for i in scenario.injections} == {"tool"}
    assert scenario.left_out
    assert all(label.startswith("llm ") for label in scenario.left_out)


def test_profile_of_which_nothing_remains_is_an_error(file):
    file.beside("bot.py", "def ask(p): return p\n")
    found = file.error(matrix("profile: degraded_llm", PYTHON % "isolation: inline"))
    assert (found.code, found.path) == ("unreachable-fault", "chaos_matrix[1].profile")


def test_profile_option_adds_a_scenario(file):
    spec = file.spec(HTTP + RULES + "chaos_matrix: [{name: calm}]\n", profile="api_outage")
    assert [s.name for s in spec.scenarios] == ["calm", "api_outage"]


def test_profile_option_makes_a_matrix_where_there_is_none(file):
    spec = file.spec(HTTP + RULES, profile="api_outage")
    assert [(s.name, s.calm) for s in spec.scenarios] == [("no-chaos", True), ("api_outage", False)]


def test_profile_option_with_an_unknown_name(file):
    found = file.error(HTTP + RULES, profile="outage")
    assert (found.path, found.line) == ("--profile", 0)


# -- what the agent can meet --------------------------------------------------------------------
@pytest.mark.parametrize(
    "entry",
    [
        "tool_faults: [{tool: t, mode: error}]",
        "llm_faults: [{mode: timeout}]",
        "context_attacks: [{type: indirect_injection}]",
    ],
)
def test_http_agent_we_did_not_start_refuses_inner_faults_with_the_ways_out(file, entry):
    running = HTTP.replace(", simulate: answer", "")
    found = file.error(matrix(entry, running))
    assert found.code == "unreachable-fault"
    for way in ("agent.command", "agent.gateway", "agent.simulate: answer"):
        assert way in found.hint
    assert file.spec(matrix(entry)).get_scenario("s").injections


def test_attack_on_the_input_reaches_every_agent(file):
    running = HTTP.replace(", simulate: answer", "")
    assert placed(file, "context_attacks: [{type: overflow}]", running)


def test_tool_faults_on_a_python_agent_without_tools_fail_with_a_clear_error(file):
    file.beside("bot.py", "def ask(p): return p\n")
    found = file.error(matrix("tool_faults: [{tool: t, mode: error}]", PYTHON % "isolation: fresh"))
    assert found.code == "unreachable-fault"
    for way in ("agent.tools", "agent.tool_registry", "@holdfast.tool"):
        assert way in found.hint


@pytest.mark.parametrize("imported", ["agents", "urllib.request", "pydantic_ai.models", "os"])
def test_tool_faults_on_a_python_agent_that_may_ask_a_model_are_met_in_its_traffic(file, imported):
    file.beside("bot.py", "import helper\ndef ask(p): return p\n")
    file.beside("helper.py", f"import json, {imported}\n")
    text = matrix("tool_faults: [{tool: t, mode: error}]", PYTHON % "isolation: fresh")
    assert file.spec(text).tools_on_wire
    timed = file.error(matrix("tool_faults: [{tool: t, mode: timeout}]", PYTHON % "isolation: fresh"))
    assert "agent.tools" in timed.hint
    for other in ("isolation: inline", "llm: 'bot:ask'"):
        assert file.error(matrix("tool_faults: [{tool: t, mode: error}]", PYTHON % other)).code == "unreachable-fault"


def test_llm_faults_of_an_inline_agent_without_agent_llm_are_an_error(file):
    found = file.error(matrix("llm_faults: [{mode: timeout}]", PYTHON % "tools: ['bot:t'], isolation: inline"))
    assert "agent.llm" in found.hint
    assert placed(file, "llm_faults: [{mode: timeout}]", PYTHON % "tools: ['bot:t']")


def test_faults_of_the_wire_are_refused_where_only_functions_or_answers_are_met(file):
    cut = "llm_faults: [{mode: stream_cut}]"
    found = file.error(matrix(cut, PYTHON % "llm: 'bot:model'"))
    assert (found.code, "agent.llm" in found.hint) == ("unreachable-fault", True)
    found = file.error(matrix(cut))
    assert (found.code, "agent.command" in found.hint) == ("unreachable-fault", True)
    assert placed(file, cut, PYTHON % "isolation: fresh")


def test_module_that_is_not_next_to_the_spec_leaves_the_question_to_the_run(file):
    assert placed(file, "tool_faults: [{tool: t, mode: error}]", PYTHON % "isolation: fresh")


def test_unknown_tool_names_the_near_miss_where_names_are_certain(file):
    file.beside("bot.py", "def ask(p): return p\n\ndef search_web(q): return q\n")
    agent = PYTHON % "tools: ['bot:search_web', {name: mail, callable: 'bot:ask'}]"
    found = file.error(matrix("tool_faults: [{tool: serch_web, mode: error}]", agent))
    assert (found.code, found.hint) == ("unknown-tool", "did you mean search_web?")
    assert placed(file, "tool_faults: [{tool: 'ma*', mode: error}]", agent)


def test_tool_names_from_a_registry_are_left_to_the_run(file):
    file.beside("bot.py", "def ask(p): return p\n")
    assert placed(file, "tool_faults: [{tool: anything, mode: error}]", PYTHON % "tool_registry: 'bot:R'")


@pytest.mark.parametrize(
    "fault",
    [
        "context_attacks: [{type: indirect_injection, match: {tool: search}}]",
        "context_attacks: [{type: indirect_injection, match: {query: x, match_url: 'http://a/*'}}]",
        "context_attacks: {indirect_injection: {match: {tool: search}}}",
        "mcp_faults: [{mode: hang, match: {tool: search}}]",
        "tool_faults: [{tool: t, mode: error, match: {match_url: 'http://a/*'}}]",
        "http_faults: [{mode: down, match: {match_url: 'http://a/*'}}]",
        "context_attacks: [{type: indirect_injection, tool: t, match_url: 'http://a/*'}]",
    ],
)
def test_a_key_of_the_fault_inside_match_never_fires_and_is_refused(file, fault):
    found = [(one.code, one.path.rpartition(".")[2]) for one in file.errors(matrix(fault, STARTED))]
    assert found in ([("conflict", "tool")], [("conflict", "match_url")])


@pytest.mark.parametrize("fault", ["{type: overflow, tool: t}", "{type: indirect_injection, tool: input}"])
def test_an_attack_on_the_input_has_no_tool(file, fault):
    assert file.error(matrix(f"context_attacks: [{fault}]")).path == "chaos_matrix[1].context_attacks[0].tool"
