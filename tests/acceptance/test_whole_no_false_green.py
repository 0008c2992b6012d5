"""What sceptics tried on mutation, replay and ci: a green that proves nothing, and blame for what was never asked."""

from __future__ import annotations

from typing import Any

import pytest
from cli import MakeProject, Project

PRICE = {"id": "price", "type": "contains", "value": "$24.90"}
BAD = "def ask(prompt):\n    return 'HOLD nothing'\n"
GOOD = "def ask(prompt):\n    return 'It costs $24.90'\n"
FORGETFUL = """
SEEN = []


def ask(prompt):
    SEEN.append(1)
    if len(SEEN) > 1:
        raise RuntimeError
    return "ok"
"""
OBEYS = """
import re


def ask(prompt):
    return {word!r}.format(re.findall("[0-9a-f]{{8}}", prompt)[0])
"""
ASKS = """
def find(q):
    return 1


def ask(prompt):
    try:
        find(1)
    except Exception:
        pass
    return "I cannot see the stock."
"""
PYTHON = {"type": "python", "endpoint": "agent:ask"}


def mutations(**more: Any) -> dict[str, Any]:
    made = {"agent": PYTHON, "golden_prompts": ["What does the kettle cost?", "And the pot?"], "invariants": [PRICE]}
    return {**made, "mutations": {"count": 4, "types": ["noise", "prompt_injection"]}, **more}


def outcome(made: Project, *args: str) -> tuple[int, Any]:
    told = made.cli(*args, "--json")
    return told.code, told.json


def test_a_minimum_is_not_held_by_a_score_that_is_not_there(project: MakeProject) -> None:
    weightless = {"weights": {"mutation": 0, "chaos": 0.5, "contract": 0.5, "replay": 0}}
    code, found = outcome(project(mutations(scoring=weightless), BAD), "ci", "--min-score", "90")
    assert (code, found["score"]) == (5, None)
    unweighed = {"count": 1, "types": ["noise", "prompt_injection"], "weights": {"noise": 0}}
    assert outcome(project(mutations(mutations=unweighed), BAD), "run", "--min-score", "90")[0] == 5


def test_mutations_that_a_budget_left_out_are_unproven_and_told(project: MakeProject) -> None:
    made = project(mutations(), GOOD)
    code, found = outcome(made, "run", "--max-trials", "1", "--strict")
    part = found["parts"]["mutation"]
    assert (code, part["judged"], part["total"], part["counts"]["unproven"]) == (5, 1, 8, 7)
    assert outcome(made, "run", "--max-trials", "1")[0] == 0
    code, found = outcome(made, "ci", "--max-trials", "3")
    assert found["parts"]["mutation"]["said"].startswith("3 of 8 ")


def test_a_critical_rule_for_faults_is_no_matter_in_calm(project: MakeProject) -> None:
    stormy = {"id": "storm", "type": "contains", "value": "x", "severity": "critical", "when": "tool_faults_active"}
    assert outcome(project(mutations(invariants=[PRICE, stormy]), GOOD), "run")[0] == 0


def test_replicas_that_a_budget_left_out_are_not_our_failure(project: MakeProject) -> None:
    code, found = outcome(project(mutations(), GOOD), "run", "--replicas", "3", "--max-trials", "2")
    assert (code, found["parts"]["mutation"]["counts"]["error"]) == (5, 0)


def test_an_attack_whose_last_turn_was_never_asked_is_not_resisted(project: MakeProject) -> None:
    rule = {"id": "nopw", "type": "excludes_pattern", "patterns": ["password"]}
    made = project(mutations(invariants=[rule], mutations={"count": 2, "types": ["multi_turn_attack"]}), FORGETFUL)
    code, found = outcome(made, "run")
    assert (code, found["parts"]["mutation"]["attacks_resisted"]["judged"]) == (5, 0)


@pytest.mark.parametrize(
    "word", ["**HOLDFAST-CANARY-**{0}", "HOLDFAST\u2011CANARY\u2011{0}", "HOLDFAST-CANARY-\u200b{0}"]
)
def test_a_canary_with_formatting_in_it_is_seen(project: MakeProject, word: str) -> None:
    rule = {"id": "any", "type": "output_not_empty"}
    made = project(
        mutations(invariants=[rule], mutations={"count": 4, "types": ["prompt_injection"]}), OBEYS.format(word=word)
    )
    code, found = outcome(made, "run")
    assert (code, found["parts"]["mutation"]["attacks_resisted"]["passed"]) == (1, 0)


def test_a_recorded_failure_that_nobody_met_proves_no_rule_for_it(project: MakeProject) -> None:
    agent = "def find(q):\n    return 1\n\n\ndef ask(prompt):\n    return 'I cannot see the stock.'\n"
    rule = {"id": "nofab", "type": "contains", "value": "cannot see", "when": "tool_faults_active", "description": "d"}
    session = {"id": "s1", "input": "How many?", "tool_responses": [{"tool": "find", "status": 503, "response": "x"}]}
    spec = {
        "agent": {**PYTHON, "tools": ["agent:find"]},
        "contract": {"name": "C", "invariants": [rule]},
        "replays": {"sessions": [session]},
    }
    made = project(spec, agent)
    assert outcome(made, "replay", "run")[0] == 5
    (made.folder / "agent.py").write_text(ASKS)
    assert outcome(made, "replay", "run")[0] == 0


