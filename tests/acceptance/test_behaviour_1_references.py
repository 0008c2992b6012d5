"""Behaviour 1: a Spec holds references, never secret values; hosted-only values load and say what they need."""

from __future__ import annotations

from pathlib import Path

import pytest
from files1 import (
    CALM,
    ECHO,
    RULES,
    SPEC,
    Told,
    error_of,
    http_agent,
    project,
    stored,
    tell,
    text_of,
)

SECRET = "s3cr3t-value-91"
HTTP = """
agent:
  endpoint: {url}/ask
  headers: {{Authorization: "Bearer ${{TOKEN}}", X-Plain: plain}}
  query_params: {{key: "${{TOKEN}}", lang: "${{LANG_:-en}}"}}
golden_prompts: ["What is the total?"]
"""


def _echoing(request: object) -> object:
    return {"output": f"source {request.headers['Authorization']} {request.query['key']}"}  # type: ignore[attr-defined]


def _run(folder: Path, *args: str, **environ: str) -> tuple[Told, list[str]]:
    with http_agent(_echoing) as agent:
        project(folder, HTTP.format(url=agent.url) + RULES + CALM)
        told = tell(folder, "contract", "run", *args, **environ)
        return told, [f"{r.headers['Authorization']} {r.query}" for r in agent.asked()]


# -- "${VAR}, ${VAR:-default} ... stay as written in what is stored or sent" ----------------------
def test_references_are_resolved_in_what_is_sent_and_kept_in_what_is_stored(tmp_path: Path) -> None:
    told, asked = _run(tmp_path, TOKEN=SECRET)
    assert told.code == 0, told
    assert set(asked) == {f"Bearer {SECRET} {{'key': '{SECRET}', 'lang': 'en'}}"}
    assert "${TOKEN}" in (tmp_path / ".holdfast/runs/0001/spec.yaml").read_text()
    assert SECRET not in stored(tmp_path)


def test_the_default_of_a_variable_gives_way_to_its_value(tmp_path: Path) -> None:
    _, asked = _run(tmp_path, TOKEN=SECRET, LANG_="german")
    assert "'lang': 'german'" in asked[0]


# -- "Masked by value everywhere" -----------------------------------------------------------------


def test_env_values_from_a_variable_are_masked_and_reach_the_agent(tmp_path: Path) -> None:
    spec = SPEC.replace('"bot:answer"', '"bot:answer", env: {KEY: "${TOKEN}", MODE: fast}')
    agent = (
        "import os\ndef answer(p): return 'source ' + os.environ['KEY'][::-1] + os.environ['KEY'] + os.environ['MODE']"
    )
    project(tmp_path, spec, agent)
    told = tell(tmp_path, "contract", "run", "--json", TOKEN=SECRET)
    answer = told.trial("cites")["answer"]
    assert answer.startswith(f"source {SECRET[::-1]}")
    assert answer.endswith("fast")
    assert SECRET not in told.out + stored(tmp_path)


# -- "loading only checks that they resolve (validate warns on unset variables; a run refuses)" ---


def test_the_endpoint_may_come_from_a_variable(tmp_path: Path) -> None:
    with http_agent(lambda r: {"output": "source"}) as agent:
        project(tmp_path, 'agent: {endpoint: "${WHERE}/ask"}\ngolden_prompts: [x]\n' + RULES + CALM)
        assert tell(tmp_path, "contract", "run", WHERE=agent.url).code == 0


# -- "runs no command: source and imports no code" ------------------------------------------------
def test_validate_runs_no_command_and_imports_no_code(tmp_path: Path) -> None:
    secrets = f"secrets: [{{name: DB, source: 'command:touch {tmp_path}/ran'}}]\n"
    wrong = "open('imported', 'w')\nraise SystemExit(3)\ndef answer(prompt): ...\n"
    project(tmp_path, SPEC + secrets + "setup: {commands: ['touch ran']}\n", wrong)
    for command in (("validate",), ("contract", "validate")):
        assert tell(tmp_path, *command).code == 0
    assert not (tmp_path / "imported").exists()
    assert not (tmp_path / "ran").exists()


# -- "{{ params.x }} interpolates" ----------------------------------------------------------------
def test_params_interpolate_in_prompts(tmp_path: Path) -> None:
    spec = (
        SPEC.replace("What is the total?", "The total in {{ params.lang }}?")
        + "parallelism: {matrix: {lang: [en, de]}}\n"
    )
    project(tmp_path, spec)
    told = tell(tmp_path, "contract", "run", "--json")
    assert told.code == 0
    answers = [trial["answer"] for cell in told.contract["cells"] for trial in cell["trials"]]
    assert [answer.rpartition("The total in ")[2] for answer in answers] == ["en?", "de?"]
    prompts = [trial["prompt"] for cell in told.contract["cells"] for trial in cell["trials"]]
    assert prompts == ["The total in en?", "The total in de?"]


