"""References stay as written; only a run resolves them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from spec_texts import HTTP

from error_code import has_code
from golden_words import Golden
from holdfast.errors import UserError
from holdfast.spec import find_names, interpolate, read_secret_values, resolve, warn_unmasked_values

SECRET = """
agent:
  endpoint: "http://x"
  headers: {Authorization: "Bearer ${TOKEN}", X-Trace: "${TRACE:-none}", Accept: json}
  query_params: {key: "${QUERY}"}
model: {api_key: "${KEY}"}
golden_prompts: ["costs ${PRICE}"]
"""
SET = {"TOKEN": "tok-123456", "QUERY": "query-secret", "KEY": "key-abcdef"}


def test_names_by_kind():
    found = find_names("${A} ${B:-x} {{ secrets.C }} {{params.d}} ${A} {{ other }} $E {F}")
    assert (found.variables, found.optional, found.secrets, found.params) == (("A",), ("B",), ("C",), ("d",))


def test_resolve_every_kind():
    text = "${A}-${B:-x}-{{ secrets.C }}-{{ params.d }}-{{ params.e }}"
    assert resolve(text, {"A": "1"}, secrets={"C": "3"}, params={"d": "4", "e": True}) == "1-x-3-4-true"


def test_resolved_value_is_not_resolved_again():
    assert resolve("${A}", {"A": "${B}", "B": "no"}) == "${B}"


@pytest.mark.parametrize("text", ["${A}", "{{ secrets.A }}", "{{ params.A }}"])
def test_reference_without_a_value_is_refused_by_name(text):
    with pytest.raises(UserError, match="A"):
        resolve(text, {})


def test_interpolate_leaves_other_references_as_written():
    assert interpolate("{{ params.a }} ${B} {{ secrets.C }}", {"a": 1}) == "1 ${B} {{ secrets.C }}"


def test_spec_keeps_references_and_lists_what_it_needs(file):
    spec = file.spec(SECRET, SET)
    assert spec.agent.headers["Authorization"] == "Bearer ${TOKEN}"
    assert set(spec.variables) == {"TOKEN", "QUERY", "KEY"}
    assert "Bearer ${TOKEN}" in spec.secrets
    assert not any(value in repr(spec) for value in SET.values())


def test_dollar_in_a_prompt_is_text(file):
    assert "PRICE" not in file.spec(SECRET, SET).variables


def test_secret_values_are_what_the_variables_hold(file):
    spec = file.spec(SECRET, SET)
    assert set(read_secret_values(spec, SET)) == set(SET.values())
    assert "trace-value" in read_secret_values(spec, SET | {"TRACE": "trace-value"})


def test_unset_secret_is_refused_by_name(file):
    with pytest.raises(UserError, match="TOKEN", check=has_code("variable-unset")):
        read_secret_values(file.spec(SECRET, SET), {})


def test_short_secret_is_refused_without_its_value(file):
    spec = file.spec(SECRET, SET)
    with pytest.raises(UserError) as refused:
        read_secret_values(spec, SET | {"TOKEN": "qzx7"})
    assert "TOKEN" in str(refused.value)
    assert "qzx7" not in str(refused.value) + refused.value.hint


def test_entries_of_secrets_are_masked(file):
    text = HTTP + "secrets: [A, {name: B, source: 'env:OTHER'}, {name: C, from: generated}]\n"
    spec = file.spec(text, {"A": "aaaaaa", "OTHER": "bbbbbb"})
    assert set(read_secret_values(spec, {"A": "aaaaaa", "OTHER": "bbbbbb"})) == {"aaaaaa", "bbbbbb"}


def test_validate_warns_on_unset_variables(file):
    found = file.warnings(SECRET, "unset-variable")
    assert {w.path for w in found} == {"agent.headers.Authorization", "agent.query_params.key", "model.api_key"}


def test_unknown_param_and_secret_are_errors(file):
    text = HTTP.replace("France?", "{{ params.land }}? {{ secrets.S }}")
    assert [p.code for p in file.errors(text)] == ["unknown-reference", "unknown-reference"]
    assert file.spec(HTTP.replace("France?", "{{ params.land }}?") + "parallelism: {matrix: {land: [a]}}\n")


def test_literal_api_key_is_refused_and_not_shown(file):
    from holdfast.spec.explain import explain

    checked = file.check(HTTP + "model: {api_key: hunter2hunter2}\n")
    (found,) = [p for p in checked.problems if p.severity == "error"]
    assert found.path == "model.api_key"
    assert "hunter2" not in explain("f", checked.source, checked.problems)


@pytest.mark.parametrize(
    "line",
    [
        'headers: {Authorization: "Bearer abcdef1234567890XYZ"}',
        "headers: {X-Api-Key: plain}",
        "request_template: '{prompt} sk-abcdefghijklmnop1234'",
        "response_path: AKIAABCDEFGHIJKLMNOP",
    ],
)
def test_value_shaped_like_a_key_is_a_warning(file, line):
    text = f"agent:\n  endpoint: 'http://x'\n  {line}\ngolden_prompts: [a]\n"
    assert len(file.warnings(text, "lint-literal-secret")) == 1


def test_pattern_that_looks_for_keys_is_not_a_key(file):
    text = HTTP + "invariants: [{type: regex, pattern: 'sk-[a-z]+'}]\n"
    assert file.warnings(text, "lint-literal-secret") == []


def test_variables_of_an_mcp_file_are_masked_where_they_are_set(file, tmp_path):
    servers = {
        "a": {"url": "http://h/", "headers": {"Authorization": "Bearer ${MCP_TOKEN}", "X": "${env:UNSET}"}},
        "b": {"command": "b", "env": {"KEY": "${MCP_KEY:-none}", "DEBUG": "${DEBUG}"}, "args": ["${HOME_OF_IT}"]},
    }
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    environ = {"MCP_TOKEN": "tok-123456", "MCP_KEY": "key-123456", "DEBUG": "1", "HOME_OF_IT": "/home/somebody"}
    text = "agent: {type: command, command: ./run, mcp_config: mcp.json}\ngolden_prompts: [hi]\n"
    spec = file.spec(text, environ)
    assert set(read_secret_values(spec, environ)) == {"tok-123456", "key-123456"}
    assert read_secret_values(spec, {}) == ()


# -- numbers, durations, booleans and options ---------------------------------------------------
NUMBERS = """
agent:
  type: http
  endpoint: "http://localhost:8000/ask"
  simulate: answer
  timeout: ${T:-5s}
  method: ${METHOD:-PUT}
  keep_alive: ${KEEP}
