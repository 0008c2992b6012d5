"""behaviour.md 2: pass, fail, error, unproven, n/a; what the agent causes; faults met; retries."""

from __future__ import annotations

from itertools import count

import pytest
from cli import DOWN, MakeProject, Serve, contract, rule, says, tool_fault

NO_TOOLS = {"type": "python", "endpoint": "agent:ask"}
COMPLETES = [rule("done", "completes")]


def agent(body: str) -> str:
    """An agent whose `ask` is these lines; its tool can be called as search()."""
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    return f"import os, signal, time\ndef search(query='q'):\n    return 'found'\n\ndef ask(prompt):\n{lines}\n"


# "error (our side broke; never the agent's doing)": a user's regex that runs out of its time
def test_2_a_check_that_breaks_is_an_error_and_no_crash_of_the_run(project: MakeProject) -> None:
    rules = [rule("breaks", "regex", pattern="^(a|aa)+$"), rule("fine", value="a")]
    made = project(contract(rules, agent=NO_TOOLS, isolation="scenario"), agent("return 'a' * 60 + '!'"))
    result = made.run()
    assert result.outcomes == {("breaks", "calm"): "error", ("fine", "calm"): "pass"}
    assert result.code == 3


# "What the agent can cause is a result, never an error: status >= 400, timeout, crash (even a segfault) ..."
ENDINGS = {
    "raise ValueError('bad')": "raised",
    "raise SystemExit(3)": "raised",
    "raise KeyboardInterrupt": "raised",
    "def f(): return f()\nf()": "raised",
    "os._exit(3)": "crashed",
    "os.kill(os.getpid(), signal.SIGSEGV)": "crashed",
    "import ctypes\nctypes.string_at(0)": "crashed",
    "os.kill(os.getpid(), signal.SIGKILL)": "crashed",
    "pass": "no_answer",
}


def test_2_what_the_agent_causes_is_a_result(project: MakeProject) -> None:
    spec = contract(COMPLETES, prompts=tuple(ENDINGS), agent=NO_TOOLS)
    result = project(spec, agent("exec(prompt, {'os': os, 'signal': signal})")).run("--no-preflight")
    assert (result.code, result.cell["outcome"], result.cell["errors"]) == (1, "fail", 0)
    assert {trial["prompt"]: trial["ending"] for trial in result.trials} == ENDINGS
    assert {trial["outcome"] for trial in result.trials} == {"fail"}


@pytest.mark.parametrize("status", [400, 503])
def test_2_a_status_of_400_or_more_is_a_result(project: MakeProject, serve: Serve, status: int) -> None:
    server = serve(lambda asked: (status, '{"detail": "no"}'))
    result = project(contract(COMPLETES, agent=server.section())).run()
    assert (result.code, result.cell["outcome"]) == (1, "fail")
    assert result.trial["ending"] == "http_error"
    assert str(status) in result.trial["detail"]


def test_2_an_unreadable_reply_after_a_good_preflight_is_a_result(project: MakeProject, serve: Serve) -> None:
    replies = count()
    server = serve(lambda asked: says("fine") if next(replies) < 2 else (200, '{"words": 1}'))
    result = project(contract(COMPLETES, agent=server.section(response_path="output"))).run()
    assert (result.code, result.cell["outcome"]) == (1, "fail")
    assert result.trial["ending"] == "unreadable"


# "A fault is met when the agent's side received something other than it would have"
def test_2_a_fault_is_met_when_the_agent_received_something_else(project: MakeProject) -> None:
    result = project(contract([rule("any", "regex", pattern=".")], [DOWN])).run()
    (fault,) = result.trial["faults"]
    assert (fault["mode"], fault["effect"], fault["call"]) == ("error", "met", 1)
    assert result.cell["met"] is True


# "a firing without effect is in the ledger as `no_effect`"
def test_2_a_firing_without_effect_is_no_effect_and_leaves_the_cell_unproven(project: MakeProject) -> None:
    source = "def search(q):\n    return ''\n\ndef ask(prompt):\n    return 'got ' + repr(search(prompt))\n"
    result = project(contract([rule("any", value="got")], [tool_fault("empty")]), source).run()
    assert [f["effect"] for f in result.trial["faults"]] == ["no_effect"]
    assert (result.cell["outcome"], result.cell["met"]) == ("unproven", False)
    assert (result.cell["code"], result.cell["key"]) == ("fault-changed-nothing", ["search"])
    assert result.code == 5


