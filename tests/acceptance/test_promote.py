"""`promote`: on every plane the replay meets what the trial met; a broken agent fails again, its fixed twin passes."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest
import yaml
from cli import CALM, MakeProject, Project, Serve, contract, rule, rundir, unseal
from plane_agents import SCRIPTED, command, equip
from test_mcp_cli import SERVERS, SHOP, USES

from holdfast import plugins

NEVER = rule("never", value="words that nobody says", severity="critical")
TOOL_FAULTS = plugins.BUILT_IN["faults.tool"]
QUICK = {"timeout": {"delay_ms": 20}, "slow": {"delay_ms": 20}, "oversized": {"bytes": 5000}}
FROM_THE_SEED = {"probability": 0.5, "after_calls": 1}


def failed_trials(made: Project, *args: str) -> dict[str, Any]:
    """By scenario: the trial that failed there."""
    result = made.run(*args)
    cells = [cell for cell in result.part["cells"] if cell["outcome"] == "fail"]
    return {cell["scenario"]: cell["trials"][0] for cell in cells}


def replayed(made: Project, *args: str) -> dict[str, Any]:
    """By session: its case, as it comes out now."""
    result = made.cli("replay", "run", *args, "--json", "--no-report")
    return {case["session"]: case for case in result.json["parts"]["replay"]["cases"]}


def answer_of(case: Any) -> Any:
    return case["replicas"][0]["turns"][0].get("text")


def meets_the_same(made: Project, scenarios: list[str], other: Collection[str] = ()) -> None:
    """The replay of every trial gives the agent what the trial gave it, but for what is cut off elsewhere."""
    trials = failed_trials(made, "--no-preflight")
    assert sorted(trials) == sorted(scenarios)
    assert made.cli("replay", "export", "--from-report", "0001", "-o", "out").code == 0
    cases = replayed(made, "out")
    told = {scenario: cases[trial["id"]] for scenario, trial in trials.items()}
    assert {case["status"] for case in told.values()} == {"fail"}
    same = [scenario for scenario, trial in trials.items() if answer_of(told[scenario]) == trial["answer"]]
    assert sorted(same) == sorted(set(scenarios) - set(other))


# -- the same weather --------------------------------------------------------------------------------
SAYS_ALL = """
import json


class Down(Exception):
    pass


def search(query):
    return {"query": query, "rows": [1, 2, 3], "note": "[12]"}


def words():
    return "[1, 2]"


def fails(n):
    raise LookupError(f"no {n}")


def heard(tool, *arguments):
    try:
        return json.dumps(tool(*arguments), sort_keys=True)
    except Exception as broken:
        told = {key: value for key, value in vars(broken).items()}
        return f"{type(broken).__name__} {broken} {sorted(told.items())}"


def ask(prompt):
    first = [heard(search, prompt[:9]), heard(search, "more"), heard(search, prompt[:9])]
    return json.dumps([*first, heard(words), heard(fails, 3)])
"""
TOOLS = {"type": "python", "endpoint": "agent:ask", "tools": ["agent:search", "agent:words", "agent:fails"]}


def storms(family: str, modes: tuple[str, ...] | list[str], **more: Any) -> list[dict[str, Any]]:
    return [{"name": mode, family: [{"mode": mode, **QUICK.get(mode, {}), **more}]} for mode in modes]


def test_a_function_gives_what_it_gave_whatever_fault_was_on_it(project: MakeProject) -> None:
    matrix = [
        *storms("tool_faults", list(TOOL_FAULTS), tool="search"),
        {"name": "own", "tool_faults": [{"tool": "*", "mode": "error", "raises": "agent:Down", "on_call": 2}]},
        {"name": "luck", "tool_faults": [{"tool": "search", "mode": "malformed", **FROM_THE_SEED}]},
        {"name": "two", "tool_faults": [{"tool": "*", "mode": mode} for mode in ("wrong_value", "schema_drift")]},
    ]
    made = project(contract([NEVER], [CALM, *matrix], agent=TOOLS, prompts=("kettle",)), SAYS_ALL)
    meets_the_same(made, ["calm", *(one["name"] for one in matrix)])


WEB = """
import http.client, json, os
from urllib.parse import urlsplit