golden_prompts: ["costs ${PRICE}"]
replicas: ${REPLICAS}
scoring: {min_score: "${MIN:-80}", replica_aggregation: {at_least: "${LEAST:-1}"}}
contract:
  name: C
  invariants:
    - {id: quick, type: latency, max_ms: "${MAX_MS}"}
    - {id: dollars, type: regex, pattern: "${PRICE}", negate: "${NEGATE:-true}"}
chaos_matrix:
  - {name: calm}
  - {name: slow, llm_faults: [{mode: timeout, delay_ms: "${DELAY:-7}", probability: "${P:-0.5}"}]}
"""
GIVEN = {"KEEP": "false", "REPLICAS": "3", "MAX_MS": "1500"}


def test_numbers_and_options_of_any_section_may_come_from_variables(file):
    spec = file.spec(NUMBERS, GIVEN)
    agent, fault = spec.agent, spec.get_scenario("slow").injections[0]
    assert (agent.timeout_ms, agent.method, agent.keep_alive, spec.replicas) == (5000, "PUT", False, 3)
    assert spec.scoring.min_score == 80
    assert spec.scoring.replica_aggregation.value == 1
    assert (spec.invariants[0].settings["max_ms"], spec.invariants[1].negate) == (1500, True)
    assert (fault.settings["delay_ms"], fault.schedule.probability) == (7, 0.5)
    assert file.spec(NUMBERS, GIVEN | {"T": "8000"}).agent.timeout_ms == 8000


def test_what_variables_gave_is_kept_by_path(file):
    settled = file.spec(NUMBERS, GIVEN).settled
    assert settled["agent.timeout"] == "5s"
    assert settled["contract.invariants[0].max_ms"] == "1500"
    assert settled["chaos_matrix[1].llm_faults[0].delay_ms"] == "7"
    assert "contract.invariants[1].pattern" not in settled
    again = file.spec(NUMBERS, {}, settled=settled)
    assert (again.replicas, again.settled, again.unsettled) == (3, settled, ())


def test_patterns_and_prompts_keep_their_dollars(file):
    spec = file.spec(NUMBERS, GIVEN | {"PRICE": "1"})
    assert spec.invariants[1].settings["pattern"] == "${PRICE}"
    assert spec.tasks[0].turns == ("costs ${PRICE}",)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("T", "5"),
        ("T", "soon"),
        ("REPLICAS", "0"),
        ("REPLICAS", "2.5"),
        ("REPLICAS", ""),
        ("KEEP", "yes"),
        ("METHOD", "SEND"),
        ("MIN", "nan"),
    ],
)
def test_a_value_that_a_variable_gives_is_checked_like_a_literal(file, name, value, golden: Golden):
    (found,) = [p for p in file.check(NUMBERS, GIVEN | {name: value}).problems if p.severity == "error"]
    golden(found.message)


@pytest.mark.parametrize(("name", "value"), [("T", "tok-123456"), ("METHOD", "s3cret"), ("KEEP", "truthy")])
def test_text_that_could_be_a_secret_is_not_shown(file, name, value, golden: Golden):
    (found,) = [p for p in file.check(NUMBERS, GIVEN | {name: value}).problems if p.severity == "error"]
    golden(found.message)
    assert value not in found.message + found.hint


def test_unset_variables_of_numbers_are_warnings_and_a_run_would_be_refused(file):
    found = file.warnings(NUMBERS, "unset-variable")
    assert [w.path for w in found] == ["agent.keep_alive", "replicas", "contract.invariants[0].max_ms"]
    spec = file.spec(NUMBERS)
    assert set(spec.unsettled) == {"KEEP", "REPLICAS", "MAX_MS"}
    assert len(spec.invariants) == 2


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("version: 1\n", "version: ${X}\n"),
        ("type: http", "type: ${X}"),
        ("mode: timeout", "mode: ${X}"),
        ("type: latency", "type: ${X}"),
    ],
)
def test_what_decides_how_the_file_is_read_is_written_out(file, written, text):
    whole = ("version: 1\n" + NUMBERS).replace(written, text)
    assert file.check(whole, GIVEN | {"X": written.split()[1]}).spec is None


def test_numbers_of_a_world_may_come_from_variables(file):
    text = """
