"""The contract format, details of Python agents: what they get, what an answer is, how tools are wrapped."""

from __future__ import annotations

from pathlib import Path

import pytest
from files1 import CALM, RULES, SPEC, Told, contract_run, error_of, project, tell

DOWN = CALM + "  - {name: down, tool_faults: [{tool: search, mode: error}]}\n"


def answer_of(folder: Path, agent: str, endpoint: str = "bot:answer") -> object:
    told = contract_run(folder, SPEC.replace("bot:answer", endpoint), agent, "--no-preflight")
    return told.trial("cites")["answer"]


# -- "functions get the prompt; invoke/ainvoke ... gets {"input": prompt}" ------------------------
CALLABLES = {
    "function": "def answer(p): return 'source ' + p",
    "coroutine function": "async def answer(p): return 'source ' + p",
    "function that gives an awaitable": "async def inner(p): return 'source ' + p\ndef answer(p): return inner(p)",
    "generator": "def answer(p):\n    yield 'source '\n    yield p",
    "async generator": "async def answer(p):\n    yield 'source '\n    yield p",
    "object with __call__": "class A:\n    def __call__(self, p): return 'source ' + p\nanswer = A()",
    "method": "class A:\n    def ask(self, p): return 'source ' + p\nanswer = A().ask",
    "lambda": "answer = lambda p: 'source ' + p",
    "partial": "from functools import partial\ndef f(a, p): return a + p\nanswer = partial(f, 'source ')",
    "invoke": "class A:\n    def invoke(self, given): return 'source ' + given['input']\nanswer = A()",
    "ainvoke": "class A:\n    async def ainvoke(self, given): return 'source ' + given['input']\nanswer = A()",
}


@pytest.mark.parametrize("kind", CALLABLES)
def test_what_can_be_asked(tmp_path: Path, kind: str) -> None:
    assert answer_of(tmp_path, CALLABLES[kind]) == "source What is the total?"


# -- "an answer is text, or content, text, output, answer, message of a dict or object" -----------
@pytest.mark.parametrize("field", ["content", "text", "output", "answer", "message"])
def test_the_answer_may_be_a_field_of_a_dict_or_an_object(tmp_path: Path, field: str) -> None:
    assert answer_of(tmp_path, f"def answer(p): return {{'{field}': 'source', 'other': 1}}") == "source"
    agent = f"class R: pass\ndef answer(p):\n    r = R()\n    r.{field} = 'source'\n    return r"
    assert answer_of(tmp_path, agent) == "source"


def test_none_is_no_answer(tmp_path: Path) -> None:
    told = contract_run(tmp_path, SPEC, "def answer(p): return None", "--no-preflight")
    assert (told.trial("cites")["ending"], told.trial("cites")["answer"]) == ("no_answer", None)


def test_an_exception_is_the_agents_ending(tmp_path: Path) -> None:
    told = contract_run(tmp_path, SPEC, "def answer(p): raise ValueError('odd')", "--no-preflight")
    assert told.trial("cites")["ending"] == "raised"
    assert "ValueError: odd" in told.trial("cites")["detail"]
    assert told.code == 1


# -- "stdout is captured apart; cwd is the spec's folder" -----------------------------------------
def test_output_is_captured_apart(tmp_path: Path) -> None:
    told = contract_run(tmp_path, SPEC, "def answer(p):\n    print('noise')\n    return 'source'")
    assert told.trial("cites")["answer"] == "source"
    assert "noise" in told.trial("cites")["output"]


def test_the_working_directory_is_the_specs_folder(tmp_path: Path) -> None:
    sub = tmp_path / "sub"
    sub.mkdir()
    project(sub, SPEC, "import os\nfirst = os.getcwd()\ndef answer(p): return 'source ' + first + ' ' + os.getcwd()")
    told = tell(tmp_path, "contract", "run", "-c", "sub/holdfast.yaml", "--json")
    assert told.trial("cites")["answer"] == f"source {sub} {sub}"


def test_an_agent_that_cannot_be_imported_is_exit_4(tmp_path: Path) -> None:
    for agent in ("import no_such_module", "x = 1", "def answer("):
        project(tmp_path, SPEC, agent)
        told = tell(tmp_path, "contract", "run")
        assert told.code == 4, told
        assert "Traceback" not in told.err


# -- "every reference meets the fault" ------------------------------------------------------------
def down(folder: Path, agent: str, tools: str = 'tools: ["bot:search"]', **others: str) -> Told:
    section = f'agent: {{type: python, endpoint: "bot:answer", {tools}}}\ngolden_prompts: [x]\n'
    project(folder, section + RULES + DOWN, agent, **others)
    return tell(folder, "contract", "run", "--json", "--no-report")