def test_params_interpolate_in_an_http_request(tmp_path: Path) -> None:
    with http_agent(lambda r: {"output": "source"}) as agent:
        section = f"agent: {{endpoint: {agent.url}/ask, headers: {{X-Lang: '{{{{ params.lang }}}}'}}}}\n"
        project(
            tmp_path, section + "golden_prompts: [x]\n" + RULES + CALM + "parallelism: {matrix: {lang: [en, de]}}\n"
        )
        assert tell(tmp_path, "contract", "run").code == 0
        assert {r.headers["X-Lang"] for r in agent.asked()} == {"en", "de"}


def test_params_are_in_the_agents_environment(tmp_path: Path) -> None:
    agent = "import os\ndef answer(p): return 'source ' + os.environ['PARAM_LANG']"
    project(tmp_path, SPEC + "parallelism: {matrix: {lang: [en, de]}}\n", agent)
    told = tell(tmp_path, "contract", "run", "--json")
    assert [(c["params"], c["trials"][0]["answer"]) for c in told.contract["cells"]] == [
        ({"lang": "en"}, "source en"),
        ({"lang": "de"}, "source de"),
    ]


def test_params_interpolate_in_the_settings_of_a_rule(tmp_path: Path) -> None:
    agent = "import os\ndef answer(p): return 'source ' + os.environ['PARAM_LANG'] + 'x'"
    rules = "    - {id: own, type: contains, value: '{{ params.lang }}x'}\n"
    rules += "    - {id: re, type: regex, pattern: '{{ params.lang }}x$'}\n"
    project(
        tmp_path,
        SPEC.replace("chaos_matrix", rules + "chaos_matrix") + "parallelism: {matrix: {lang: [en, de]}}\n",
        agent,
    )
    told = tell(tmp_path, "contract", "run", "--json")
    assert [c["outcome"] for c in told.contract["cells"]] == ["pass"] * 6
    assert tell(tmp_path, "judge", "0001", "--json").json["score"] == 100.0


@pytest.mark.parametrize("isolation", ["fresh", "worker"])
def test_params_interpolate_in_the_environment_of_a_python_agent(tmp_path: Path, isolation: str) -> None:
    env = f"isolation: {isolation}, env: {{LOCALE: '{{{{ params.lang }}}}_XX'}}"
    agent = "import os\nwhere = os.environ['LOCALE']\ndef answer(p): return 'source ' + where"
    spec = SPEC.replace('"bot:answer"', '"bot:answer", ' + env) + "parallelism: {matrix: {lang: [en, de]}}\n"
    project(tmp_path, spec, agent)
    told = tell(tmp_path, "contract", "run", "--json")
    assert [c["trials"][0]["answer"] for c in told.contract["cells"]] == ["source en_XX", "source de_XX"]


@pytest.mark.parametrize("more", [
    "  - {name: x, context_attacks: [{type: memory_poisoning, payload: '{{ params.lang }}'}]}\n",
    "output: {path: '{{ params.lang }}'}\n",
])  # fmt: skip
def test_a_parameter_where_none_is_filled_in_is_an_error_and_not_ignored(tmp_path: Path, more: str) -> None:
    assert error_of(tmp_path, SPEC + more + "parallelism: {matrix: {lang: [en, de]}}\n").code == "unknown-reference"


# -- "Hosted-only values of document 003 load; running them needs a local meaning" ----------------
@pytest.mark.parametrize(("agent", "home"), [
    ("{type: paragon, model: paragon-fast}", "models"),
    ("{type: snapshot, snapshot: mine}", "agents"),
])  # fmt: skip
def test_hosted_agents_load_and_a_run_says_what_they_need(tmp_path: Path, agent: str, home: str) -> None:
    project(tmp_path, f"agent: {agent}\ngolden_prompts: [x]\n" + RULES + CALM)
    assert tell(tmp_path, "validate").code == 0
    told = tell(tmp_path, "contract", "run")
    assert told.code == 4
    assert "[not-built]" in told.err
    assert f"{home}:" in told.err
    assert "agent.type" in told.err