version: 1
id: numbers
agent: {type: command, command: "echo $HOME"}
task: {prompt: hi}
resources: {memory: "${MEM:-1Gi}", cpu: "${CPU}", pids: "${PIDS:-64}", timeout: "${LIMIT:-5m}"}
services: [{name: shop, type: http_mock, ports: ["${PORT}"], record: "${RECORD:-true}"}]
setup: {files: [{path: a.txt, content: "${CPU}", mode: "0644"}], commands: ["echo ${CPU}"]}
audit: {commands: "${AUDIT:-false}"}
determinism: {seed: "${SEED}"}
invariants: {done: {check: {type: file_exists, path: a.txt}}}
"""
    spec = file.spec(text, {"CPU": "1.5", "PORT": "8080", "SEED": "9"}, part="scenario")
    world = spec.world
    assert (world.resources.memory, world.resources.cpu, world.resources.pids) == (2**30, 1.5, 64)
    assert (world.services[0].ports, world.services[0].settings["record"]) == ((8080,), True)
    assert (world.setup.files[0].content, world.setup.commands) == ("${CPU}", ("echo ${CPU}",))
    assert (world.audit.commands, spec.seed) == (False, 9)


# -- short values -------------------------------------------------------------------------------
PORT = """
agent: {type: command, command: ./run, env: {PORT: "${PORT}", TOKEN: "${TOKEN}"}}
golden_prompts: [hi]
setup: {env: {MODE: "${MODE:-on}"}}
"""


def test_a_short_environment_value_is_passed_on_and_noted(file):
    environ = {"PORT": "8080", "TOKEN": "tok-123456"}
    spec = file.spec(PORT, environ)
    assert read_secret_values(spec, environ) == ("tok-123456",)
    (short,) = warn_unmasked_values(spec, environ)
    assert (short.code, "PORT" in short.text) == ("secret-short", True)
    assert len(warn_unmasked_values(spec, environ | {"MODE": "off"})) == 2


@pytest.mark.parametrize(
    "line", ['headers: {X: "${PORT}"}', 'mcp_config: {mcpServers: {a: {url: "http://h", headers: {X: "${PORT}"}}}}']
)
def test_a_short_header_is_refused_although_it_is_an_environment_value_too(file, line):
    text = (
        f"agent:\n  endpoint: http://x\n  command: ./run\n  env: {{PORT: '${{PORT}}'}}\n  {line}\ngolden_prompts: [a]\n"
    )
    wrong = file.error(text, environ={"PORT": "8080"})
    assert (wrong.code, wrong.line, "PORT" in wrong.message) == ("short-secret", 5, True)
    spec = file.spec(text, {"PORT": "long enough"})
    with pytest.raises(UserError, match="PORT"):
        read_secret_values(spec, {"PORT": "8080"})
    assert warn_unmasked_values(spec, {"PORT": "8080"}) == ()
    assert warn_unmasked_values(spec, {}) == ()


# A `${VAR}` in a text that keeps it, such as a prompt.


SPEC = """
agent: {type: python, endpoint: "agent:ask", env: {A: "${SET}"}}
golden_prompts:
  - "PROMPT"
  - "other"
