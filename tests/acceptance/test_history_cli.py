"""`runs`, `show`, `trend`, and `latest` wherever a run is named; whatever became of the stored runs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from contextlib import chdir
from pathlib import Path

import pytest
from cli import CALM, DOWN, MakeProject, Project, contract, forget_end, rule, rundir, unseal, verdict_line
from msgspec.structs import replace

from holdfast.runner.past.history import find_regressions, open_history
from holdfast.runner.whole import read_overall, store_overall
from holdfast.store.rundir import RunDir

AS = ("-c", "user.name=Test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false")
WORSE = 'def search(query):\n    return "a source"\n\n\ndef ask(prompt):\n    try:\n        return search(prompt)\n' + (
    '    except Exception:\n        return "sorry"\n'
)


def spec() -> dict[str, object]:
    return contract([rule("cites", value="source", severity="critical")], [CALM, DOWN])


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", *AS, *words], cwd=folder, check=True, capture_output=True)
    return done.stdout.decode().strip()


def commit(made: Project, what: str) -> str:
    if not (made.folder / ".git").exists():
        git(made.folder, "init", "-q", "-b", "trunk")
    git(made.folder, "add", "agent.py", "holdfast.yaml")
    git(made.folder, "commit", "-q", "--allow-empty", "-m", what)
    return git(made.folder, "rev-parse", "HEAD")


@pytest.fixture
def two(project: MakeProject) -> Project:
    """A good run, and a worse one at the next commit."""
    made: Project = project(spec())
    commit(made, "good")
    assert made.run().code == 0
    (made.folder / "agent.py").write_text(WORSE)
    commit(made, "worse")
    assert made.run().code == 1
    return made


def test_runs_lists_them_the_newest_first(two: Project) -> None:
    shown = two.cli("runs").out.splitlines()
    assert [line.split()[0] for line in shown] == ["run", "0002", "0001"]
    assert shown[1].split()[3:8] == ["contract", "holdfast.yaml", "50.00", "FAIL", "2"]
    head = git(two.folder, "rev-parse", "HEAD")
    assert shown[1].endswith(head[:8])
    rows = two.cli("runs", "--json", "-n", "1").json["runs"]
    assert [(row["id"], row["commit"], row["branch"], row["passed"]) for row in rows] == [
        ("0002", head, "trunk", False)
    ]
    assert rows[0]["counts"]["fail"] == 1
    assert rows[0]["critical_failed"] == ["cites in down"]
    assert two.cli("runs", "-n", "1").out.splitlines()[-1] == "1 more: holdfast runs -n 2"


def test_trend_names_the_commit_at_which_a_rule_began_to_fail(two: Project) -> None:
    first, second = git(two.folder, "rev-parse", "HEAD~1")[:8], git(two.folder, "rev-parse", "HEAD")[:8]
    last = two.cli("trend").out.strip().splitlines()[-1]
    assert last.startswith("  cites in down  ✔✘  ")
    assert f"0001 ({first})" in last
    assert f"0002 ({second})" in last
    (part,) = two.cli("trend", "--json", "--rule", "cites").json["parts"]
    assert {one["scenario"]: one.get("failed_in") for one in part["rules"]} == {"calm": None, "down": "0002"}


def test_trend_refuses_what_it_does_not_know(two: Project) -> None:
    wrong = two.cli("trend", "--rule", "cite")
    assert (wrong.code, "did you mean cites?" in wrong.err) == (4, True)
    wrong = two.cli("trend", "--spec", "other.yaml")
    assert (wrong.code, ("other.yaml" in wrong.err and "[run-unknown]" in wrong.err)) == (4, True)


def test_without_a_run_there_is_nothing_to_show(project: MakeProject) -> None:
    made = project(spec())
    assert made.cli("runs").out.endswith(" .holdfast/runs\n")
    assert made.cli("runs", "--json").json == {"format": 2, "runs": []}
    assert made.cli("trend").code == made.cli("show").code == 4
    assert not (made.folder / ".holdfast").exists()


@pytest.mark.parametrize(
    "words", [("show", "-q"), ("show", "latest", "-q"), ("show", "last", "-q"), ("show", "2", "-q")]
)
def test_show_shows_the_newest_run_or_the_one_that_is_named(two: Project, words: tuple[str, ...]) -> None:
    shown = two.cli(*words)
    assert shown.code == 0
    assert verdict_line(shown.out).startswith("FAIL  1 critical ")
    assert "resilience 50.00" in shown.out


def test_report_judge_and_resume_take_the_newest_by_name(two: Project) -> None:
    assert two.cli("report", "latest", "--json").json["run_id"] == "0002"
    assert two.cli("judge", "latest", "--json").json["judged_from"].startswith("0002")
    assert two.cli("contract", "run", "--resume", "latest", "--json").json["run_id"] == "0002"


def test_a_run_without_a_repository_has_no_commit(project: MakeProject) -> None:
    made = project(spec())
    made.run()
    assert made.cli("runs", "--json").json["runs"][0]["commit"] == ""


def test_runs_that_cannot_be_read_are_listed_with_the_reason_and_hide_no_other(two: Project) -> None:
    shutil.copytree(rundir(two), rundir(two, "0003"))
    path = rundir(two, "0003") / "run.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 9}))
    rundir(two, "0004").mkdir()  # killed before it had a manifest
    shutil.copytree(rundir(two), rundir(two, "0005"))
    forget_end(rundir(two, "0005"))
    shutil.copytree(rundir(two), rundir(two, "0006"))
    (rundir(two, "0006") / "run.json").write_text("{")
    shutil.copytree(rundir(two), rundir(two, "0007"))
    with (rundir(two, "0007") / "verdicts-1.jsonl").open("ab") as file:
        file.write(b'{"forged": true}\n')
    shutil.copytree(rundir(two), rundir(two, "0008"))
    (rundir(two, "0008") / "spec.yaml").unlink()
    shutil.copytree(rundir(two), rundir(two, "0009"))
    (rundir(two, "0009") / "run.json").unlink()
    rows = {row["id"]: row for row in two.cli("runs", "--json").json["runs"]}
    assert sorted(rows) == ["0001", "0002", "0003", "0005", "0006", "0007", "0008", "0009"]
    assert rows["0001"]["passed"] is True
    assert "format 9" in rows["0003"]["note"]
    assert rows["0005"]["state"] == "killed"
    assert "/0006/run.json: " in rows["0006"]["note"]
    assert "tampered with" in rows["0007"]["note"]
    assert "no run.json" in rows["0009"]["note"]
    assert "no run.json" in two.cli("show", "0009").err
    assert all(not rows[id]["passed"] for id in ("0003", "0005", "0006", "0007", "0008", "0009"))
    shown = two.cli("runs")
    assert shown.code == 0
    assert shown.out.count("unreadable") == 3


def test_a_run_that_was_resumed_is_read_again(two: Project) -> None:
    unseal(two, "0002")
    assert two.cli("runs", "--json").json["runs"][0]["exit_code"] == 2
    assert two.cli("contract", "run", "--resume", "latest", "-q").code == 1
    assert two.cli("runs", "--json").json["runs"][0]["exit_code"] == 1


def test_two_runs_and_two_looks_at_once(two: Project) -> None:
    started = [
        two.start(*words) for words in (("contract", "run", "-q"), ("runs",), ("contract", "run", "-q"), ("trend",))
    ]
    codes = []
    for process in started:
        process.communicate(timeout=60)
        codes.append(process.returncode)
    assert codes == [1, 0, 1, 0]
    assert [row["id"] for row in two.cli("runs", "--json").json["runs"]] == ["0004", "0003", "0002", "0001"]


def test_a_run_of_several_parts_is_listed_with_its_parts(two: Project) -> None:
    assert two.cli("ci").code == 1
    parent = RunDir(rundir(two, "0003"))
    store_overall(parent, replace(read_overall(parent), score=71.5))  # another score than that of its only part
    rows = {row["id"]: row for row in two.cli("runs", "--json").json["runs"]}
    assert (rows["0003"]["part"], rows["0003"]["score"], rows["0003"]["trials"]) == ("ci", 71.5, 2)
    assert (rows["0003/contract"]["score"], rows["0003/contract"]["overall"]) == (50.0, 71.5)
    assert [line.split()[0] for line in two.cli("runs").out.splitlines()][1:3] == ["0003", "0003/contract"]
    assert "resilience 50.00" in two.cli("show", "latest/contract", "-q").out


def test_what_cannot_be_done_with_several_parts_at_once_names_them(two: Project) -> None:
    parent = rundir(two, "0003")
    for part in ("contract", "replay"):
        shutil.copytree(rundir(two, "0002"), parent / "parts" / part)
    shutil.copy(rundir(two) / "run.json", parent / "run.json")
    for words in (("judge", "latest"), ("contract", "run", "--resume", "latest")):
        refused = two.cli(*words)
        assert refused.code == 4
        assert "run 0003 has 2 parts" in refused.err
        assert ": 0003/contract, 0003/replay" in refused.err
    assert two.cli("judge", "latest/contract", "-q").code == 1


def test_a_task_is_listed_by_its_cases(project: MakeProject) -> None:
    spec = {
        "id": "hello",
        "version": "1.0",
        "agent": {"type": "python", "endpoint": "agent:ask"},
        "task": {"prompt": "hello"},
        "invariants": {"cites": {"description": "names a source", "check": {"type": "contains", "value": "source"}}},
    }
    made = project(spec)
    assert made.cli("run", "-q", "--no-report").code == 0
    (made.folder / "agent.py").write_text(WORSE.replace("a source", "nothing"))
    assert made.cli("run", "-q", "--no-report").code == 1
    shown = made.cli("runs").out.splitlines()
    assert [line.split()[3:8] for line in shown[1:]] == [
        ["scenario", "holdfast.yaml", "0/1", "cases", "FAIL"],
        ["scenario", "holdfast.yaml", "1/1", "cases", "PASS"],
    ]
    assert "fails since 0002" in made.cli("trend").out


def test_what_got_worse_since_the_last_good_run_is_known(two: Project) -> None:
    two.run()
    with chdir(two.folder):
        found = open_history(Path(".holdfast/runs"))
        good, worse = find_regressions(found, "0003")
        assert find_regressions(found, "0001") == ("", [])
    assert good == "0001"
    assert [(one.rule, one.scenario, one.failed_in) for one in worse] == [("cites", "down", "0002")]
    assert worse[0].failed_commit == git(two.folder, "rev-parse", "HEAD")


def test_a_rule_that_fails_with_uncommitted_changes_does_not_blame_the_commit(project: MakeProject) -> None:
    made: Project = project(spec())
    good = commit(made, "good")
    made.run()
    (made.folder / "agent.py").write_text(WORSE)
    made.run()
    (part,) = made.cli("trend", "--json").json["parts"]
    assert [(run["commit"], run["dirty"]) for run in part["runs"]] == [(good, False), (good, True)]
    (broken,) = [one for one in part["rules"] if one.get("failed_in")]
    assert (broken.get("passed_dirty", False), broken["failed_dirty"]) == (False, True)
    assert [line.split()[-1] for line in made.cli("runs").out.splitlines()[1:]] == [good[:8] + "+", good[:8]]
    with chdir(made.folder):
        found = open_history(Path(".holdfast/runs"))
        _, (worse,) = find_regressions(found, "0002")
    assert (worse.failed_commit, worse.failed_dirty, worse.failed_in) == (good, True, "0002")


def test_the_terminal_and_the_chart_agree_on_which_runs_are_points_of_the_history(two: Project) -> None:
    two.run("--scenario", "calm")
    two.run("--max-trials", "1")
    two.cli("ci", "-q", "--no-report")
    two.run("--trial", json.loads((rundir(two) / "trials.jsonl").read_text().splitlines()[-1])["id"])
    parts = two.cli("trend", "--json").json["parts"]
    shown = {one["part"]: ([run["id"] for run in one["runs"]], one["left_out"]) for one in parts}
    assert shown == {"contract": (["0001", "0002", "0005/contract"], 3), "ci": (["0005"], 0)}
    drawn = two.viewed("trend")
    assert {one["part"]: ([run["id"] for run in one["points"]], one["left_out"]) for one in drawn["parts"]} == shown
    assert drawn["newest"] == "ci"


def test_a_part_that_passed_has_passed_though_its_run_failed(project: MakeProject) -> None:
    text = {**spec(), "invariants": [{"id": "always", "type": "contains", "value": "never said"}]}
    made = project({**text, "chaos": {"tool_faults": DOWN["tool_faults"]}})
    assert made.cli("ci", "-q", "--no-report").code == 1
    rows = {row["id"]: row["passed"] for row in made.cli("runs", "--json").json["runs"]}
    assert (rows.pop("0001"), rows.pop("0001/contract"), any(rows.values())) == (False, True, False)
    (row,) = made.viewed("runs")["runs"]
    assert {part["id"]: (part["passed"], part["verdict"]) for part in row["parts"]}["0001/contract"] == (True, "PASS")
    with chdir(made.folder):
        found = open_history(Path(".holdfast/runs"))
        by_id = {run.id: run.good for run in found.read_runs()}
    assert by_id["0001/contract"] is False, "the last good run is one that held"


def test_a_run_that_may_not_be_read_is_listed(two: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may read everything, so the system's answer is given here."""
    folder, listed = rundir(two, "0001"), os.listdir

    def refused(path: str | Path = ".") -> list[str]:
        if Path(path).resolve() == folder.resolve():
            raise PermissionError(13, "Permission denied", str(path))
        return listed(path)

    monkeypatch.setattr(os, "listdir", refused)
    (folder / "run.json").unlink()
    rows = {row["id"]: row for row in two.cli("runs", "--json").json["runs"]}
    assert rows["0001"]["note"]


