"""`holdfast compare A B`: a pair is (rule, scenario, prompt), replicas combined; p is shown raw and by Holm."""

from __future__ import annotations

import json
import shutil

from cli import CALM, DOWN, MakeProject, Project, contract, forget_end, python, rule, rundir, unseal

from golden_words import Golden

PROMPTS = tuple(f"p{n}" for n in range(8))
RULES = [rule("sourced", value="source"), rule("says", value="says")]
AGENT = "def search(query):\n    return 'a source says ' + query\n\n\ndef ask(prompt):\n    return {}\n"


def two_runs(project: MakeProject, after: str = "'a source: ' + prompt", **changes):
    """Two runs in which no trial ran twice, so that the agent may be one that samples."""
    made = project(contract(RULES, [CALM], prompts=PROMPTS, agent=python()), AGENT.format("search(prompt)"))
    made.run("--no-preflight")
    (made.folder / "agent.py").write_text(AGENT.format(after))
    if changes:
        made.write(
            contract(changes.get("rules", RULES), [CALM], prompts=changes.get("prompts", PROMPTS), agent=python())
        )
    made.run("--no-preflight", *(("--seed", "7") if changes.get("seed") else ()))
    return made


def test_a_deterministic_agent_is_compared_exactly(project: MakeProject) -> None:
    made = project(contract(RULES, [CALM], prompts=PROMPTS, agent=python()), AGENT.format("search(prompt)"))
    made.run("--replicas", "6")
    (made.folder / "agent.py").write_text(AGENT.format("'a source: ' if prompt == 'p1' else search(prompt)"))
    made.run("--replicas", "6")
    found = json.loads(made.cli("compare", "1", "2", "--json").out)
    says = next(one for one in found["rules"] if one["rule"] == "says")
    assert (says["change"], says["lost"], says["p"]) == ("worse", 1, None)


def test_an_agent_that_was_asked_everything_once_may_sample(project: MakeProject) -> None:
    """The preflight repeats one prompt in calm: that proves nothing about the other prompts."""
    made = project(contract(RULES, [CALM], prompts=PROMPTS, agent=python()), AGENT.format("search(prompt)"))
    made.run()
    (made.folder / "agent.py").write_text(AGENT.format("'a source: ' if prompt == 'p1' else search(prompt)"))
    made.run()
    found = json.loads(made.cli("compare", "1", "2", "--json").out)
    says = next(one for one in found["rules"] if one["rule"] == "says")
    assert (says["change"], says["lost"]) == ("cannot tell", 1)


def test_a_rule_that_lost_every_pair_is_worse(project: MakeProject) -> None:
    made = two_runs(project)
    found = json.loads(made.cli("compare", "1", "2", "--json").out)
    by_rule = {one["rule"]: one for one in found["rules"]}
    assert found["worse"] == ["says"]
    assert (by_rule["says"]["lost"], by_rule["says"]["gained"], by_rule["says"]["pairs"]) == (8, 0, 8)
    assert by_rule["says"]["p"] == 0.0078125
    assert by_rule["says"]["p_holm"] == 0.015625
    assert by_rule["sourced"]["change"] == "same"
    shown = made.cli("compare", "0001", "0002")
    assert shown.code == 0
    assert "0001 → 0002: of 2 rules 1 worse, 1 " in shown.out
    assert made.cli("compare", "0001", "0002", "--exit-code").code == 1
    assert made.cli("compare", "0002", "0001", "--exit-code").code == 0
    assert json.loads(made.cli("compare", "2", "1", "--json").out)["better"] == ["says"]


def test_too_little_to_tell_says_how_much_more_would_be_needed(project: MakeProject) -> None:
    made = two_runs(project, after="'a source: ' if prompt == 'p1' else search(prompt)")
    assert "cannot tell, about " in made.cli("compare", "1", "2").out
    assert made.cli("compare", "1", "2", "--exit-code").code == 0