# "a delay counts once begun"
def test_2_a_delay_counts_once_begun_though_the_agent_dies_in_it(project: MakeProject) -> None:
    body = "signal.signal(signal.SIGALRM, lambda *_: os._exit(9))\nsignal.setitimer(signal.ITIMER_REAL, 0.1)\nsearch()"
    spec = contract(COMPLETES, [tool_fault("slow", delay_ms=20_000)])
    result = project(spec, agent(body)).run("--no-preflight")
    assert result.trial["ending"] == "crashed"
    assert [f["effect"] for f in result.trial["faults"]] == ["met"]
    assert "delay of 20000 ms" in result.trial["faults"][0]["got"]


# "Ledger entries leave the agent's process before the fault acts."
def test_2_the_ledger_survives_the_agents_death(project: MakeProject) -> None:
    body = "try:\n    search()\nexcept Exception:\n    os.kill(os.getpid(), signal.SIGKILL)"
    result = project(contract(COMPLETES, [DOWN]), agent(body)).run("--no-preflight")
    assert result.trial["ending"] == "crashed"
    assert [f["effect"] for f in result.trial["faults"]] == ["met"]


# "A provider or harness failure that was not injected turns the fails of that trial into error; its passes stand."
def test_2_a_harness_failure_turns_fails_into_error_and_lets_passes_stand(project: MakeProject) -> None:
    source = (
        "def model(prompt):\n    return 42\n\n"
        "def ask(prompt):\n    try:\n        return str(model(prompt))\n"
        "    except Exception:\n        return 'a source'\n"
    )
    rules = [rule("passes", value="source"), rule("fails", value="nowhere")]
    matrix = [{"name": "cut", "llm_faults": [{"mode": "truncated_response", "max_tokens": 2}]}]
    section = {**NO_TOOLS, "llm": "agent:model"}
    spec = contract(rules, matrix, agent=section, isolation="scenario", advanced={"retries": 0})
    result = project(spec, source).run()
    assert result.outcomes["fails", "cut"] == "error"
    assert "int" in result.cells["fails", "cut"]["reason"]
    assert result.cells["passes", "cut"]["passes"] == 1
    # It stands, but the fault that would have proven something is ours, and broke.
    assert result.cells["passes", "cut"]["outcome"] == "error"
    assert "fault truncated_response failed" in result.cells["passes", "cut"]["reason"]
    assert result.code == 3


# "`advanced.retries` repeats such a trial"
@pytest.mark.parametrize(("retries", "outcome"), [(0, "error"), (1, "error"), (2, "pass")])
def test_2_retries_repeat_a_trial_that_our_side_broke(project: MakeProject, retries: int, outcome: str) -> None:
    source = """
import os

def reset():
    with open("resets", "a") as file:
        file.write("x")
    if os.path.getsize("resets") < 3:
        raise OSError("not ready")

def ask(prompt):
    return "fine"
"""
    spec = contract(COMPLETES, agent={**NO_TOOLS, "reset_function": "agent:reset"}, advanced={"retries": retries})
    made = project(spec, source)
    result = made.run("--no-preflight")
    assert result.cell["outcome"] == outcome
    assert len(made.read("resets")) == retries + 1
    assert made.stored("observations-0.jsonl")[-1].get("attempts", 1) == retries + 1


def test_2_retries_are_2_by_default(project: MakeProject) -> None:
    source = "def reset():\n    open('resets', 'a').write('x')\n    1 / 0\n\ndef ask(prompt):\n    return 'fine'\n"
    made = project(contract(COMPLETES, agent={**NO_TOOLS, "reset_function": "agent:reset"}), source)
    assert made.run("--no-preflight").code == 3
    assert made.read("resets") == "xxx"


# "never one in which the agent ended badly"
@pytest.mark.parametrize("body", ["raise ValueError('bad')", "os._exit(1)", "return None"])
def test_2_retries_never_repeat_a_bad_ending(project: MakeProject, body: str) -> None:
    spec = contract(COMPLETES, agent=NO_TOOLS, advanced={"retries": 5})
    made = project(spec, agent("open('asked', 'a').write('x')\n" + body))
    assert made.run("--no-preflight").code == 1
    assert made.read("asked") == "x"


def test_2_the_agents_own_output_is_kept_apart_from_its_answer(project: MakeProject) -> None:
    result = project(contract([rule("any", value="answer")], agent=NO_TOOLS), agent("print('noise')\nreturn 'answer'"))
    trial = result.run().trial
    assert (trial["answer"], trial["output"]) == ("answer", "noise\n")
