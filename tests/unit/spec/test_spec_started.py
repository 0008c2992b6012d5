"""An agent that Holdfast starts: what can never start, become ready or be read is told by validate."""

import os

import pytest

from golden_words import Golden

ASK = "golden_prompts: [hello]\n"
SERVER = "agent: {endpoint: 'http://localhost:{port}/ask', command: ./serve, %s}\n" + ASK
COMMAND = "agent: {type: command, %s}\n" + ASK


@pytest.mark.parametrize(
    ("ready", "expected"),
    [
        ("true", "a URL, a port or a text, found true"),
        ("1.5", "a URL, a port or a text, found the number 1.5"),
        ("''", "a URL, a port or a text"),
        ("'  '", "a URL, a port or a text"),
        ("0", "a port from 1 to 65535, found 0"),
        ("-1", "a port from 1 to 65535, found -1"),
        ("65536", "a port from 1 to 65535, found 65536"),
        ("'99999999999999999999'", "a port from 1 to 65535"),
        ("'http://'", "a host in the URL"),
        ("'http:///up'", "a host in the URL"),
        ("'http://localhost:99999/up'", "a port from 1 to 65535 in the URL"),
        ("'http://localhost:x/up'", "a port from 1 to 65535 in the URL"),
    ],
)
def test_ready_that_is_not_a_url_no_port_and_no_text_is_an_error(file, ready, expected):
    found = file.error(SERVER % f"ready: {ready}")
    assert found.path == "agent.ready"
    assert found.message.startswith(f"expected {expected}")


@pytest.mark.parametrize(
    "ready", ["8000", "'8000'", "'{port}'", "port", "'http://localhost:{port}/up'", "Listening on .*", "'${URL}/up'"]
)
def test_ready_as_url_port_or_text_is_kept(file, ready):
    assert file.errors(SERVER % f"ready: {ready}") == []


def test_ready_that_looks_like_a_path_is_a_warning(file):
    (found,) = file.warnings(SERVER % "ready: /health", "lint-ready-path")
    assert "http://localhost:{port}/health" in found.hint


@pytest.mark.parametrize(
    ("agent", "path", "near"),
    [
        (COMMAND % "command: 'run {promt}'", "agent.command", "{prompt}"),
        (COMMAND % "command: 'run {PROMPT}'", "agent.command", "{prompt}"),
        (COMMAND % "command: 'run {prompt-file}'", "agent.command", "{prompt_file}"),
        (COMMAND % "command: 'run --task={prmopt}'", "agent.command", "{prompt}"),
        (COMMAND % "binary: sh, args: [-c, '{mcpconfig}']", "agent.args[1]", "{mcp_config}"),
        (SERVER % "env: {P: '{prot}'}", "agent.env.P", "{port}"),
        ("agent: {endpoint: 'http://h:{prot}/', command: './s {port}'}\n" + ASK, "agent.endpoint", "{port}"),
    ],
)
def test_misspelt_place_is_an_error_with_the_near_miss(file, agent, path, near):
    found = file.error(agent)
    assert (found.path, found.code) == (path, "bad-place")
    assert found.hint.startswith(f"did you mean {near}?")


@pytest.mark.parametrize(
    "command",
    [
        """awk '{print}'""",
        """awk '{print $1}' | jq '{a: 1}'""",
        """echo ${PROMT:-x} ${promt}""",
        """curl -d '{"promt": 1}' x""",
        """echo {a,b} {{promt}}""",
        """python -c 'print(f"{name}")'""",
        """python -c 'print(f"{ promt }")'""",
        """x {file} {result} {output} {path}""",
    ],
)
def test_braces_that_are_none_of_ours_stay_as_they_are(file, command):
    quoted = command.replace("'", "''")
    spec = file.spec(COMMAND % f"command: '{quoted}'")
    assert spec.agent.command == command


@pytest.mark.parametrize(
    "agent",
    [
        COMMAND % "command: 'run {mcp_config}'",
        COMMAND % "command: 'run {port}'",
        "agent: {endpoint: 'http://x', command: 'run {prompt}'}\n" + ASK,
    ],
)
def test_place_that_nothing_fills_is_an_error(file, agent):
    found = file.error(agent)
    assert (found.path, found.code) == ("agent.command", "bad-place")


@pytest.mark.parametrize("agent", [COMMAND % "command: '   '", COMMAND % "binary: '  '", COMMAND % "command: ''"])
def test_blank_command_is_an_error(file, agent):
    assert file.error(agent).path in ("agent.command", "agent.binary")


@pytest.mark.parametrize("name", ["/tmp/answer.txt", "../answer.txt", "out/../../a.txt", "."])
def test_answer_file_outside_of_the_folder_is_an_error(file, name, golden: Golden):
    found = file.error(COMMAND % f"command: ./run, answer_file: '{name}'")
    assert found.path == "agent.answer_file"
    golden(found.hint)


@pytest.mark.parametrize("path", ["$.a[", "a..b", "$[?", "a]"])
@pytest.mark.parametrize("agent", [COMMAND % "command: ./run, response_path: '%s'", SERVER % "response_path: '%s'"])
def test_response_path_that_cannot_be_read_is_an_error(file, agent, path):
    found = file.error(agent % path)
    assert (found.path, found.code) == ("agent.response_path", "bad-path")
    assert "JSONPath" in found.hint


@pytest.mark.parametrize("url", ["http://", "http://:80/", "https://h:0/", "http://h:70000/", "http://h:port/"])
def test_endpoint_where_nothing_can_answer_is_an_error(file, url):
    assert file.error(f"agent: {{endpoint: '{url}'}}\n{ASK}").path == "agent.endpoint"


# -- files beside the spec --------------------------------------------------------------------------
def test_binary_that_is_not_next_to_the_spec_is_an_error(file):
    found = file.error(COMMAND % "binary: ./run")
    assert (found.path, found.code) == ("agent.binary", "missing-file")
    assert "'./run'" in found.message


def test_binary_that_is_not_executable_is_an_error(file):
    file.beside("run", "#!/bin/sh\n")
    assert file.error(COMMAND % "binary: ./run").hint == "chmod +x ./run"
    os.chmod(file.folder / "run", 0o755)
    assert file.errors(COMMAND % "binary: ./run") == []


def test_binary_that_is_not_on_path_is_a_warning(file):
    (found,) = file.warnings(COMMAND % "binary: no-such-agent", "lint-missing-program")
    assert found.path == "agent.binary"
    assert file.warnings(COMMAND % "binary: sh", "lint-missing-program") == []


def test_binary_of_a_world_may_be_placed_there(file):
    assert file.errors("setup: {commands: [make]}\n" + COMMAND % "binary: ./made") == []


@pytest.mark.parametrize("key", ["mcp_config: .", "mcp_config: inner"])
def test_folder_where_a_file_is_named_is_an_error(file, key):
    (file.folder / "inner").mkdir()
    assert file.error(COMMAND % f"command: ./run, {key}").path == "agent.mcp_config"


def test_script_that_is_a_folder_is_an_error(file, golden: Golden):
    found = file.error(COMMAND % "command: ./run" + "models: {'*': {script: .}}\n")
    assert (found.path, found.code) == ("models.*.script", "bad-script")
    golden(found.message)


def test_script_with_a_mistake_is_an_error_at_its_line(file):
    file.beside("model.yaml", "replies:\n  - {text: '{{ promt }}'}\n")
    found = file.error(COMMAND % "command: ./run" + "models: {'*': {script: model.yaml}}\n")
    assert found.code == "bad-script"
    assert found.hint == "did you mean prompt?"