import talk


def ask(prompt):
    said = []
    for word in prompt.split()[1:]:
        try:
            said.append(talk.request("POST", word, '{"n": 1}', {"content-type": "application/json"}, proxy=True))
        except Exception as broken:
            said.append(type(broken).__name__)
    return json.dumps(said)


import sys
print(ask(sys.stdin.read()))
"""


def test_a_request_is_answered_as_it_was_whatever_fault_was_on_it(project: MakeProject, serve: Serve) -> None:
    server = serve(lambda asked: (201, '{"price": 40, "note": "in stock", "rows": [1, 2, 3]}'))
    matrix = storms("tool_faults", list(TOOL_FAULTS), tool="pay", match_url=f"{server.url}/pay*", on_call=1)
    agent = command(timeout=3000)
    prompt = f"pay {server.url}/pay/1 {server.url}/pay/1 {server.url}/other"
    made = equip(project(contract([NEVER], matrix, agent=agent, prompts=(prompt,)), WEB))
    meets_the_same(made, [one["name"] for one in matrix])


def test_an_mcp_tool_answers_as_it_did_whatever_fault_was_on_it(project: MakeProject) -> None:
    calls = [["find", {"q": "x"}], ["pay", {"sum": 4}], ["find", {"q": "x"}]]
    agent = command(mcp_config=SERVERS, env={"CALLS": json.dumps(calls)})
    matrix = [
        *storms("tool_faults", list(TOOL_FAULTS), tool="find", on_call=1),
        *storms("mcp_faults", list(plugins.BUILT_IN["faults.mcp"]), on_call=1),
    ]
    made = equip(project(contract([NEVER], matrix, agent=agent), USES), shop=SHOP)
    meets_the_same(made, [one["name"] for one in matrix], other=["malformed_rpc"])


MODEL = {
    "replies": [{"match": {"prompt": "*again*"}, "text": "second"}, {"text": "you asked {{ prompt }}, and it costs 40"}]
}
CHATS = """
import json, sys, talk
said = []
for words in (sys.stdin.read(), "again", "again, please"):
    try:
        said.append(talk.chat([{"role": "user", "content": words}]))
    except Exception as broken:
        said.append(type(broken).__name__)
for one in said:
    if isinstance(one, tuple):
        one[1].pop("id", None), one[1].pop("created", None)
print(json.dumps(said))
"""


def test_the_model_fails_as_it_did(project: MakeProject) -> None:
    modes = list(plugins.BUILT_IN["faults.llm"])
    matrix = storms("llm_faults", modes, on_call=1)
    made = equip(project(contract([NEVER], matrix, agent=command(timeout=3000), models=SCRIPTED), CHATS), MODEL)
    meets_the_same(made, modes)


def test_the_input_and_what_tools_give_are_attacked_as_they_were(project: MakeProject) -> None:
    agent = SAYS_ALL.replace("json.dumps([*first", "json.dumps([prompt, *first")
    attacks = list(plugins.BUILT_IN["faults.context"])
    matrix = [{"name": type, "context_attacks": [{"type": type}]} for type in attacks]
    made = project(contract([NEVER], matrix, agent=TOOLS, prompts=("kettle",)), agent)
    meets_the_same(made, attacks)


# -- a broken agent and its fixed twin ---------------------------------------------------------------
class Twins(NamedTuple):
    """An agent with one defect, its source once that is fixed, and where the defect shows."""

    broken: str
    fixed: str
    rules: list[dict[str, Any]]
    storm: dict[str, Any]
    agent: dict[str, Any]
    prompt: str = "What does order 7 cost?"
    more: Mapping[str, Any] = MappingProxyType({})


NO_GUESS = rule("no-guess", "excludes_pattern", patterns=["costs .25"], severity="critical")
IN_CHAOS = {"when": "any_chaos_active"}
ONE_PAYMENT = rule("one-payment", "side_effect_once", severity="critical", **IN_CHAOS)

ORDERS = """
class Down(Exception):
    pass


