"""A glob that can match nothing is an error; a class of characters is none."""

import pytest
from spec_texts import RULES

COMMAND = """
agent: {type: command, command: "python bot.py", mcp_config: {mcpServers: {s: {command: python}}}}
golden_prompts: [hello]
"""


def matrix(entry):
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
    found = file.error(matrix(entry))
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
    assert file.spec(matrix(entry)).get_scenario("s").injections