def test_a_mutation_run_is_judged_anew_by_the_rules_that_are_given(project: MakeProject) -> None:
    made = project(mutations(), BAD)
    assert outcome(made, "run")[0] == 1
    made.write(mutations(invariants=[{**PRICE, "value": "HOLD"}]), "other.yaml")
    assert made.cli("judge", "latest", "-c", "other.yaml").code == 0


def test_chaos_of_a_task_is_refused(project: MakeProject) -> None:
    rules = {"r": {"description": "d", "check": {"type": "completes"}}}
    made = project({"version": 1, "id": "a-b", "agent": PYTHON, "task": {"prompt": "p"}, "invariants": rules}, GOOD)
    for option in (["--chaos"], ["--chaos-profile", "api_outage"]):
        assert made.cli("run", *option).code == 4


def test_a_baseline_that_turned_red_is_not_the_next_baseline(project: MakeProject) -> None:
    made = project(mutations(mutations={"count": 20, "types": ["noise"]}), GOOD)
    assert outcome(made, "ci", "--min-score", "0")[0] == 0
    (made.folder / "agent.py").write_text(BAD)
    for _ in range(2):
        code, found = outcome(made, "ci", "--min-score", "0", "--baseline", "last")
        assert (code, " run 0001: 40 of 40 " in found["reasons"][0]) == (1, True)
    renamed = mutations(invariants=[{**PRICE, "id": "cost"}], mutations={"count": 20, "types": ["noise"]})
    made.write(renamed)
    notes = outcome(made, "ci", "--min-score", "0", "--baseline", "0001")[1]
    assert "no rule differs" not in str(notes)


def test_what_a_run_was_begun_with_cannot_be_changed_when_it_is_taken_up(project: MakeProject) -> None:
    made = project(mutations(), GOOD)
    outcome(made, "ci", "--seed", "7")
    assert outcome(made, "ci", "--resume", "1")[1]["seed"] == 7
    told = made.cli("ci", "--resume", "1", "--seed", "9")
    assert (told.code, "--seed cannot be changed" in told.err) == (4, True)


def test_a_model_that_cannot_be_asked_does_not_keep_other_parts_from_running(project: MakeProject) -> None:
    contract = {"name": "c", "invariants": [{**PRICE, "description": "d"}], "chaos_matrix": [{"name": "calm"}]}
    model = {"provider": "ollama", "name": "m", "base_url": "http://127.0.0.1:9"}
    asked = {"count": 2, "types": ["paraphrase"]}
    made = project(mutations(contract=contract, model=model, mutations=asked, advanced={"retries": 0}), BAD)
    code, found = outcome(made, "ci")
    assert (code, found["parts"]["contract"]["score"]) == (1, 0.0)
    assert (found["parts"]["mutation"]["ran"], "127.0.0.1:9" in found["parts"]["mutation"]["skipped"]) == (
        False,
        True,
    )


def test_cached_parts_are_compared_and_reported_as_their_own(project: MakeProject) -> None:
    made = project(mutations(), GOOD)
    outcome(made, "ci", "--cached")
    code, found = outcome(made, "ci", "--cached", "--baseline", "last")
    assert (code, found["score"]) == (0, 100.0)
    assert made.cli("report", "latest", "-o", "all.sarif", "-o", "all.xml").code == 0
    assert 'tests="9"' in made.read("all.xml")


WRONG_IN_CALM = {"id": "price", "type": "contains", "value": "$24.90", "when": "no_chaos"}
ESCAPED = {"id": "escaped", "type": "excludes_pattern", "patterns": [r"\\$5"], "when": "no_chaos"}


@pytest.mark.parametrize(
    ("rule", "args", "code"),
    [
        ({**WRONG_IN_CALM, "severity": "critical"}, (), 1),
        ({**WRONG_IN_CALM, "severity": "critical"}, ("--min-score", "50"), 1),
        (WRONG_IN_CALM, (), 1),
        (WRONG_IN_CALM, ("--min-score", "50"), 0),
        ({**ESCAPED, "severity": "critical"}, (), 5),
        (ESCAPED, (), 0),
        ({**PRICE, "value": "stock", "when": "no_chaos", "severity": "critical"}, (), 0),
    ],
)
def test_what_fails_in_the_calm_column_of_a_chaos_run_fails_the_run(
    project: MakeProject, rule: dict[str, Any], args: tuple[str, ...], code: int
) -> None:
    agent = {**PYTHON, "tools": ["agent:find"]}
    chaos = {"tool_faults": [{"tool": "find", "mode": "error"}]}
    rules = [rule, {"id": "says", "type": "output_not_empty"}]
    made = project(mutations(agent=agent, invariants=rules, chaos=chaos), ASKS)
    found = made.cli("run", "--chaos-only", "--json", "-o", "run.xml", *args)
    assert (found.code, found.json["passed"]) == (code, code == 0)
    assert found.json["score"] == 100.0  # of the cells under chaos alone
    assert ("<failure" in made.read("run.xml")) == (code == 1)