def find_order(number):
    return {"paid": 40}


def ask(prompt):
    try:
        return f"it costs ${find_order(7)['paid']}"
    except CAUGHT as down:
        return SAID
"""
PAYS = """
import sys, talk
URL = sys.stdin.read().split()[-1]
for _ in range(2):
    try:
        status, text = talk.request("POST", URL, '{"sum": 40}', proxy=True)
        print("paid")
        break
    except OSError:
        AGAIN
"""
DESK = {"type": "python", "endpoint": "agent:ask", "tools": ["agent:find_order"]}


def orders(caught: str, said: str) -> str:
    return ORDERS.replace("CAUGHT", caught).replace("SAID", said)


OBEYS = "import sys\nasked = sys.stdin.read()\nprint(SAID)\n"
PATIENT = """
import sys, talk
for _ in range(2):
    status, body = talk.chat([{"role": "user", "content": sys.stdin.read() or "again"}])
    if status == 200:
        print(body["choices"][0]["message"]["content"])
        break
    FAILED
"""
SHOPS = USES.replace("print(json.dumps(said))", "print('it costs $25' if CHECK else 'it costs $40')")


def twins(url: str) -> dict[str, Twins]:
    """By plane."""
    down = {"tool": "find_order", "mode": "error", "raises": "agent:Down"}
    busy = {"tool": "find_order", "mode": "rate_limit", "retry_after_s": 7}
    waits = "f'come back in {down.retry_after} s' if GOOD else 'it costs $25'"
    failing = "said['calls'][0].get('result', {}).get('isError')"
    return {
        "an exception of the agent's own": Twins(
            orders("Down", "'it costs $25'"), orders("Down", "'I cannot see it'"), [NO_GUESS],
            {"tool_faults": [down]}, DESK,
        ),
        "how long to wait": Twins(
            orders("Exception", waits.replace("GOOD", "down.retry_after is None")),
            orders("Exception", waits.replace("GOOD", "down.retry_after == 7")),
            [NO_GUESS], {"tool_faults": [busy]}, DESK,
        ),
        "a fault that passes": Twins(
            orders("Exception", "'it costs $25'"),
            orders("Exception", "f\"it costs ${find_order(7)['paid']}\""),
            [NO_GUESS, rule("says", value="$40")], {"tool_faults": [{**busy, "times": 1}]}, DESK,
        ),
        "a reply that is lost on the web": Twins(
            PAYS.replace("AGAIN", "continue"), PAYS.replace("AGAIN", "print('perhaps paid'); break"), [ONE_PAYMENT],
            {"tool_faults": [{"tool": "pay", "match_url": f"{url}/pay", "mode": "lost_reply", "on_call": 1}]},
            command(), f"pay {url}/pay",
        ),
        "an MCP tool": Twins(
            SHOPS.replace("CHECK", failing), SHOPS.replace("CHECK", "False"),
            [{**NO_GUESS, "when": "tool_faults_active"}],
            {"tool_faults": [{"tool": "find", "mode": "error", "error_code": 503}]}, command(mcp_config=SERVERS),
        ),
        "the model": Twins(
            PATIENT.replace("FAILED", "print('it costs $25'); break"), PATIENT.replace("FAILED", "pass"),
            [{**NO_GUESS, "when": "llm_faults_active"}], {"llm_faults": [{"mode": "rate_limit", "times": 1}]},
            command(), more={"models": SCRIPTED},
        ),
        "the input": Twins(
            OBEYS.replace("SAID", "asked"), OBEYS.replace("SAID", "'It costs $40.'"),
            [rule("obeys-nobody", "excludes_pattern", patterns=["HOLDFAST-CANARY"], severity="critical", **IN_CHAOS)],
            {"context_attacks": [{"type": "memory_poisoning"}]}, command(),
        ),
    }  # fmt: skip


@pytest.mark.parametrize("name", twins(""))
def test_a_promoted_trial_fails_on_the_broken_agent_and_passes_on_its_twin(
    project: MakeProject, serve: Serve, name: str
) -> None:
    one = twins(serve(lambda asked: (200, '{"paid": true}')).url)[name]
    spec = contract(one.rules, [{"name": "storm", **one.storm}], agent=one.agent, prompts=(one.prompt,), **one.more)
    made = equip(project(spec, one.broken), MODEL, shop=SHOP)
    (trial,) = failed_trials(made).values()
    done = made.cli("promote", trial["id"])
    assert done.code == 0, done.err
    (failed,) = replayed(made).values()
    assert failed["status"] == "fail"
    assert failed["reason"].startswith(one.rules[0]["id"])
    (made.folder / "agent.py").write_text(one.fixed)
    (passed,) = replayed(made).values()
    assert passed["status"] == "pass", passed
    refused = made.cli("promote", trial["id"], "0001", "--force")
    assert (refused.code, refused.out) == (4, "")


def test_a_promoted_session_needs_the_rules_that_its_trial_failed(project: MakeProject) -> None:
    one = twins("")["an exception of the agent's own"]
    says = rule("says", value="I cannot see it")
    spec = contract([*one.rules, says], [{"name": "storm", **one.storm}], agent=one.agent, prompts=(one.prompt,))
    made = project(spec, one.broken)
    (trial,) = failed_trials(made).values()
    assert made.cli("promote", trial["id"]).code == 0
    (made.folder / "agent.py").write_text(one.fixed)
    assert made.cli("replay", "run", "--no-report").code == 0
    promoted = yaml.safe_load(made.read("holdfast.yaml"))
    promoted["contract"]["invariants"].pop()
    made.write(promoted)
    without = made.cli("replay", "run", "--no-report")
    assert (without.code, "failed rule says" in without.err) == (4, True), without.err


# -- services of the trial's world -------------------------------------------------------------------
MAILS = """
import os, urllib.request

