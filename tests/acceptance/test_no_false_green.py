"""Runs that once looked better than they were, each with the line of behaviour.md that it broke."""

from __future__ import annotations

import pytest
from cli import CALM, DOWN, MakeProject, Serve, contract, rule, tool_fault

from holdfast.checks import patterns

REFUSES = "def ask(prompt):\n    return 'bad'\n"
PLAIN = {"type": "python", "endpoint": "agent:ask"}


# "FAIL if any critical (or gate) cell failed, whatever the number": also one that fail-fast had not come to
def test_fail_fast_goes_on_past_a_failure_that_the_minimum_tolerates(project: MakeProject) -> None:
    rules = [rule("good", "completes", severity="critical"), rule("minor", value="ok", severity="low")]
    spec = contract([*rules, rule("crit", value="zzz", severity="critical")], agent=PLAIN, scoring={"min_score": 50})
    result = project(spec, REFUSES).run("--fail-fast", "--concurrency", "1")
    assert (result.code, result.outcomes["crit", "calm"]) == (1, "fail")


def test_fail_fast_goes_on_past_a_replica_that_another_may_mend(project: MakeProject) -> None:
    agent = "import os\ndef ask(prompt):\n    return 'bad' if os.environ['HOLDFAST_REPLICA'] == '0' else 'ok'\n"
    rules = [rule("first", "completes"), rule("any", value="ok", replica_aggregation="any"), rule("last", value="zzz")]
    result = project(contract(rules, agent=PLAIN, replicas=2), agent).run("--fail-fast", "--concurrency", "1")
    assert (result.code, result.outcomes["any", "calm"], result.outcomes["last", "calm"]) == (1, "pass", "fail")


# "A fault is met when the agent's side received something other than it would have": before it answered
def test_a_fault_after_the_answer_was_not_met(project: MakeProject) -> None:
    agent = """
import asyncio
import time

def search(query):
    return "a source says " + query

def afterwards():
    time.sleep(0.2)
    try:
        search("for the log")
    except Exception:
        pass

async def ask(prompt):
    asyncio.get_running_loop().run_in_executor(None, afterwards)
    return "ok"
"""
    result = project(contract([rule("ok", value="ok")], [CALM, DOWN]), agent).run()
    assert (result.code, result.outcomes["ok", "down"]) == (5, "unproven")
    (fault,) = result.cells["ok", "down"]["trials"][0]["faults"]
    assert (fault["effect"], fault["note"]) == ("no_effect", "after the answer")


# "compared prompt by prompt": and with the control of the same params
def test_judged_again_each_combination_of_params_has_its_own_control(project: MakeProject) -> None:
    agent = "import os\ndef ask(prompt):\n    return os.environ['PARAM_WHO'] * 5\n"
    matrix = {"matrix": {"who": ["alpha beta", "gamma delta"]}}
    spec = contract([rule("same", "behavior_unchanged")], agent=PLAIN, parallelism=matrix)
    made = project(spec, agent)
    ran = made.run()
    assert ran.code == 0, ran.out + ran.err
    again = made.cli("judge", "1", "--json")
    assert (again.code, again.json["score"]) == (0, 100)


# "the stored spec is used unless `-c` is given": a missing blob may not be read as an answer
def test_an_answer_whose_blob_is_gone_is_not_judged_on_its_head(project: MakeProject) -> None:
    agent = "def ask(prompt):\n    return 'x' * 20_000 + 'FORBIDDEN'\n"
    made = project(contract([rule("clean", "excludes_pattern", patterns=["FORBIDDEN"])], agent=PLAIN), agent)
    assert made.run().code == 1
    for blob in (made.folder / ".holdfast/runs/0001/blobs").iterdir():
        blob.unlink()
    assert made.cli("judge", "1", "--json").code == 3


# the same settings give the same verdict: what decided the run's verdict is stored with it
def test_a_stored_run_is_shown_with_the_verdict_it_had(project: MakeProject) -> None:
    rules = [rule("r", value="source"), rule("only", value="a", when="tool_faults_active")]
    down = {**DOWN, "llm_faults": []}
    made = project(contract(rules, [CALM, tool_fault(after_calls=5), down]))
    options = [("--allow-vacuous", "--strict"), ("--allow-vacuous",), ()]
    codes = [made.run(*given).code for given in options]
    assert codes == [5, 0, 5]
    assert [made.cli("report", str(n), "--json").json["exit_code"] for n in (1, 2, 3)] == codes
    assert "strict" in made.cli("report", "1").out


