"""A hunt that is resumed, and options of hunts that cannot do anything."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from cli import MakeProject, Project, Serve, contract, rule, rundir
from plane_agents import ASKS, command, equip
from test_hunt import ONCE, SHOP, shop
from test_launched_models import NO_KEYS, echo

from golden_words import Golden


@pytest.fixture(scope="module")
def _hunted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, str]:
    folder = tmp_path_factory.mktemp("hunted")
    made = shop(lambda spec, agent: Project(folder / "project", spec, agent), rules=[ONCE])
    document = made.cli("hunt", "--json", "--max-trials", "60").json
    shutil.copytree(made.folder, folder / "kept")
    return made, document["causes"][0]["id"]


@pytest.fixture
def hunted(_hunted: tuple[Project, str]) -> tuple[Project, str]:
    """A project in which a hunt of 60 trials has found one cause, and the cause's id."""
    made, _ = _hunted
    shutil.rmtree(made.folder)
    shutil.copytree(made.folder.with_name("kept"), made.folder)  # at the same place: a run names its spec
    return _hunted


def test_a_hunt_that_is_resumed_keeps_its_budget_and_its_seal(project: MakeProject) -> None:
    made = shop(project, rules=[ONCE])
    first = made.cli("hunt", "--json", "--max-trials", "12")
    again = made.cli("hunt", "--json", "--resume", "0001")
    assert (again.code, again.json) == (first.code, first.json), again.err
    assert " 12 already run" in made.cli("hunt", "--resume", "0001").out
    assert made.cli("show", "0001").code == 0
    invented = (rundir(made) / "scenarios.jsonl").read_text().splitlines()
    more = made.cli("hunt", "--json", "--resume", "0001", "--max-trials", "16").json
    assert (more["stopped"], more["trials"]) == ("trials", 16)
    assert made.cli("hunt", "--json", "--resume", "0001").json["trials"] == 16
    assert made.cli("show", "0001").code == 0
    lines = (rundir(made) / "scenarios.jsonl").read_text().splitlines()
    assert lines[: len(invented)] == invented
    assert len(lines) == len(set(lines))


def test_a_budget_that_ends_in_calm_is_named(project: MakeProject) -> None:
    ended = shop(project, rules=[ONCE]).cli("hunt", "--json", "--max-trials", "1")
    assert (ended.code, ended.json["errors"][0]["code"]) == (5, "hunt-budget"), ended.out


def test_a_sweep_that_no_write_can_meet_is_named(project: MakeProject) -> None:
    made = shop(project, rules=[ONCE])
    swept = made.cli("hunt", "--json", "--sweep", "killed")
    assert (swept.code, swept.json["errors"][0]["code"]) == (5, "hunt-no-writes"), swept.out
    unknown = made.cli("hunt", "--json", "--sweep", "bogus")
    assert (unknown.code, unknown.json["errors"][0]["code"]) == (4, "argument-invalid")


@pytest.mark.parametrize(
    "words", [("hunt", "-x"), ("shrink", "7f3a2c91", "-x"), ("map", "-x"), ("map", "--resume", "1")]
)
def test_options_that_would_do_nothing_are_unknown(project: MakeProject, words: tuple[str, ...]) -> None:
    assert shop(project).cli(*words).code == 4


def test_a_script_cannot_be_asked_live(project: MakeProject) -> None:
    made = shop(project, models={"*": {"script": "model.yaml"}})
    (made.folder / "model.yaml").write_text("replies: [{text: hi}]\n")
    refused = made.cli("hunt", "--json", "--confirm-live", "2")
    assert (refused.code, refused.json["errors"][0]["code"]) == (4, "option-inapplicable"), refused.out


def test_the_command_of_a_calm_failure_shows_it_again(project: MakeProject) -> None:
    made = shop(project, rules=[ONCE, rule("cites", "contains", value="source")])
    assert made.cli("hunt").code == 4
    again = made.cli("show", "--json").json["causes"][0]["first"]["again"]
    assert again == "holdfast hunt --seed 0 --replicas 3 --rule cites"
    repeated = made.cli(*again.split()[1:], "--json")
    assert (repeated.code, repeated.json["errors"][0]["code"]) == (4, "hunt-calm-fails")


