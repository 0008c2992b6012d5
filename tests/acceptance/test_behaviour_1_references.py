"""Behaviour 1: a Spec holds references, never secret values; hosted-only values load and say what they need."""

from __future__ import annotations

from pathlib import Path

import pytest
from files1 import (
    CALM,
    RULES,
    SPEC,
    Told,
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


@pytest.mark.parametrize("where", ["golden_prompts", "probes"])
def test_the_same_question_twice_is_a_warning_and_asked_once(tmp_path: Path, where: str) -> None:
    twice = SPEC.replace('["What is the total?"]', "[a, b, a]")
    probes = SPEC.replace("value: source", "value: source, probes: [a, b, a]")
    project(tmp_path, twice if where == "golden_prompts" else probes)
    told = tell(tmp_path, "contract", "run", "--json")
    assert len(told.json["parts"]["contract"]["cells"][0]["trials"]) == 2
    assert "lint-repeated-prompt" in [one["code"] for one in told.json["warnings"]]
