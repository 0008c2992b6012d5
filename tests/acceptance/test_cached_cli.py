"""`--cached`: a stored run of the very same is shown; anything else is asked."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from cli import AGENT, CALM, DOWN, MakeProject, Project, Serve, contract, forget_end, python, rule, rundir

from holdfast.runner.past import cached

ASKED = AGENT.replace("def ask(prompt):\n", 'def ask(prompt):\n    open("/ASKED", "a").write("x")\n', 1)


@pytest.fixture(scope="module")
def installed() -> list[str]:
    """What is installed, read once: it stays as it is while these tests run."""
    return cached._list_packages()


@pytest.fixture(autouse=True)
def _little_to_read(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, installed: list[str]) -> None:
    """Not this whole repository, which is installed as it lies there; one test reads it all."""
    if request.function is not test_the_very_same_is_shown_and_nothing_is_asked:
        monkeypatch.setattr(cached, "_list_packages", lambda: installed)
        monkeypatch.setattr(cached, "_find_editable", list)


@pytest.fixture
def made(project: MakeProject, tmp_path: Path) -> Project:
    """A project whose agent leaves a mark, elsewhere, whenever it is asked."""
    asked = tmp_path / "elsewhere" / "asked"
    asked.parent.mkdir()
    spec = contract([rule("cites", value="source")], [CALM, DOWN], agent=python())
    found: Project = project(spec, ASKED.replace("/ASKED", str(asked)))
    return found


def asked(tmp_path: Path) -> int:
    mark = tmp_path / "elsewhere" / "asked"
    return len(mark.read_text()) if mark.exists() else 0


def test_the_very_same_is_shown_and_nothing_is_asked(made: Project, tmp_path: Path) -> None:
    first = made.run("--cached")
    before = asked(tmp_path)
    assert before > 0
    again = made.run("--cached", "-j", "1")
    assert asked(tmp_path) == before
    assert (again.code, again.json["run_id"]) == (first.code, "0001")
    assert again.err.startswith("cached: run 0001 of ")
    assert "no trial ran" in again.err
    assert any(note.startswith("cached: run 0001") for note in again.json["notes"])
    assert not rundir(made, "0002").exists()


def test_it_exits_as_the_stored_run_did(made: Project, tmp_path: Path) -> None:
    worse = (made.folder / "agent.py").read_text().replace("sorry, no source", "sorry")
    (made.folder / "agent.py").write_text(worse)
    assert made.show("--cached", "-q").code == 1
    before = asked(tmp_path)
    again = made.show("--cached", "-o", "report.xml")
    assert (again.code, asked(tmp_path)) == (1, before)
    assert "note: cached: run 0001" in again.out
    assert "cached: run 0001" in made.read("report.xml")


def test_without_it_everything_is_asked_as_ever(made: Project) -> None:
    made.run("--cached")
    assert made.run().json["run_id"] == "0002"
    assert made.run("--cached").json["run_id"] == "0001"


def test_a_run_that_was_made_without_it_is_not_taken(made: Project) -> None:
    made.run()
    assert made.run("--cached").json["run_id"] == "0002"


CHANGES: dict[str, Callable[[Project], object]] = {
    "the spec": lambda made: made.write(made.read("holdfast.yaml") + "# another\n"),
    "the agent": lambda made: (made.folder / "agent.py").write_text(made.read("agent.py") + "# another\n"),
    "what it imports": lambda made: (made.folder / "tools.py").write_text("x = 1\n"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_is_asked(made: Project, what: str) -> None:
    made.run("--cached")
    CHANGES[what](made)
    assert made.run("--cached").json["run_id"] == "0002"


def test_another_package_is_asked(made: Project, monkeypatch: pytest.MonkeyPatch, installed: list[str]) -> None:
    made.run("--cached")
    monkeypatch.setattr(cached, "_list_packages", lambda: [*installed, "another 1.0"])
    assert made.run("--cached").json["run_id"] == "0002"


@pytest.mark.parametrize(
    "words",
    [("--seed", "3"), ("--replicas", "2"), ("--scenario", "calm"), ("--strict",), ("--min-score", "50"), ("-x",)],
)
def test_another_option_is_asked(made: Project, words: tuple[str, ...]) -> None:
    made.run("--cached")
    assert made.run("--cached", *words).json["run_id"] == "0002"
    assert made.run("--cached", *words).json["run_id"] == "0002"


def test_reports_that_it_writes_itself_are_no_change(made: Project) -> None:
    made.run("--cached", "-o", "report.html", "-o", "out/report.sarif")
    assert made.run("--cached", "-o", "report.html", "-o", "out/report.sarif").json["run_id"] == "0001"


def test_a_run_that_was_left_is_not_taken(made: Project) -> None:
    made.run("--cached")
    forget_end(rundir(made))
    assert made.run("--cached").json["run_id"] == "0002"


def test_a_run_that_cannot_be_read_is_passed_over(made: Project) -> None:
    made.run("--cached")
    (rundir(made) / "score.json").write_text("{")
    assert made.run("--cached").json["run_id"] == "0002"
    (rundir(made, "0002") / "run.json").write_text("{")
    assert made.run("--cached").json["run_id"] == "0003"


def test_a_running_agent_is_refused_since_nobody_knows_its_code(project: MakeProject, serve: Serve) -> None:
    server = serve(lambda asked: (200, '{"output": "a source"}'))
    made = project(contract([rule("cites", value="source")], agent=server.section()))
    refused = made.show("--cached")
    assert (refused.code, server.requests) == (4, [])
    assert "already running" in refused.err


def test_an_agent_that_lies_elsewhere_is_refused(project: MakeProject) -> None:
    made = project(contract([rule("cites", value="source")], agent={"type": "command", "command": "cat"}))
    refused = made.show("--cached")
    assert (refused.code, "[cache-impossible]" in refused.err) == (4, True)


@pytest.mark.parametrize("words", [("--resume", "latest"), ("--lf",), ("--keep",), ("--record", "calls.jsonl")])
def test_what_needs_the_agent_excludes_it(made: Project, words: tuple[str, ...]) -> None:
    made.run()
    refused = made.show("--cached", *words)
    assert (refused.code, "error: --" in refused.err) == (4, True)


@pytest.mark.parametrize("written", ["${TONE}", "${TONE:-kind}"])
def test_a_variable_that_the_spec_names_may_be_another_today(made: Project, tmp_path: Path, written: str) -> None:
    made.write(contract([rule("cites", value="source")], [CALM], agent=python(env={"TONE": written})))
    counts = []
    for tone in ("friendly", "friendly", "unfriendly"):
        told = made.run("--cached", env={"TONE": tone})
        assert "TONE" in told.err
        counts.append(asked(tmp_path))
    assert counts[0] < counts[1] < counts[2]


def test_a_default_is_the_files_own(made: Project, tmp_path: Path) -> None:
    made.write(contract([rule("cites", value="source")], [CALM], agent=python(env={"TONE": "${TONE:-kind}"})))
    made.run("--cached", env={"TONE": "friendly"})
    made.run("--cached")
    before = asked(tmp_path)
    made.run("--cached")
    assert asked(tmp_path) == before


def test_a_variable_that_the_agent_inherits_may_be_another_today(made: Project, tmp_path: Path) -> None:
    made.run("--cached", env={"DESK_MODE": "good"})
    before = asked(tmp_path)
    for changed, names in (
        ({"DESK_MODE": "bad-value"}, "DESK_MODE"),
        ({}, "DESK_MODE"),
        ({"DESK_MODE": "good", "DESK_NEW": "1"}, "DESK_MODE, DESK_NEW"),
    ):
        told = made.run("--cached", env=changed).err
        assert f": {names}\n" in told
        assert "bad-value" not in told
        assert asked(tmp_path) > before, changed
        before = asked(tmp_path)
    shell = {"SHLVL": "7", "TERM": "dumb", "COLUMNS": "99", "OLDPWD": "/"}
    job = {"SSH_CLIENT": "::1", "XDG_SESSION_ID": "4", "GITHUB_RUN_ID": "5", "CI_JOB_ID": "6", "BUILD_ID": "7"}
    assert "variables" not in made.run("--cached", env={"DESK_MODE": "good", **shell, **job}).err
    assert asked(tmp_path) == before


def test_a_variable_in_a_comment_gives_nothing(made: Project, tmp_path: Path) -> None:
    file = made.folder / "holdfast.yaml"
    file.write_text(f"# headers: {{Authorization: 'Bearer ${{TONE}}'}}\n{file.read_text()}\n# ${{OTHER}}\n")
    made.run("--cached", env={"TONE": "friendly"})
    before = asked(tmp_path)
    made.run("--cached", env={"TONE": "friendly"})
    assert asked(tmp_path) == before


@pytest.mark.parametrize("runs", ["runs", "deep/runs", "."])
def test_runs_that_lie_beside_the_spec_are_no_change_and_other_files_there_are(
    made: Project, tmp_path: Path, runs: str
) -> None:
    there = ("--cached", "--runs-dir", runs)
    made.run(*there)
    made.cli("runs", "--runs-dir", runs)
    before = asked(tmp_path)
    made.run(*there)
    assert asked(tmp_path) == before
    (made.folder / runs / "prices.txt").write_text("new")
    made.run(*there)
    assert asked(tmp_path) > before


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("prompts/system.txt", 'open(__import__("os").path.join(__import__("os").path.dirname(__file__), "{up}"))'),
        ("prompts/system.txt", 'open("{path}")'),
        ("prompts/system.txt", 'open(__import__("os").path.expanduser("~/outside/prompts/system.txt"))'),
        ("lib/shared.py", '__import__("sys").path.append("{folder}")\nimport shared'),
    ],
)
def test_a_file_outside_the_folder_that_the_code_names_or_imports_is_compared(
    made: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, line: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    other = tmp_path / "outside" / name
    other.parent.mkdir(parents=True)
    other.write_text("X = 1\n")
    up = os.path.relpath(other, made.folder)
    agent = made.folder / "agent.py"
    agent.write_text(line.format(up=up, path=other, folder=other.parent) + "\n" + agent.read_text())
    assert made.run("--cached").json["run_id"] == "0001"
    assert made.run("--cached").json["run_id"] == "0001"
    other.write_text("X = 2\n")
    assert made.run("--cached").json["run_id"] == "0002"


@pytest.mark.parametrize("name", [".env", ".cfg/deep/x", "link/x", "alias", "node_modules/x", "node_modules/.bin/x"])
def test_a_file_below_the_spec_is_compared_wherever_it_lies(made: Project, tmp_path: Path, name: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "up").symlink_to(made.folder)  # a walk that follows links must end
    (made.folder / "link").symlink_to(outside)
    (made.folder / "alias").symlink_to(outside / "y")
    place = made.folder / name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("1")
    assert made.run("--cached").json["run_id"] == "0001"
    (made.folder / ".git").mkdir()
    (made.folder / ".git" / "index").write_text("1")
    assert made.run("--cached").json["run_id"] == "0001"
    place.write_text("12")
    assert made.run("--cached").json["run_id"] == "0002"


def test_a_link_to_another_folder_is_a_change(made: Project) -> None:
    for name in "ab":
        (made.folder / name).mkdir()
        (made.folder / name / "x").write_text(name)
    link = made.folder / "link"
    link.symlink_to("a")
    assert made.run("--cached").json["run_id"] == "0001"
    link.unlink()
    link.symlink_to("b")
    assert made.run("--cached").json["run_id"] == "0002"


@pytest.mark.parametrize("line", ["cat {up}", "cat <{path}", 'x="{up}"; cat "$x"'])
def test_a_file_elsewhere_that_a_shell_script_names_is_compared(
    project: MakeProject, tmp_path: Path, line: str
) -> None:
    other, log = tmp_path / "prices.txt", tmp_path / "log.txt"
    other.write_text("one source")
    agent = {"type": "command", "command": "./a.sh"}
    made = project(contract([rule("cites", value="source")], [CALM], agent=agent))
    script = made.folder / "a.sh"
    up = os.path.relpath(other, made.folder)
    script.write_text(f"#!/bin/sh\n{line.format(up=up, path=other)}\ndate >> {log}\n")
    script.chmod(0o755)
    assert made.run("--cached").json["run_id"] == "0001"
    assert made.run("--cached").json["run_id"] == "0001"
    other.write_text("another source")
    assert made.run("--cached").json["run_id"] == "0002"
