"""`match` and `raises` of a fault: what no call can have where the fault acts is an error."""

import pytest
from spec_texts import HTTP, RULES

COMMAND = "agent: {type: command, command: ./run, mcp_config: {servers: {a: {command: x}}}}\ngolden_prompts: [hello]\n"
FUNCTIONS = "agent: {type: python, endpoint: 'bot:ask', llm: 'bot:m', tools: ['bot:t']}\ngolden_prompts: [hello]\n"
PYTHON = "agent: {type: python, endpoint: 'bot:ask', tools: ['bot:t']}\ngolden_prompts: [hello]\n"


def matrix(agent, entry):
    return f"{agent}{RULES}chaos_matrix:\n  - {{name: calm}}\n  - {{name: s, {entry}}}\n"


@pytest.mark.parametrize(
    ("entry", "key", "hint"),
    [
        ("llm_faults: [{mode: timeout, match: {promt: '*x*'}}]", "promt", "did you mean prompt?"),
        ("llm_faults: [{mode: timeout, match: {temperature: 1}}]", "temperature", "there are: model, prompt"),
        ("http_faults: [{mode: tls_error, match: {path: /a}}]", "path", "there are: method, url, host, port"),
        ("http_faults: [{mode: dns_failure, match_url: 'https://a/*', match: {hst: a}}]", "hst", "did you mean host?"),
    ],
)
def test_match_key_that_no_call_has_is_an_error(file, entry, key, hint):
    found = file.error(matrix(COMMAND, entry))
    assert found.path.endswith(f".match.{key}")
    assert found.code == "unknown-key"
    assert found.hint.startswith(hint)
    assert found.line > 1
    assert found.column > 1


@pytest.mark.parametrize(
    ("agent", "entry", "what"),
    [
        (COMMAND, "mcp_faults: [{mode: tool_poisoning, match: {a: 1}}]", "a list of tools has no arguments"),
        (HTTP, "llm_faults: [{mode: timeout, match: {prompt: x}}]", "an answer has no arguments"),
        (HTTP, "tool_faults: [{tool: t, mode: error, match: {city: x}}]", "an answer has no arguments"),
    ],
)
def test_match_where_there_are_no_arguments_is_an_error(file, agent, entry, what):
    found = file.error(matrix(agent, entry))
    assert (found.code, found.message.startswith(what)) == ("conflict", True)


@pytest.mark.parametrize(
    ("agent", "entry"),
    [
        (COMMAND, "llm_faults: [{mode: timeout, match: {model: 'gpt*', prompt: '*x*', stream: true, tools: '*'}}]"),
        (FUNCTIONS, "llm_faults: [{mode: timeout, match: {messages: '*x*'}}]"),
        (COMMAND, "tool_faults: [{tool: t, mode: error, match: {city: x}}]"),
        (COMMAND, "tool_faults: [{tool: t, mode: error, match_url: 'https://a/*', match: {method: POST, q: x}}]"),
        (COMMAND, "http_faults: [{mode: latency, match: {body: '*', order: 7}}]"),
        (COMMAND, "http_faults: [{mode: dns_failure, match: {path: /a}}]"),
        (COMMAND, "mcp_faults: [{mode: tools_changed, match: {a: 1}}]"),
        (COMMAND, "context_attacks: [{type: indirect_injection, payloads: [x], match: {city: x}}]"),
    ],
)
def test_match_keys_that_calls_may_have_are_kept(file, agent, entry):
    assert file.errors(matrix(agent, entry)) == []


def test_match_on_headers_is_told_to_look_elsewhere(file):
    text = matrix(COMMAND, "http_faults: [{mode: latency, match: {headers: {a: b}}}]")
    assert [w.path for w in file.warnings(text, "lint-match-headers")] == [
        "chaos_matrix[1].http_faults[0].match.headers"
    ]