def test_what_is_in_one_run_only_is_said(project: MakeProject) -> None:
    rules = [RULES[0], rule("new", value="source"), rule("says", value="said")]
    made = two_runs(project, rules=rules, prompts=(*PROMPTS[:6], "other"), seed=True)
    shown = made.cli("compare", "1", "2").out
    assert ": rule says: " in shown
    assert ": rule new: " in shown
    assert "\n2 prompts " in shown
    assert "the specs differ" in shown
    assert "(0 and 7)" in shown


def test_a_baseline_of_another_spec_is_refused_in_clear_words(project: MakeProject) -> None:
    made = two_runs(project, prompts=("something else",))
    refused = made.cli("compare", "1", "2")
    assert refused.code == 4
    assert "[runs-incomparable]" in refused.err
    assert "two specs" in refused.err
    assert made.cli("compare", "1", "9").code == 4


def test_unproven_and_broken_verdicts_are_no_pairs(project: MakeProject) -> None:
    made = project(contract([rule("no", "excludes_pattern", patterns=["x"]), RULES[0]], [CALM, DOWN], agent=python()))
    made.run()
    made.write(contract([rule("no", "excludes_pattern", patterns=["x"]), RULES[0]], [CALM, DOWN], agent=python()))
    made.run()
    found = json.loads(made.cli("compare", "1", "2", "--json").out)
    assert {one["rule"]: one["pairs"] for one in found["rules"]} == {"no": 2, "sourced": 2}


def test_runs_of_several_parts_are_paired_part_by_part(project: MakeProject) -> None:
    made = two_runs(project)
    for run in ("0001", "0002"):
        folder = rundir(made, run)
        parent = folder.with_name("9" + run)
        manifest = json.loads((folder / "run.json").read_text())
        for part in ("contract", "chaos"):
            shutil.copytree(folder, parent / "parts" / part)
            forget_end(parent / "parts" / part)
            (parent / "parts" / part / "run.json").write_text(json.dumps({**manifest, "id": f"9{run}/{part}"}))
        (parent / "run.json").write_text(json.dumps({**manifest, "id": f"9{run}"}))
    found = json.loads(made.cli("compare", "90001", "90002", "--json").out)
    assert found["worse"] == ["chaos: says", "contract: says"]
    assert {one["part"] for one in found["rules"]} == {"chaos", "contract"}


OBEYS = """
import re


def ask(prompt):
    found = re.findall("[0-9a-f]{8}", prompt) if EAGER else ()
    return "a source" + (" HOLDFAST-CANARY-" + found[0] if found else "")


EAGER = 0
"""


def attacked(project: MakeProject):
    """A run that resists every attack, and one that obeys those that tell their word in one piece."""
    text = {
        "agent": {"type": "python", "endpoint": "agent:ask"},
        "golden_prompts": ["What does the kettle cost?"],
        "invariants": [{"id": "sourced", "type": "contains", "value": "source"}],
        "mutations": {"count": 2, "types": ["noise", "prompt_injection"]},
    }
    made = project(text, OBEYS)
    made.cli("ci", "-q")
    (made.folder / "agent.py").write_text(OBEYS.replace("EAGER = 0", "EAGER = True"))
    return made


def test_an_attack_that_is_obeyed_now_and_was_not_before_is_worse_and_named(
    project: MakeProject, golden: Golden
) -> None:
    made = attacked(project)
    found = made.cli("ci", "--json", "--min-score", "0", "--baseline", "last").json
    assert found["exit_code"] == 1
    (said,) = [reason for reason in found["reasons"] if "worse" in reason]
    golden(said)
    compared = made.cli("compare", "1", "2", "--exit-code")
    assert compared.code == 1
    assert ": mutation: prompt_injection (" in compared.out
    listed = made.cli("compare", "1", "2", "--json").json
    assert listed["worse"] == ["mutation: attacks resisted"]
    assert len(listed["rules"][-1]["obeyed"]) == 1


def test_an_attack_that_was_obeyed_before_is_nothing_new(project: MakeProject) -> None:
    made = attacked(project)
    made.cli("ci", "-q")
    again = made.cli("ci", "--json", "--min-score", "0", "--baseline", "0002").json
    assert (again["exit_code"], any("worse" in reason for reason in again["reasons"])) == (0, False)
    assert made.cli("compare", "2", "1", "--exit-code").code == 0


