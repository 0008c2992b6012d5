"""The contract format, details of commands: several outputs, runs by id or path, stored specs, counts before a run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from files1 import CALM, PYTHON, RULES, SPEC, project, tell

import holdfast


@pytest.mark.parametrize("name", ["0001", ".holdfast/runs/0001"])
def test_judge_resume_and_report_take_an_id_or_a_path(tmp_path: Path, name: str) -> None:
    project(tmp_path, SPEC)
    assert tell(tmp_path, "contract", "run").code == 0
    assert tell(tmp_path, "judge", name, "--json").json["score"] == 100.0
    assert tell(tmp_path, "contract", "run", "--resume", name, "--json").json["run_id"] == "0001"
    assert tell(tmp_path, "report", name, "-o", "r.json").code == 0


def test_scenario_and_invariant_select(tmp_path: Path) -> None:
    matrix = CALM + "  - {name: poisoned, context_attacks: [{type: overflow, inject_tokens: 5}]}\n"
    project(tmp_path, PYTHON + RULES + "    - {id: other, type: completes}\n" + matrix)
    told = tell(tmp_path, "contract", "run", "--json", "--scenario", "pois*", "--invariant", "cit*")
    assert [(c["invariant"], c["scenario"]) for c in told.contract["cells"]] == [("cites", "poisoned")]
    assert tell(tmp_path, "contract", "run", "--scenario", "nothing").code == 4


def test_no_spec_here_is_exit_4_with_the_next_step(tmp_path: Path) -> None:
    told = tell(tmp_path, "contract", "run")
    assert told.code == 4
    assert "holdfast init" in told.err


def test_verify_says_whether_the_agent_is_reachable(tmp_path: Path) -> None:
    project(tmp_path, SPEC)
    assert tell(tmp_path, "verify").code == 0
    project(tmp_path, SPEC.replace('type: python, endpoint: "bot:answer"', "endpoint: 'http://127.0.0.1:9/'"))
    assert tell(tmp_path, "verify").code == 3


def test_schema_describes_what_the_loader_takes(tmp_path: Path) -> None:
    import jsonschema_rs
    import yaml

    schema = tell(tmp_path, "schema").json
    validator = jsonschema_rs.Draft202012Validator(schema)
    assert validator.is_valid(yaml.safe_load(SPEC))
    assert not validator.is_valid(yaml.safe_load(SPEC.replace("value: source", "valu: source")))
    assert not validator.is_valid(yaml.safe_load(SPEC.replace("type: python", "type: pyton")))


DUMPED = """
version: '1.0'
agent: {endpoint: "bot:answer", type: python, method: POST, query_params: {}, parse_structured_input: true, headers: {}}
mutations:
  count: 2
  types: [noise, prompt_injection]
  weights: {noise: 0.8, prompt_injection: 1.5, paraphrase: 1.0, timeout_manipulation: 1.3}
  custom_templates: {}
golden_prompts: ["What is the total?"]
invariants:
- {type: latency, negate: false, max_ms: 20000, threshold: 0.8, similarity_threshold: 0.75}
- {type: output_not_empty, negate: false, threshold: 0.8, similarity_threshold: 0.75}
output: {format: html, path: ./reports, filename_template: "flakestorm-{date}-{time}"}
"""
"""A file of the first version, with every default written out."""
UNMET = """
contract:
  name: C
  invariants: [{id: cites, type: contains, value: source}]
  chaos_matrix: [{name: no-chaos}, {name: down, llm_faults: [{mode: timeout}]}]
