"""`holdfast replay run`: sessions of a file, a folder and a spec, held to their contracts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from cli import MakeProject, Project, Result, contract, rule

SHOP = """
def search(query):
    return {"price": 10}


def book(item):
    open("booked.txt", "a").write(item + "\\n")
    return "booked"


def ask(prompt):
    try:
        found = search(prompt)
    except Exception as failure:
        return f"no source: {failure}"
    if "book" in prompt:
        try:
            book("kettle")
        except Exception as failure:
            return f"not booked: {failure}"
    return f"it costs {found['price']}"
"""
IDLE = """
def search(query):
    return 1


def ask(prompt):
    return "it costs 10" if prompt == "kettle?" else "no"
"""
AGENT = {"type": "python", "endpoint": "agent:ask", "tools": ["agent:search", "agent:book"]}
PRICED = rule("priced", "regex", pattern="costs \\d+|no source")
HONEST = rule("honest", "contains", value="no source", when="tool_faults_active")


def session(id: str, input: str = "kettle?", **more: Any) -> dict[str, Any]:
    return {"id": id, "input": input, **more}


def response(value: Any = None, status: int = 200, tool: str = "search") -> dict[str, Any]:
    return {"tool": tool, "response": value, "status": status}


@pytest.fixture
def shop(project: MakeProject) -> Project:
    return project(contract([PRICED, HONEST], agent=AGENT), SHOP)


def keep(made: Project, name: str, value: Any) -> None:
    path = made.folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(value, sort_keys=False))


def replay(made: Project, *args: str) -> Result:
    return made.cli("replay", "run", "--json", "--no-report", *args)


def statuses(result: Result) -> dict[str, str]:
    return {case["session"]: case["status"] for case in result.json["parts"]["replay"]["cases"]}


def answers(result: Result) -> dict[str, str]:
    cases = result.json["parts"]["replay"]["cases"]
    return {case["session"]: case["replicas"][0]["turns"][-1]["text"] for case in cases}


def test_recorded_responses_stand_in_the_tools_place_and_the_score_is_what_passed_of_what_was_decided(
    shop: Project,
) -> None:
    keep(shop, "replays/a.yaml", session("a", tool_responses=[response({"price": 42})]))
    keep(shop, "replays/b.yaml", session("b", tool_responses=[response("down", 503)]))
    keep(shop, "replays/c.yaml", session("c", tool_responses=[response({"price": "dear"})]))
    result = replay(shop, "replays")
    assert statuses(result) == {"a": "pass", "b": "pass", "c": "fail"}
    assert answers(result)["a"] == "it costs 42"
    assert "503" in answers(result)["b"]
    assert (result.code, result.json["score"]) == (1, 66.67)


def test_expected_failure_is_shown_and_decides_nothing(shop: Project) -> None:
    keep(shop, "s.yaml", session("a", expected_failure="a guess", tool_responses=[response({"price": 42})]))
    result = replay(shop, "s.yaml")
    assert result.code == 0
    assert result.json["parts"]["replay"]["cases"][0]["expected_failure"] == "a guess"
    assert "was: a guess" in shop.cli("replay", "run", "s.yaml", "--no-report").out


def test_the_sessions_of_the_spec_are_replayed_inline_and_from_files(shop: Project) -> None:
    keep(shop, "replays/a.yaml", session("a", tool_responses=[response({"price": 1})]))
    sessions = [{"file": "replays/a.yaml"}, session("b", tool_responses=[response({"price": 2})])]
    shop.write(contract([PRICED], agent=AGENT, replays={"sessions": sessions}))
    assert answers(replay(shop)) == {"a": "it costs 1", "b": "it costs 2"}
    assert answers(replay(shop, "holdfast.yaml")) == {"a": "it costs 1", "b": "it costs 2"}
    assert shop.cli("validate").code == 0


def test_a_call_that_the_recording_does_not_know_gets_no_connection_unless_live(shop: Project) -> None:
    keep(shop, "s.yaml", session("a", "book it", tool_responses=[response({"price": 1})]))
    assert "not booked" in answers(replay(shop, "s.yaml"))["a"]
    assert not shop.read("booked.txt")
    live = replay(shop, "s.yaml", "--live")
    assert answers(live)["a"] == "it costs 1"
    assert shop.lines("booked.txt")
    assert "--live" in live.json["parts"]["replay"]["cases"][0]["replicas"][0]["reproducer"]["command"]


def test_a_failing_trial_is_run_again_by_the_command_it_is_told_with(shop: Project) -> None:
    keep(shop, "replays/a.yaml", session("a", tool_responses=[response({"price": "dear"})]))
    keep(shop, "replays/b.yaml", session("b"))
    result = replay(shop, "replays/a.yaml")
    (case,) = result.json["parts"]["replay"]["cases"]
    again = case["replicas"][0]["reproducer"]["command"].split()[1:]
    assert again[:3] == ["replay", "run", "replays/a.yaml"]
    assert shop.cli(*again, "--no-report").code == 1


def test_a_session_is_held_to_the_contract_that_it_names(shop: Project) -> None:
    other = {"contract": {"name": "Other", "invariants": [rule("priced", value="dear")], "chaos_matrix": [{"nme": 1}]}}
    keep(shop, "contracts/other.yaml", other)
    recorded = [response({"price": "dear"})]
    keep(shop, "replays/a.yaml", session("a", contract="../contracts/other.yaml", tool_responses=recorded))
    keep(shop, "replays/b.yaml", session("b", contract="The contract", tool_responses=recorded))
    result = replay(shop, "replays")
    assert statuses(result) == {"a": "pass", "b": "fail"}
    verdicts = {c["session"]: c["replicas"][0]["verdicts"] for c in result.json["parts"]["replay"]["cases"]}
    assert [v["invariant"] for v in verdicts["a"]] == ["priced [Other]"]
    assert [v["invariant"] for v in verdicts["b"]] == ["priced"]


def test_a_contract_that_is_not_there_is_refused_before_the_agent_is_asked(shop: Project) -> None:
    keep(shop, "s.yaml", session("a", contract="The contrat"))
    result = shop.cli("replay", "run", "s.yaml")
    assert result.code == 4
    assert "s.yaml:1: session a: " in result.err
    assert "mean The contract?" in result.err


def test_a_minimum_tolerates_failures_but_not_of_a_critical_rule(shop: Project) -> None:
    keep(shop, "replays/a.yaml", session("a", tool_responses=[response({"price": 1})]))
    keep(shop, "replays/b.yaml", session("b", tool_responses=[response({"price": "dear"})]))
    assert replay(shop, "replays", "--min-score", "50").code == 0
    assert replay(shop, "replays", "--min-score", "51").code == 1
    shop.write(contract([{**PRICED, "severity": "critical"}], agent=AGENT))
    assert replay(shop, "replays", "--min-score", "50").code == 1


def test_context_is_what_was_said_before(project: MakeProject) -> None:
    agent = "def ask(messages):\n    return ' | '.join(f\"{m['role']}: {m['content']}\" for m in messages)\n"
    made = project(contract([rule("any", "completes")], agent={"type": "python", "endpoint": "agent:ask"}), agent)
    before = [{"role": "system", "content": "be brief"}, "hello", {"role": "assistant", "content": "hi"}]
    keep(made, "s.yaml", session("a", "and now?", context=before))
    assert answers(replay(made, "s.yaml"))["a"] == "system: be brief | user: hello | assistant: hi | user: and now?"


def test_where_no_session_decides_nothing_is_proven(shop: Project) -> None:
    shop.write(contract([HONEST], agent=AGENT))
    keep(shop, "s.yaml", session("calm", tool_responses=[response({"price": 1})]))
    result = shop.cli("replay", "run", "s.yaml")
    assert result.code == 5
    assert " session calm: " in result.err
    as_json = replay(shop, "s.yaml")
    assert (as_json.code, as_json.json["exit_code"], as_json.json["score"]) == (5, 5, None)


def test_what_is_wrong_with_several_session_files_is_told_of_all_of_them(shop: Project) -> None:
    keep(shop, "replays/a.yaml", {"id": "a", "inptu": "x"})
    keep(shop, "replays/b.yaml", [session("b"), {"input": "x"}])
    keep(shop, "replays/c.yaml", session("c"))
    result = shop.cli("replay", "run", "replays")
    assert result.code == 4
    assert "replays/a.yaml:2:1" in result.err
    assert "replays/b.yaml:3:3" in result.err
    errors = replay(shop, "replays").json["errors"]
    assert {one["file"] for one in errors} == {"replays/a.yaml", "replays/b.yaml"}


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ((), "[session-unusable]"),
        (("no.yaml",), "there is no such file"),
        (("empty",), "[session-unusable]"),
        (("twins",), "[session-unusable]"),
        (("holdfast.yaml", "-c", "other.yaml"), "[options-conflict]"),
        (("replays", "--date-range", "lately"), "[argument-invalid]"),
        (("replays", "--resume", "0001"), "[options-conflict]"),
    ],
)
def test_what_cannot_be_replayed_is_refused(shop: Project, args: tuple[str, ...], said: str) -> None:
    (shop.folder / "empty").mkdir()
    keep(shop, "twins/a.yaml", session("a"))
    keep(shop, "twins/b.yaml", session("a"))
    result = shop.cli("replay", "run", *args)
    assert (result.code, said in result.err) == (4, True), result.err


def test_a_tool_that_is_not_there_any_more_is_named(shop: Project) -> None:
    keep(shop, "s.yaml", session("a", tool_responses=[response(1, tool="serch"), response({"price": 1})]))
    result = shop.cli("replay", "run", "s.yaml", "--no-report")
    assert "serch" in result.err
    assert "did you mean search?" in result.err


def test_a_stored_replay_is_reported_judged_and_taken_up_without_its_session_files(shop: Project) -> None:
    keep(shop, "replays/a.yaml", session("a", tool_responses=[response({"price": 42})]))
    first = replay(shop, "replays")
    (shop.folder / "replays/a.yaml").unlink()
    assert statuses(shop.cli("report", "0001", "--json")) == statuses(first)
    assert shop.cli("judge", "0001").code == 0
    lines = (shop.folder / ".holdfast/runs/0001/trials.jsonl").read_text().splitlines()
    again = replay(shop, "--resume", "0001")
    assert (again.code, statuses(again)) == (0, {"a": "pass"})
    assert (shop.folder / ".holdfast/runs/0001/trials.jsonl").read_text().splitlines() == lines


def test_an_agent_that_dies_of_a_recorded_failure_is_judged_and_no_preflight_refuses_it(project: MakeProject) -> None:
    agent = "def search(q):\n    return q\n\n\ndef ask(prompt):\n    return search(prompt)\n"
    made = project(contract([rule("lives", "completes")]), agent)
    keep(made, "s.yaml", session("a", tool_responses=[response("down", 500)]))
    result = replay(made, "s.yaml")
    assert (result.code, statuses(result)) == (1, {"a": "fail"})


def test_a_session_is_selected_by_its_id_or_its_name(shop: Project) -> None:
    keep(shop, "replays/a.yaml", session("incident-1", name="the first"))
    keep(shop, "replays/b.yaml", session("incident-2", name="the other"))
    assert list(statuses(replay(shop, "replays", "-k", "incident-2"))) == ["incident-2"]
    assert list(statuses(replay(shop, "replays", "-k", "first"))) == ["incident-1"]


def test_replicas_of_a_session_are_told_together(shop: Project, tmp_path: Path) -> None:
    keep(shop, "s.yaml", session("a", tool_responses=[response({"price": 42})]))
    result = replay(shop, "s.yaml", "--replicas", "3", "-o", str(tmp_path / "report.json"))
    assert len(result.json["parts"]["replay"]["cases"][0]["replicas"]) == 3
    assert json.loads((tmp_path / "report.json").read_text())["score"] == 100.0


def test_a_session_none_of_whose_recorded_tools_was_called_proves_nothing(project: MakeProject) -> None:
    priced = rule("priced", "regex", pattern="costs \\d+", severity="critical")
    made = project(contract([priced], agent={**AGENT, "tools": ["agent:search"]}), IDLE)
    keep(made, "s.yaml", [session("silent", tool_responses=[response({"price": 10})])])
    told = replay(made, "s.yaml")
    (case,) = told.json["parts"]["replay"]["cases"]
    assert (told.code, case["unproven_only"]) == (5, True)
    assert case["unproven_only"] is True
    keep(made, "s.yaml", [session("failing", "pot?", tool_responses=[response({"price": 10})]), session("no-tools")])
    assert replay(made, "s.yaml").code == 1
    keep(made, "s.yaml", [session("no-tools")])
    assert replay(made, "s.yaml").code == 0


def test_a_session_that_proves_nothing_has_one_word_in_every_report(project: MakeProject) -> None:
    made = project(contract([rule("priced", "regex", pattern="costs \\d+", severity="critical")], agent=AGENT), SHOP)
    keep(
        made,
        "s.yaml",
        [
            session("unrecorded"),
            session("unreadable_finding", tool_responses=[response({"price": 7}), response("", 503)]),
        ],
    )
    shown = made.cli("replay", "run", "s.yaml", "-o", "r.xml", "-o", "r.json", "-o", "r.md", "-o", "r.html")
    assert shown.code == 5
    cases = json.loads(made.read("r.json"))["parts"]["replay"]["cases"]
    assert [(one["status"], one["replicas"][0]["status"]) for one in cases] == [("unproven", "unproven")] * 2
    lines = [line.split() for line in shown.out.splitlines()]
    assert [line for line in lines if line[-1:] in (["unrecorded"], ["unreadable_finding"])] == [
        ["?", "unproven", "unrecorded"],
        ["?", "unproven", "unreadable_finding"],
    ]
    assert "✘" not in shown.out
    assert "!" not in shown.out
    assert "✔ pass" not in shown.out
    assert (made.read("r.xml").count("<skipped"), made.read("r.xml").count("<failure")) == (2, 0)
    assert made.read("r.md").count("? unproven |") == 2
    live = made.cli("replay", "run", "s.yaml", "--live", "--json", "--no-report").json["parts"]["replay"]["cases"]
    assert [one["status"] for one in live] == ["pass", "unproven"]