def test_a_hosted_judge_model_loads_and_a_run_says_what_it_needs(tmp_path: Path) -> None:
    judged = SPEC.replace("type: contains, value: source", "type: llm_as_judge, model: paragon-max, criteria: good")
    project(tmp_path, judged, ECHO)
    assert tell(tmp_path, "validate").code == 0
    told = tell(tmp_path, "contract", "run")
    assert told.code == 4
    assert "llm_as_judge" in told.err
    assert "[not-built]" in told.err
    assert "paragon-max" in told.err
    assert "models:" in told.err
    project(tmp_path, judged + "models: {paragon-max: {provider: ollama, name: llama3}}\n", ECHO)
    assert "[not-built]" not in tell(tmp_path, "contract", "run").err


# -- "numbers, durations and booleans too ... kept in the manifest; a changed one refuses --resume" -
NUMBERS = SPEC.replace('"bot:answer"', '"bot:answer", timeout: "${LIMIT:-20s}"') + "replicas: ${REPLICAS}\n"


def test_a_number_from_a_variable_is_kept_with_the_run_and_a_changed_one_is_refused(tmp_path: Path) -> None:
    project(tmp_path, NUMBERS)
    assert tell(tmp_path, "contract", "run", REPLICAS="2").code == 0
    assert '"settled":{"agent.timeout":"20s","replicas":"2"}' in text_of(tmp_path / ".holdfast/runs/0001/run.json")
    assert tell(tmp_path, "contract", "run", "--resume", "0001", REPLICAS="2").code == 0
    changed = tell(tmp_path, "contract", "run", "--resume", "0001", REPLICAS="3")
    assert changed.code == 4
    assert "[run-changed]" in changed.err
    assert tell(tmp_path, "contract", "run", "--resume", "0001", REPLICAS="2", LIMIT="9s").code == 4
    assert tell(tmp_path, "judge", "0001").code == 0  # as it was, whatever is set now


def test_an_unset_number_is_a_warning_of_validate_and_refuses_a_run(tmp_path: Path) -> None:
    project(tmp_path, NUMBERS)
    assert tell(tmp_path, "validate").code == 0
    for command in (["contract", "run"], ["verify"], ["doctor"]):
        told = tell(tmp_path, *command)
        assert told.code == 4
        assert "  replicas  " in told.err
        assert "[unset-variable]" in told.err
    assert not (tmp_path / ".holdfast").exists()


# -- "an env value is passed on and not masked (a port is no secret), with a note" ------------------
def test_a_short_environment_value_refuses_no_run(tmp_path: Path) -> None:
    spec = SPEC.replace('"bot:answer"', '"bot:answer", env: {PORT: "${PORT_}"}')
    project(tmp_path, spec, "import os\ndef answer(p): return 'source ' + os.environ['PORT']\n")
    told = tell(tmp_path, "contract", "run", "--json", PORT_="8080")
    assert told.code == 0
    assert told.trial("cites")["answer"] == "source 8080"
    assert any("PORT_" in warning["text"] for warning in told.json["warnings"])


def test_a_secret_of_the_world_can_be_given_to_the_agent_by_another_name(tmp_path: Path) -> None:
    spec = """
agent: {type: command, command: 'test "$KEY" = "$TOKEN" && echo source $KEY', env: {KEY: "{{ secrets.TOKEN }}"}}
golden_prompts: ["What is the total?"]
secrets: [{name: TOKEN, from: generated}]
"""
    project(tmp_path, spec + RULES + CALM)
    told = tell(tmp_path, "contract", "run", "--json", "--backend", "process")
    assert told.code == 0, told
    assert "hf-" not in told.trial("cites")["answer"]


# -- what is asked ----------------------------------------------------------------------------------
def test_a_contract_whose_rules_all_have_probes_needs_no_prompts(tmp_path: Path) -> None:
    spec = SPEC.replace('golden_prompts: ["What is the total?"]\n', "").replace(
        "value: source", "value: source, probes: [a, b]"
    )
    project(tmp_path, spec)
    assert tell(tmp_path, "contract", "validate").code == 0
    assert tell(tmp_path, "contract", "run").code == 0
    project(tmp_path, spec.replace("chaos_matrix", "    - {id: other, type: completes}\nchaos_matrix"))
    told = tell(tmp_path, "contract", "run")
    assert told.code == 4
    assert "nothing to ask" in told.err


@pytest.mark.parametrize("where", ["golden_prompts", "probes"])
def test_the_same_question_twice_is_a_warning_and_asked_once(tmp_path: Path, where: str) -> None:
    twice = SPEC.replace('["What is the total?"]', "[a, b, a]")
    probes = SPEC.replace("value: source", "value: source, probes: [a, b, a]")
    project(tmp_path, twice if where == "golden_prompts" else probes)
    told = tell(tmp_path, "contract", "run", "--json")
    assert len(told.json["parts"]["contract"]["cells"][0]["trials"]) == 2
    assert "lint-repeated-prompt" in [one["code"] for one in told.json["warnings"]]