"""
"""An inline agent without a model function can meet no fault of the model."""


def test_a_file_whose_every_default_is_written_out_is_valid_can_be_verified_and_runs(tmp_path: Path) -> None:
    project(tmp_path, DUMPED)
    checked = tell(tmp_path, "validate", "--json")
    assert (checked.code, checked.json["errors"]) == (0, [])
    assert [one["code"] for one in checked.json["warnings"]] == ["lint-unused-default"]
    assert tell(tmp_path, "verify").code == 0
    assert tell(tmp_path, "run").code == 0
    (report,) = (tmp_path / "reports").iterdir()
    assert re.fullmatch(r"flakestorm-\d{4}-\d\d-\d\d-\d\d-\d\d-\d\d\.html", report.name)


def test_a_matrix_that_cannot_be_met_refuses_the_contract_alone(tmp_path: Path) -> None:
    inline = DUMPED.replace("type: python,", "type: python, isolation: inline,")
    project(tmp_path, inline + UNMET)
    codes = {verb: tell(tmp_path, *verb.split()).code for verb in ("verify", "run", "contract run", "ci", "validate")}
    assert codes == {"verify": 0, "run": 0, "contract run": 4, "ci": 4, "validate": 4}
    assert not list((tmp_path / ".holdfast/runs").glob("0002*"))


@pytest.mark.parametrize(
    ("words", "verb"), [(("run", "--ci"), "holdfast ci"), (("run", "--verify-only"), "holdfast verify")]
)
def test_an_option_of_another_tool_names_the_command_that_does_it(
    tmp_path: Path, words: tuple[str, ...], verb: str
) -> None:
    project(tmp_path, SPEC)
    refused = tell(tmp_path, *words, "--json")
    assert refused.code == 4
    assert refused.json["errors"][0]["hint"].startswith(verb)


@pytest.mark.parametrize("name", ["html", "json"])
def test_a_format_given_as_a_file_is_answered_with_a_file_of_that_format(tmp_path: Path, name: str) -> None:
    project(tmp_path, SPEC)
    refused = tell(tmp_path, "contract", "run", "-o", name, "--json")
    assert (refused.code, refused.json["errors"][0]["hint"]) == (4, f"write -o report.{name}")


# -- where runs are ------------------------------------------------------------------------------------
def _elsewhere(folder: Path) -> Path:
    (folder / "specs").mkdir()
    return project(folder / "specs", SPEC)


@pytest.mark.parametrize("verb", [("contract", "run"), ("ci",), ("contract", "score")])
def test_runs_lie_next_to_the_spec_wherever_the_command_is_given(tmp_path: Path, verb: tuple[str, ...]) -> None:
    _elsewhere(tmp_path)
    assert tell(tmp_path, *verb, "specs/holdfast.yaml").code == 0
    assert (tmp_path / "specs/.holdfast/runs/0001/run.json").is_file()
    assert not (tmp_path / ".holdfast").exists()
    assert tell(tmp_path / "specs", *verb).code == 0
    assert (tmp_path / "specs/.holdfast/runs/0002/run.json").is_file()


@pytest.mark.parametrize(
    "runs",
    ["runs", "a/b", ".holdfast"],
)
def test_nothing_is_written_around_the_folder_of_the_runs(tmp_path: Path, runs: str) -> None:
    _elsewhere(tmp_path)
    words = ("--runs-dir", runs)
    assert tell(tmp_path, "contract", "run", "specs/holdfast.yaml", *words).code == 0
    assert tell(tmp_path, "runs", *words).code == 0
    assert {path.name for path in (tmp_path / runs).iterdir()} == {".gitignore", "0001", "history"}
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted({"specs", runs.split("/")[0]})
    for around in (tmp_path / runs).relative_to(tmp_path).parents:
        assert not (tmp_path / around / ".gitignore").exists(), around


@pytest.mark.parametrize(("given", "left"), [("--runs-dir=.", None), ("--runs-dir=mine", "build\n")])
def test_git_still_sees_the_files_in_a_folder_of_the_users(tmp_path: Path, given: str, left: str | None) -> None:
    _elsewhere(tmp_path)
    folder = tmp_path / given.partition("=")[2]
    folder.mkdir(exist_ok=True)
    ignore = folder / ".gitignore"
    if left is not None:
        ignore.write_text(left)
    assert tell(tmp_path, "contract", "run", "specs/holdfast.yaml", given).code == 0
    assert tell(tmp_path, "runs", given).code == 0
    assert (ignore.read_text() if ignore.exists() else None) == left
    assert (folder / "0001/run.json").is_file()


def test_trend_looks_next_to_the_spec_that_it_is_given(tmp_path: Path) -> None:
    _elsewhere(tmp_path)
    asked = ("trend", "--spec", "specs/holdfast.yaml")
    none = tell(tmp_path, *asked)
    assert (none.code, "specs/.holdfast/runs" in none.err) == (4, True)
    assert tell(tmp_path, "contract", "run", "specs/holdfast.yaml").code == 0
    assert [run["id"] for run in tell(tmp_path, *asked, "--json").json["parts"][0]["runs"]] == ["0001"]
    assert tell(tmp_path, "contract", "run", "specs/holdfast.yaml", "--runs-dir", "mine").code == 0
    assert tell(tmp_path, *asked, "--runs-dir", "mine").code == 0


def test_a_run_that_was_left_is_resumed_by_the_command_that_is_printed(tmp_path: Path) -> None:
    _elsewhere(tmp_path)
    left = tell(tmp_path, "contract", "run", "specs/holdfast.yaml", "--max-trials", "1", "--replicas", "3")
    again = re.search(r"holdfast (contract run --resume \S+)", left.out)
    assert again is not None
    assert tell(tmp_path, *again[1].split()).code == 0
    assert not (tmp_path / "specs/.holdfast/runs/0002").exists()
    by_spec = tell(tmp_path, "contract", "run", "--resume", "0001", "-c", "specs/holdfast.yaml")
    assert by_spec.code == 0


def test_last_failed_finds_the_run_next_to_the_spec(tmp_path: Path) -> None:
    _elsewhere(tmp_path)
    tell(tmp_path, "contract", "run", "specs/holdfast.yaml")
    assert "run 0001; everything" in tell(tmp_path, "contract", "run", "specs/holdfast.yaml", "--lf").err


def test_a_spec_that_comes_with_holdfast_has_its_runs_in_this_folder(tmp_path: Path) -> None:
    shipped = Path(holdfast.__file__).parent / "demo/finance/good.yaml"
    assert tell(tmp_path, "contract", "run", str(shipped), "-q", "--no-report").code == 0
    assert (tmp_path / ".holdfast/runs/0001").is_dir()
    assert not (shipped.parent / ".holdfast").exists()