contract:
  name: c
  invariants:
    - {id: a, type: contains, value: "VALUE", probes: ["PROBE"]}
  chaos_matrix: [{name: calm}]
"""
PLAIN = {"PROMPT": "plain", "VALUE": "plain", "PROBE": "plain"}


def written(texts: dict[str, str]) -> str:
    spec = SPEC
    for word, text in (PLAIN | texts).items():
        spec = spec.replace(word, text)
    return spec


@pytest.mark.parametrize(
    ("texts", "keys"),
    [
        ({"PROMPT": "What does ${NOPE} cost?"}, ("golden_prompts[0]",)),
        ({"PROMPT": "${NOPE:-x}"}, ("golden_prompts[0]",)),
        ({"VALUE": "${NOPE}"}, ("contract.invariants[0].value",)),
        ({"PROBE": "${NOPE}"}, ("contract.invariants[0].probes[0]",)),
        ({"PROMPT": "${NOPE}", "PROBE": "${SET}"}, ("golden_prompts[0]", "contract.invariants[0].probes[0]")),
    ],
)
def test_one_warning_names_every_key(file: Any, texts: dict[str, str], keys: tuple[str, ...]) -> None:
    (found,) = file.warnings(written(texts), "lint-unfilled-variable")
    assert (found.path, found.values) == (keys[0], keys)
    assert found.line > 0


@pytest.mark.parametrize(
    ("rule", "key"),
    [
        ("type: excludes_pattern, patterns: ['${NOPE}']", "patterns[0]"),
        ("type: regex, pattern: 'costs ${NOPE}'", "pattern"),
    ],
)
def test_a_pattern_with_a_reference_cannot_match_what_is_meant(file: Any, rule: str, key: str) -> None:
    spec = written({}).replace('type: contains, value: "plain"', rule)
    (found,) = file.warnings(spec, "lint-unfilled-variable")
    assert found.values == (f"contract.invariants[0].{key}",)
    assert not file.warnings(spec.replace("${N", r"\${N"), "lint-unfilled-variable")


@pytest.mark.parametrize("text", ["$5", "$HOME", "{NOPE}", "${{ x }}", "${not a name}", "costs ${"])
def test_other_dollars_are_text(file: Any, text: str) -> None:
    assert not file.warnings(written({"PROMPT": text}), "lint-unfilled-variable")
