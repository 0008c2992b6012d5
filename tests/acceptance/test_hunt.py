"""`holdfast hunt`: the smallest sets of faults that break a rule, and what was never tried."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from cli import MakeProject, Project, contract, python, rule, rundir

from golden_words import Golden
from holdfast.cli.hunt_job import write_causes
from holdfast.hunt.outcomes import Count, Coverage
from holdfast.hunt.result import HuntedCause, HuntResult
from holdfast.report.terminal.hunt import dump_scenarios
from page_documents import documents

SHOP = """
BOOK = {"order-7781": {"customer": "C-40417", "total": 219.5}}


def find_order(order):
    return BOOK[order]


def charge(customer, amount):
    return {"receipt": "R-99310", "amount": amount}


def ask(prompt):
    try:
        order = find_order("order-7781")
        customer, total = order["customer"], order["total"]
    except Exception:
        return "order-7781: nothing was charged"
    for attempt in range(ATTEMPTS):
        try:
            return "order-7781: " + str(charge(customer, total))
        except Exception:
            pass
    return "order-7781: nobody knows"
"""
"""Charges an order; with two attempts a lost reply makes it charge twice."""
ONCE = rule("once", "side_effect_once", tool="charge", severity="critical")
ANSWERS = rule("answers", "contains", value="order-7781")


def shop(make: MakeProject, attempts: int = 2, rules: list[dict[str, Any]] | None = None, **more: Any) -> Project:
    agent = python(tools=["agent:find_order", "agent:charge"], isolation="inline")
    spec = contract([ONCE, ANSWERS] if rules is None else rules, agent=agent, prompts=("Charge order-7781",), **more)
    return make(spec, SHOP.replace("ATTEMPTS", str(attempts)))


def test_a_hunt_finds_the_lost_reply_and_says_how_to_paste_it(project: MakeProject) -> None:
    made = shop(project)
    found = made.cli("hunt", "--json")
    assert found.code == 1, found.out + found.err
    (cause,) = found.json["causes"]
    assert (cause["rules"], cause["code"], cause["known"]) == (["once"], "done-twice", False)
    assert cause["faults"] == [{"plane": "tool", "target": "charge", "on_call": 1, "mode": "lost_reply"}]
    assert cause["scenario"]["tool_faults"] == [{"tool": "charge", "mode": "lost_reply", "on_call": 1}]
    assert (cause["failed"] > 0, cause["calm_failed"], cause["calm_runs"]) == (True, 0, 3)
    points = found.json["coverage"]["points"]
    assert points["total"] == sum(points[state] for state in ("held", "failed", "infeasible", "open")) > 20
    assert (found.json["stopped"], found.json["fixed"], found.json["flaky"]) == ("done", [], [])
    assert json.loads((rundir(made) / "hunt.json").read_bytes())["causes"][0]["id"] == cause["id"]
    page = documents((rundir(made) / "report.html").read_text())["run"]
    assert (page["verdict"], page["hunt"]["causes"][0]["trial"]) == ("FAIL", cause["trial"])
    assert {row["site"]: row["states"]["lost_reply"] for row in page["hunt"]["rows"]}["charge #1"] == "failed"
    (listed,) = made.cli("runs", "--json").json["runs"]
    assert (listed["exit_code"], listed["score"]) == (1, None)
    shown = made.cli("show", cause["trial"], "--json")
    assert shown.code == 0, shown.err
    # The pasted scenario fails in the same way.
    made.write(
        contract([ONCE], [cause["scenario"]], agent=python(tools=["agent:charge"]), prompts=("Charge order-7781",))
    )
    assert made.run().outcomes == {("once", cause["id"]): "fail"}


def test_a_hunt_does_not_call_a_rule_unjudged_that_it_judges(project: MakeProject) -> None:
    made = shop(project, rules=[{**ONCE, "when": "tool_faults_active"}, ANSWERS])
    found = made.cli("hunt", "--order", "1")
    assert found.code == 1
    assert "[lint-when-unmet]" not in found.err
    assert "never judged" not in found.err
    assert "lint-when-unmet" in made.cli("validate").err


def test_one_bug_under_an_error_and_a_lost_reply_is_a_cause_of_each(project: MakeProject) -> None:
    made = shop(project, attempts=1, rules=[rule("honest", "excludes_pattern", patterns=["nobody knows"])])
    found = made.cli("hunt", "--json", "--order", "1")
    # A lost reply is never hidden behind a weaker fault at the same call: the call did its work.
    modes = sorted(fault["mode"] for one in found.json["causes"] for fault in one["faults"])
    assert modes == ["error", "lost_reply"], found.out
    charged = next(row["states"] for row in found.json["matrix"] if row["target"] == "charge")
    assert (charged["error"], charged["lost_reply"]) == ("failed", "failed")
    assert any(one["also"] for one in found.json["causes"])


def test_an_agent_without_the_weakness_holds(project: MakeProject) -> None:
    found = shop(project, attempts=1).cli("hunt", "--json")
    assert (found.code, found.json["causes"], found.json["coverage"]["points"]["open"]) == (0, [], 0), found.out


def test_a_rule_that_fails_in_calm_is_shown_first(project: MakeProject) -> None:
    made = shop(project, rules=[ONCE, rule("cites", "contains", value="source")])
    found = made.cli("hunt")
    assert found.code == 4
    assert "[hunt-calm-fails]" in found.err
    assert "cites" in found.out
    assert made.cli("hunt", "--rule", "once", "--json").code == 1


def test_an_agent_that_makes_no_calls_proves_nothing(project: MakeProject) -> None:
    made = project(
        contract([rule("says", value="hi")], agent={"type": "python", "endpoint": "agent:ask"}),
        "def ask(p): return 'hi'",
    )
    found = made.cli("hunt", "--json")
    assert (found.code, found.json["errors"][0]["code"]) == (5, "hunt-no-calls")


@pytest.mark.parametrize(
    "only",
    [
        rule("calm-only", "completes", when="no_chaos"),
        rule("fast", "latency", max_ms=60_000),
    ],
    ids=lambda one: str(one["id"]),
)
def test_a_fault_under_which_no_rule_was_judged_is_not_held(
    project: MakeProject, only: dict[str, Any], golden: Golden
) -> None:
    found = shop(project, attempts=1, rules=[only]).cli("hunt", "--json", "--order", "1")
    points = found.json["coverage"]["points"]
    assert (found.code, points["held"], points["open"] > 0) == (5, 0, True), found.out
    golden([re.sub(r"\d+", "<n>", note) for note in found.json["notes"]])


def test_a_check_that_ends_in_an_error_proves_nothing(project: MakeProject, golden: Golden) -> None:
    made = shop(project, attempts=1, rules=[rule("mine", "custom", script="check.py")])
    (made.folder / "check.py").write_text("raise SystemExit(3)\n")
    found = made.cli("hunt", "--json")
    assert (found.code, found.json["errors"][0]["code"]) == (3, "hunt-broken"), found.out
    # Next to a rule that can be judged, its errors leave the points open.
    made = shop(project, attempts=1, rules=[rule("mine", "custom", script="check.py"), ANSWERS])
    (made.folder / "check.py").write_text("raise SystemExit(3)\n")
    found = made.cli("hunt", "--json", "--order", "1")
    assert (found.code, found.json["coverage"]["points"]["held"]) == (5, 0), found.out
    golden([re.sub(r"\d+", "<n>", note) for note in found.json["notes"]])


def test_a_known_cause_keeps_no_other_fault_of_its_site_from_being_tried(project: MakeProject) -> None:
    made = shop(project, rules=[ONCE])
    made.cli("hunt", "--json", "--order", "1")
    (made.folder / "agent.py").write_text(SHOP.replace("ATTEMPTS", "1"))
    again, fresh = (
        made.cli("hunt", "--json", "--order", "1"),
        shop(project, 1, [ONCE]).cli("hunt", "--json", "--order", "1"),
    )
    assert again.json["coverage"]["points"] == fresh.json["coverage"]["points"]


def test_a_known_cause_whose_fault_is_not_met_is_not_fixed(project: MakeProject) -> None:
    made = shop(project, rules=[ONCE])
    id = made.cli("hunt", "--json", "--order", "1").json["causes"][0]["id"]
    (made.folder / "agent.py").write_text(SHOP.replace("range(ATTEMPTS)", "()"))
    found = made.cli("hunt", "--json", "--cause", id)
    assert (found.code, found.json["fixed"], found.json["not_met"]) == (5, [], [id]), found.out
    assert not json.loads(_only_file(made))["causes"][0].get("fixed")


def test_an_agent_that_sometimes_fails_without_a_reason_has_no_cause(project: MakeProject) -> None:
    made = shop(project, attempts=1, rules=[ANSWERS])
    # Every seventh run fails, whatever is faulty.
    source = SHOP.replace("ATTEMPTS", "1") + (
        "\n_ask = ask\n_n = [0]\n\n\ndef ask(prompt):\n    _n[0] += 1\n"
        "    answer = _ask(prompt)\n    return 'no' if _n[0] % 7 == 0 else answer\n"
    )
    (made.folder / "agent.py").write_text(source)
    found = made.cli("hunt", "--json", "--order", "1", "--max-trials", "120")
    assert (found.json["causes"], found.code != 1) == ([], True), found.out
    assert found.json["unexplained"] or found.json["flaky"]
    assert any("not deterministic" in note for note in found.json["notes"])


def test_a_rule_that_fails_now_and_then_whatever_is_faulty_is_not_passed(project: MakeProject) -> None:
    source = SHOP.replace("ATTEMPTS", "1") + (
        "\n_ask = ask\n\n\ndef ask(prompt):\n    import os\n    n = int(os.environ['HOLDFAST_TRIAL'], 16)\n"
        "    return 'no' if n % 5 == 0 else _ask(prompt)\n"
    )
    made = shop(project, attempts=1, rules=[ANSWERS])
    (made.folder / "agent.py").write_text(source)
    found = made.cli("hunt", "--json", "--order", "1")
    assert (found.json["causes"], found.code) == ([], 5), found.out
    assert found.json["unexplained"] == ["answers"]


def test_a_budget_of_a_few_trials_leaves_points_open(project: MakeProject) -> None:
    made = shop(project, attempts=1)
    found = made.cli("hunt", "--json", "--max-trials", "6")
    assert (found.code, found.json["stopped"], found.json["trials"]) == (5, "trials", 6)
    assert found.json["coverage"]["points"]["open"] > 0
    # What is left is tried when the hunt is resumed with a larger budget, and nothing is asked twice.
    done = made.cli("hunt", "--json", "--resume", "0001", "--max-trials", "300")
    assert (done.code, done.json["stopped"]) == (0, "done"), done.out + done.err
    ids = [seen["trial"] for seen in made.stored("observations-0.jsonl")]
    assert len(ids) == len(set(ids)) == done.json["trials"]


def test_the_plan_does_not_depend_on_the_number_of_workers(project: MakeProject) -> None:
    seen = []
    for workers in ("1", "2", "8"):
        made = shop(lambda *a, name=workers: project(*a, name=f"workers-{name}"))
        made.write(made.read("holdfast.yaml").replace("isolation: inline", "isolation: worker"))
        found = made.cli("hunt", "--json", "-j", workers, "--max-trials", "40")
        trials = sorted(trial["id"] for trial in made.stored("trials.jsonl"))
        causes = [(one["id"], one["failed"], one["runs"]) for one in found.json["causes"]]
        seen.append((trials, causes, found.json["coverage"]))
    assert seen[0] == seen[1] == seen[2]
    assert seen[0][1]


def test_known_causes_come_first_and_say_when_they_are_fixed(project: MakeProject) -> None:
    made = shop(project, rules=[ONCE])
    id = made.cli("hunt", "--json").json["causes"][0]["id"]
    kept = json.loads(_only_file(made))
    assert [one["id"] for one in kept["causes"]] == [id]
    assert "!/hunts/" in made.read(".holdfast/.gitignore")
    again = made.cli("hunt", "--json", "--cause", id)
    assert (again.code, again.json["causes"][0]["known"], again.json["trials"]) == (1, True, 6)
    # The agent is edited: the cause is tried first, and is fixed.
    (made.folder / "agent.py").write_text(SHOP.replace("ATTEMPTS", "1"))
    edited = made.cli("hunt", "--json", "--max-trials", "8")
    assert (edited.json["fixed"], edited.json["causes"]) == ([id], [])
    assert made.cli("hunt", "--json", "--cause", id).code == 0
    assert json.loads(_only_file(made))["causes"][0]["fixed"]
    assert made.cli("hunt", "--cause", "nonsense", "--json").json["errors"][0]["code"] == "cause-unknown"


def _only_file(made: Project) -> str:
    (path,) = (made.folder / ".holdfast" / "hunts").rglob("*.json")
    return path.read_text()


def test_map_shows_what_feeds_what_and_what_was_tried(project: MakeProject) -> None:
    made = shop(project)
    fresh = made.cli("map", "--json").json
    assert [(one["target"], one["on_call"], one["write"], one["feeds"]) for one in fresh["sites"]] == [
        ("find_order", 1, False, ["charge #1", "answer"]),
        ("charge", 1, True, ["answer"]),
    ]
    assert (fresh["coverage"]["open"], fresh["percent"]) == (fresh["coverage"]["total"], 0.0)
    made.cli("hunt", "--max-trials", "40")
    later = made.cli("map", "--json").json["coverage"]
    charged = next(row["modes"] for row in later["rows"] if row["target"] == "charge")
    assert (charged["lost_reply"]["state"], charged["slow"]["state"]) == ("failed", "held")
    assert made.cli("map").code == 0


def test_the_page_of_a_map_has_its_calls_and_says_how_little_a_score_of_100_covers(project: MakeProject) -> None:
    made = shop(project, attempts=1)
    assert made.cli("contract", "run", "-q").code == 0
    found = made.cli("map", "--json").json
    (score,) = found["scores"]
    assert (score["part"], score["score"]) == ("contract", 100.0)
    assert found["percent"] < 20
    assert "100.00" in made.cli("map").out
    drawn = documents((made.folder / ".holdfast/runs" / found["run"] / "report.html").read_text())["run"]
    assert drawn["verdict"] == "UNPROVEN"
    (prompt,) = drawn["map"]["prompts"]
    assert [one["name"] for one in prompt["sites"]] == ["find_order #1", "charge #1"]
    assert prompt["sites"][0]["links"][0] == {"to": "charge #1", "kind": "call", "values": ["219.5", "C-40417"]}
    assert prompt["ends"] == [{"kind": "answer", "name": "answer"}]
    assert made.cli("show", found["run"], "--json").json["parts"]["hunt"]["reason_codes"] == ["map-only"]


def test_a_hunt_without_a_cause_passes_by_one_word(project: MakeProject) -> None:
    made = shop(project, attempts=1, rules=[ONCE])
    found = made.cli("hunt", "--order", "1")
    assert found.code == 0, found.out + found.err
    assert found.out.splitlines()[-1].startswith("PASS")
    assert "PASS" in made.cli("runs").out
    page = documents((rundir(made) / "report.html").read_text())["run"]
    assert (page["verdict"], len(page["map"]["prompts"])) == ("PASS", 1)


def test_write_appends_what_a_file_does_not_have(project: MakeProject) -> None:
    made = shop(project, rules=[ONCE])
    for _ in range(2):
        made.cli("hunt", "--write", "causes.yaml", "--max-trials", "60")
        written = yaml.safe_load(made.read("causes.yaml"))["chaos_matrix"]
        assert [one["tool_faults"] for one in written] == [[{"tool": "charge", "mode": "lost_reply", "on_call": 1}]]
    assert made.cli("hunt", "--write", "agent.py", "--json").json["errors"][0]["code"] == "file-unusable"


MINE = {"name": "mine", "tool_faults": [{"tool": "charge", "mode": "error"}]}


@pytest.mark.parametrize(
    ("text", "before"),
    [
        ("chaos_matrix: []\n", []),
        ("chaos_matrix:", []),
        ("chaos_matrix:\n  - name: mine\n    tool_faults: [{tool: charge, mode: error}]", [MINE]),
        ("chaos_matrix:\n- name: mine\n  tool_faults: [{tool: charge, mode: error}]\n", [MINE]),
        ("chaos_matrix: [{name: mine, tool_faults: [{tool: charge, mode: error}]}]", [MINE]),
    ],
)
def test_write_keeps_what_a_file_of_any_layout_has(tmp_path: Path, text: str, before: list[Any]) -> None:
    path = tmp_path / "causes.yaml"
    path.write_text(text)
    scenario = {"name": "hunt-1", "tool_faults": [{"tool": "charge", "mode": "lost_reply", "on_call": 1}]}
    cause = HuntedCause("hunt-1", ("once",), "done-twice", (), 1, 1, 0, 1, scenario, "t", False)
    none = Count(0, 0, 0, 0, 0)
    found = HuntResult(1, 1, "done", (cause,), (), (), (), Coverage(none, none), ())
    write_causes(path, found)
    written = path.read_text()
    assert yaml.safe_load(written) == {"chaos_matrix": [*before, scenario]}
    assert written.count("chaos_matrix") == 1
    write_causes(path, found)
    assert path.read_text() == written


def test_ci_tries_known_causes_first_and_promote_takes_one(project: MakeProject) -> None:
    made = shop(project, rules=[ONCE])
    id = made.cli("hunt", "--json", "--max-trials", "60").json["causes"][0]["id"]
    whole = made.cli("ci", "--json", "--no-report")
    part = whole.json["parts"]["hunt"]
    assert (whole.code, part["passed"], part["weight"]) == (1, False, 0.0), whole.out
    assert whole.json["parts"]["contract"]["score"] == 100.0
    promoted = made.cli("promote", id)
    assert promoted.code == 0, promoted.err
    assert "replays" in yaml.safe_load(made.read("holdfast.yaml"))
    assert made.cli("promote", "hunt-00000000").code == 4
    (made.folder / "agent.py").write_text(SHOP.replace("ATTEMPTS", "1"))
    fixed = made.cli("ci", "--json", "--no-report").json["parts"]["hunt"]
    assert (fixed["passed"], fixed["exit_code"]) == (True, 0)


def test_ci_proves_nothing_if_a_known_cause_was_not_tried(project: MakeProject) -> None:
    made = shop(project, rules=[ONCE])
    made.cli("hunt", "--json", "--max-trials", "60")
    made.write(made.read("holdfast.yaml").replace("Charge order-7781", "Please charge order-7781"))
    whole = made.cli("ci", "--json", "--no-report")
    part = whole.json["parts"]["hunt"]
    assert (whole.code, part["passed"], part["exit_code"]) == (5, False, 5), whole.out
    # A rule that fails in calm keeps the hunt from trying it, too.
    made = shop(project, rules=[ONCE])
    made.cli("hunt", "--json", "--max-trials", "60")
    (made.folder / "agent.py").write_text(
        SHOP.replace("ATTEMPTS", "2") + "\n_ask = ask\n\n\ndef ask(p):\n    _ask(p)\n    return _ask(p)\n"
    )
    whole = made.cli("ci", "--json", "--no-report")
    assert (whole.code, any(one.startswith("hunt: ") for one in whole.json["reasons"])) == (1, True), whole.out


def test_ci_may_spend_trials_on_new_causes(project: MakeProject) -> None:
    found = shop(project, rules=[ONCE], hunt={"trials": 60}).cli("ci", "--json", "--no-report")
    assert (found.code, found.json["parts"]["hunt"]["passed"]) == (1, False), found.out


def test_a_sweep_tries_its_modes_at_every_write(project: MakeProject) -> None:
    made = shop(project, rules=[ONCE])
    found = made.cli("hunt", "--sweep", "killed,lost_reply", "--json")
    assert [one["faults"][0]["mode"] for one in found.json["causes"]] == ["lost_reply"]
    assert {mode for row in found.json["matrix"] for mode in row["states"]} == {"lost_reply"}
    assert any("killed" in note for note in found.json["notes"])
    assert made.cli("hunt", "--sweep", "slow", "--json").json["errors"][0]["code"] == "argument-invalid"


def test_a_hunt_that_was_killed_goes_on_where_it_was(project: MakeProject) -> None:
    made = shop(project, rules=[ONCE])
    started = made.start("hunt", "--max-trials", "50")
    observed = rundir(made) / "observations-0.jsonl"
    for _ in range(600):
        if observed.exists() and len(observed.read_bytes().splitlines()) > 10:
            break
        time.sleep(0.1)
    os.killpg(started.pid, signal.SIGKILL)
    started.communicate()
    resumed = made.cli("hunt", "--json", "--resume", "0001", "--max-trials", "50")
    whole = shop(lambda *a: project(*a, name="whole"), rules=[ONCE]).cli("hunt", "--json", "--max-trials", "50")
    assert resumed.json["causes"] == whole.json["causes"]
    assert resumed.json["coverage"] == whole.json["coverage"]


def test_an_interrupt_stores_and_summarises(project: MakeProject) -> None:
    made = shop(project, rules=[ONCE])
    started = made.start("hunt", "--json")
    observed = rundir(made) / "observations-0.jsonl"
    for _ in range(600):
        if observed.exists() and len(observed.read_bytes().splitlines()) > 10:
            break
        time.sleep(0.1)
    started.send_signal(signal.SIGINT)
    out, _ = started.communicate(timeout=60)
    assert started.returncode == 2
    assert json.loads(out)["stopped"] == "interrupted"


def test_calls_that_differ_from_run_to_run_are_said(project: MakeProject) -> None:
    agent = SHOP.replace("ATTEMPTS", "1") + (
        "\n_ask = ask\n_n = [0]\n\n\ndef ask(prompt):\n    _n[0] += 1\n"
        "    if _n[0] % 2:\n        find_order('order-7781')\n    return _ask(prompt)\n"
    )
    made = shop(project)
    (made.folder / "agent.py").write_text(agent)
    found = made.cli("hunt", "--json", "--max-trials", "8", "--no-preflight")
    assert any("calm runs differ" in note for note in found.json["notes"])


def test_thousands_of_calls_are_hunted_in_part_and_said_to_be(project: MakeProject) -> None:
    agent = """
