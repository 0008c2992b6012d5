"""References stay as written; only a run resolves them."""

import json

import pytest
from spec_texts import HTTP

from holdfast.errors import UserError
from holdfast.spec import interpolate, names, resolve, secret_values

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
    found = names("${A} ${B:-x} {{ secrets.C }} {{params.d}} ${A} {{ other }} $E {F}")
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
    assert set(secret_values(spec, SET)) == set(SET.values())
    assert "trace-value" in secret_values(spec, SET | {"TRACE": "trace-value"})


def test_unset_secret_is_refused_by_name(file):
    with pytest.raises(UserError, match="TOKEN is not set"):
        secret_values(file.spec(SECRET, SET), {})


def test_short_secret_is_refused_without_its_value(file):
    spec = file.spec(SECRET, SET)
    with pytest.raises(UserError) as refused:
        secret_values(spec, SET | {"TOKEN": "qzx7"})
    assert "TOKEN" in str(refused.value)
    assert "qzx7" not in str(refused.value) + refused.value.hint


def test_entries_of_secrets_are_masked(file):
    text = HTTP + "secrets: [A, {name: B, source: 'env:OTHER'}, {name: C, from: generated}]\n"
    spec = file.spec(text, {"A": "aaaaaa", "OTHER": "bbbbbb"})
    assert set(secret_values(spec, {"A": "aaaaaa", "OTHER": "bbbbbb"})) == {"aaaaaa", "bbbbbb"}


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


def test_pattern_that_looks_for_keys_is_no_key(file):
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
    assert set(secret_values(spec, environ)) == {"tok-123456", "key-123456"}
    assert secret_values(spec, {}) == ()
