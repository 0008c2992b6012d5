"""behaviour.md 2: trials, their ids, and how cells are kept apart."""

from __future__ import annotations

from typing import Any

from cli import CALM, DOWN, MakeProject, contract, rule

TWO_RULES = [rule("cites", value="source"), rule("short", "regex", pattern="^.{0,200}$")]
MAPPED = {
    "cites": {"description": "d", "check": {"type": "contains", "value": "source"}},
    "short": {"description": "d", "check": {"type": "regex", "pattern": "^.{0,200}$"}},
}


def in_a_map(**contract_section: Any) -> dict[str, Any]:
    """The two rules in the scenario spelling, with a matrix."""
    spec = contract([], [CALM, DOWN])
    spec["contract"] = {"name": "x", "chaos_matrix": [CALM, DOWN], **contract_section}
    return {**spec, "invariants": MAPPED}


# "Rules under `contract.invariants`: a trial per (invariant, scenario, prompt, params, replica)."
def test_2_rules_in_a_list_have_a_trial_per_cell_prompt_and_replica(project: MakeProject) -> None:
    made = project(contract(TWO_RULES, [CALM, DOWN], prompts=("a", "b", "c"), replicas=2))
    report = made.run().json
    assert len(made.contract_trials()) == 2 * 2 * 3 * 2
    assert {t["invariant"] for t in made.contract_trials()} == {"cites", "short"}
    assert report["kept_apart"].endswith("per cell")


# "Rules in a map: one trial per (scenario, task, params, replica) serves every rule and fills the cells."
def test_2_rules_in_a_map_share_one_trial_per_scenario_and_replica(project: MakeProject) -> None:
    made = project({**in_a_map(), "replicas": 2})
    result = made.run()
    assert len(made.contract_trials()) == 2 * 2
    assert {t.get("invariant", "*") for t in made.contract_trials()} == {"*"}
    assert len(result.cells) == 4
    assert "every rule" in result.json["kept_apart"]


# "`contract.isolation: cell | scenario` overrides; the report says which."
def test_2_contract_isolation_scenario_overrides_a_list(project: MakeProject) -> None:
    made = project(contract(TWO_RULES, [CALM, DOWN], isolation="scenario"))
    result = made.run()
    assert len(made.contract_trials()) == 2
    assert "every rule" in result.json["kept_apart"]
    assert result.outcomes == {
        ("cites", "calm"): "pass",
        ("short", "calm"): "pass",
        ("cites", "down"): "pass",
        ("short", "down"): "pass",
    }


def test_2_contract_isolation_cell_overrides_a_map(project: MakeProject) -> None:
    made = project(in_a_map(isolation="cell"))
    result = made.run()
    assert len(made.contract_trials()) == 4
    assert "per cell" in result.json["kept_apart"]


# "A rule with `probes` always has trials of its own."
def test_2_a_rule_with_probes_has_trials_of_its_own_that_ask_the_probes(project: MakeProject) -> None:
    rules = [*TWO_RULES, rule("leak", "excludes_pattern", patterns=["secret"], probes=["leak it", "now"])]
    made = project(contract(rules, [CALM], isolation="scenario"))
    result = made.run()
    asked = {(t.get("invariant", "*"), t["task"]["turns"][0]) for t in made.contract_trials()}
    assert asked == {("*", "hello"), ("leak", "leak it"), ("leak", "now")}
    assert [t["prompt"] for t in result.cells["leak", "calm"]["trials"]] == ["leak it", "now"]


# "Cell = invariant x scenario (x params)."
def test_2_params_make_cells_of_their_own_and_reach_the_agent(project: MakeProject) -> None:
    agent = "import os\ndef ask(prompt):\n    return 'region ' + os.environ['PARAM_REGION']\n"
    spec = contract([rule("eu", value="eu")], parallelism={"matrix": {"region": ["eu", "us"]}})
    result = project({**spec, "agent": {"type": "python", "endpoint": "agent:ask"}}, agent).run()
    cells = {cell["params"]["region"]: cell["outcome"] for cell in result.part["cells"]}
    assert cells == {"eu": "pass", "us": "fail"}
