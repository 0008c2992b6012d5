"""`--shard I/N` and `merge`: the shards of a run, joined, are the run."""

from __future__ import annotations

import json
import shutil
from typing import Any

import pytest
from cli import (
    AGENT,
    CALM,
    DOWN,
    MakeProject,
    Project,
    Result,
    contract,
    facts,
    python,
    rule,
    rundir,
    unseal,
    verdict_line,
)

RULES = [
    rule("cites", value="source", severity="critical"),
    rule("calm-like", "behavior_unchanged", severity="low"),
    rule("never-sorry", value="sorry", negate=True, severity="high"),
]
PROMPTS = ("one", "two", "three", "four", "five")
INLINE = python(isolation="inline", reset_function="agent:ask_reset")
AGENT_WITH_RESET = AGENT + "\n\ndef ask_reset():\n    pass\n"


def spec(**more: Any) -> dict[str, Any]:
    given: dict[str, Any] = {"prompts": PROMPTS, "agent": INLINE, "replicas": 2, **more}
    return contract(RULES, [CALM, DOWN], **given)


@pytest.fixture
def made(project: MakeProject) -> Project:
    found: Project = project(spec(), AGENT_WITH_RESET)
    return found


def shards(made: Project, of: int, *args: str) -> list[Result]:
    return [made.run("--shard", f"{number}/{of}", *args) for number in range(1, of + 1)]


def places(*runs: int) -> list[str]:
    return [f".holdfast/runs/{number:04}" for number in runs]


def merge(made: Project, *args: str) -> Result:
    return made.cli("merge", "--json", *args)


def score(result: Result) -> Any:
    """The contract's numbers, without what reads the clock."""
    return {key: value for key, value in result.part.items() if key not in ("cells", "spent")}


@pytest.mark.parametrize("of", [1, 2, 4, 50])
def test_shards_joined_are_the_run(made: Project, of: int) -> None:
    whole = made.run()
    shards(made, of)
    joined = merge(made, *reversed(places(*range(2, of + 2))))
    assert (joined.code, joined.json["score"]) == (whole.code, whole.json["score"])
    assert facts(joined) == facts(whole)
    assert score(joined) == score(whole)
    assert "shard" not in joined.json


def test_every_trial_is_in_one_shard_and_the_replicas_of_a_question_are_together(made: Project) -> None:
    made.run()
    shards(made, 3)
    every = [trial["id"] for trial in made.contract_trials("0001")]
    parts = [made.contract_trials(f"{number:04}") for number in (2, 3, 4)]
    assert sorted(trial["id"] for part in parts for trial in part) == sorted(every)
    asked = [{(t["scenario"], t["invariant"], t["task"]["turns"][0]) for t in part} for part in parts]
    assert not (asked[0] & asked[1])
    assert not (asked[1] & asked[2])
    assert not (asked[0] & asked[2])
    assert max(map(len, parts)) - min(map(len, parts)) <= 2


def test_a_shard_that_failed_nothing_is_no_pass(project: MakeProject) -> None:
    made: Project = project(contract([rule("cites", value="source")], prompts=PROMPTS), AGENT)
    result = made.run("--shard", "1/2")
    assert (result.code, result.json["passed"], result.json["shard"]) == (0, False, "1/2")
    shown = made.show("--shard", "2/2")
    assert " 2 of 2: 2 trials " in verdict_line(shown.out)
    assert made.cli("runs").out.count("SHARD") == 2
    assert merge(made, *places(1, 2)).json["passed"] is True


def test_what_a_shard_fails_is_failed_and_what_only_the_whole_can_tell_is_left_to_it(made: Project) -> None:
    first, second = shards(made, 2, "--min-score", "10")
    assert (first.code, second.code) == (0, 0)  # only rules that a minimum tolerates fail
    assert merge(made, *places(1, 2)).code == 0
    assert [one.code for one in shards(made, 2)] == [1, 1]
    assert merge(made, *places(4, 5)).code == 1  # the merged run is 0003


def test_a_vacuous_scenario_is_told_by_the_whole(project: MakeProject) -> None:
    idle = AGENT.replace("return search(prompt)", 'return search(prompt) if prompt == "one" else "source"')
    made: Project = project(contract([rule("cites", value="source")], [CALM, DOWN], prompts=PROMPTS), idle)
    assert [one.code for one in shards(made, 3)] == [0, 0, 0]
    assert merge(made, *places(1, 2, 3)).code == 0
    nobody: Project = project(
        contract([rule("cites", value="source")], [CALM, DOWN], prompts=PROMPTS),
        AGENT.replace("return search(prompt)", 'return "source"'),
        name="nobody",
    )
    assert [one.code for one in shards(nobody, 2)] == [0, 0]
    assert merge(nobody, *places(1, 2)).code == 5


