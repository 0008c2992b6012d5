"""Conversations with agents of every kind: what each is given turn after turn, with a context and a user."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.agents.conversation import CONTEXT_AS_TEXT, SYSTEM_LEFT_OUT, Dialogue, make_dialogue
from holdfast.agents.http.request import build_request_form
from holdfast.execute.open_site import open_site
from holdfast.execute.simulated_users import SimulatedUsers
from holdfast.execute.trial import run_trial
from holdfast.model.observation import Observation, Turn
from holdfast.model.scenario import Scenario
from holdfast.model.spec import AgentSpec, Spec
from holdfast.model.task import DialogueMessage, SimulatedUser, Task
from holdfast.model.trial import Trial
from warm_hosts import warm_hosts

CONTEXT = (DialogueMessage("user", "I am Ada."), DialogueMessage("assistant", "Hello Ada."))
TURNS = ("My order is 4411.", "Gift-wrap it.", "Where is it?")


@pytest.fixture(autouse=True)
def _warm_hosts() -> Iterator[None]:
    with warm_hosts():
        yield


# Each tells what it was given: the messages as JSON, or the text.
FUNCTION = "import json\ndef ask(messages): return json.dumps(messages)\n"
ASYNC = "import json\nasync def ask(messages): return json.dumps(messages)\n"
OBJECT = "import json\nclass Agent:\n    def __call__(self, messages): return json.dumps(messages)\nask = Agent()\n"
TEXT = "calls = 0\ndef ask(prompt):\n    global calls\n    calls += 1\n    return f'{calls}: {prompt}'\n"
CHAIN = """
import json
from langchain_core.messages import AIMessage
from langgraph.graph import START, MessagesState, StateGraph
ROLES = {"human": "user", "ai": "assistant", "system": "system"}
def node(state):
    told = [{"role": ROLES[m.type], "content": m.content} for m in state["messages"]]
    return {"messages": [AIMessage(json.dumps(told))]}