def test_another_file_with_the_same_contract_does_not_know_the_cause(hunted: tuple[Project, str]) -> None:
    made, id = hunted
    shown = made.cli("hunt", "--cause", id)
    assert (shown.out.count("✘"), "up to 300 trials" in shown.out) == (1, True)
    (made.folder / "other.yaml").write_text(made.read("holdfast.yaml"))
    other = made.cli("hunt", "other.yaml", "--json", "--cause", id)
    assert other.json["errors"][0]["code"] == "cause-unknown"


def test_rules_that_calm_never_judges_leave_nothing_to_start_from(project: MakeProject) -> None:
    made = shop(project, rules=[rule("answers", value="order", when="llm_faults_active")])
    found = made.cli("hunt", "--json")
    assert (found.code, found.json["errors"][0]["code"]) == (5, "hunt-no-rules"), found.out


def test_a_calm_failure_is_stored_as_the_command_ends(project: MakeProject) -> None:
    made = shop(project, rules=[ONCE, rule("cites", "contains", value="source")])
    assert made.cli("hunt", "--json").code == 4
    (listed,) = made.cli("runs", "--json").json["runs"]
    shown = made.cli("show", "--json").json
    codes = shown["parts"]["hunt"]["reason_codes"]
    assert (listed["exit_code"], shown["exit_code"], codes) == (4, 4, ["hunt-calm-fails"])


@pytest.mark.parametrize("forge", [lambda path: path.unlink(), lambda path: path.write_text(HELD)], ids=["gone", "new"])
@pytest.mark.parametrize("name", ["hunt.json", "map.json"])
def test_a_result_that_was_edited_is_rejected(hunted: tuple[Project, str], forge: Any, name: str) -> None:
    made, cause = hunted
    forge(rundir(made) / name)
    for words in (("show", "0001"), ("promote", cause)):
        refused = made.cli(*words)
        assert (refused.code, "[run-tampered]" in refused.err) == (4, True), words
    assert made.cli("hunt", "--resume", "0001", "--json").code == 4
    assert made.cli("hunt", "--resume", "0001", "--json", "--force").json["causes"][0]["id"] == cause
    assert made.cli("show", "0001").code == 0


HELD = (
    '{"format":1,"trials":9,"stopped":"done","causes":[],"fixed":[],"flaky":[],"gave_up":[],"coverage":{"points":'
    '{"total":1,"held":1,"failed":0,"infeasible":0,"open":0},"pairs":{"total":0,"held":0,"failed":0,"infeasible":0,'
    '"open":0}},"matrix":[],"met":3}'
)


def _cause_file(made: Project) -> Path:
    (path,) = (made.folder / ".holdfast" / "hunts").rglob("*.json")
    return path


@pytest.mark.parametrize(
    "edit",
    [
        lambda text: text[:-20],
        lambda text: "<<<<<<< ours\n" + text,
        lambda text: text.replace("lost_reply", "slow"),
        lambda text: text.replace('"prompt": "Charge', '"prompt": "Please charge'),
        lambda text: text.replace('"id": ', '"fixed": true,\n"id": '),
        lambda text: text.replace('"format": 1', '"format": 9'),
    ],
    ids=["cut", "conflict", "fault", "prompt", "fixed", "format"],
)
@pytest.mark.parametrize("command", ["hunt", "ci"])
def test_a_file_of_causes_that_was_edited_is_an_error(hunted: tuple[Project, str], edit: Any, command: str) -> None:
    made, _ = hunted
    path = _cause_file(made)
    path.write_text(edit(path.read_text()))
    refused = made.cli(command, "--json")
    assert (refused.code, refused.json["errors"][0]["code"]) == (4, "cause-unusable"), refused.out
    assert path.name in refused.json["errors"][0]["message"]


def test_a_cause_can_be_deleted(hunted: tuple[Project, str]) -> None:
    made, _ = hunted
    path = _cause_file(made)
    path.write_text(json.dumps({**json.loads(path.read_text()), "causes": []}))
    assert "hunt" not in made.cli("ci", "--json", "--no-report").json["parts"]