def test_a_folder_of_artifacts_is_searched(made: Project) -> None:
    whole = made.run()
    shards(made, 2)
    for number in (2, 3):
        kept = made.folder / "artifacts" / f"job-{number}" / ".holdfast" / "runs"
        shutil.copytree(rundir(made).parent / f"{number:04}", kept / "0001")
    joined = merge(made, "artifacts")
    assert facts(joined) == facts(whole)


def test_shards_that_are_missing_doubled_or_unfinished_are_told(made: Project) -> None:
    shards(made, 3)
    missing = merge(made, *places(1, 3))
    assert (missing.code, missing.json["errors"][0]["code"]) == (4, "shards-missing")
    made.run("--shard", "2/3")
    twice = merge(made, *places(1, 2, 3, 4))
    assert twice.code == 4
    assert ".holdfast/runs/0002 and .holdfast/runs/0004" in twice.out
    assert "shards-differ" in twice.out
    assert "is named twice" in merge(made, *places(1, 1)).out
    unseal(made, "0003")
    unfinished = merge(made, *places(1, 2, 3))
    assert unfinished.code == 4
    assert "--resume 0003" in unfinished.out
    assert "shards-missing" in unfinished.out
    assert not rundir(made, "0005").exists()


def test_what_is_missing_is_run_by_resume(made: Project) -> None:
    whole = made.run()
    shards(made, 3)
    part = merge(made, "--partial", *places(2, 4))
    assert part.code == 2
    assert any("shard 2 of 3 " in note for note in part.json["notes"])
    assert facts(made.run("--resume", part.json["run_id"])) == facts(whole)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (("--seed", "7"), "the seed differs"),
        (("--replicas", "3"), "--replicas differs"),
    ],
)
def test_shards_of_another_run_are_refused(made: Project, change: tuple[str, ...], what: str) -> None:
    made.run("--shard", "1/2")
    made.run("--shard", "2/2", *change)
    refused = merge(made, *places(1, 2))
    assert refused.code == 4
    assert what in refused.out
    made.run("--shard", "1/3")
    assert "shards-differ" in merge(made, *places(1, 3)).out


def test_another_agent_is_refused(made: Project) -> None:
    made.run("--shard", "1/2")
    (made.folder / "agent.py").write_text(AGENT_WITH_RESET + "\n# changed\n")
    made.run("--shard", "2/2")
    assert "the agent differs" in merge(made, *places(1, 2)).out


def test_forged_shards_are_refused(made: Project) -> None:
    shards(made, 2)
    lines = rundir(made, "0002") / "observations-0.jsonl"
    lines.write_bytes(lines.read_bytes().replace(b"sorry", b"happy"))
    refused = merge(made, *places(1, 2))
    (error,) = refused.json["errors"]
    assert (refused.code, error["code"], "observations-0.jsonl" in error["message"]) == (4, "run-tampered", True)


def test_a_name_in_a_shard_leads_nowhere(made: Project) -> None:
    shards(made, 2)
    secret = made.folder / "secret"
    secret.write_text("s3cr3t")
    blobs = rundir(made, "0001") / "blobs"
    blobs.mkdir()
    (blobs / "ab").symlink_to(secret)
    (blobs / "..%2f").write_text("x")
    joined = merge(made, *places(1, 2))
    assert list((rundir(made, joined.json["run_id"]) / "blobs").iterdir()) == []


@pytest.mark.parametrize("value", ["0/2", "3/2", "1", "a/b", "1/0", "-1/2", "1/2/3"])
def test_what_is_no_shard_is_refused(made: Project, value: str) -> None:
    refused = made.run("--shard", value)
    assert refused.code == 4
    assert "2/4" in refused.out


def test_what_holds_no_shard_is_refused(made: Project) -> None:
    made.run()
    assert merge(made, *places(1)).json["errors"][0]["code"] == "shards-missing"
    assert "shards-missing" in merge(made, ".").out
    assert "No such file" in merge(made, "nowhere").out
    assert merge(made).code == 4


def test_replicas_auto_stay_together(made: Project) -> None:
    whole = made.run("--replicas", "auto", "--max-replicas", "4")
    shards(made, 2, "--replicas", "auto", "--max-replicas", "4")
    joined = merge(made, *places(2, 3))
    assert facts(joined) == facts(whole)


def test_mutations_and_sessions_are_sharded_too(project: MakeProject) -> None:
    run_rules = [rule("cites", value="source")]
    made: Project = project(
        {**spec(), "invariants": run_rules, "mutations": {"count": 4, "types": ["noise", "length_extremes"]}},
        AGENT_WITH_RESET,
    )
    whole = made.cli("run", "--json", "--no-report")
    for number in (1, 2, 3):
        made.cli("run", "--json", "--no-report", "--shard", f"{number}/3")
    joined = merge(made, *places(2, 3, 4))
    of = [json.dumps(one.json["parts"]["mutation"]["types"]) for one in (whole, joined)]
    assert of[0] == of[1]
    assert joined.json["score"] == whole.json["score"]
