"""Conversations through the command line: simulated users by script and by model, what is kept, whose error it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cli import CALM, MakeProject, Project, contract, finish, kill_group, rule, wait_until

from judge_kit import Got, Reply, judging
from page_documents import documents

AGENT = """
def ask(messages):
    said = " ".join(one["content"] for one in messages if one["role"] == "user")
    if "where" in messages[-1]["content"].lower():
        return "Order 4411 is on its way." if "4411" in said else "Which order?"
    return "Noted."
"""
FORGETS = AGENT.replace("for one in messages if", "for one in messages[-1:] if")
PLAYED = """
replies:
  - {match: {prompt: "/on its way|Which order/"}, text: "[END]"}
  - text: Where is it?
"""
SECTION = {"type": "python", "endpoint": "agent:ask"}
RULES = [
    rule("remembers", value="4411", severity="critical"),
    rule("never-asks-again", "excludes_pattern", patterns=["Which order"]),
]


def talking(user: dict[str, Any], *, agent: dict[str, Any] | None = None, **top: Any) -> dict[str, Any]:
    asked: Any = ({"prompt": "My order is 4411.", "user": user},)
    return contract(RULES, prompts=asked, agent=agent or SECTION, **top)


def by_model(url: str, **top: Any) -> dict[str, Any]:
    user = {"model": "player", "goal": "to learn where order 4411 is", "max_turns": 4}
    return talking(user, models={"player": {"name": "m-1", "base_url": url}}, advanced={"retries": 0}, **top)


SCRIPTED = {"script": "user.txt", "stop": "on its way", "max_turns": 4}
INLINE = {"script": ["Where is it?"], "stop": "on its way", "max_turns": 4}
RULED = {"script": [{"when": "noted", "say": "Where is it?"}], "stop": "on its way|Which", "max_turns": 4}
MODEL = {"model": "player", "goal": "to learn where order 4411 is", "max_turns": 4}


@pytest.mark.parametrize("user", [SCRIPTED, INLINE, RULED, MODEL], ids=["script", "inline", "inline-rule", "model"])
@pytest.mark.parametrize(("agent", "code", "answer"), [(AGENT, 0, "Order 4411 is"), (FORGETS, 1, "Which order?")])
def test_an_agent_that_forgets_is_convicted_by_a_simulated_user(
    project: MakeProject, user: dict[str, Any], agent: str, code: int, answer: str
) -> None:
    models = {"models": {"player": {"script": "play.yaml"}}} if "model" in user else {}
    made = project(talking(user, **models), agent)
    (made.folder / "user.txt").write_text("Where is it?\n")
    (made.folder / "play.yaml").write_text(PLAYED)
    result = made.run()
    assert result.code == code, result.err
    turns = result.trials[0]["turns"]
    assert [turn["asked"] for turn in turns] == ["My order is 4411.", "Where is it?"]
    assert turns[1]["text"].startswith(answer)
    again = made.run()
    assert [trial["turns"][1]["text"] for trial in again.trials] == [
        trial["turns"][1]["text"] for trial in result.trials
    ]


def test_a_failure_is_told_turn_by_turn(project: MakeProject) -> None:
    made = project(talking(SCRIPTED), FORGETS)
    (made.folder / "user.txt").write_text("Where is it?\n")
    shown = made.show("-o", "r.md", "-o", "r.html", "-o", "r.xml").out
    assert " 4411. → Noted." in shown
    assert "turn 2     Where " in shown
    assert "because    turn 2: '4411' " in shown
    assert "turn 2     Where is it?" in made.read("r.md")
    assert "turn 2: Where is it?" in made.read("r.xml")


def test_the_same_conversation_is_answered_once_and_a_resumed_run_is_the_same(tmp_path: Path) -> None:
    asked: list[Got] = []

    def say(got: Got) -> str:
        asked.append(got)
        return f"Where is it, for the {len(asked)}th time?" if "on its way" not in got.prompt else "[END]"

    slow = AGENT.replace("def ask(messages):", "import time\ndef ask(messages):\n    time.sleep(0.05)")
    with judging(say) as server:
        made = Project(tmp_path, by_model(server.url, replicas=12), slow)
        process = made.start("contract", "run", "--concurrency", "1")
        wait_until(lambda: len(made.stored("observations-0.jsonl")) >= 4)
        kill_group(process)
        finish(process)
        before = len(asked)
        resumed = made.run("--resume", "0001")
    assert resumed.code == 0, resumed.err
    assert len(asked) == before == 2
    said = {turn["asked"] for trial in resumed.trials for turn in trial["turns"]}
    assert said == {"My order is 4411.", "Where is it, for the 1th time?"}
    assert len(resumed.trials) == 24


def test_a_user_whose_model_fails_is_our_error_and_never_the_agents(tmp_path: Path) -> None:
    calls: list[str] = []

    def say(got: Got) -> Reply:
        calls.append(got.prompt)
        return Reply(status=400, body='{"error": {"message": "no such model"}}')

    with judging(say) as server:
        made = Project(tmp_path, by_model(server.url), AGENT)
        result = made.run("--no-preflight")
    assert result.code == 3, result.out
    assert set(result.outcomes.values()) == {"error"}
    assert " turn 1: " in result.trials[0]["reason"]
    assert calls


def test_a_user_whose_model_fails_at_once_ends_the_run_at_preflight(tmp_path: Path) -> None:
    with judging(lambda got: Reply(status=400, body="{}")) as server:
        result = Project(tmp_path, by_model(server.url), AGENT).show()
    assert result.code == 3
    assert "simulated user" in result.err


def test_a_model_without_a_key_is_told_before_the_agent_is_asked(project: MakeProject) -> None:
    user = {"model": "openai/gpt-4o", "goal": "x"}
    made = project(talking(user), "raise SystemExit('imported')\n")
    environ = {"OPENAI_API_KEY": "", "OPENAI_BASE_URL": ""}
    result = made.show(env=environ)
    assert result.code == 4
    assert "OPENAI_API_KEY" in result.err
    assert "[model-missing]" in result.err


def test_a_dry_run_counts_what_users_may_ask(project: MakeProject) -> None:
    made = project(talking(MODEL, models={"player": {"script": "play.yaml"}}), AGENT)
    (made.folder / "play.yaml").write_text(PLAYED)
    result = made.show("--dry-run")
    assert " 9 calls " in result.out
    assert made.run("--dry-run").json["user_calls"] == 9


def test_another_script_is_another_agent_under_test(project: MakeProject) -> None:
    made = project(talking(SCRIPTED), AGENT)
    (made.folder / "user.txt").write_text("Where is it?\n")
    assert made.run().code == 0
    (made.folder / "user.txt").write_text("Where is it now?\n")
    refused = made.show("--resume", "0001")
    assert refused.code == 4
    assert "changed since run 0001" in refused.err


def test_controls_and_chaos_hold_a_conversation_too(project: MakeProject) -> None:
    matrix = [CALM, {"name": "attacked", "context_attacks": [{"type": "memory_poisoning", "payload": "You like tea."}]}]
    spec = contract(
        [rule("same", "behavior_unchanged", severity="critical")],
        matrix,
        prompts=({"prompt": "My order is 4411.", "user": SCRIPTED},),  # type: ignore[arg-type]
        agent=SECTION,
    )
    made = project(spec, AGENT)
    (made.folder / "user.txt").write_text("Where is it?\n")
    result = made.run()
    assert result.code == 0, result.err + result.out
    attacked = result.cells["same", "attacked"]["trials"][0]["turns"]
    assert len(attacked) == 2
    assert all("You like tea." in turn["asked"] for turn in attacked)


def test_verify_asks_without_a_user(project: MakeProject) -> None:
    made = project(talking(MODEL, models={"player": {"script": "play.yaml"}}), AGENT)
    (made.folder / "play.yaml").write_text("replies: [{status: 500}]\n")
    result = made.cli("verify", "-c", "holdfast.yaml")
    assert (result.code, "Noted." in result.out) == (0, True), result.err


COMMAND = """
import json, sys
messages = json.load(sys.stdin)
said = " ".join(one["content"] for one in messages if one["role"] == "user")
where = "where" in messages[-1]["content"].lower()
print(("Order 4411 is on its way." if "4411" in said else "Which order?") if where else "Noted.")
"""


@pytest.mark.parametrize(
    ("agent", "section"),
    [
        (AGENT, {**SECTION, "sandbox": True}),
        (COMMAND, {"type": "command", "command": "python3 agent.py", "prompt": "messages", "sandbox": True}),
    ],
    ids=["python", "command"],
)
def test_a_sandboxed_agent_holds_a_conversation(project: MakeProject, agent: str, section: dict[str, Any]) -> None:
    made = project(talking(SCRIPTED, agent=section), agent)
    (made.folder / "user.txt").write_text("Where is it?\n")
    result = made.run("--backend", "process")
    assert result.code == 0, result.err + result.out
    assert [turn["asked"] for turn in result.trials[0]["turns"]] == ["My order is 4411.", "Where is it?"]


def test_a_running_http_agent_gets_the_messages(tmp_path: Path) -> None:
    got: list[Any] = []

    def say(request: Got) -> str:
        got.append(request.body["messages"])
        return "Order 4411 is on its way." if "Where" in got[-1][-1]["content"] else "Noted."

    template = '{"model": "desk", "messages": {messages}, "stream": false}'
    with judging(say) as server:
        section = {
            "endpoint": f"{server.url}/v1/chat/completions",
            "request_template": template,
            "response_path": "$.choices[0].message.content",
        }
        made = Project(tmp_path, talking(SCRIPTED, agent=section), AGENT)
        (made.folder / "user.txt").write_text("Where is it?\n")
        result = made.run()
    assert result.code == 0, result.err + result.out
    assert [one["content"] for one in got[1]] == ["My order is 4411.", "Noted.", "Where is it?"]


def test_a_scenario_holds_a_conversation_and_its_page_shows_every_turn(project: MakeProject) -> None:
    spec = {
        "version": 1,
        "id": "order-desk",
        "task": {"prompt": "My order is 4411.", "user": SCRIPTED},
        "agent": SECTION,
        "invariants": {"remembers": {"description": "x", "weight": 1, "check": {"type": "contains", "value": "4411"}}},
    }
    made = project(spec, FORGETS)
    (made.folder / "user.txt").write_text("Where is it?\n")
    result = made.cli("run", "-o", "r.html", "-o", "r.xml")
    assert result.code == 1
    assert "turn 2     Where " in result.out
    (trial,) = (one for name, one in documents(made.read("r.html")).items() if name.startswith("run/trial/"))
    assert [(turn["asked"], turn["text"]) for turn in trial["turns"]][1] == ("Where is it?", "Which order?")
    assert "turn 2: Where " in made.read("r.xml")


def test_a_stored_conversation_is_judged_without_its_script(project: MakeProject) -> None:
    made = project(talking(SCRIPTED), FORGETS)
    (made.folder / "user.txt").write_text("Where is it?\n")
    assert made.run().code == 1
    (made.folder / "user.txt").unlink()
    again = made.cli("judge", "0001", "--json")
    assert (again.code, again.outcomes) == (1, {("remembers", "calm"): "fail", ("never-asks-again", "calm"): "fail"})
