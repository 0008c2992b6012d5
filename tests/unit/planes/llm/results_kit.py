"""Conversations with tool results in every format, and a trial that reads them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast.model.completion import ToolCall
from holdfast.model.scenario import Injection, Schedule
from holdfast.model.task import Task
from holdfast.planes.llm.codecs.anthropic import ANTHROPIC
from holdfast.planes.llm.codecs.codec import Codec
from holdfast.planes.llm.codecs.gemini import GEMINI
from holdfast.planes.llm.codecs.ollama import OLLAMA_CHAT
from holdfast.planes.llm.codecs.openai_chat import OPENAI_CHAT
from holdfast.planes.llm.codecs.openai_responses import OPENAI_RESPONSES
from holdfast.planes.llm.tool_results import ToolResults
from planes_kit import ASKED, FakeContext

FAULT = "Error: 503 Service Unavailable"
SAME = '{"left": 3}'
FIRST = Injection("tool", "search", "error", schedule=Schedule(on_call=1))
PATH = "/v1beta/models/m:generateContent"
CODECS: tuple[Codec, ...] = (OPENAI_CHAT, OPENAI_RESPONSES, ANTHROPIC, GEMINI, OLLAMA_CHAT)
WITH_IDS: tuple[Codec, ...] = (OPENAI_CHAT, OPENAI_RESPONSES, ANTHROPIC)
WITHOUT_IDS: tuple[Codec, ...] = (GEMINI, OLLAMA_CHAT)
every_format = pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name)


class Talk:
    """A conversation in one format, message by message; formats without ids send none."""

    def __init__(self, codec: Codec) -> None:
        self.codec = codec
        self.sent: list[dict[str, Any]] = []

    def user(self, text: str = "How many kettles?") -> None:
        self._say("user", text)

    def model(self, text: str = "Three.") -> None:
        self._say("assistant", text)

    def round(self, id: str, q: str = "kettle", text: str = SAME) -> None:
        """A call and its result."""
        self.called(id, q)
        self.gave(id, text)

    def called(self, id: str, q: str = "kettle") -> None:
        given = {"q": q}
        match self.codec.name:
            case "openai_chat":
                function = {"name": "search", "arguments": f'{{"q": "{q}"}}'}
                self.sent.append({"role": "assistant", "tool_calls": [{"id": id, "function": function}]})
            case "openai_responses":
                item = {"type": "function_call", "call_id": id, "name": "search", "arguments": f'{{"q": "{q}"}}'}
                self.sent.append(item)
            case "anthropic":
                block = {"type": "tool_use", "id": id, "name": "search", "input": given}
                self.sent.append({"role": "assistant", "content": [block]})
            case "gemini":
                part = {"functionCall": {"name": "search", "args": given}}
                self.sent.append({"role": "model", "parts": [part]})
            case _:
                function = {"name": "search", "arguments": given}
                self.sent.append({"role": "assistant", "content": "", "tool_calls": [{"function": function}]})

    def gave(self, id: str, text: str = SAME) -> None:
        match self.codec.name:
            case "openai_chat":
                self.sent.append({"role": "tool", "tool_call_id": id, "content": text})
            case "openai_responses":
                self.sent.append({"type": "function_call_output", "call_id": id, "output": text})
            case "anthropic":
                block = {"type": "tool_result", "tool_use_id": id, "content": text}
                self.sent.append({"role": "user", "content": [block]})
            case "gemini":
                part = {"functionResponse": {"name": "search", "response": {"result": text}}}
                self.sent.append({"role": "user", "parts": [part]})
            case _:
                self.sent.append({"role": "tool", "tool_name": "search", "content": text})

    def example(self, id: str = "ex_1", q: str = "kettle", text: str = SAME, *, closed: bool = True) -> None:
        self.user("How many pots are left?")
        self.round(id, q, text)
        if closed:
            self.model("Three.")

    def asked(self) -> Any:
        field = {"gemini": "contents", "openai_responses": "input"}.get(self.codec.name, "messages")
        return self.codec.read_request(PATH, {"model": "m", field: self.sent})

    def _say(self, role: str, text: str) -> None:
        if self.codec.name == "gemini":
            self.sent.append({"role": "model" if role == "assistant" else role, "parts": [{"text": text}]})
        else:
            self.sent.append({"role": role, "content": text})


class Trial:
    """The results of one trial, with what came of them."""

    def __init__(self, *injections: Injection, task: Task = ASKED) -> None:
        self.context = FakeContext(injections, task=task)
        self.results = ToolResults(self.context, frozenset, faulty=True)

    def asks(self, talk: Talk, id: str, q: str = "kettle") -> None:
        """The model answers the conversation with a call; formats without ids give none."""
        given = "" if talk.codec in (GEMINI, OLLAMA_CHAT) else id
        self.results.record_calls((ToolCall(given, "search", f'{{"q": "{q}"}}'),), talk.asked())

    def reads(self, talk: Talk, *, again: bool = False) -> list[str]:
        """What the model reads of the results: `-` where it is the tool's result."""
        changed = asyncio.run(self.results.settle(talk.asked(), is_retry=again))
        return [changed[r.key].text or "" if r.key in changed else "-" for r in talk.asked().results]

    @property
    def calls(self) -> list[tuple[int, str]]:
        return [(event.n, event.fault) for event in self.context.trace if event.phase == "done"]

    @property
    def met(self) -> int:
        return len(self.context.ledger)

    @property
    def perhaps(self) -> list[tuple[str, str]]:
        """At the end: the calls that may have been made, with their arguments."""
        self.results.close()
        return [(event.tool, event.input) for event in self.context.trace if event.phase == "declared"]


def play(codec: Codec, script: str, *faults: Injection) -> Trial:
    """Play a trial step by step; each step is a word, with its arguments, before a semicolon.

    `user TEXT`, `model TEXT`: a message, with `_` for spaces. `asks ID Q`: the model requests the call. `round ID Q`,
    `called ID Q`, `gave ID TEXT`: the agent sends the call and its result. `example ID Q`: an example of a call.
    `reads …`: the model reads these results; `-` is the tool's own, `X` is the fault's. `again …`: the same in a
    retried request. `unread`: a reply passes unread. `drop N`: the agent leaves out that message. `other:user` and so
    on belong to another conversation.
    """
    trial, talks = Trial(*faults or (FIRST,)), {}
    for step in script.split(";"):
        where, *words = step.split()
        name, _, verb = where.rpartition(":")
        talk, words = talks.setdefault(name, Talk(codec)), [word.replace("_", " ") for word in words]
        match verb:
            case "reads" | "again":
                found = trial.reads(talk, again=verb == "again")
                assert found == [FAULT if word == "X" else word for word in words], step
            case "asks":
                trial.asks(talk, *words)
            case "unread":
                trial.results.record_unread_reply()
            case "drop":
                del talk.sent[int(words[0])]
            case "open":
                talk.example(*words, closed=False)
            case _:
                getattr(talk, verb)(*words)
    return trial