def test_a_contract_run_is_compared_with_the_contract_part_of_a_ci_run(project: MakeProject) -> None:
    """Two runs in which no trial ran twice, so that the agent may be one that samples."""
    made = project(contract(RULES, [CALM], prompts=PROMPTS, agent=python()), AGENT.format("search(prompt)"))
    made.run("--no-preflight")
    (made.folder / "agent.py").write_text(AGENT.format("'a source: ' + prompt"))
    made.cli("ci", "-q")
    found = made.cli("compare", "1", "2", "--json").json
    assert (found["before"], found["after"], found["worse"]) == ("0001", "0002/contract", ["says"])
    assert made.cli("compare", "2", "1", "--json").json["better"] == ["says"]
    assert "0001 → 0002/contract: " in made.cli("compare", "1", "2").out


def test_a_part_that_the_other_run_lacks_is_said(project: MakeProject) -> None:
    made = attacked(project)
    agent = {"type": "python", "endpoint": "agent:ask"}
    made.write(contract(RULES, [CALM], agent=agent), "other.yaml")
    made.cli("contract", "run", "-c", "other.yaml", "-q")
    refused = made.cli("compare", "1", "2")
    assert (refused.code, "[runs-incomparable]" in refused.err) == (4, True)


def test_a_run_that_was_changed_after_its_end_is_not_compared(project: MakeProject) -> None:
    made = two_runs(project)
    verdicts = rundir(made, "0002") / "verdicts-1.jsonl"
    as_written = verdicts.read_bytes()
    verdicts.write_bytes(as_written.replace(b'"fail","score":0.0', b'"pass","score":1.0'))
    for runs in (("1", "2"), ("2", "1")):
        shown = made.cli("compare", *runs, "--exit-code")
        assert shown.code == 4
        assert "[run-tampered]" in shown.err
    verdicts.write_bytes(as_written)
    (verdicts.parent / "observations-0.jsonl").unlink()
    assert "observations-0.jsonl is missing" in made.cli("compare", "1", "2").err


def test_a_run_that_was_killed_is_compared_and_called_not_sealed(project: MakeProject) -> None:
    made = two_runs(project)
    forget_end(rundir(made, "0002"))
    assert "run 0002: not sealed" in made.cli("compare", "1", "2").out


STICKY = """
import hashlib
from pathlib import Path


def search(query):
    return query


def ask(prompt):
    search(prompt)
    drawn = hashlib.blake2b((Path("day").read_text() + prompt).encode()).digest()
    return "a source" if drawn[0] < 128 else "no idea"
"""
"""Answers each prompt one way all day: its replicas agree, in every scenario."""


def test_an_agent_compared_with_itself_is_neither_worse_nor_better_though_its_replicas_agree(
    project: MakeProject,
) -> None:
    agent = python(isolation="inline")
    slow = {"name": "slow", "tool_faults": [{"tool": "search", "mode": "slow", "delay_ms": 1}]}
    made = project(contract(RULES[:1], [CALM, slow], prompts=PROMPTS, agent=agent), STICKY)
    for day in range(9):
        (made.folder / "day").write_text(str(day))
        made.run("--replicas", "3", "--no-preflight", "-q")
    found = [made.cli("compare", str(n), str(n + 1), "--json").json for n in range(1, 9)]
    changes = [one["change"] for each in found for one in each["rules"]]
    assert changes.count("worse") + changes.count("better") == 0
    assert "cannot tell" in changes
    assert {one["pairs"] for each in found for one in each["rules"]} == {16}