# "Nothing is accepted and ignored"
def test_a_resumed_run_refuses_what_would_make_it_another_run(project: MakeProject) -> None:
    made = project(contract([rule("r", value="source")]))
    made.run()
    for option in (
        ["--seed", "9"],
        ["--replicas", "7"],
        ["--scenario", "x"],
        ["--invariant", "r"],
        ["--trial", "ab12"],
    ):
        refused = made.run("--resume", "1", *option)
        assert refused.code == 4, option
        assert option[0] in refused.json["errors"][0]["message"]
    assert made.run("--resume", "1").code == 0


# "Limits: answer 1 MB kept, then cut and noted": what was cut off may be what a rule forbids
def test_a_negative_rule_is_not_proven_by_an_answer_that_was_cut(project: MakeProject) -> None:
    agent = "def ask(prompt):\n    return 'x' * 1_000_005 + 'FORBIDDEN'\n"
    rules = [rule("clean", "excludes_pattern", patterns=["FORBIDDEN"]), rule("x", value="xx")]
    rules += [rule("there", value="FORBIDDEN"), rule("json", "valid_json")]
    result = project(contract(rules, agent=PLAIN), agent).run()
    assert result.outcomes == {
        ("clean", "calm"): "unproven",
        ("x", "calm"): "pass",
        ("there", "calm"): "unproven",  # it stands behind the cut: not the agent's fault
        ("json", "calm"): "unproven",
    }
    assert result.cells["clean", "calm"]["code"] == "answer-cut"


# "`judged n of m cells` is always printed": and a part of a contract says that it is one
def test_a_selected_part_is_not_taken_for_the_whole(project: MakeProject) -> None:
    made = project(contract([rule("r", value="source")], [CALM, DOWN]))
    assert ": --scenario calm\n" in made.show("--scenario", "calm").out
    assert "--scenario" not in made.show().out


# "Our failure is never the agent's": the loop was held up while a large answer came in
def test_an_answer_given_in_time_counts_though_we_were_too_busy_to_read_it(
    project: MakeProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patterns, "LIMIT_S", 0.8)  # from 0.6 s on, and so past the timeout
    agent = "import time\ndef ask(prompt):\n    time.sleep(0.6)\n    return 'ok ' + 'x' * 900_000\n"
    slow = rule("slow", "excludes_pattern", patterns=["(x+x+)+y"])
    spec = contract([rule("done", "completes"), slow], prompts=("a", "b"), isolation="scenario",
                    agent={**PLAIN, "timeout": 1000})  # fmt: skip
    result = project(spec, agent).run("--concurrency", "2", "--no-preflight")
    assert result.outcomes == {("done", "calm"): "pass", ("slow", "calm"): "error"}


# "Latency is the agent's own: invocation to answer": not the time in which we judged another trial
def test_a_quick_http_agent_is_not_slow_because_we_judge_slowly(
    project: MakeProject, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patterns, "LIMIT_S", 1.2)  # longer than the latency that the rule allows
    server = serve(lambda asked: (200, '{"output": "ok %s"}' % ("x" * 3000)))
    slow = rule("slow", "excludes_pattern", patterns=["(x+x+)+y"])
    rules = [rule("fast", "latency", max_ms=900), rule("done", "completes"), slow]
    section = server.section(timeout=1000)
    made = project(contract(rules, prompts=("a", "b"), agent=section, isolation="scenario"))
    result = made.run("--concurrency", "2")
    assert [result.outcomes[r["id"], "calm"] for r in rules] == ["pass", "pass", "error"]


# "a combination is decided only if it would be the same whatever they had been": also where a run had stopped early
def test_judged_again_replicas_that_never_ran_are_missing(project: MakeProject) -> None:
    made = project(contract([rule("r", value="ok")], agent=PLAIN, replicas=5), REFUSES)
    assert made.run("--fail-fast", "--concurrency", "1").code == 1
    made.write(contract([rule("r", value="bad")], agent=PLAIN, replicas=5))
    again = made.cli("judge", "1", "-c", "holdfast.yaml", "--json")
    assert (again.code, again.cell["outcome"], again.cell["code"]) == (5, "unproven", "not-run")
