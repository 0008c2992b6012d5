"""FILE as an argument, and -k, -x, -j, --lf as pytest's users expect them."""

from __future__ import annotations

from pathlib import Path

import pytest
from files1 import project, tell

AGENT = """
import pathlib
def answer(prompt):
    if "total" in prompt and not pathlib.Path("mended").exists():
        return "no idea"
    return "source: " + prompt
"""
SPEC = """
version: "1.0"
agent: {type: python, endpoint: "bot:answer"}
golden_prompts: [total, tax]
contract:
  name: C
  invariants:
    - {id: cites, description: d, type: contains, value: source}
    - {id: ends, description: d, type: completes}
chaos_matrix:
  - name: calm
  - {name: poisoned, context_attacks: [{type: memory_poisoning, payload: zzz}]}
"""
MAPPED = """
version: 1
id: mapped
agent: {type: python, endpoint: "bot:answer"}
task: {prompt: total}
invariants:
  cites: {description: d, check: {type: contains, value: source}}
  ends: {description: d, check: {type: completes}}
chaos_matrix:
  - name: calm
  - {name: poisoned, context_attacks: [{type: memory_poisoning, payload: zzz}]}
"""


def cells(told) -> set[tuple[str, str]]:
    return {(cell["invariant"], cell["scenario"]) for cell in told.json["parts"]["contract"]["cells"]}


def prompts(told) -> set[str]:
    found = told.json["parts"]["contract"]["cells"]
    return {trial["prompt"] for cell in found for trial in cell["trials"]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    project(tmp_path, SPEC, AGENT).rename(tmp_path / "mine.yaml")
    return tmp_path


# -- a file as argument -----------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("command", "code"),
    [
        (["contract", "run"], 1),
        (["contract", "score"], 1),
        (["contract", "validate"], 0),
        (["validate"], 0),
        (["verify"], 0),
        (["doctor", "--no-agent"], 0),
    ],
)
def test_a_file_is_an_argument_wherever_c_is_taken(folder: Path, command: list[str], code: int) -> None:
    assert tell(folder, *command, "mine.yaml").code == code
    assert tell(folder, *command, "-c", "mine.yaml").code == code
    assert tell(folder, *command, "mine.yaml", "-c", "mine.yaml").code == code
    two = tell(folder, *command, "mine.yaml", "-c", "other.yaml")
    assert two.code == 4
    assert "two specs" in two.err


def test_judge_takes_the_file_after_the_run(folder: Path) -> None:
    assert tell(folder, "contract", "run", "mine.yaml").code == 1
    (folder / "mine.yaml").write_text(SPEC.replace("value: source", "value: o"))
    assert tell(folder, "judge", "0001", "mine.yaml").code == 0
    assert tell(folder, "judge", "0001").code == 1


def test_run_takes_a_file(folder: Path) -> None:
    (folder / "mapped.yaml").write_text(MAPPED)
    assert tell(folder, "run", "mapped.yaml").code == 1
    missing = tell(folder, "run", "gone.yaml")
    assert missing.code == 4
    assert "gone.yaml" in missing.err


# -- -k ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("expression", "wanted", "asked"),
    [
        ("cites", {("cites", "calm"), ("cites", "poisoned")}, {"total", "tax"}),
        ("calm and not ends", {("cites", "calm")}, {"total", "tax"}),
        ("tax and poisoned", {("cites", "poisoned"), ("ends", "poisoned")}, {"tax"}),
        ("(cites and calm) or (ends and poisoned)", {("cites", "calm"), ("ends", "poisoned")}, {"total", "tax"}),
    ],
)
def test_k_selects_by_the_names_of_rules_scenarios_and_prompts(folder, expression, wanted, asked) -> None:
    told = tell(folder, "contract", "run", "mine.yaml", "-k", expression, "--json")
    assert cells(told) == wanted
    assert {prompt.split()[-1] for prompt in prompts(told)} == asked
    assert told.json["notes"][0].endswith(f": -k {expression}")


def test_k_that_fits_nothing_or_cannot_be_read_runs_nothing(folder: Path) -> None:
    for expression in ("nothing-like-it", "cites and"):
        told = tell(folder, "contract", "run", "mine.yaml", "-k", expression)
        assert told.code == 4
        assert "-k" in told.err
    assert not (folder / ".holdfast").exists()