def search(query):
    return "a source"


def ask(prompt):
    for number in range(1500):
        try:
            search(number)
        except Exception:
            pass
    return "a source"
"""
    made = project(contract([rule("cites", value="source")], agent=python(isolation="inline")), agent)
    found = made.cli("hunt", "--json", "--max-trials", "5")
    assert (found.code, found.json["coverage"]["points"]["open"] > 10_000) == (5, True), found.out[:500] + found.err
    assert any("more calls" in note for note in found.json["notes"])


def test_a_fault_that_hangs_the_agent_is_a_finding(project: MakeProject) -> None:
    agent = (
        "import time\n\n\ndef search(q):\n    return 'a source'\n\n\ndef ask(p):\n    try:\n        return search(p)\n"
        "    except Exception:\n        time.sleep(60)\n"
    )
    made = project(contract([rule("cites", value="source")], agent=python(timeout=1500)), agent)
    found = made.cli("hunt", "--json", "--max-trials", "40")
    assert found.code == 1, found.out + found.err
    assert "error" in {fault["mode"] for cause in found.json["causes"] for fault in cause["faults"]}


def test_a_file_without_rules_and_an_option_that_does_not_fit(project: MakeProject) -> None:
    made = project(contract([rule("leaks", "contains", value="x", probes=["hi"])]))
    assert made.cli("hunt", "--json").json["errors"][0]["code"] == "hunt-no-rules"
    assert made.cli("hunt", "--order", "9").code == 4
    assert shop(project).cli("hunt", "--rule", "nobody").code == 4


def test_two_hunts_at_once_lose_no_cause(project: MakeProject) -> None:
    made = shop(project)
    both = [made.start("hunt", "--json", "--max-trials", "40", "--rule", name) for name in ("once", "answers")]
    for one in both:
        one.communicate(timeout=120)
    assert [one["code"] for one in json.loads(_only_file(made))["causes"]] == ["done-twice"]


def test_each_scenario_of_a_written_file_can_be_pasted_alone() -> None:
    event = {"write": 1}
    faults = [{"name": name, "world_faults": [{"mode": "killed", "after_event": event}]} for name in ("a", "b")]
    text = dump_scenarios(faults)
    assert "&" not in text
    assert yaml.safe_load(text) == faults