# -- the story of one trial -------------------------------------------------------------------------
def failed_trial(made: Project, run: str) -> str:
    document = made.cli("show", run, "--json").json["parts"]["contract"]
    (id,) = [t["id"] for cell in document["cells"] if cell["outcome"] == "fail" for t in cell["trials"]]
    return str(id)


def test_show_tells_a_trials_story_by_how_its_id_begins(two: Project) -> None:
    id = failed_trial(two, "0002")
    for words in ((id,), (id[:6],), (id[:6], "0002"), (id, "latest")):
        shown = two.cli("show", *words)
        assert shown.code == 0
        assert f"trial {id} of run 0002" in shown.out
    lanes = [line.split()[2] for line in shown.out.splitlines() if " ms  " in line[:14]]
    assert lanes == ["asked", "tool", "answered"]
    assert "◆ error" in shown.out
    assert f"--trial {id}" in shown.out


def test_a_trials_story_as_json_is_the_viewers_document_with_its_timeline(two: Project) -> None:
    id = failed_trial(two, "0002")
    found = two.cli("show", id, "--json").json
    assert (found["id"], found["run"], found["outcome"], found["scenario"]) == (id, "0002", "fail", "down")
    assert [step["lane"] for step in found["timeline"]] == ["asked", "tool", "answered"]
    assert found["trace"][0]["fault"] == "error"


def test_show_of_what_is_neither_a_run_nor_a_trial_is_exit_4(two: Project) -> None:
    for words in (("ffffffff",), ("nothing",), ("abc",), ("ffff", "0001"), ("ffff", "0099")):
        assert two.cli("show", *words).code == 4, words


def test_show_finds_a_trial_in_a_part_of_a_whole_run(two: Project) -> None:
    assert two.cli("ci").code == 1
    id = failed_trial(two, "0003/contract")
    assert f"trial {id} of run 0003/contract" in two.cli("show", id[:8]).out


def test_a_story_in_a_pipe_has_no_colour_and_fits_80_columns(two: Project) -> None:
    shown = two.cli("show", failed_trial(two, "0002"), env={"COLUMNS": "80"}).out
    assert "\x1b" not in shown
    assert max(len(line) for line in shown.splitlines() if "  again " not in line) <= 80