def test_k_of_a_part_that_holds_says_that_it_is_a_part(folder: Path) -> None:
    told = tell(folder, "contract", "run", "mine.yaml", "-k", "ends")
    assert told.code == 0
    assert ": -k ends\n" in told.out
    judged = tell(folder, "judge", "0001")
    assert judged.code == 0
    assert ": -k ends\n" in judged.out


def test_k_of_rules_that_share_trials(folder: Path) -> None:
    (folder / "mapped.yaml").write_text(MAPPED)
    told = tell(folder, "run", "mapped.yaml", "-k", "ends and calm", "--json")
    assert told.code == 0
    assert cells(told) == {("ends", "calm")}
    assert told.json["notes"][0].endswith(": -k ends and calm")


def test_a_run_that_is_taken_up_keeps_its_k(folder: Path) -> None:
    tell(folder, "contract", "run", "mine.yaml", "-k", "ends")
    again = tell(folder, "contract", "run", "--resume", "0001", "--json")
    assert {rule for rule, _ in cells(again)} == {"ends"}
    other = tell(folder, "contract", "run", "--resume", "0001", "-k", "cites")
    assert other.code == 4
    assert "-k cannot be changed" in other.err


# -- --lf -------------------------------------------------------------------------------------------
def test_lf_runs_what_failed_before_until_nothing_does(folder: Path) -> None:
    first = tell(folder, "contract", "run", "mine.yaml", "--lf")
    assert first.code == 1
    assert "--lf: no run " in first.err
    again = tell(folder, "contract", "run", "mine.yaml", "--lf", "--json")
    assert cells(again) == {("cites", "calm"), ("cites", "poisoned")}
    assert {prompt.split()[-1] for prompt in prompts(again)} == {"total"}
    (folder / "mended").touch()
    mended = tell(folder, "contract", "run", "mine.yaml", "--lf")
    assert mended.code == 0
    assert "--lf: only " in mended.err
    assert "0002" in mended.err
    assert ": --lf (" in mended.out
    whole = tell(folder, "contract", "run", "mine.yaml", "--lf", "--json")
    assert "--lf: nothing " in whole.err
    assert "0003" in whole.err
    assert len(cells(whole)) == 4


def test_lf_remembers_what_a_run_of_a_part_did_not_ask(folder: Path) -> None:
    assert tell(folder, "contract", "run", "mine.yaml").code == 1
    assert tell(folder, "contract", "run", "mine.yaml", "-k", "ends").code == 0
    assert tell(folder, "contract", "run", "mine.yaml", "--lf", "-x", "-j", "1").code == 1
    again = tell(folder, "contract", "run", "mine.yaml", "--lf", "--json")
    assert cells(again) == {("cites", "calm"), ("cites", "poisoned")}


def test_lf_knows_the_parts_of_a_run_of_several(folder: Path) -> None:
    assert tell(folder, "ci", "mine.yaml", "--no-report").code == 1
    again = tell(folder, "contract", "run", "mine.yaml", "--lf", "--json")
    assert "--lf: only " in again.err
    assert "0001/contract" in again.err
    assert cells(again) == {("cites", "calm"), ("cites", "poisoned")}


def test_lf_is_of_the_same_file_and_command(folder: Path) -> None:
    (folder / "mapped.yaml").write_text(MAPPED)
    assert tell(folder, "contract", "run", "mine.yaml").code == 1
    assert "--lf: no run " in tell(folder, "run", "mapped.yaml", "--lf").err
    assert "--lf: only " in tell(folder, "contract", "score", "mine.yaml", "--lf").err
    assert tell(folder, "contract", "run", "--resume", "0001", "--lf").code == 4


@pytest.mark.parametrize(
    ("first", "then"),
    [("linked.yaml", "linked.yaml"), ("mine.yaml", "linked.yaml"), ("inner/linked.yaml", "mine.yaml")],
)
def test_lf_knows_a_file_by_any_of_its_names(folder: Path, first: str, then: str) -> None:
    (folder / "inner").mkdir()
    (folder / "linked.yaml").symlink_to("mine.yaml")
    (folder / "inner/linked.yaml").symlink_to("../mine.yaml")
    assert tell(folder, "contract", "run", first).code == 1
    assert "--lf: only " in tell(folder, "contract", "run", then, "--lf").err


