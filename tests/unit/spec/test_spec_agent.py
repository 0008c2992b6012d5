"""The agent section."""

import pytest
from spec_texts import HTTP

from golden_words import Golden

ASK = "golden_prompts: [hello]\n"


def test_defaults_are_filled_in(file):
    agent = file.spec('agent: {endpoint: "http://x/ask"}\n' + ASK).agent
    assert (agent.type, agent.method, agent.timeout_ms, agent.isolation, agent.parse_structured_input) == (
        "http",
        "POST",
        30_000,
        "fresh",
        True,
    )


@pytest.mark.parametrize(
    ("written", "ms"), [("1000", 1000), ("300000", 300_000), ("5m", 300_000), ("24h", 86_400_000), ("1.5s", 1500)]
)
def test_integer_timeout_is_ms_and_text_has_a_unit(file, written, ms):
    assert file.spec(f'agent: {{endpoint: "http://x", timeout: {written}}}\n{ASK}').agent.timeout_ms == ms


@pytest.mark.parametrize("written", ["999", "300001", "25h", "'5000'", "5 parsecs", "true", "1.5"])
def test_timeouts_out_of_range_or_without_unit_are_errors(file, written):
    assert file.error(f'agent: {{endpoint: "http://x", timeout: {written}}}\n{ASK}').path == "agent.timeout"


def test_python_endpoint_without_type_says_so(file):
    found = file.error('agent: {endpoint: "bot:ask"}\n' + ASK)
    assert (found.code, found.hint) == ("wrong-agent-type", "add type: python")


def test_url_for_a_python_agent_is_an_error(file, golden: Golden):
    golden(file.error('agent: {type: python, endpoint: "http://x"}\n' + ASK).hint)


def test_endpoint_may_be_a_reference(file):
    spec = file.spec('agent: {endpoint: "${URL}/ask"}\n' + ASK, {"URL": "http://x"})
    assert spec.agent.endpoint == "${URL}/ask"


def test_tools_may_be_plain_or_named(file):
    text = (
        "agent: {type: langchain, endpoint: 'bot:ask', tools: ['bot:a', {name: b, callable: 'bot:c'}], llm: 'bot:m'}\n"
    )
    agent = file.spec(text + ASK).agent
    assert [(t.path, t.name) for t in agent.tools] == [("bot:a", None), ("bot:c", "b")]
    assert [t.path for t in agent.llm] == ["bot:m"]
    assert agent.type == "langchain"


@pytest.mark.parametrize("written", ["messages", "input", "text", "question"])
def test_how_a_runnable_gets_the_prompt_may_be_settled(file, written):
    text = f"agent: {{type: langchain, endpoint: 'bot:graph', input: {written}}}\n"
    assert file.spec(text + ASK).agent.input == written
    assert file.spec("agent: {type: langchain, endpoint: 'bot:graph'}\n" + ASK).agent.input is None


@pytest.mark.parametrize("tools", ["[search]", "[{name: x}]", "[{callable: 'a:b', nme: x}]", "search"])
def test_bad_tools_are_errors(file, tools):
    assert file.error(f"agent: {{type: python, endpoint: 'bot:ask', tools: {tools}}}\n{ASK}").path.startswith(
        "agent.tools"
    )


def test_numbers_in_headers_and_env_are_taken_as_written(file):
    agent = file.spec('agent: {endpoint: "http://x", headers: {X-Version: 1.10}}\n' + ASK).agent
    assert agent.headers == {"X-Version": "1.10"}


@pytest.mark.parametrize(
    ("agent", "path", "hint"),
    [
        ("{type: langchain, endpoint: 'bot:graph', input: ''}", "input", ""),
        ("{endpoint: 'http://x', isolation: inline}", "isolation", ""),
        ("{type: python, endpoint: 'b:a', simulate: answer}", "simulate", ""),
        ("{type: python, endpoint: 'b:a', reset_endpoint: 'http://x/reset'}", "reset_endpoint", "reset_function"),
    ],
)
def test_a_key_of_another_kind_of_agent_is_an_error(file, agent, path, hint):
    found = file.error(f"agent: {agent}\n{ASK}")
    assert found.path == f"agent.{path}"
    assert hint in found.hint