SEARCH = "def search(q): return 'source ' + q\n"
REFERENCES = {
    "name": SEARCH + "def answer(p): return search(p)",
    "alias": SEARCH + "find = search\ndef answer(p): return find(p)",
    "partial": SEARCH + "from functools import partial\nfind = partial(search, 'x')\ndef answer(p): return find()",
    "closure": SEARCH + "def make(f):\n    return lambda p: f(p)\nfind = make(search)\ndef answer(p): return find(p)",
    "dict": SEARCH + "tools = {'s': search}\ndef answer(p): return tools['s'](p)",
    "default argument": SEARCH + "def answer(p, find=search): return find(p)",
    "attribute": SEARCH + "class A:\n    find = staticmethod(search)\ndef answer(p): return A.find(p)",
    "import in another module": "from other import use\nfrom tool import search\ndef answer(p): return use(p)",
    "async tool": "async def search(q): return 'source ' + q\nasync def answer(p): return await search(p)",
}


@pytest.mark.parametrize("kind", REFERENCES)
def test_every_reference_of_a_function_meets_the_fault(tmp_path: Path, kind: str) -> None:
    others = {"tool": SEARCH, "other": "from tool import search\ndef use(p): return search(p)\n"}
    told = down(tmp_path, REFERENCES[kind], **others)
    assert told.cell("cites")["outcome"] == "pass"
    assert told.trial("cites", "down")["ending"] == "raised"
    assert "InjectedError" in told.trial("cites", "down")["detail"]
    assert told.cell("cites", "down")["met"] is True


def test_a_callable_that_is_no_function_is_replaced_at_its_name(tmp_path: Path) -> None:
    tool = "class T:\n    def __call__(self, q): return 'source ' + q\nsearch = T()\n"
    told = down(tmp_path, tool + "def answer(p): return search(p)")
    assert told.cell("cites", "down")["met"] is True


def test_a_reference_that_stays_unwrapped_is_an_error(tmp_path: Path) -> None:
    tool = "import operator\nsearch = operator.methodcaller('upper')\nkept = [search]\n"
    told = down(tmp_path, tool + "def answer(p): return kept[0](p)")
    assert told.code == 4
    assert "search" in told.json["errors"][0]["message"]


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


# -- "In-process faults raise ... default TimeoutError for timeout, else holdfast.InjectedError(RuntimeError)"
def test_injected_errors_are_runtime_errors_with_their_fields(tmp_path: Path) -> None:
    agent = SEARCH + (
        "import holdfast\n"
        "def answer(p):\n"
        "    try:\n        return search(p)\n"
        "    except RuntimeError as e:\n"
        "        assert isinstance(e, holdfast.InjectedError)\n"
        '        return f\'source {e.status_code} {e.retry_after} {e.body["error"]["code"]}\'\n'
    )
    assert down(tmp_path, agent).trial("cites", "down")["answer"] == "source 503 None 503"


# -- "Model functions may return text, a dict, or an object with the usual fields or choices; another shape is an error"
SHAPES = {
    "text": "'one two three source'",
    "dict": "{'content': 'one two three source'}",
    "choices": "{'choices': [{'message': {'content': 'one two three source'}}]}",
    "object": "types.SimpleNamespace(content='one two three source')",
    "object with choices": (
        "types.SimpleNamespace(choices=[types.SimpleNamespace("
        "message=types.SimpleNamespace(content='one two three source'))])"
    ),
}
CUT = CALM + "  - {name: cut, llm_faults: [{mode: truncated_response, max_tokens: 2}]}\n"
LLM = 'agent: {type: python, endpoint: "bot:answer", llm: "bot:model"}\ngolden_prompts: [x]\n'


@pytest.mark.parametrize("shape", SHAPES)
def test_shapes_of_model_replies(tmp_path: Path, shape: str) -> None:
    agent = f"import types, json\ndef model(p): return {SHAPES[shape]}\ndef answer(p): return str(model(p))\n"
    told = contract_run(tmp_path, LLM + RULES + CUT, agent)
    assert "three source" in told.trial("cites")["answer"]
    assert "one two" in told.trial("cites", "cut")["answer"]
    assert "three" not in told.trial("cites", "cut")["answer"]


def test_another_shape_of_a_model_reply_is_an_error_that_shows_the_type(tmp_path: Path) -> None:
    agent = "class Odd: pass\ndef model(p): return Odd()\ndef answer(p):\n    model(p)\n    return 'source'\n"
    told = contract_run(tmp_path, LLM + RULES + CUT + "advanced: {retries: 0}\n", agent)
    assert told.cell("cites", "cut")["outcome"] == "error"
    assert "Odd" in told.trial("cites", "cut")["reason"]
    assert told.code == 3


def test_llm_faults_of_an_inline_agent_without_a_model_function_are_refused_with_the_way_out(tmp_path: Path) -> None:
    spec = LLM.replace(', llm: "bot:model"', ", isolation: inline") + RULES + CUT
    assert "agent.llm" in error_of(tmp_path, spec).hint


# -- environment ----------------------------------------------------------------------------------
def test_an_agent_may_read_its_trial_replica_and_seed(tmp_path: Path) -> None:
    names = "('TRIAL', 'REPLICA', 'SEED')"
    agent = f"import os\ndef answer(p): return ' '.join(['source', *(os.environ['HOLDFAST_' + n] for n in {names})])"
    told = contract_run(tmp_path, SPEC + "replicas: 2\nadvanced: {seed: 6}\n", agent)
    for trial in told.cell("cites")["trials"]:
        assert trial["answer"] == f"source {trial['id']} {trial['replica']} 6"


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
