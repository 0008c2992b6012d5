"""The contract format, details of Python agents: what they get, what an answer is, how tools are wrapped."""

from __future__ import annotations

from pathlib import Path

import pytest
from files1 import CALM, RULES, Told, contract_run, project, tell

DOWN = CALM + "  - {name: down, tool_faults: [{tool: search, mode: error}]}\n"


# -- "every reference meets the fault" ------------------------------------------------------------
def down(folder: Path, agent: str, tools: str = 'tools: ["bot:search"]', **others: str) -> Told:
    section = f'agent: {{type: python, endpoint: "bot:answer", {tools}}}\ngolden_prompts: [x]\n'
    project(folder, section + RULES + DOWN, agent, **others)
    return tell(folder, "contract", "run", "--json", "--no-report")


SEARCH = "def search(q): return 'source ' + q\n"


# -- "A tool's name is its registry key, .name, or function name; {name: x, callable: m:f} overrides"
NAMED = {
    "function name": (SEARCH + "def answer(p): return search(p)", 'tools: ["bot:search"]'),
    "given name": (
        "def lookup(q): return 'source ' + q\ndef answer(p): return lookup(p)",
        'tools: [{name: search, callable: "bot:lookup"}]',
    ),
    "registry key": (
        "import holdfast\ndef lookup(q): return 'source ' + q\n"
        "registry = holdfast.ToolRegistry()\nregistry['search'] = lookup\ndef answer(p): return registry['search'](p)",
        'tool_registry: "bot:registry"',
    ),
    "plain dict as registry": (
        "def lookup(q): return 'source ' + q\nregistry = {'search': lookup}\n"
        "def answer(p): return registry['search'](p)",
        'tool_registry: "bot:registry"',
    ),
    "name of an object": (
        "class T:\n    name = 'search'\n    def __call__(self, q): return 'source ' + q\n"
        "tool = T()\ndef answer(p): return tool(p)",
        'tools: ["bot:tool"]',
    ),
    "decorator": (
        "import holdfast\n@holdfast.tool\ndef search(q): return 'source ' + q\ndef answer(p): return search(p)",
        "isolation: fresh",
    ),
    "decorator with a name": (
        "import holdfast\n@holdfast.tool(name='search')\ndef f(q): return 'source ' + q\ndef answer(p): return f(p)",
        "isolation: fresh",
    ),
}


@pytest.mark.parametrize("kind", NAMED)
def test_how_a_tool_gets_its_name(tmp_path: Path, kind: str) -> None:
    told = down(tmp_path, *NAMED[kind])
    assert told.cell("cites")["outcome"] == "pass", told
    assert [met["target"] for met in told.trial("cites", "down")["faults"]] == ["search"]


def test_tools_also_meet_faults_in_langchain_agents_or_are_refused(tmp_path: Path) -> None:
    spec = 'agent: {type: langchain, endpoint: "bot:chain"}\ngolden_prompts: [x]\n' + RULES + DOWN
    project(tmp_path, spec, "class C:\n    def invoke(self, g): return g['input']\nchain = C()\n")
    told = tell(tmp_path, "contract", "run", "--json")
    assert told.code == 4
    assert told.json["errors"][0]["code"] == "unreachable-fault"


# -- "Model functions may return text, a dict, or an object with the usual fields or choices; another shape is an error"
CUT = CALM + "  - {name: cut, llm_faults: [{mode: truncated_response, max_tokens: 2}]}\n"
LLM = 'agent: {type: python, endpoint: "bot:answer", llm: "bot:model"}\ngolden_prompts: [x]\n'


def test_another_shape_of_a_model_reply_is_an_error_that_shows_the_type(tmp_path: Path) -> None:
    agent = "class Odd: pass\ndef model(p): return Odd()\ndef answer(p):\n    model(p)\n    return 'source'\n"
    told = contract_run(tmp_path, LLM + RULES + CUT + "advanced: {retries: 0}\n", agent)
    assert told.cell("cites", "cut")["outcome"] == "error"
    assert "Odd" in told.trial("cites", "cut")["reason"]
    assert told.code == 3


# -- environment ----------------------------------------------------------------------------------


@pytest.mark.parametrize("sandbox", ["false", "true"])
def test_a_prompt_that_cannot_be_placed_is_told_with_the_line_of_the_agent(tmp_path: Path, sandbox: str) -> None:
    source = """
class Chain:
    def invoke(self, given): return given
    def get_input_jsonschema(self):
        return {"type": "object", "properties": {"a": {}, "b": {}}, "required": ["a", "b"]}
chain = Chain()
"""
    agent = f'agent: {{type: langchain, endpoint: "bot:chain", sandbox: {sandbox}}}'
    project(tmp_path, "version: 1\n" + agent + "\ngolden_prompts: [x]\n" + RULES + CALM, source)
    told = tell(tmp_path, "contract", "run")
    assert told.code == 4
    assert "holdfast.yaml:2: " in told.err
    assert "[agent-input-unknown]" in told.err