def test_a_cause_whose_prompt_was_edited_is_confirmed_or_retired(hunted: tuple[Project, str]) -> None:
    made, id = hunted
    made.write(made.read("holdfast.yaml").replace("Charge order-7781", "Please charge order-7781"))
    refused = made.cli("promote", id)
    assert (refused.code, "[cause-orphaned]" in refused.err) == (4, True), refused.err
    whole = made.cli("ci", "--json", "--no-report")
    assert (whole.code, whole.json["parts"]["hunt"]["reason_codes"]) == (5, ["cause-orphaned"]), whole.out
    # Too few trials to try it: it stays.
    assert made.cli("hunt", "--json", "--max-trials", "4").json["orphaned"] == [id]
    # The hunt finds it again, with the new prompt.
    again = made.cli("hunt", "--json", "--max-trials", "60").json
    assert ([one["id"] for one in again["causes"]], again["untried"], again["retired"]) == ([id], [], [])
    assert made.cli("ci", "--json", "--no-report").code == 1
    # The prompt and the agent are edited: nothing breaks the rule any more.
    made.write(made.read("holdfast.yaml").replace("Please charge", "Do charge"))
    (made.folder / "agent.py").write_text(SHOP.replace("ATTEMPTS", "1"))
    assert made.cli("ci", "--json", "--no-report").code == 5
    gone = made.cli("hunt", "--json").json
    assert (gone["retired"], gone["untried"], gone["exit_code"]) == ([id], [], 0)
    assert json.loads(_cause_file(made).read_text())["causes"] == []
    assert made.cli("ci", "--json", "--no-report").code == 0


@pytest.mark.parametrize(("prices", "usd"), [({"input_usd": 1000.0, "output_usd": 1000.0}, 0.005), ({}, None)])
def test_a_hunt_on_a_live_model_says_first_what_it_may_cost(
    project: MakeProject, serve: Serve, prices: dict[str, float], usd: float | None, golden: Golden
) -> None:
    models = {"gpt-*": {"base_url": f"{serve(echo).url}/v1", "name": "local-7b", **prices}}
    spec = contract([rule("echoes", value="you said")], agent=command(), models=models)
    made = equip(project(spec, ASKS))
    found = made.cli("hunt", "--json", "--order", "1", "--max-trials", "10", env=NO_KEYS)
    cost = found.json["cost"]
    assert (cost["calm_trials"], cost["calm_tokens"], cost["max_trials"], cost["estimated_tokens"]) == (3, 15, 10, 50)
    assert (cost["calm_usd"], cost["estimated_usd"]) == ((3 * usd, 10 * usd) if usd else (None, None))
    assert cost["unpriced"] == ([] if usd else ["gpt-4o"])
    golden([line for line in found.err.splitlines() if "10 trials" in line])
    assert shop(project).cli("hunt", "--json", "--max-trials", "6").json["cost"] is None


def _rename_rule(made: Project, path: Path) -> None:
    made.write(made.read("holdfast.yaml").replace(f"id: {path.stem}", "id: renamed"))


def test_a_cause_whose_rule_was_renamed_still_guards(hunted: tuple[Project, str]) -> None:
    made, id = hunted
    path = _cause_file(made)
    _rename_rule(made, path)
    whole = made.cli("ci", "--json", "--no-report")
    assert (whole.code, whole.json["parts"]["hunt"]["reason_codes"]) == (1, ["hunt-cause"]), whole.out
    # It is stored under the rule's new name now.
    assert json.loads(path.read_text())["causes"] == []
    assert [one["id"] for one in json.loads(path.with_name("renamed.json").read_text())["causes"]] == [id]
    assert made.cli("ci", "--json", "--no-report").code == 1


def test_a_cause_whose_rule_is_gone_is_unproven_until_a_hunt_retires_it(hunted: tuple[Project, str]) -> None:
    made, id = hunted
    path = _cause_file(made)
    _rename_rule(made, path)
    (made.folder / "agent.py").write_text(SHOP.replace("ATTEMPTS", "1"))
    whole = made.cli("ci", "--json", "--no-report")
    assert (whole.code, whole.json["parts"]["hunt"]["reason_codes"]) == (5, ["cause-orphaned"]), whole.out
    assert [one["id"] for one in json.loads(path.read_text())["causes"]] == [id]  # ci forgets nothing
    assert made.cli("hunt", "--json").json["retired"] == [id]
    assert json.loads(path.read_text())["causes"] == []
    assert made.cli("ci", "--json", "--no-report").code == 0