@pytest.mark.parametrize(
    ("agent", "entry"),
    [
        (COMMAND, "llm_faults: [{mode: timeout, raises: 'm:E'}]"),
        (COMMAND, "tool_faults: [{tool: t, mode: error, raises: 'm:E'}]"),
        (PYTHON, "llm_faults: [{mode: timeout, raises: 'm:E'}]"),
        (PYTHON, "tool_faults: [{tool: t, mode: error, match_url: 'http://a/*', raises: 'm:E'}]"),
        (HTTP, "tool_faults: [{tool: t, mode: error, raises: 'm:E'}]"),
    ],
)
def test_raises_on_a_fault_that_meets_no_python_function_is_an_error(file, agent, entry):
    found = file.error(matrix(agent, entry))
    assert (found.code, found.path.endswith(".raises")) == ("conflict", True)
    assert found.hint.startswith("remove it")


@pytest.mark.parametrize(
    "entry", ["llm_faults: [{mode: timeout, raises: 'm:E'}]", "tool_faults: [{tool: t, mode: error, raises: 'm:E'}]"]
)
def test_raises_on_a_fault_of_python_functions_is_kept(file, entry):
    assert file.errors(matrix(FUNCTIONS, entry)) == []


# A glob that can match nothing is an error; a class of characters is none.


BOT = """
agent: {type: command, command: "python bot.py", mcp_config: {mcpServers: {s: {command: python}}}}
golden_prompts: [hello]
"""


def globbing(entry):
    return f"{COMMAND}{RULES}chaos_matrix:\n  - {{name: calm}}\n  - {{name: s, {entry}}}\n"


@pytest.mark.parametrize(
    ("entry", "path", "hint"),
    [
        ("tool_faults: [{tool: '[', mode: error}]", "tool_faults[0].tool", "[[]"),
        ("tool_faults: [{tool: 'find[ab', mode: error}]", "tool_faults[0].tool", "[ab]*"),
        ("tool_faults: [{tool: '[]', mode: error}]", "tool_faults[0].tool", "[[]"),
        ("tool_faults: [{tool: '[!]', mode: error}]", "tool_faults[0].tool", "[[]"),
        ("mcp_faults: [{tool: 'a[', mode: hang}]", "mcp_faults[0].tool", "[[]"),
        ("http_faults: [{mode: down, match_url: 'http://[::1/*'}]", "http_faults[0].match_url", "[::1]"),
        ("http_faults: [{mode: down, match_url: 'http://[::1/*]'}]", "http_faults[0].match_url", "[::1]"),
        ("http_faults: [{mode: down, match_url: '[ab.example.com'}]", "http_faults[0].match_url", "[ab]"),
        ("tool_faults: [{tool: t, match_url: 'http://[::1:80/', mode: error}]", "tool_faults[0].match_url", "[::1]"),
        (
            "context_attacks: [{type: indirect_injection, match_url: 'http://[::1/*'}]",
            "context_attacks[0].match_url",
            "[::1]",
        ),
    ],
)
def test_a_bracket_that_is_never_closed_is_an_error(file, entry, path, hint):
    found = file.error(globbing(entry))
    assert found.code == "bad-value"
    assert found.path.endswith(path)
    assert "never closed" in found.message
    assert hint in found.hint
    assert found.line > 1


@pytest.mark.parametrize(
    "entry",
    [
        "tool_faults: [{tool: '[ab]*', mode: error}]",
        "tool_faults: [{tool: '[[]', mode: error}]",
        "tool_faults: [{tool: '[]]', mode: error}]",
        "tool_faults: [{tool: '[!a]b', mode: error}]",
        "tool_faults: [{tool: 'a]', mode: error}]",
        "tool_faults: [{tool: '[', match_url: 'http://a/*', mode: error}]",
        "http_faults: [{mode: down, match_url: 'http://[::1]/*'}]",
        "http_faults: [{mode: down, match_url: 'http://[::1]:8080/*'}]",
        "http_faults: [{mode: down, match_url: 'http://[ab]*.example.com/'}]",
        "http_faults: [{mode: down, match_url: 'http://a/list?filter[*'}]",
        "tool_faults: [{tool: t, mode: error, match: {a: '['}}]",
    ],
)
def test_other_brackets_are_none(file, entry):
    assert file.spec(globbing(entry)).get_scenario("s").injections
