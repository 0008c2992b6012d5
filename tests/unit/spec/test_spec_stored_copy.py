"""The copy of a file without its literal secrets."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from holdfast.model.spec import AgentSpec
from holdfast.plan.layout import encode_agent
from holdfast.spec.load import check
from holdfast.spec.secrecy import mask_source

KEY = "sk-abcdefghij0123456789"
PEM = "-----BEGIN PRIVATE KEY-----\\nMIIabc123\\n-----END PRIVATE KEY-----"


def test_no_value_of_it_can_be_read() -> None:
    for text, secret in [
        ('secrets: [{name: A, from: "static://hunter2-long"}]', "hunter2-long"),
        ("secrets:\n  - name: A\n    from: 'static://it''s-long'\n", "it's-long"),
        ('secrets: [{name: A, from: "static://\\x61bcdefgh"}]', "abcdefgh"),
        ("secrets:\n  - name: A\n    from: >-\n      static://two\n      words\n", "two words"),
        (f"agent: {{env: {{T: {KEY}}}}}", KEY),
        (f"agent: {{headers: {{X: 'a {KEY} b'}}}}", KEY),
        ("agent: {headers: {Authorization: Basic dXNlcjpwYXNz}}", "dXNlcjpwYXNz"),
        ('agent: {headers: {x-api-key: "plainword"}}', "plainword"),
        (f'setup: {{env: {{P: "{PEM}"}}}}', "MIIabc123"),
        (f"services: [{{name: a, env: {{K: {KEY}}}}}]", KEY),
    ]:
        kept = mask_source(text)
        assert secret not in kept, (text, secret)
        assert secret not in str(yaml.safe_load(kept)), (text, secret)
        assert "masked-" in kept, (text, secret)
        assert mask_source(kept) == kept, (text, secret)
        shape = yaml.safe_load(text).keys()
        assert yaml.safe_load(kept).keys() == shape, (text, secret)


@pytest.mark.parametrize(
    "text",
    [
        "agent: {headers: {Authorization: '${TOKEN}'}}",
        "agent: {headers: {Authorization: 'Bearer ${TOKEN}'}}",
        f"golden_prompts: ['my key is {KEY}']",
        "secrets: [{name: A, from: generated}, B]",
        "# a comment\nversion: 1\n",
    ],
)
def test_what_holds_no_secret_is_kept_as_it_is(text: str) -> None:
    assert mask_source(text) == text


def test_only_the_value_itself_is_replaced() -> None:
    for secret in ["completes", "calm", "letmein77", "static", "masked", "a", "e", "- ", "contract", "A"]:
        text = f"""
    # of the secret {secret}
    secrets: [{{name: A, from: "static://{secret}"}}, {{name: B, from: static://another-long-one}}]
    contract: {{invariants: [{{id: ends, type: completes}}, {{id: r, type: regex, pattern: kettle77}}]}}
    chaos_matrix: [{{name: calm}}]
    """
        before, after = yaml.safe_load(text), yaml.safe_load(mask_source(text))
        kept = [entry.pop("from") for entry in after["secrets"]]
        assert [re.fullmatch(r"static://masked-[0-9a-f]{16}", value) is not None for value in kept] == [True, True], (
            secret
        )
        for entry in before["secrets"]:
            del entry["from"]
        assert after == before, secret


def test_it_is_found_where_it_stands_however_it_is_written() -> None:
    for written in [
        "static://hunter2x",
        "'static://hunter2x'",
        '"static://\\x68unter2x"',
        "&hunter2x static://hunter2x",
        "!!str &k 'static://hunter2x'",
        ">-\n      static://hunter2x",
        "|- # a comment\n      static://hunter2x\n",
        "static://hunter2x  # why",
        "\n      static://hunter2x",
        '"static://hunt\\\n      er2x"',
    ]:
        for head in [
            "",
            "\ufeff",
            "# \U0001f600 ü\n",
            "# a\r\n",
            "a: \U0001f600\x85\n",
            "a: |\n  ü\n\n  static://b\n",
            "--- \n",
        ]:
            text = f"{head}secrets:\n  - name: A\n    from: {written}\n    after: [1, b]\nlast: hunter2x\n"
            before, after = yaml.safe_load(text), yaml.safe_load(mask_source(text))
            assert before["secrets"][0].pop("from") == "static://hunter2x", head
            assert re.fullmatch(r"static://masked-[0-9a-f]{16}", after["secrets"][0].pop("from")), head
            assert after == before, head


def test_what_follows_it_stays_on_its_line() -> None:
    text = "secrets:\n  - name: A\n    from: >-\n      static://two\n      words\n\nlast: {a: 1}\n"
    kept = mask_source(text).splitlines()
    assert kept.index("last: {a: 1}") == text.splitlines().index("last: {a: 1}")


def test_an_alias_of_it_is_masked_with_it() -> None:
    text = "agent:\n  headers: {X-Api-Key: &k plainword}\n  mcp_config: {mcpServers: {s: {headers: {Cookie: *k}}}}\n"
    assert "plainword" not in mask_source(text)
    after = yaml.safe_load(mask_source(text))["agent"]
    assert after["headers"]["X-Api-Key"] == after["mcp_config"]["mcpServers"]["s"]["headers"]["Cookie"]


REPEATED = """
secrets: [{name: A, from: "static://hunter2-long"}]  # hunter2-long
contract:
  invariants:
    - {id: a, type: excludes_pattern, patterns: ['key=hunter2-long']}
invariants:
  b: {description: hunter2-long, check: {type: contains, value: hunter2-long}}
golden_prompts: [say hunter2-long]
agent: {env: {K: hunter2-long}}
"""


def test_a_static_secret_that_a_rule_repeats_is_masked_in_it() -> None:
    before, after = yaml.safe_load(REPEATED), yaml.safe_load(mask_source(REPEATED))
    mark = after["secrets"][0]["from"].removeprefix("static://")
    assert after["contract"]["invariants"] == [
        {"id": "a", "type": "excludes_pattern", "patterns": [f"key={mark}"]},
    ]
    assert after["invariants"] == {"b": {"description": mark, "check": {"type": "contains", "value": mark}}}
    assert "# hunter2" not in mask_source(REPEATED)
    assert mask_source(mask_source(REPEATED)) == mask_source(REPEATED)
    # The ids of trials come from these.
    assert {key: after[key] for key in ("golden_prompts", "agent")} == {
        key: before[key] for key in ("golden_prompts", "agent")
    }


@pytest.mark.parametrize(
    ("secret", "written"),
    [
        ("p.ss-word!", r"p\.ss\-word!"),
        ("p.ss-word!", r"p\.ss\-word\!"),
        ("two words&more", "two%20words%26more"),
        ("two words&more", "two words&amp;more"),
        ("hunter2-long", "aHVudGVyMi1sb25n"),
    ],
)
def test_a_static_secret_that_a_rule_repeats_in_another_form_is_masked(secret: str, written: str) -> None:
    text = f"secrets: [{{name: A, from: 'static://{secret}'}}]\ninvariants: [{{type: regex, pattern: 'x{written}x'}}]\n"
    pattern = yaml.safe_load(mask_source(text))["invariants"][0]["pattern"]
    assert re.fullmatch("x.?masked-[0-9a-f]{16}.{0,2}x", pattern)


@pytest.mark.parametrize(
    "rule",
    [
        "{id: customers, type: sql, service: customers, query: SELECT 1, rows: 1}",
        "{id: x, type: tool_called, tool: customers}",
        "{id: x, type: completes, probes: [list the customers]}",
    ],
)
def test_names_and_probes_of_a_rule_stay_readable(rule: str) -> None:
    text = f"invariants: [{rule}]\n"
    source = 'secrets: [{name: A, from: "static://customers"}]\n' + text
    assert mask_source(source).endswith(text)


MCP = "agent: {{type: command, command: run, mcp_config: {{mcpServers: {{s: {{url: 'http://a', {}}}}}}}}}"
AGENTS = [
    MCP.format("headers: {Authorization: Basic dXNlcjpwYXNz}"),
    MCP.format("headers: {X-Api-Key: plainword, Accept: json}"),
    MCP.format("headers: {proxy-authorization: plainword}"),
    MCP.format("headers: {X-Api-Key: 12345678}"),
    MCP.format("headers: {Cookie: 'a=b'}, headers2: {x: y}"),
    "agent: {headers: {X-Auth-Token: plainword, Accept: json}}",
    "agent: {headers: {X-Api-Key: 12345678}}",
    f'agent: {{env: {{P: "{PEM}"}}}}',
    f"agent: {{type: command, command: 'run {KEY}'}}",
]


@pytest.mark.parametrize("text", AGENTS)
def test_a_literal_key_of_the_agent_is_masked_and_ids_stay(text: str) -> None:
    def agent(source: str) -> AgentSpec:
        plain = yaml.safe_load(source)["agent"]
        headers = {name: str(value) for name, value in plain.pop("headers", {}).items()}
        return AgentSpec(**plain, headers=headers)

    kept = mask_source(text)
    assert not re.search("dXNlcjpwYXNz|plainword|12345678|a=b|MIIabc123|sk-", kept)
    assert encode_agent(agent(kept)) == encode_agent(agent(text))


@pytest.mark.parametrize("header", ["Authorization", "x-api-key", "Proxy-Authorization", "X-Auth-Token", "Cookie"])
@pytest.mark.parametrize("value", ["plainword", "12345678"])
def test_lint_warns_of_it_in_both_places(file, header: str, value: str) -> None:
    text = """
version: 1
agent:
  type: command
  command: run
  mcp_config: {mcpServers: {s: {url: "http://127.0.0.1:1/", headers: {%s: %s}}}}
golden_prompts: [a]
contract: {name: c, invariants: [{id: ends, description: d, type: completes}]}
chaos_matrix: [{name: calm}]
"""
    (found,) = file.warnings(text % (header, value), "lint-literal-secret")
    assert found.path == f"agent.mcp_config.mcpServers.s.headers.{header}"
    assert not file.warnings(text % (header, "'${TOKEN}'"), "lint-literal-secret")


def test_a_secret_in_a_comment_is_masked() -> None:
    for after in ["", "\n", "\nlast: {a: [1, 'b # c']}\n"]:
        for comment, secret in [
            (f"# old key {KEY}", KEY),
            (f"a: 1  # {KEY}, was {KEY}", KEY),
            ("# Authorization: Basic dXNlcjpwYXNz", "dXNlcjpwYXNz"),
            ("#  x-api-key: 'plainword'", "plainword"),
            ('# {name: A, from: "static://hunter2 long"}', "hunter2"),
            ("# from: static://hunter2", "hunter2"),
            ("# -----BEGIN RSA PRIVATE KEY-----\n  # MIIabc123\n# MIIdef\n# -----END RSA PRIVATE KEY-----", "MII"),
            ("# Bearer abcdefghij0123456789", "abcdefghij0123456789"),
            (f"a: &{KEY} 1\nb: *{KEY}", KEY),
        ]:
            text = f"version: 1\n{comment}{after}"
            kept = mask_source(text)
            assert secret not in kept, (after, comment, secret)
            assert yaml.safe_load(kept) == yaml.safe_load(text), (after, comment, secret)
            assert mask_source(kept) == kept, (after, comment, secret)


@pytest.mark.parametrize(
    "text",
    [
        "# write Authorization: ${TOKEN}, or a token\nversion: 1\n",
        "contract: {invariants: [{type: excludes_pattern, patterns: ['-----BEGIN PRIVATE KEY-----']}]}",
        "contract: {invariants: [{type: regex, pattern: 'x # Authorization: Basic abc'}]}",
        f"{KEY}: 1\n",
        "golden_prompts:\n  - |\n    # from: static://hunter2\n",
    ],
)
def test_other_comments_prompts_and_patterns_stay(text: str) -> None:
    assert mask_source(text) == text


# Agents that are stored in a folder: a local meaning of `type: snapshot`.


SPEC = """
version: 1
id: stored
task: {prompt: "Do it."}
agent: {type: snapshot, snapshot: bot, timeout: 9s, env: {OWN: "1"}}
agents: {bot: ./bot}
invariants:
  there: {description: "It is there", check: {type: file_exists, path: made.txt}}
"""


@pytest.fixture
def bot(tmp_path: Path) -> Path:
    (tmp_path / "spec.yaml").write_text(SPEC)
    folder = tmp_path / "bot"
    folder.mkdir()
    return folder


def test_a_program_called_run_is_the_agent(bot: Path) -> None:
    (bot / "run").write_text("#!/bin/sh\n")
    (bot / "run").chmod(0o755)
    spec = check(bot.parent / "spec.yaml", environ={}).spec
    assert spec is not None
    assert (spec.agent.type, spec.agent.binary, spec.agent.dir) == ("command", "run", "./bot")
    assert (spec.agent.timeout_ms, spec.agent.env, spec.unbuilt) == (9_000, {"OWN": "1"}, ())
    assert spec.world is not None


def test_the_folder_may_describe_it(bot: Path) -> None:
    (bot / "holdfast.agent.yaml").write_text("type: command\ncommand: python go.py\nenv: {ITS: '2'}\n")
    (bot / "go.py").write_text("")
    spec = check(bot.parent / "spec.yaml", environ={}).spec
    assert spec is not None
    assert (spec.agent.command, spec.agent.env) == ("python go.py", {"ITS": "2", "OWN": "1"})


def test_what_is_wrong_with_the_description_is_told_where_it_is_named(bot: Path) -> None:
    (bot / "holdfast.agent.yaml").write_text("type: command\ncomand: python go.py\n")
    problems = check(bot.parent / "spec.yaml", environ={}).problems
    wrong = next(p for p in problems if p.code == "unknown-key")
    assert wrong.path == "agent.snapshot"
    assert "bot/holdfast.agent.yaml:2:1 comand" in wrong.message
    assert "command" in wrong.hint


def test_a_folder_without_an_agent_is_an_error(bot: Path) -> None:
    problems = check(bot.parent / "spec.yaml", environ={}).problems
    assert "no-agent" in [p.code for p in problems]


def test_a_description_that_is_not_text_is_reported(bot: Path) -> None:
    (bot / "holdfast.agent.yaml").write_bytes(b"type: command\ncommand: \xff\xfe\n")
    problems = check(bot.parent / "spec.yaml", environ={}).problems
    assert any("bot/holdfast.agent.yaml:2:10" in one.message and "not UTF-8" in one.message for one in problems)
