"""`holdfast replay import` and `export`, `holdfast promote`: traces and failed trials become sessions."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from cli import AGENT, CALM, DOWN, MakeProject, Project, contract, rule

from holdfast.spec.rules.replays import read_sessions

sys.path.append(str(Path(__file__).parents[1] / "unit" / "replay"))
from replay_kit import langsmith, langsmith_run, uuid  # its folder is not on the path of these tests

from golden_words import Golden

SAYS = rule("says", value="a source says")
CHAT = {"messages": [{"role": "user", "content": "hello"}]}


@pytest.fixture
def made(project: MakeProject) -> Project:
    return project(contract([SAYS], [CALM, DOWN]), AGENT)


def sessions(folder: Path) -> list[Any]:
    return [one for path in sorted(folder.glob("*.yaml")) for one in read_sessions(path)]


# -- import ---------------------------------------------------------------------------------------
def test_traces_become_session_files_and_are_not_overwritten_unasked(made: Project) -> None:
    (made.folder / "chats.jsonl").write_text(
        json.dumps(CHAT) + "\n" + json.dumps({"id": "a/../b", "input": "two"}) + "\n"
    )
    done = made.cli("replay", "import", "chats.jsonl", "-o", "out")
    assert (done.code, done.out) == (0, "2 sessions in out\n")
    assert sorted(path.name for path in (made.folder / "out").iterdir())[0].startswith("a-..-b-")
    assert {one.turns for one in sessions(made.folder / "out")} == {("hello",), ("two",)}
    assert made.cli("replay", "import", "chats.jsonl", "-o", "out").out.startswith("2 sessions in out, 2 ")
    (made.folder / "chats.jsonl").write_text(json.dumps({"id": "a/../b", "input": "changed"}) + "\n")
    refused = made.cli("replay", "import", "chats.jsonl", "-o", "out")
    assert (refused.code, "nothing was written" in refused.err) == (4, True)
    assert made.cli("replay", "import", "chats.jsonl", "-o", "out", "--force").code == 0
    assert ("changed",) in {one.turns for one in sessions(made.folder / "out")}


def test_a_trace_without_input_is_left_out_by_name_and_if_none_is_left_that_is_refused(
    made: Project, golden: Golden
) -> None:
    (made.folder / "chats.jsonl").write_text('{"input": "one"}\n{"output": "two"}\n')
    done = made.cli("replay", "import", "chats.jsonl")
    assert done.code == 0
    golden((done.out, done.err))
    (made.folder / "bare.json").write_text(json.dumps(langsmith_run(1)))
    refused = made.cli("replay", "import", "bare.json")
    assert (refused.code, "[nothing-to-import]" in refused.err) == (4, True)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("notes.txt",), "not readable as JSON"),
        (("notes.txt", "--format", "otlp"), "not readable as JSON"),
        (("gone.json",), "[file-missing]"),
        (("gone",), "[run-unknown]"),
        (("gone.json", "--format", "otlp"), "[file-missing]"),
        (("--format", "otlp"), "[option-inapplicable]"),
        ((), "[nothing-to-import]"),
        (("notes.txt", "--from-langsmith", "x"), "[options-conflict]"),
        (("--from-langsmith", "x", "--from-langsmith-project", "y"), "[options-conflict]"),
        (("--from-langsmith", "x"), "LANGSMITH_API_KEY is not set"),
    ],
)
def test_what_cannot_be_imported_is_refused(
    made: Project, args: tuple[str, ...], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("LANGSMITH_API_KEY", "LANGCHAIN_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    (made.folder / "notes.txt").write_text("just notes\n")
    refused = made.cli("replay", "import", *args)
    assert (refused.code, said in refused.err) == (4, True), refused.err


def test_a_run_is_imported_whole(made: Project) -> None:
    made.run()
    done = made.cli("replay", "import", "latest", "-o", "out")
    assert (done.code, done.out) == (0, "2 sessions in out\n")
    assert [one.expected_failure for one in sessions(made.folder / "out")].count("") == 1


def test_langsmith_is_imported_and_replayed(made: Project) -> None:
    root = langsmith_run(1, inputs={"input": "hello"}, error="broke")
    tool = langsmith_run(2, "tool", parent=1, trace=1, name="search", outputs={"output": "a source says no"})
    with langsmith(root, tool) as server:
        fetch = ("replay", "run", "--from-langsmith", uuid(1), "-o", "out")
        done = made.cli(*fetch, env=server.environ)
        assert (done.code, done.out) == (0, "1 session in out\n")
        ran = made.cli(*fetch, "--run", "--json", "--no-report", env=server.environ)
        project = ("replay", "import", "--from-langsmith-project", "support", "--date-range", "all", "-o", "more")
        assert made.cli(*project, env=server.environ).out == "1 session in more\n"
    (case,) = ran.json["parts"]["replay"]["cases"]
    assert (ran.code, case["expected_failure"]) == (0, "broke")
    assert case["replicas"][0]["turns"][0]["text"] == "a source says no"


def test_sources_are_imported_at_each_run_and_kept(made: Project) -> None:
    source = {"type": "langsmith_run", "run_id": uuid(1), "auto_import": True}
    made.write(contract([SAYS], replays={"sources": [source]}))
    with langsmith(langsmith_run(1, inputs={"input": "hello"})) as server:
        environ = server.environ
        assert made.cli("replay", "run", "--live", "--no-report", env=environ).code == 0
        assert made.cli("replay", "import", "-o", "out", env=environ).out == "1 session in out\n"
    kept = list((made.folder / ".holdfast/replays").rglob("*.yaml"))
    assert [path.name for path in kept] == [f"{uuid(1)}.yaml"]
    gone = made.cli("replay", "run", "--no-report", env=environ)
    assert (gone.code, "check LANGSMITH_ENDPOINT" in gone.err) == (3, True)


# -- export ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("given", ["report.json", "0001", "latest", ".holdfast/runs/0001"])
def test_each_failed_trial_becomes_a_session_that_fails_as_it_did(made: Project, given: str) -> None:
    made.run("-o", "report.json")
    done = made.cli("replay", "export", "--from-report", given, "-o", "out")
    assert (done.code, done.out) == (0, "1 session in out\n"), done.err
    (one,) = sessions(made.folder / "out")
    assert (one.turns, one.contract) == (("hello",), "../holdfast.yaml")
    assert one.expected_failure.startswith("says: ")
    assert one.scenario is not None
    assert [(two.target, two.mode) for two in one.scenario.injections] == [("search", "error")]
    replayed = made.cli("replay", "run", "out", "--json", "--no-report")
    (case,) = replayed.json["parts"]["replay"]["cases"]
    assert (replayed.code, case["status"], case["session"]) == (1, "fail", one.id)


def test_a_report_whose_run_is_gone_is_refused_since_it_has_no_faults(made: Project) -> None:
    made.run("-o", "report.json")
    (made.folder / ".holdfast").rename(made.folder / "elsewhere")
    done = made.cli("replay", "export", "--from-report", "report.json", "-o", "out")
    assert (done.code, (made.folder / "out").exists()) == (4, False)


def test_where_nothing_failed_there_is_nothing_to_export(project: MakeProject) -> None:
    made = project(contract([SAYS]))
    made.run()
    done = made.cli("replay", "export", "--from-report", "latest", "-o", "out")
    assert (done.code, done.err) == (0, "")
    assert not (made.folder / "out").exists()


def test_secrets_are_masked_in_what_is_exported(project: MakeProject) -> None:
    key = "sk-" + "a1B2" * 8
    agent = f"def search(q):\n    return '{key}'\n\n\ndef ask(prompt):\n    return search(prompt)\n"
    made = project(contract([rule("never", value="never said")]), agent)
    made.run()
    made.cli("replay", "export", "--from-report", "latest", "-o", "out")
    (path,) = (made.folder / "out").iterdir()
    assert key not in path.read_text()
    assert "[masked]" in path.read_text()


# -- promote --------------------------------------------------------------------------------------


def test_a_spec_that_lines_alone_cannot_change_is_left_as_it_is(made: Project) -> None:
    made.write(json.dumps(contract([SAYS], [CALM, DOWN])))
    before = made.read("holdfast.yaml")
    failed = next(cell for cell in made.run().part["cells"] if cell["outcome"] == "fail")["trials"][0]["id"]
    done = made.cli("promote", failed)
    assert (done.code, made.read("holdfast.yaml")) == (0, before)
    assert f"by hand:\n\nreplays:\n  sessions:\n    - file: replays/{failed}.yaml" in done.out


def test_a_trial_that_did_not_fail_is_no_session(made: Project) -> None:
    passed = next(cell for cell in made.run().part["cells"] if cell["outcome"] == "pass")["trials"][0]["id"]
    refused = made.cli("promote", passed)
    assert (refused.code, f" {passed}  [" in refused.err) == (4, True)
    assert "those that failed: " in refused.err
    assert made.cli("promote", "").code == 4
    assert not (made.folder / "replays").exists()


# -- the wire -------------------------------------------------------------------------------------


def test_a_run_of_several_parts_is_exported_whole(project: MakeProject) -> None:
    spec = contract([SAYS], [CALM, DOWN], replays={"sessions": [{"id": "a", "input": "hello"}]})
    made = project(spec)
    assert made.cli("ci", "--no-report").code == 1
    done = made.cli("replay", "export", "--from-report", "latest", "-o", "out")
    assert (done.code, done.out) == (0, "2 sessions in out\n"), done.err


def test_import_takes_the_format_that_its_hint_names(made: Project) -> None:
    (made.folder / "bare.json").write_text('{"what": "is this"}')
    assert "--format" in made.cli("import", "bare.json").err
    refused = made.cli("import", "bare.json", "--format", "otlp")
    assert (refused.code, " otlp" in refused.err) == (4, True), refused.err
