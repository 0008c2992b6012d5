"""`holdfast validate` refuses what a run refuses, and both say where and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest
from files1 import CALM, PYTHON, RULES, SPEC, project, tell

from golden_words import Golden

JUDGE = (
    "\n    - {id: kind, type: llm_as_judge, model: my-jugde, criteria: c, input_from: agent_output, rubric: {pass: a}}"
)
JUDGED = (
    SPEC.replace("value: source}", "value: source}" + JUDGE) + "models: {my-judge: {name: x, base_url: 'http://h'}}\n"
)
UNASKED = "agent: {type: python, endpoint: 'bot:answer'}\n"
PROBED = UNASKED + RULES.replace("value: source", "value: source, probes: [one, two]") + CALM
HEADER = SPEC.replace("type: python", 'headers: {X-Key: "Bearer ${KEY_OF_MINE}"}').replace(
    "bot:answer", "http://127.0.0.1:1/"
)
SECRET = SPEC + "secrets: [KEY_OF_MINE]\n"
SCENARIO = UNASKED + "version: 1\nid: a-b\ntask: {prompt: x}\n"
MAPPED = "invariants:\n  r: {description: d, check: {type: completes}}\n"

REFUSED = {
    "no prompt, no probes": (UNASKED + RULES + CALM, "nothing to ask for the rule cites"),
    "an agent alone": (UNASKED, "no rules"),
    "a judge nobody knows": (JUDGED, "did you mean my-judge?"),
    "a short header": (HEADER, "the value of KEY_OF_MINE is shorter than 6"),
    "a short secret": (SECRET, "the value of KEY_OF_MINE is shorter than 6"),
    "no matrix": (PYTHON + RULES, "no scenarios"),
    "a scenario without an id": (SCENARIO.replace("id: a-b\n", "") + MAPPED, "holdfast run needs it"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_a_run_refuses_validate_refuses(tmp_path: Path, what: str) -> None:
    spec, said = REFUSED[what]
    project(tmp_path, spec)
    command = ["run"] if "task:" in spec else ["contract", "run"]
    for words in (["validate"], command):
        told = tell(tmp_path, *words, KEY_OF_MINE="abc")
        assert told.code == 4
        assert said in told.err
        assert "It is valid" not in told.out
    assert not (tmp_path / ".holdfast").exists()


@pytest.mark.parametrize(
    ("spec", "size"),
    [
        (SPEC, "1 rule, 1 scenario, 1 prompt"),
        (PROBED, "1 rule, 1 scenario, 2 prompts"),
        (SCENARIO + MAPPED, "1 rule, 1 scenario, 1 prompt"),
        (SCENARIO.replace("id: a-b\n", "") + MAPPED + CALM, "1 rule, 1 scenario, 1 prompt"),
    ],
)
def test_what_one_command_runs_is_valid(tmp_path: Path, spec: str, size: str) -> None:
    project(tmp_path, spec)
    told = tell(tmp_path, "validate")
    assert (told.code, told.out) == (0, f"holdfast.yaml: {size}. It is valid.\n"), told.err


def test_every_part_that_a_file_declares_is_checked(tmp_path: Path) -> None:
    project(tmp_path, PYTHON + "invariants: [{type: completes}]\n")
    assert tell(tmp_path, "validate", "--json").json["valid"]
    project(tmp_path, PYTHON + "invariants: [{type: completes}]\nchaos: {tool_faults: [{tool: x, mode: error}]}\n")
    told = tell(tmp_path, "validate", "--json")
    assert (told.code, [e["code"] for e in told.json["errors"]]) == (4, ["unreachable-fault"])


def test_the_rule_that_lacks_probes_is_pointed_at(tmp_path: Path) -> None:
    project(tmp_path, PROBED.replace("two]}", "two]}\n    - {id: bare, type: completes}"))
    (error,) = tell(tmp_path, "contract", "validate", "--json").json["errors"]
    line = (tmp_path / "holdfast.yaml").read_text().splitlines()[error["line"] - 1]
    assert "id: bare" in line
    assert "the rule bare" in error["message"]
    assert error["hint"].endswith("probes to bare")


def test_a_contract_given_to_run_is_one_error_with_the_command(tmp_path: Path, golden: Golden) -> None:
    project(tmp_path, SPEC)
    (tmp_path / "holdfast.yaml").rename(tmp_path / "my file.yaml")
    told = tell(tmp_path, "run", "my file.yaml", "--json")
    (error,) = told.json["errors"]
    assert told.code == 4
    golden((error["code"], error["hint"]))


@pytest.mark.parametrize("agent", ["env: {TOKEN: '${NOT_SET_HERE}'}", "timeout: '${NOT_SET_HERE}'"])
def test_an_unset_variable_is_one_error_with_its_place(tmp_path: Path, agent: str) -> None:
    project(tmp_path, SPEC.replace("type: python", f"type: python, {agent}"))
    assert tell(tmp_path, "validate").code == 0
    told = tell(tmp_path, "contract", "run")
    assert told.code == 4
    assert told.err.count("NOT_SET_HERE is not set") == 1
    assert told.err.startswith("holdfast.yaml:2:")
    assert "shorter than" not in told.err
    assert "would be refused" not in told.err


TASK = UNASKED + "task: {prompt: x}\n"
SESSION = "replays: {sessions: [{id: s, input: hello, contract: other.yaml}]}\n"
ONLY_PROBES = PYTHON + RULES.replace("value: source", "value: source, probes: [one]") + CALM
WARNED = {
    "a map without an id": (TASK + "version: 1\n" + MAPPED + CALM, ["run"], "missing-key", "id"),
    "a map without a version": (TASK + "id: a-b\n" + MAPPED + CALM, ["run"], "missing-key", "version"),
    "the same, which ci runs": (TASK + MAPPED + CALM, ["ci"], "missing-key", "id"),
    "a contract that asks a task": (TASK + RULES + CALM, ["run"], "missing-key", "id"),
    "a list of rules and a task": (
        TASK + "version: 1\nid: a-b\ninvariants: [{id: q, type: completes}]\n" + RULES + CALM,
        ["run"],
        "wrong-type",
        "invariants",
    ),
    "a contract without scenarios": (
        PYTHON + RULES + "invariants: [{id: q, type: completes}]\n",
        ["contract", "run"],
        "no-contract",
        "chaos_matrix",
    ),
    "scenarios without a contract": (
        PYTHON + CALM + "invariants: [{id: q, type: completes}]\n",
        ["contract", "run"],
        "no-contract",
        "contract.invariants",
    ),
    "a hunt without rules": (ONLY_PROBES + "hunt: {trials: 3}\n", ["ci"], "lint-hunt-no-rules", "hunt"),
    "a secret in no file": (
        TASK + "version: 1\nid: a-b\nsecrets: [{name: KEY, source: 'file:absent.txt'}]\n" + MAPPED,
        ["run"],
        "run-refused",
        "secrets[0]",
    ),
    "a judge without a key": (
        SPEC.replace("value: source}", "value: source}" + JUDGE.replace("my-jugde", "gpt-4")),
        ["contract", "run"],
        "run-refused",
        "models",
    ),
}


@pytest.mark.parametrize("what", WARNED)
def test_what_one_command_refuses_is_a_warning_though_another_runs_the_file(tmp_path: Path, what: str) -> None:
    spec, command, code, path = WARNED[what]
    project(tmp_path, spec)
    document = tell(tmp_path, "validate", "--json", OPENAI_API_KEY="").json
    assert document["valid"]
    assert (code, path) in {(one["code"], one["path"]) for one in document["warnings"]}
    assert tell(tmp_path, *command, OPENAI_API_KEY="").code == 4


CONTRACT = "contract: {name: c, invariants: [{id: a, type: completes}]}\n"


@pytest.mark.parametrize(
    ("other", "code"),
    [("", "unusable-session"), ("contract: {name: c}\n", "unusable-session"), (CONTRACT, None)],
)
@pytest.mark.parametrize("nested", [False, True], ids=["in the spec", "in a session file"])
def test_the_contract_of_a_session_is_checked(tmp_path: Path, other: str, code: str | None, nested: bool) -> None:
    project(tmp_path, SPEC + ("replays: {sessions: [{file: s.yaml}]}\n" if nested else SESSION))
    (tmp_path / "s.yaml").write_text("{id: s, input: hello, contract: other.yaml}\n")
    if other:
        (tmp_path / "other.yaml").write_text(other)
    document = tell(tmp_path, "validate", "--json").json
    assert [one["code"] for one in document["errors"]] == ([] if code is None else [code])
    assert (tell(tmp_path, "replay", "run").code == 4) is (code is not None)
    assert tell(tmp_path, "contract", "run").code == 0  # which does not replay it


def test_a_session_without_the_rule_that_it_failed_is_refused(tmp_path: Path) -> None:
    project(tmp_path, SPEC + "replays: {sessions: [{file: s.yaml}]}\n")
    (tmp_path / "s.yaml").write_text("{id: s, input: hello, failed_rules: [gone]}\n")
    document = tell(tmp_path, "validate", "--json").json
    assert [(one["code"], one["path"]) for one in document["errors"]] == [("session-rule-missing", "replays")]
    assert tell(tmp_path, "replay", "run").code == tell(tmp_path, "ci").code == 4
    (tmp_path / "s.yaml").write_text("{id: s, input: hello, failed_rules: [cites]}\n")
    assert tell(tmp_path, "validate").code == 0


def test_two_session_files_with_one_id_are_refused(tmp_path: Path) -> None:
    project(tmp_path, SPEC + "replays: {sessions: [{file: s.yaml}, {id: s, input: hello}]}\n")
    (tmp_path / "s.yaml").write_text("{id: s, input: hello}\n")
    assert [one["code"] for one in tell(tmp_path, "validate", "--json").json["errors"]] == ["unusable-session"]
    assert tell(tmp_path, "replay", "run").code == 4
    assert tell(tmp_path, "contract", "run").code == 0


@pytest.mark.parametrize("key", ["query_params: {q: '{order}'}", 'request_template: \'{"a": "{prompt} {order}"}\''])
def test_a_field_that_a_prompt_lacks_is_refused(tmp_path: Path, key: str) -> None:
    spec = SPEC.replace("type: python", key).replace("bot:answer", "http://127.0.0.1:1/")
    project(tmp_path, spec)
    told = tell(tmp_path, "validate", "--json")
    assert (told.code, [one["code"] for one in told.json["errors"]]) == (4, ["unknown-field"])
    assert tell(tmp_path, "contract", "run").code == 4
    project(tmp_path, spec.replace('"What is the total?"', '"order: 7"'))
    assert tell(tmp_path, "validate").code == 0
