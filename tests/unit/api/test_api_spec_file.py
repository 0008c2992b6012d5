"""A file as items: what applies is listed, what is wanted is run, and once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from golden_words import Golden
from holdfast.api.spec_file import FileItem, SpecFile
from holdfast.errors import SpecError

AGENT = """
def find_item(name):
    return "$24.90"


def answer(question):
    try:
        return f"It costs {find_item('kettle')}."
    except Exception:
        return "I guess $25."
"""
HEAD = (
    'agent: {type: python, endpoint: "spec_file_shop:answer", tools: ["spec_file_shop:find_item"], isolation: inline}\n'
)
CONTRACT = """golden_prompts: ["What does it cost?"]
contract:
  name: Shop
  invariants:
    - {id: ends, type: completes}
    - {id: honest, type: contains, value: cannot see, when: tool_faults_active}
  chaos_matrix:
    - name: calm
    - {name: down, tool_faults: [{tool: find_item, mode: error}]}
    - {name: late, tool_faults: [{tool: find_item, mode: error, after_calls: 9}]}
"""
TASK = """version: 1
id: a-task
task: {prompt: "What does it cost?"}
parallelism: {matrix: {region: [eu, us]}}
invariants:
  ends: {description: ends, check: {type: completes}}
  price: {description: price, check: {type: contains, value: "$24.90"}}
chaos_matrix:
  - name: calm
  - {name: down, tool_faults: [{tool: find_item, mode: error}]}
"""


def spec_file(folder: Path, text: str, head: str = HEAD) -> SpecFile:
    (folder / "spec_file_shop.py").write_text(AGENT)
    (folder / "holdfast.yaml").write_text(head + text)
    return SpecFile(folder / "holdfast.yaml", folder / "runs")


def trials(folder: Path, run: str = "0001") -> list[tuple[str, str]]:
    lines = (folder / "runs" / run / "trials.jsonl").read_text().splitlines()
    found = [json.loads(line) for line in lines]
    return [(one["scenario"], one.get("invariant", "*")) for one in found if one["kind"] == "contract"]


def by_name(items: list[FileItem]) -> dict[str, FileItem]:
    return {item.name: item for item in items}


def test_cells_that_apply_are_listed_with_their_lines(tmp_path: Path) -> None:
    items = spec_file(tmp_path, CONTRACT).list_items()
    assert [item.name for item in items] == ["ends[calm]", "ends[down]", "honest[down]", "ends[late]", "honest[late]"]
    assert {item.line for item in items if item.invariant == "honest"} == {7}


def test_one_run_decides_all_that_is_wanted_each_with_its_own_word(tmp_path: Path) -> None:
    file = spec_file(tmp_path, CONTRACT)
    items = file.list_items()
    words = {item.name: file.decide(item, items).word for item in items}
    assert words == {
        "ends[calm]": "pass",
        "ends[down]": "pass",
        "honest[down]": "fail",
        "ends[late]": "unproven",
        "honest[late]": "fail",
    }
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == [".gitignore", "0001"]


def test_only_the_trials_of_what_is_wanted_are_run(tmp_path: Path, golden: Golden) -> None:
    file = spec_file(tmp_path, CONTRACT)
    wanted = by_name(file.list_items())["honest[down]"]
    decided = file.decide(wanted, [wanted])
    assert trials(tmp_path) == [("down", "honest")]
    golden(decided.lines[0])
    assert decided.lines[1].startswith("✘ honest · down")
    labels = [line.split()[0] for line in decided.lines[2:] if line[2] != " "]
    assert labels == ["asked", "answered", "because", "fault", "reproduce", "run"]


def test_what_a_run_that_stopped_early_left_open_is_run_when_it_is_asked_for(tmp_path: Path) -> None:
    file = spec_file(tmp_path, CONTRACT)
    items = by_name(file.list_items())
    assert file.decide(items["honest[down]"], list(items.values()), fail_fast=True).word == "fail"
    assert ("late", "ends") not in trials(tmp_path)
    assert file.decide(items["ends[late]"], list(items.values()), fail_fast=True).word == "unproven"
    assert file.decide(items["ends[calm]"], list(items.values()), fail_fast=True).word == "pass"


def test_a_task_is_a_case_in_each_scenario_with_each_params_and_one_run_of_its_trials(tmp_path: Path) -> None:
    head = HEAD.replace(", isolation: inline", ", isolation: inline, env: {REGION: '{{ params.region }}'}")
    file = spec_file(tmp_path, TASK, head)
    items = by_name(file.list_items())
    assert list(items) == [
        "case[calm-region=eu]",
        "case[calm-region=us]",
        "case[down-region=eu]",
        "case[down-region=us]",
    ]
    down = file.decide(items["case[down-region=eu]"], [items["case[down-region=eu]"]])
    assert (down.word, trials(tmp_path)) == ("fail", [("down", "*")])
    assert any("price" in line for line in down.lines)
    assert file.decide(items["case[calm-region=us]"], list(items.values())).word == "pass"


def test_an_agent_that_cannot_be_used_is_an_error_of_all_and_asked_for_once(tmp_path: Path, golden: Golden) -> None:
    file = spec_file(tmp_path, CONTRACT, HEAD.replace("spec_file_shop:answer", "spec_file_shop:anser"))
    items = file.list_items()
    first = file.decide(items[0], items)
    assert first.word == "error"
    golden(first.lines[0])
    assert "did you mean answer?" in first.lines[-1]
    assert file.decide(items[1], items) is first


MUTATIONS = "golden_prompts: [x]\nmutations: {count: 1, types: [%s]}\ninvariants: [{type: completes}]\n"


@pytest.mark.parametrize(
    "text",
    [
        MUTATIONS % "noise",
        "model: {provider: openai, name: none}\n" + MUTATIONS % "paraphrase",  # no model is asked
        MUTATIONS % "noise" + "chaos: {tool_faults: [{tool: find_item, mode: error}]}\n",
        "replays: {sources: [{type: langsmith, project: none, auto_import: true}]}\n",  # nor a service
    ],
)
def test_a_file_for_other_commands_has_no_items_and_says_which(tmp_path: Path, text: str, golden: Golden) -> None:
    file = spec_file(tmp_path, text)
    assert file.list_items() == []
    golden(file.no_items)


def test_a_file_with_items_or_with_an_error_does_not_say_so(tmp_path: Path) -> None:
    file = spec_file(tmp_path, CONTRACT)
    assert file.list_items()
    assert file.no_items == ""
    with pytest.raises(SpecError):
        spec_file(tmp_path, MUTATIONS % "noisy").list_items()