def test_a_masked_run_of_a_linked_file_is_taken_up(folder: Path) -> None:
    (folder / "real").mkdir()
    (folder / "bot.py").rename(folder / "real/bot.py")
    secret = SPEC.replace("agent: {", "agent: {env: {K: sk-abcdefghij0123456789}, ")
    (folder / "real/spec.yaml").write_text(secret)
    (folder / "linked.yaml").symlink_to("real/spec.yaml")
    assert tell(folder, "contract", "run", "linked.yaml").code == 1
    again = tell(folder, "contract", "run", "--resume", "real/.holdfast/runs/0001")
    assert (again.code, "does not exist" in again.err) == (1, False)


def test_lf_reads_what_a_later_judging_said(folder: Path) -> None:
    assert tell(folder, "contract", "run", "mine.yaml").code == 1
    (folder / "mine.yaml").write_text(SPEC.replace("value: source", "value: no idea"))
    assert tell(folder, "judge", "0001", "-c", "mine.yaml").code == 1
    (folder / "other.yaml").write_text(SPEC.replace("id: cites", "id: strict"))
    assert tell(folder, "judge", "0001", "-c", "other.yaml").code == 1
    again = tell(folder, "contract", "run", "mine.yaml", "--lf", "--json")
    assert {prompt.split()[-1] for prompt in prompts(again)} == {"tax"}
    assert cells(again) == {("cites", "calm"), ("cites", "poisoned")}


def test_lf_has_nothing_to_run_where_a_later_judging_passed_all(folder: Path) -> None:
    assert tell(folder, "contract", "run", "mine.yaml").code == 1
    (folder / "mine.yaml").write_text(SPEC.replace("type: contains, value: source", "type: completes"))
    assert tell(folder, "judge", "0001", "-c", "mine.yaml").code == 0
    assert "--lf: nothing " in tell(folder, "contract", "run", "mine.yaml", "--lf").err


def test_lf_runs_only_the_combinations_that_failed(folder: Path) -> None:
    spec = (
        SPEC.replace("[total, tax]", '["{{ params.what }}"]')
        + "parallelism: {matrix: {what: [total, tax], n: [1, 2.0]}}\n"
    )
    (folder / "mine.yaml").write_text(spec)
    assert tell(folder, "contract", "run", "mine.yaml").code == 1
    again = tell(folder, "contract", "run", "mine.yaml", "--lf", "--json")
    assert {prompt.split()[-1] for prompt in prompts(again)} == {"total"}
    assert {cell["params"]["n"] for cell in again.json["parts"]["contract"]["cells"]} == {1, 2.0}


def test_lf_whose_failures_are_gone_from_the_file_runs_nothing(folder: Path) -> None:
    assert tell(folder, "contract", "run", "mine.yaml").code == 1
    (folder / "mine.yaml").write_text(SPEC.replace("total, ", ""))
    told = tell(folder, "contract", "run", "mine.yaml", "--lf")
    assert told.code == 4
    assert "[nothing-selected]" in told.err


def test_lf_asks_the_same_mutations_as_the_run_with_another_seed(folder: Path) -> None:
    agent = "def answer(prompt): return 'source' if len(prompt) % 2 else 'no idea'\n"
    prompts = "[What is the total of my order, Which tax is due on it]"
    rules = "invariants: [{id: cites, type: contains, value: source}]"
    project(
        folder,
        f"version: 1\nagent: {{type: python, endpoint: 'bot:answer'}}\ngolden_prompts: {prompts}\n{rules}\n"
        "mutations: {types: [noise], count: 6}\n",
        agent,
    )
    first = tell(folder, "run", "--seed", "7", "--json").json["parts"]["mutation"]
    again = tell(folder, "run", "--lf", "--json").json["parts"]["mutation"]
    failed = {case["replicas"][0]["trial"] for case in first["cases"] if case["status"] == "fail"}
    assert 0 < len(failed) < len(first["cases"])
    assert {case["replicas"][0]["trial"] for case in again["cases"]} == failed