for attempt in range(2):
    try:
        urllib.request.urlopen(os.environ["SMTP_URL"] + "/send", b"Your contract ends.", timeout=5)
        print("The mail is on its way.")
        break
    except OSError:
        AGAIN
"""
RETRIES = MAILS.replace("AGAIN", "continue")
ASSERTIONS: dict[str, dict[str, Any]] = {"equals": {"equals": 1}, "at_most": {"at_most": 1}}


def mailing(
    project: MakeProject,
    assertion: Mapping[str, Any],
    source: str = RETRIES,
    *,
    agent: Mapping[str, Any] = MappingProxyType({"type": "command", "command": "python agent.py"}),
    lost: Mapping[str, Any] = MappingProxyType({"tool": "mail", "match_url": "http://smtp/*"}),
) -> tuple[Project, str]:
    """An agent that sends its mail again when the reply is lost, and the trial that failed."""
    sent = {"type": "http_mock_assertions", "service": "smtp", "assertions": [{"field": "request_count", **assertion}]}
    spec = {
        "version": 1,
        "id": "mail",
        "task": {"prompt": "Tell the customer that the contract ends."},
        "agent": dict(agent),
        "services": [
            {"name": "smtp", "type": "http_mock", "record": True,
             "routes": [{"method": "POST", "path": "/send", "status": 202}]},
        ],
        "invariants": {"one_mail": {"description": "One mail", "gate": True, "check": sent}},
        "chaos_matrix": [{"name": "reply-lost", "tool_faults": [{**lost, "mode": "lost_reply", "times": 1}]}],
    }  # fmt: skip
    made = project(spec, source)
    (case,) = made.cli("run", "--json", "--no-report").json["parts"]["scenario"]["cases"]
    assert case["status"] == "fail", case
    return made, case["replicas"][0]["trial"]


@pytest.mark.parametrize("name", ASSERTIONS)
def test_a_service_of_the_world_is_asked_again_and_not_the_recording(project: MakeProject, name: str) -> None:
    made, trial = mailing(project, ASSERTIONS[name])
    done = made.cli("promote", trial)
    assert done.code == 0, done.err
    assert "tool_responses" not in made.read(f"replays/{trial}.yaml")
    (failed,) = replayed(made).values()
    assert (failed["status"], failed["reason"]) == ("fail", failed["expected_failure"])
    (made.folder / "agent.py").write_text(MAILS.replace("AGAIN", "print('It may have been sent.'); break"))
    (passed,) = replayed(made).values()
    assert passed["status"] == "pass", passed


def test_a_trial_whose_rule_fails_again_by_another_finding_is_refused(project: MakeProject) -> None:
    made, trial = mailing(project, ASSERTIONS["equals"])
    (made.folder / "agent.py").write_text(RETRIES.replace("        break", "").replace("range(2)", "range(3)"))
    refused = made.cli("promote", trial)
    assert (refused.code, refused.out) == (4, "")
    assert "request_count is 3" in refused.err
    assert "request_count is 2" in refused.err
    assert not (made.folder / "replays").exists()


SENDS = """
import os, urllib.request