builder = StateGraph(MessagesState)
builder.add_node("node", node)
builder.add_edge(START, "node")
ask = builder.compile()
"""
SERVER = """
import http.server, json, os
class Agent(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        reply = json.dumps({"output": json.dumps(body["messages"])}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)
    def log_message(self, *_): pass
http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Agent).serve_forever()
"""

KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "fresh": (FUNCTION, {}),
    "async": (ASYNC, {}),
    "object": (OBJECT, {}),
    "worker": (FUNCTION, {"isolation": "worker"}),
    "inline": (FUNCTION, {"isolation": "inline"}),
    "inline async": (ASYNC, {"isolation": "inline"}),
    "langchain": (CHAIN, {"type": "langchain"}),
    "command": ("", {"type": "command", "endpoint": "", "command": "cat", "prompt": "messages"}),
    "http": (
        SERVER,
        {
            "type": "http",
            "endpoint": "http://127.0.0.1:{port}/",
            "command": f"exec {sys.executable} agent.py",
            "request_template": '{"messages": {messages}}',
        },
    ),
}


def seen(folder: Path, code: str, task: Task, users: SimulatedUsers | None = None, **agent: Any) -> Observation:
    """One trial of an agent with that code."""
    (folder / "agent.py").write_text(dedent(code), encoding="utf-8")
    section: dict[str, Any] = {"type": "python", "endpoint": "agent:ask", **agent}
    spec = Spec(str(folder / "spec.yaml"), AgentSpec(**section), scenarios=(Scenario("calm"),), retries=0)

    async def go() -> Observation:
        site = await open_site(spec, environ=dict(os.environ), concurrency=1)
        site.users = users
        try:
            return await run_trial(site, Trial("0" * 12, "contract", Scenario("calm"), task))
        finally:
            await site.close()

    found = asyncio.run(go())
    sys.modules.pop("agent", None)  # inline agents are imported here
    return found


def contents(turn: Turn) -> list[tuple[str, str]]:
    return [(one["role"], one["content"]) for one in json.loads(turn.text or "")]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "langchain"])
def test_an_agent_that_takes_messages_gets_all_so_far(tmp_path: Path, kind: str) -> None:
    code, agent = KINDS[kind]
    found = seen(tmp_path, code, Task(TURNS), **agent)
    assert found.error == ""
    one, two, three = found.turns
    assert contents(one) == [("user", TURNS[0])]
    assert contents(two) == [("user", TURNS[0]), ("assistant", one.text), ("user", TURNS[1])]
    assert contents(three)[3:] == [("assistant", two.text), ("user", TURNS[2])]
    assert [turn.asked for turn in found.turns] == list(TURNS)


def test_a_runnable_is_given_each_message_once(tmp_path: Path) -> None:
    code, agent = KINDS["langchain"]
    found = seen(tmp_path, code, Task(TURNS), **agent)
    assert [contents(turn) for turn in found.turns] == [[("user", text)] for text in TURNS]


@pytest.mark.parametrize("kind", KINDS)
def test_the_turns_before_come_first_in_its_messages(tmp_path: Path, kind: str) -> None:
    code, agent = KINDS[kind]
    found = seen(tmp_path, code, Task(("Who am I?",), context=CONTEXT), **agent)
    assert contents(found.turns[0]) == [
        ("user", "I am Ada."),
        ("assistant", "Hello Ada."),
        ("user", "Who am I?"),
    ]
    assert CONTEXT_AS_TEXT not in found.notes


TOLD = "The conversation so far:\nUser: I am Ada.\nAssistant: Hello Ada.\n\nUser: Who am I?"


@pytest.mark.parametrize(
    ("code", "agent", "first", "second"),
    [
        (TEXT, {}, f"1: {TOLD}", "2: Sure?"),
        (TEXT, {"isolation": "worker"}, f"1: {TOLD}", "2: Sure?"),
        (TEXT, {"isolation": "inline"}, f"1: {TOLD}", "2: Sure?"),
        ("", {"type": "command", "endpoint": "", "command": "cat"}, TOLD, "Sure?"),
    ],
)
def test_an_agent_of_text_gets_the_turns_before_as_text_once_and_the_trial_notes_it(
    tmp_path: Path, code: str, agent: dict[str, Any], first: str, second: str
) -> None:
    found = seen(tmp_path, code, Task(("Who am I?", "Sure?"), context=CONTEXT), **agent)
    assert [turn.text for turn in found.turns] == [first, second]
    assert [turn.asked for turn in found.turns] == ["Who am I?", "Sure?"]
    assert found.notes.count(CONTEXT_AS_TEXT) == 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("stop", "asked"), [("", 3), ("and on", 2)])
def test_a_simulated_user_carries_on_until_it_has_no_more_to_say_or_is_stopped(
    tmp_path: Path, kind: str, stop: str, asked: int
) -> None:
    (tmp_path / "user.yaml").write_text("- and on\n- and ever\n")
    code, agent = KINDS[kind]
    task = Task(("begin",), user=SimulatedUser(script="user.yaml", stop=stop, max_turns=9))
    found = seen(tmp_path, code, task, SimulatedUsers(tmp_path), **agent)
    assert found.error == ""
    assert [turn.asked for turn in found.turns] == ["begin", "and on", "and ever"][:asked]


@pytest.mark.parametrize("kind", ["fresh", "inline", "command", "http"])
def test_a_user_says_no_more_than_it_may(tmp_path: Path, kind: str) -> None:
    (tmp_path / "user.yaml").write_text("- {when: '', say: more}\n".replace("''", "'.'"))
    code, agent = KINDS[kind]
    task = Task(("begin",), user=SimulatedUser(script="user.yaml", max_turns=3))
    found = seen(tmp_path, code, task, SimulatedUsers(tmp_path), **agent)
    assert [turn.asked for turn in found.turns] == ["begin", "more", "more"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_user_that_cannot_go_on_is_our_error(tmp_path: Path, kind: str) -> None:
    code, agent = KINDS[kind]
    task = Task(("begin",), user=SimulatedUser(script="gone.yaml", max_turns=3))
    found = seen(tmp_path, code, task, SimulatedUsers(tmp_path), **agent)
    assert "gone.yaml cannot be used" in found.error
    assert found.turns == ()


def test_after_a_bad_turn_no_user_is_asked(tmp_path: Path) -> None:
    (tmp_path / "user.yaml").write_text("- go on\n")
    task = Task(("begin",), user=SimulatedUser(script="user.yaml", max_turns=3))
    found = seen(tmp_path, "def ask(prompt): raise ValueError('no')\n", task, SimulatedUsers(tmp_path))
    assert [turn.ending for turn in found.turns] == ["raised"]


def test_an_agent_that_changes_its_list_changes_nothing_of_ours(tmp_path: Path) -> None:
    code = "def ask(messages):\n    messages.clear()\n    return 'gone'\n"
    found = seen(tmp_path, code, Task(("a", "b")))
    assert [turn.text for turn in found.turns] == ["gone", "gone"]
    talk = Dialogue(CONTEXT, messages=True)
    talk.build_messages("x")[0]["content"] = "changed"
    assert talk.build_messages("x")[0]["content"] == "I am Ada."


def test_a_system_message_is_not_part_of_the_prompt_of_an_agent_of_text() -> None:
    system = DialogueMessage("system", "You refund.")
    alone = Dialogue((system,), messages=False)
    assert (alone.build_text("Hello"), alone.note) == ("Hello", SYSTEM_LEFT_OUT)
    first, among = Dialogue((system, *CONTEXT), messages=False), Dialogue((*CONTEXT, system), messages=False)
    assert (
        first.build_text("Hello") == among.build_text("Hello") == Dialogue(CONTEXT, messages=False).build_text("Hello")
    )
    assert "You refund." not in first.build_text("Hello")
    assert CONTEXT_AS_TEXT in first.note
    assert SYSTEM_LEFT_OUT in first.note
    listed = Dialogue((system,), messages=True)
    assert (listed.build_messages("Hello")[0], listed.note) == ({"role": "system", "content": "You refund."}, "")


def test_an_agent_of_text_without_a_context_needs_no_dialogue() -> None:
    assert make_dialogue(Task(("a",)).context, messages=False) is None


# -- in requests ----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "template",
    ['{"messages": {messages}, "n": 1}', '{"messages": "{messages}", "n": 1}', '{"n": 1, "messages":{messages}}'],
)
@given(st.lists(st.text(), min_size=1, max_size=4))
def test_messages_are_a_list_in_the_json_of_a_request(template: str, texts: list[str]) -> None:
    form = build_request_form(AgentSpec(endpoint="http://127.0.0.1:1/", request_template=template))
    assert form.takes_messages
    talk = Dialogue(Task(("a",)).context, messages=True)
    for text in texts[:-1]:
        talk.add_turn(Turn(text, "said"))
    body = json.loads((form.fill(texts[-1], texts[-1], talk).body or b"").decode())
    assert body["n"] == 1
    assert [one["content"] for one in body["messages"] if one["role"] == "user"] == texts


def test_messages_inside_a_longer_text_or_a_query_are_json_text() -> None:
    talk = Dialogue(CONTEXT, messages=True)
    inside = build_request_form(
        AgentSpec(endpoint="http://127.0.0.1:1/", request_template='{"p": "so far: {messages}"}')
    )
    text = json.loads((inside.fill("x", "x", talk).body or b"").decode())["p"]
    assert json.loads(text.removeprefix("so far: ")) == talk.build_messages("x")
    query = build_request_form(AgentSpec(endpoint="http://h:1/", method="GET", request_template='{"m": {messages}}'))
    assert query.takes_messages
    from urllib.parse import parse_qs

    (sent,) = parse_qs(query.fill("x", "x", talk).target.partition("?")[2])["m"]
    assert json.loads(sent) == talk.build_messages("x")


def test_what_an_attack_made_of_a_prompt_is_in_the_messages() -> None:
    form = build_request_form(AgentSpec(endpoint="http://h:1/", request_template='{"messages": {messages}}'))
    assert not form.is_attack_dropped("attacked", "plain")


def test_a_context_does_not_give_fields_to_a_template() -> None:
    form = build_request_form(AgentSpec(endpoint="http://h:1/", request_template='{"p": "{prompt}", "c": "{city}"}'))
    before = (DialogueMessage("user", "city: Rome"),)
    talk = Dialogue(before, messages=False)
    body = json.loads((form.fill("city: Oslo", "city: Oslo", talk).body or b"").decode())
    assert body["c"] == "Oslo"
    assert "city: Rome" in body["p"]