def test_replicas_are_combined_as_the_rule_says_and_only_those_that_both_runs_have(project: MakeProject) -> None:
    agent = AGENT.format("'a source' if {} else '-'").replace("def search", "import os\n\n\ndef search")
    most = rule("most", value="source", replica_aggregation="majority")
    made = project(contract([*RULES[:1], most], [CALM], prompts=PROMPTS, agent=python()), agent.format("True"))
    made.run("--replicas", "1")
    (made.folder / "agent.py").write_text(agent.format("os.environ['HOLDFAST_REPLICA'] != '2'"))
    made.run("--replicas", "3")
    made.run("--replicas", "3")
    assert made.cli("compare", "1", "2", "--json").json["worse"] == []
    (made.folder / "agent.py").write_text(agent.format("os.environ['HOLDFAST_REPLICA'] in ('0',)"))
    made.run("--replicas", "3")
    found = made.cli("compare", "3", "4", "--json").json
    assert {one["rule"]: (one["pairs"], one["lost"]) for one in found["rules"]} == {"sourced": (8, 0), "most": (8, 8)}
    assert found["worse"] == ["most"]


ASKS = """
import json, os, urllib.request


def ask(prompt):
    body = json.dumps({"model": "gpt-4o", "messages": [{"role": "user", "content": prompt}]}).encode()
    asked = urllib.request.Request(
        os.environ["OPENAI_BASE_URL"] + "/chat/completions", body, {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(asked) as reply:
        return json.load(reply)["choices"][0]["message"]["content"]
"""


def scripted(project: MakeProject) -> Project:
    agent = {"type": "python", "endpoint": "agent:ask"}
    models = {"*": {"script": "model.yaml"}}
    rules = [*RULES, rule("quick", "latency", max_ms=60_000)]
    made = project(contract(rules, [CALM], prompts=("one", "two"), agent=agent, models=models), ASKS)
    (made.folder / "model.yaml").write_text("replies:\n  - text: a source says\n")
    return made


def test_runs_of_a_scripted_model_are_compared_exactly(project: MakeProject) -> None:
    made = scripted(project)
    made.run()
    (made.folder / "model.yaml").write_text(
        "replies:\n  - match: {prompt: one}\n    text: a source\n  - text: a source says\n"
    )
    made.run()
    found = made.cli("compare", "1", "2", "--json").json
    by_rule = {one["rule"]: (one["change"], one["lost"], one["p"]) for one in found["rules"]}
    assert by_rule == {"sourced": ("same", 0, None), "says": ("worse", 1, None), "quick": ("same", 0, 1.0)}
    assert made.cli("compare", "1", "2", "--exit-code").code == 1
    assert made.cli("compare", "2", "1", "--json").json["better"] == ["says"]
    made.run("--seed", "7")
    assert made.cli("compare", "1", "3", "--json").json["worse"] == [], "other luck: not the same run"


def test_an_agent_that_samples_is_not_compared_exactly_though_its_model_is_a_script(project: MakeProject) -> None:
    made = scripted(project)
    for lucky in ("0", "1"):
        sampling = (
            f'        if os.environ["HOLDFAST_REPLICA"] == "{lucky}" and prompt == "one":\n            return "no"\n'
        )
        agent = ASKS.replace("        return json.load(reply)", sampling + "        return json.load(reply)")
        (made.folder / "agent.py").write_text(agent)
        made.run("--replicas", "2")
    found = made.cli("compare", "1", "2", "--json").json
    assert found["worse"] == []
    assert None not in [one["p"] for one in found["rules"]]


def test_a_damaged_score_is_named(project: MakeProject) -> None:
    made = scripted(project)
    made.run()
    made.run()
    unseal(made, "0002")
    (rundir(made, "0002") / "score.json").write_text('{"value": ')
    refused = made.cli("compare", "1", "2")
    assert refused.code == 4
    assert "score.json" in refused.err


def test_recorded_runs_are_compared_exactly(project: MakeProject) -> None:
    made = scripted(project)
    made.run("--record", "calls.jsonl")
    made.write(made.read("holdfast.yaml").replace("script: model.yaml", "name: gpt-4o"))
    made.run("--replay", "calls.jsonl")
    shorter = ASKS.replace('["content"]\n', '["content"][: 8 if prompt == "one" else 99]\n')
    (made.folder / "agent.py").write_text(shorter)
    made.run("--replay", "calls.jsonl")
    found = made.cli("compare", "2", "3", "--json").json
    assert found["worse"] == ["says"]
    assert [one["p"] for one in found["rules"]] == [None, None, 1.0]