@pytest.mark.parametrize(
    ("agent", "key"),
    [
        ("{type: python, endpoint: 'b:a', headers: {a: b}}", "headers"),
        ("{type: langchain, endpoint: 'b:a', response_path: a}", "response_path"),
        ("{type: python, endpoint: 'b:a', keep_alive: false}", "keep_alive"),
        ("{type: command, command: ./run, keep_alive: true}", "keep_alive"),
        ("{type: python, endpoint: 'b:a', input: messages}", "input"),
        ("{type: command, command: ./run, input: text}", "input"),
        ("{endpoint: 'http://x', input: messages}", "input"),
        ("{type: python, endpoint: 'b:a', command: ./serve}", "command"),
        ("{type: python, endpoint: 'b:a', prompt: env}", "prompt"),
        ("{type: command, command: ./run, endpoint: 'http://x'}", "endpoint"),
        ("{type: command, command: ./run, ready: 80}", "ready"),
        ("{type: command, command: ./run, tools: ['b:a']}", "tools"),
        ("{type: command, command: ./run, snapshot: v1}", "snapshot"),
        ("{endpoint: 'http://x', isolation: fresh}", "isolation"),
        ("{endpoint: 'http://x', env: {A: b}}", "env"),
        ("{endpoint: 'http://x', mcp_config: {servers: {a: {command: x}}}}", "mcp_config"),
        ("{endpoint: 'http://x', gateway: true, spares: 1}", "spares"),
        ("{endpoint: 'http://x', command: ./serve, answer_file: a.txt}", "answer_file"),
        ("{endpoint: 'http://x', command: ./serve, llm: 'b:a'}", "llm"),
    ],
)
def test_key_without_a_meaning_for_the_type_is_an_error(file, agent, key, golden: Golden):
    found = file.error(f"agent: {agent}\n{ASK}")
    assert (found.code, found.path) == ("unused-key", f"agent.{key}")
    golden(found.message)
    assert found.hint.startswith("remove it")


def test_env_has_a_meaning_where_a_function_resets_or_a_gateway_stands(file):
    file.spec("agent: {endpoint: 'http://x', env: {A: b}, reset_function: 'm:f'}\n" + ASK)
    file.spec("agent: {endpoint: 'http://x', env: {A: b}, gateway: true}\n" + ASK)


@pytest.mark.parametrize(
    ("agent", "section"),
    [
        ("{type: snapshot, snapshot: v1}", "agent.type"),
        ("{type: paragon, model: paragon-fast}", "agent.type"),
    ],
)
def test_agents_of_later_releases_load_and_are_unbuilt(file, agent, section):
    spec = file.spec(f"agent: {agent}\n{ASK}")
    assert section in [u.section for u in spec.unbuilt]


def test_a_sandbox_is_a_world_and_a_folder_of_the_agent_needs_one(file):
    (file.folder / "bot").mkdir()
    agent = "agent: {type: command, command: ./run, dir: ./bot"
    spec = file.spec(f"{agent}, sandbox: true}}\n{ASK}")
    assert (spec.unbuilt, spec.agent.dir, spec.world is not None) == ((), "./bot", True)
    found = file.error(f"{agent}}}\n{ASK}")
    assert (found.path, found.code, found.hint) == ("agent.dir", "conflict", "add sandbox: true")


@pytest.mark.parametrize("folder", [".", "./", "bot/..", "./bot/../.", "..", "../..", "/", "around", "{folder}"])
def test_a_folder_of_the_agent_must_not_hold_the_spec(file, folder):
    (file.folder / "bot").mkdir()
    (file.folder / "around").symlink_to(".")
    written = folder.format(folder=file.folder)
    spec = f"agent: {{type: command, command: ./run, sandbox: true, dir: {written!r}}}\n{ASK}"
    found = [one for one in file.errors(spec) if one.code == "bad-setting"]
    assert [one.path for one in found] == ["agent.dir"]
    assert "dir: ./" in found[0].hint


@pytest.mark.parametrize("name", ["./tool", "two words", "tools/x", ""])
def test_a_program_is_named_or_has_a_whole_path(file, name):
    agent = "agent: {type: command, command: ./run, sandbox: true, programs: [pytest, ~/bin/x, /opt/y, %s]}\n"
    found = [one for one in file.errors(agent % repr(name) + ASK) if one.code == "bad-setting"]
    assert [one.path for one in found] == ["agent.programs[3]"]


def test_programs_are_for_a_sandbox(file):
    found = file.error("agent: {type: command, command: ./run, programs: [pytest]}\n" + ASK)
    assert (found.path, found.code) == ("agent.programs", "conflict")


@pytest.mark.parametrize(
    ("agent", "expected"),
    [
        ("{type: command, command: ./run}", {"type": "command", "command": "./run", "prompt": "stdin"}),
        ("{type: cli, binary: sh, args: [-x, 5]}", {"type": "command", "binary": "sh", "args": ("-x", "5")}),
        ("{type: command, command: 'run {prompt}'}", {"prompt": "arg"}),
        ("{type: command, command: 'run {prompt}', prompt: env}", {"prompt": "env"}),
        ("{type: command, command: ./run, answer_file: out.json, response_path: a.b}", {"answer_file": "out.json"}),
        ("{endpoint: 'http://x', command: ./serve, ready: 8000, spares: 2}", {"ready": "8000", "spares": 2}),
        ("{endpoint: 'http://x', command: ./serve}", {"isolation": "fresh", "spares": None}),
        ("{endpoint: 'http://x', command: ./serve, reset_endpoint: /reset}", {"isolation": "worker"}),
        ("{endpoint: 'http://x', command: ./serve, reset_endpoint: /r, isolation: fresh}", {"isolation": "fresh"}),
        ("{endpoint: 'http://x', gateway: true}", {"gateway": True, "keep_alive": None}),
        ("{endpoint: 'http://x', keep_alive: false}", {"keep_alive": False}),
    ],
)
def test_agents_that_holdfast_starts_or_stands_before(file, agent, expected):
    spec = file.spec(f"agent: {agent}\n{ASK}")
    assert spec.unbuilt == ()
    assert {name: getattr(spec.agent, name) for name in expected} == expected


