"""`holdfast hunt --shard` and `holdfast merge`: several machines search, and one result says what they found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cli import MakeProject, Project, contract, python, rundir
from test_hunt import ANSWERS, ONCE, SHOP

from page_documents import documents

QUICKLY = ("--json", "--concurrency", "8")


def make_shop(project: MakeProject, attempts: int) -> Project:
    """Return the shop of the other hunts, with an agent that can run trials concurrently."""
    agent = python(tools=["agent:find_order", "agent:charge"])
    spec = contract([ONCE, ANSWERS], agent=agent, prompts=("Charge order-7781",))
    return project(spec, SHOP.replace("ATTEMPTS", str(attempts)))


def hunt_shards(made: Project, *, of: int, trials: int) -> tuple[list[dict[str, Any]], list[str]]:
    """Hunt in shards; return their results and their folders."""
    found, folders = [], []
    for number in range(1, of + 1):
        folders.append(str(made.folder / f"shard-{number}"))
        where = ("--shard", f"{number}/{of}", "--runs-dir", folders[-1], "--max-trials", str(trials))
        ended = made.cli("hunt", *QUICKLY, *where)
        found.append(json.loads(ended.out))
        assert ended.code == found[-1]["exit_code"] == (1 if found[-1]["causes"] else 0), ended.out + ended.err
    return found, folders


def test_a_merged_hunt_has_the_causes_and_the_coverage_of_all_shards(project: MakeProject) -> None:
    made = make_shop(project, attempts=2)
    shards, folders = hunt_shards(made, of=2, trials=20)
    ended = made.cli("merge", "--json", *folders)
    joined = json.loads(ended.out)
    assert ended.code == joined["exit_code"] == 1, ended.out + ended.err
    assert [one["shard"] for one in (*shards, joined)] == ["1/2", "2/2", ""]
    assert joined["causes"]
    assert {one["id"] for one in joined["causes"]} <= {one["id"] for shard in shards for one in shard["causes"]}
    assert joined["trials"] > max(one["trials"] for one in shards)
    for what in ("points", "pairs"):
        assert joined["coverage"][what]["open"] <= min(one["coverage"][what]["open"] for one in shards)
    assert "FAIL" in made.cli("report", joined["run"]).out


def test_a_merged_hunt_is_continued_where_the_shards_stopped(project: MakeProject) -> None:
    made = make_shop(project, attempts=1)
    _, folders = hunt_shards(made, of=2, trials=12)
    joined = made.cli("merge", "--json", *folders)
    assert joined.code == 5, joined.out + joined.err
    before = json.loads(joined.out)
    ended = made.cli("hunt", *QUICKLY, "--resume", before["run"], "--max-trials", "300")
    found = json.loads(ended.out)
    assert ended.code == 0, ended.out + ended.err
    assert found["trials"] > before["trials"]
    assert (found["coverage"]["points"]["open"], found["coverage"]["pairs"]["open"]) == (0, 0)


def test_a_shard_alone_decides_nothing_but_its_causes(project: MakeProject) -> None:
    made = make_shop(project, attempts=1)
    shown = made.cli("hunt", "--shard", "1/2", "--max-trials", "8")
    assert shown.code == 0
    assert shown.out.splitlines()[-1].startswith("SHARD")
    assert documents((rundir(made) / "report.html").read_text())["run"]["verdict"] == "SHARD"
    assert made.cli("report", "latest").code == 0
    assert made.cli("merge", str(made.folder / ".holdfast/runs/0001")).code == 4


def test_shards_that_ran_one_after_the_other_on_one_machine_are_merged(project: MakeProject) -> None:
    made = make_shop(project, attempts=2)
    shards = [
        json.loads(made.cli("hunt", *QUICKLY, "--shard", f"{number}/2", "--max-trials", "60").out) for number in (1, 2)
    ]
    assert [one["known"] for one in shards[1]["causes"]] == [True], "the first shard has stored it"
    ended = made.cli("merge", "--json", str(made.folder / ".holdfast/runs"))
    assert ended.code == 1, ended.out + ended.err
    assert [one["id"] for one in json.loads(ended.out)["causes"]] == [one["id"] for one in shards[0]["causes"]]


def test_shards_that_hunt_for_different_things_are_not_merged(project: MakeProject) -> None:
    made = make_shop(project, attempts=1)
    folders = [str(made.folder / name) for name in ("one", "two")]
    for number, folder in enumerate(folders, 1):
        where = ("--shard", f"{number}/2", "--runs-dir", folder, "--max-trials", "6")
        assert made.cli("hunt", *QUICKLY, *where, "--order", str(number)).code == 0
    ended = made.cli("merge", *folders)
    assert ended.code == 4
    assert "[shards-differ]" in ended.err


def test_a_hunt_merged_elsewhere_names_the_spec_where_it_is(project: MakeProject, tmp_path: Path) -> None:
    made = make_shop(project, attempts=2)
    _, folders = hunt_shards(made, of=2, trials=20)
    elsewhere = Project(tmp_path / "elsewhere", "")
    shown = elsewhere.cli("merge", *folders)
    assert shown.code == 1, shown.out + shown.err
    again = next(line for line in shown.out.splitlines() if line.startswith("  reproduce "))
    assert f"holdfast hunt {made.folder}/holdfast.yaml --cause" in again