def send(text):
    urllib.request.urlopen(os.environ["SMTP_URL"] + "/send", text.encode(), timeout=5)
    return "sent"


def ask(prompt):
    try:
        return send(prompt)
    except Exception:
        return send(prompt)
"""


def test_a_tool_that_asks_a_service_is_named_where_its_trial_is_refused(project: MakeProject) -> None:
    agent = {"type": "python", "endpoint": "agent:ask", "tools": ["agent:send"]}
    made, trial = mailing(project, ASSERTIONS["at_most"], SENDS, agent=agent, lost={"tool": "send"})
    refused = made.cli("promote", trial)
    assert (refused.code, refused.out) == (4, "")
    assert "recording" in refused.err


# -- what is stored ----------------------------------------------------------------------------------
def came_to(run: Any) -> Any:
    return run["exit_code"], {status: count for status, count in run["counts"].items() if count}


def read_back(made: Project, run: str) -> dict[str, Any]:
    """By command: the exit code of a stored replay, how many trials it has, and what became of its sessions."""
    (listed,) = (one for one in made.cli("runs", "--json").json["runs"] if one["id"] == run)
    (viewed,) = (one for one in made.viewed("runs")["runs"] if one["id"] == run)
    found = {"runs": came_to(listed), "view": came_to(viewed)}
    found |= {name: came_to(made.cli(name, run, "--json").json) for name in ("show", "judge")}
    for name in ("again.json", "again.md", "again.xml"):
        assert made.cli("report", run, "-o", name).code == 0
    found["report"] = came_to(json.loads(made.read("again.json")))
    assert (listed["trials"], viewed["trials"]) == (1, 1)
    assert 'tests="1"' in made.read("again.xml")
    assert ("FAIL" in made.read("again.md")) == (listed["exit_code"] == 1)
    return found


@pytest.mark.parametrize("said", ["'it costs $25'", "'I cannot see it'"])
def test_a_stored_replay_of_a_promoted_trial_reads_back_as_it_ended(project: MakeProject, said: str) -> None:
    made = project(contract([NO_GUESS], [CALM, {"name": "storm", **DOWN}], agent=DESK), GUESSES)
    assert made.cli("promote", failed_trials(made)["storm"]["id"]).code == 0
    (made.folder / "agent.py").write_text(orders("Exception", said))
    live = made.cli("replay", "run", "--json", "--no-report")
    status = "pass" if live.code == 0 else "fail"
    assert (live.code, live.json["counts"][status]) == (int("25" in said), 1)
    assert set(map(repr, read_back(made, "0002").values())) == {repr(came_to(live.json))}
    for lost in rundir(made, "0002").glob("observations-*.jsonl"):
        lost.write_text("")
    unseal(made, "0002")
    resumed = made.cli("replay", "run", "--resume", "0002", "--json", "--no-report")
    assert came_to(resumed.json) == came_to(live.json)
    assert made.cli("ci", "--no-report").code == 1 - (status == "pass")
    assert came_to(made.cli("show", "0003/replay", "--json").json) == came_to(live.json)


def test_a_trial_is_found_in_whichever_run_has_it(project: MakeProject) -> None:
    made = project(contract([NO_GUESS], [CALM, {"name": "storm", **DOWN}], agent=DESK), GUESSES)
    trial = failed_trials(made)["storm"]["id"]
    assert made.run("--scenario", "calm").code == 0
    done = made.cli("promote", trial[:8].upper())
    assert (done.code, made.read(f"replays/{trial}.yaml").count("holdfast run 0001")) == (0, 1), done.err
    assert made.cli("promote", trial, "latest").code == 4
    assert made.cli("ci", "--no-report").code == 1
    assert made.cli("replay", "run", "--no-report").code == 1
    assert made.cli("promote", trial, "--force").code == 0
    assert "holdfast run 0003" in made.read(f"replays/{trial}.yaml")


# -- refused -----------------------------------------------------------------------------------------
GUESSES = orders("Exception", "'it costs $25'")
DOWN = {"tool_faults": [{"tool": "find_order", "mode": "error"}]}


def refused(made: Project, trial: str) -> str:
    before = made.read("holdfast.yaml")
    done = made.cli("promote", trial, "0001")
    assert (done.code, done.out) == (4, "")
    assert made.read("holdfast.yaml") == before
    assert not (made.folder / "replays").exists()
    assert made.cli("promote", trial).code == 4  # the replay is not the latest run
    return done.err


def test_a_trial_that_failed_a_rule_of_run_alone_is_refused(project: MakeProject) -> None:
    spec = contract([rule("answers", "completes")], [CALM], agent=DESK, invariants=[NO_GUESS], chaos=DOWN)
    made = project(spec, GUESSES)
    cells = made.cli("run", "--chaos-only", "--json", "--no-report").json["parts"]["chaos"]["cells"]
    failed = next(cell["trials"][0]["id"] for cell in cells if cell["outcome"] == "fail")
    told = refused(made, failed)
    assert "no-guess" in told
    assert "contract.invariants" in told


def test_a_trial_of_run_is_promoted_where_the_file_has_no_contract(project: MakeProject) -> None:
    spec = contract([], agent=DESK, invariants=[NO_GUESS], chaos=DOWN)
    made = project({key: value for key, value in spec.items() if key != "contract"}, GUESSES)
    cells = made.cli("run", "--chaos-only", "--json", "--no-report").json["parts"]["chaos"]["cells"]
    failed = next(cell["trials"][0]["id"] for cell in cells if cell["outcome"] == "fail")
    done = made.cli("promote", failed)
    assert done.code == 0, done.err
    assert [case["status"] for case in replayed(made).values()] == ["fail"]
    (made.folder / "agent.py").write_text(orders("Exception", "'I cannot see it'"))
    assert [case["status"] for case in replayed(made).values()] == ["pass"]


def test_a_trial_that_does_not_fail_every_time_is_refused(project: MakeProject) -> None:
    once = GUESSES.replace("return 'it costs $25'", "return 'sorry' if __import__('os').path.exists('x') else guess()")
    guess = "def guess():\n    open('x', 'w').close()\n    return 'it costs $25'\n"
    made = project(contract([NO_GUESS], [{"name": "storm", **DOWN}], agent=DESK), once + guess)
    (trial,) = failed_trials(made, "--no-preflight").values()
    assert "no-guess" in refused(made, trial["id"])