SERVERS = "mcp_config: {servers: {a: {command: x}}}"


@pytest.mark.parametrize(
    ("agent", "path"),
    [
        ("{type: command, command: ./run, isolation: worker}", "agent.isolation"),
        ("{type: command, command: ./run, gateway: true}", "agent.gateway"),
        ("{endpoint: 'http://x', command: ./serve, gateway: true}", "agent.gateway"),
        (
            "{type: python, endpoint: 'b:a', isolation: inline, mcp_config: {servers: {a: {command: x}}}}",
            "agent.mcp_config",
        ),
        ("{type: command, command: ./run, mcp_config: {servers: {a: {}}}}", "agent.mcp_config"),
        ("{type: command, command: ./run, mcp_config: {}}", "agent.mcp_config"),
    ],
)
def test_keys_of_a_started_agent_that_do_not_fit(file, agent, path):
    assert file.error(f"agent: {agent}\n{ASK}").path == path


def test_command_agent_needs_a_command(file):
    assert file.error("agent: {type: command}\n" + ASK).path == "agent.command"


def test_plain_agents_need_nothing_unbuilt(file):
    assert file.spec(HTTP).unbuilt == ()


@pytest.mark.parametrize(
    ("template", "hint"), [('{"m": "hi"}', "put {prompt}"), ('{"m": "{promt}"}', "did you mean {prompt} for {promt}?")]
)
def test_a_template_that_never_asks_is_an_error(file, template, hint):
    found = file.error(f"agent: {{endpoint: 'http://x', request_template: '{template}'}}\n{ASK}")
    assert (found.code, found.path) == ("never-asked", "agent.request_template")
    assert hint in found.hint


@pytest.mark.parametrize("section", ['request_template: \'{"m": "{industry}"}\'', "request_template: 'q={prompt}'"])
def test_a_template_with_a_place_for_the_question_is_fine(file, section):
    assert file.spec(f"agent: {{endpoint: 'http://x', {section}}}\n{ASK}")


@pytest.mark.parametrize(
    ("more", "count"),
    [
        ('request_template: \'{"m": "{industry}"}\'', 1),
        ('request_template: \'{"m": "{industry}"}\', parse_structured_input: true', 0),
        ('request_template: \'{"m": "{industry} {prompt}"}\'', 0),
        ("request_template: '{\"m\": {messages}}'", 0),
    ],
)
def test_a_template_without_the_prompt_is_a_warning(file, more, count):
    text = f"agent: {{endpoint: 'http://x', {more}}}\n{ASK}"
    assert len(file.warnings(text, "lint-template-prompt")) == count


def test_an_endpoint_without_a_module_is_reported_as_such(file):
    assert file.error(f"agent: {{type: python, endpoint: ':f'}}\n{ASK}").path == "agent.endpoint"


def test_a_fault_at_a_providers_own_url_is_refused(file):
    matrix = "chaos_matrix: [{name: x, http_faults: [{match_url: 'https://api.openai.com/*', mode: down}]}]"
    found = file.error(f"agent: {{type: command, command: ./run}}\n{ASK}\n{matrix}\n")
    assert found.code == "unreachable-fault"
    assert "llm_faults" in found.hint


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("agent: {type: command, command: ./run, env: {'A=B': 1}}", "agent.env"),
        ("agent: {type: command, command: ./run, env: {'': 1}}", "agent.env"),
        ("agent: {endpoint: 'http://x', command: ./run, ready: 99999}", "agent.ready"),
        ("agent: {endpoint: 'http://127.0.0.1:{port}/'}", "agent.endpoint"),
        ("agent: {type: command, command: ./run}\nmodels: {a: {base_url: 'localhost:8000/v1'}}", "models.a.base_url"),
    ],
)
def test_values_that_can_never_work_are_errors_of_the_spec(file, text, path):
    assert file.error(f"{text}\n{ASK}").path == path


@pytest.mark.parametrize("place", ["$(echo {{ params.x }})", "'# no' # {{ params.x }}", "\\\\{{ params.x }}"])
def test_a_parameter_where_the_shell_cannot_take_it_is_refused_at_its_line(file, place):
    text = f"""
version: 1
agent: {{type: command, command: "run {place}"}}
parallelism: {{matrix: {{x: [a]}}}}
golden_prompts: [a]
contract: {{name: c, invariants: [{{id: ends, description: d, type: completes}}]}}
chaos_matrix: [{{name: calm}}]
"""
    (found,) = [p for p in file.check(text, {}).problems if p.severity == "error"]
    assert (found.line, found.path, found.code) == (3, "agent.command", "unquotable-param")
    assert '"$PARAM_X"' in found.hint
    assert file.check(text.replace(place, "'# no' {{ params.x }}"), {}).spec is not None
