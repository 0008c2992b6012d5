"""`ci --shard I/N` on each job of a matrix, and `merge`: together they are the ci run."""

from __future__ import annotations

import shutil
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from cli import AGENT, CALM, DOWN, MakeProject, Project, Result, contract, forget_end, python, rule, rundir

from holdfast.runner.whole import forget_overall
from holdfast.store.rundir import RunDir

SCORED = ("score", "exit_code", "reasons", "said", "trials", "share", "skipped", "interval")


@pytest.fixture
def made(project: MakeProject) -> Project:
    """A file with a contract, mutations and chaos; nothing of it fails but what chaos does to `hi`."""
    inline = python(isolation="inline", reset_function="agent:reset")
    spec = contract([rule("cites", value="source")], [CALM, DOWN], prompts=("one", "two", "three"), agent=inline)
    spec |= {
        "invariants": [{"id": "hi", "type": "contains", "value": "says"}],
        "mutations": {"types": ["noise", "prompt_injection"], "count": 2},
        "chaos": {"tool_faults": [{"tool": "search", "mode": "error"}]},
    }
    found: Project = project(spec, AGENT + "\n\ndef reset():\n    pass\n")
    return found


def ci(made: Project, *args: str) -> Result:
    return made.cli("ci", "--json", "--no-report", *args)


def scored(result: Result) -> Any:
    parts = {name: {key: part[key] for key in SCORED} for name, part in result.json["parts"].items()}
    return result.code, result.json["score"], result.json["reasons"], parts


def test_shards_of_every_part_joined_are_the_ci_run(made: Project) -> None:
    whole = ci(made)
    shares = [ci(made, "--shard", f"{number}/3") for number in (1, 2, 3)]
    assert {(one.json["score"], one.json["passed"]) for one in shares} == {(None, False)}
    assert [one.json["shard"] for one in shares] == ["1/3", "2/3", "3/3"]
    joined = made.cli("merge", "--json", ".holdfast/runs", "-o", "reports")
    assert scored(joined) == scored(whole)
    assert "shard" not in joined.json
    assert (made.folder / "reports/report.html").is_file()
    assert "ci shard 2/3" in made.cli("runs").out
    again = made.cli("show", joined.json["run_id"], "--json")
    assert scored(again)[1:] == scored(whole)[1:]


def test_a_share_that_failed_nothing_is_no_pass(made: Project) -> None:
    shown = made.cli("ci", "--shard", "2/2", "-q", "--min-score", "10", "-o", "ci.xml")
    assert (shown.code, "\nPASS " in shown.out) == (0, False)
    assert "shard 2 of 2: 9 trials" in shown.out
    assert "holdfast merge" in shown.out
    (case,) = ET.parse(made.folder / "ci.xml").iterfind(".//testcase[@classname='overall']")
    assert [child.tag for child in case] == ["skipped"]
    assert "<title>SHARD" in (rundir(made) / "report.html").read_text()


def test_what_is_missing_or_differs_is_told_and_resume_runs_the_rest(made: Project) -> None:
    whole = ci(made)
    ci(made, "--shard", "1/2")
    missing = made.cli("merge", "--json", ".holdfast/runs")
    assert (missing.code, missing.json["errors"][0]["code"]) == (4, "shards-missing")
    made.run("--shard", "2/2")
    mixed = made.cli("merge", "--json", ".holdfast/runs")
    assert (mixed.code, "the command differs" in mixed.out) == (4, True)
    part = made.cli("merge", "--json", "--partial", ".holdfast/runs/0002")
    assert part.code == 2
    assert scored(ci(made, "--resume", part.json["run_id"])) == scored(whole)


def test_a_part_that_a_shard_did_not_finish_is_told(made: Project) -> None:
    for number in (1, 2):
        ci(made, "--shard", f"{number}/2")
    forget_end(rundir(made, "0002") / "parts/chaos")
    told = made.cli("merge", "--json", ".holdfast/runs")
    assert (told.code, "holdfast ci --resume 0002" in told.out) == (
        4,
        True,
    )


def test_shares_whose_mutations_differ_are_of_two_runs(made: Project) -> None:
    """As where a model wrote them on each machine anew."""
    for number in (1, 2):
        ci(made, "--shard", f"{number}/2")
    other = rundir(made, "0002") / "parts/mutation/part.json"
    other.write_text(other.read_text().replace('"turns":["', '"turns":["other ', 1))
    told = made.cli("merge", "--json", ".holdfast/runs")
    assert (told.code, "shards-differ" in told.out) == (4, True)


def test_a_part_that_no_share_began_is_told_where_a_part_of_the_run_is_joined(made: Project) -> None:
    for number in (1, 2):
        ci(made, "--shard", f"{number}/2")
        shutil.rmtree(rundir(made, f"000{number}") / "parts/chaos")
        forget_overall(RunDir(rundir(made, f"000{number}")))  # killed before that part
    joined = made.cli("merge", "--json", "--partial", ".holdfast/runs")
    assert (joined.code, bool(joined.json["parts"]["chaos"]["skipped"])) == (2, True)
    assert [name for name, part in joined.json["parts"].items() if part["ran"]] == ["contract", "mutation"]


def test_a_share_has_no_baseline(made: Project) -> None:
    refused = ci(made, "--shard", "1/2", "--baseline", "last")
    assert (refused.code, "options-conflict" in refused.out) == (4, True)
