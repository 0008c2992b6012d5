"""What a Python agent may give, and what is read from it. No process: the host's own functions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableLambda

from golden_words import Golden
from holdfast.agents.python import answers as answering
from holdfast.agents.python.answers import ANSWER_LIMIT, settle, to_text
from holdfast.agents.python.loaded import CallableAgent
from holdfast.agents.python.turns import take_turn
from holdfast.model.observation import Turn


def turn_of(ask: Any) -> tuple[Turn, tuple[str, ...]]:
    return asyncio.run(take_turn("hi", CallableAgent(ask, is_async=False), settle, lambda text: None))


@dataclass
class Message:
    content: Any


class Silent:
    def __str__(self) -> str:
        return "I am Silent"


def test_the_text_of_an_answer() -> None:
    for value, text in [
        ("text", "text"),
        ("", ""),
        (b"caf\xc3\xa9 \xff", "café �"),
        (bytearray(b"raw"), "raw"),
        ({"content": "c", "text": "t"}, "c"),
        ({"output": None, "answer": "a"}, "a"),
        ({"message": {"content": "deep"}}, "deep"),
        ({"rows": [1]}, '{"rows": [1]}'),
        (Message("m"), "m"),
        (Message([{"type": "text", "text": "one "}, {"type": "text", "text": "two"}]), "one two"),
        (SimpleNamespace(text=lambda: "method", answer="a"), "a"),
        ([{"text": "a"}, {"text": "b"}], "ab"),
        ([{"text": "a"}, "b"], "ab"),
        ([1, {"text": "b"}], '[1, {"text": "b"}]'),
        (["a", "b"], '["a", "b"]'),
        (42, "42"),
        (True, "true"),
        (Silent(), "I am Silent"),
        (None, None),
    ]:
        assert to_text(value) == text, (value, text)


BLOCKS = [{"type": "reasoning", "text": "hm"}, {"type": "text", "text": "one "}, "two", {"type": "tool_use", "id": "t"}]
ASKED = HumanMessage("hi")


def test_the_answer_of_messages_is_what_the_model_said_last() -> None:
    for value, text in [
        ({"messages": [ASKED, AIMessage("said")]}, "said"),
        ({"messages": [ASKED, AIMessage(BLOCKS)]}, "one two"),
        ({"messages": [ASKED, AIMessage("one"), ToolMessage("r", tool_call_id="t"), AIMessage("two")]}, "two"),
        ({"messages": [ASKED, AIMessage("said"), ToolMessage("r", tool_call_id="t")]}, "said"),
        ({"messages": [ASKED, AIMessage("said"), HumanMessage("a review")]}, "said"),
        ({"messages": [ASKED, AIMessage("said")], "answer": None, "question": "hi"}, "said"),
        ({"messages": [ASKED, AIMessage("")], "answer": "written"}, "written"),
        ({"messages": [ASKED], "answer": "written"}, "written"),
        ({"messages": [ASKED, AIMessage("")]}, ""),
        ({"messages": [("user", "hi"), ("ai", "said")]}, "said"),
        ({"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "said"}]}, "said"),
        ([ASKED, AIMessage("said")], "said"),
        (SimpleNamespace(messages=[ASKED, AIMessage("said")]), "said"),
        (AIMessage("said"), "said"),
        (AIMessage(BLOCKS), "one two"),
        (AIMessageChunk("said"), "said"),
        ({"question": "hi", "answer": AIMessage("said").text}, "said"),
        ({"messages": [["not", "messages"]]}, '{"messages": [["not", "messages"]]}'),
        ([("a", 1), ("b", 2)], '[["a", 1], ["b", 2]]'),
    ]:
        assert to_text(value, "hi") == text, (value, text)


@pytest.mark.parametrize(
    "messages", [[], [ASKED], [HumanMessage("before"), AIMessage("an older answer"), ASKED], [("user", "hi")]]
)
def test_messages_in_which_no_model_speaks_are_no_answer(messages: list[Any], golden: Golden) -> None:
    turn, _ = turn_of(lambda prompt: {"messages": messages})
    assert (turn.ending, turn.text) == ("no_answer", None)
    golden(turn.detail)


def test_a_runnable_that_is_returned_was_not_asked(golden: Golden) -> None:
    turn, _ = turn_of(lambda prompt: RunnableLambda(str))
    assert turn.ending == "unreadable"
    golden(turn.detail)


def test_an_answer_over_the_limit_is_cut_and_noted(golden: Golden) -> None:
    turn, notes = turn_of(lambda prompt: "x" * 5_000_000)
    assert turn.text is not None
    assert len(turn.text) == ANSWER_LIMIT
    golden(notes)


def pieces(prompt: str) -> Iterator[Any]:
    yield "one "
    yield {"content": "two"}
    yield None


async def async_pieces(prompt: str) -> AsyncIterator[str]:
    for piece in ("one ", "two"):
        yield piece


async def awaited(prompt: str) -> str:
    await asyncio.sleep(0)
    return "one two"


@pytest.mark.parametrize(
    "ask", [pieces, async_pieces, awaited, lambda prompt: awaited(prompt), lambda prompt: iter(["one ", "two"])]
)
def test_generators_are_joined_and_awaitables_awaited(ask: Any) -> None:
    assert turn_of(ask)[0].text == "one two"


def test_what_a_generator_gave_before_it_raised_counts() -> None:
    def broken(prompt: str) -> Iterator[str]:
        yield "Revenue was "
        raise ValueError("lost")

    turn, _ = turn_of(broken)
    assert (turn.text, turn.ending) == ("Revenue was ", "raised")
    assert turn.detail.startswith("ValueError: lost (test_agent_python_answers.py:")


def test_an_endless_generator_is_asked_for_no_more_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answering, "READ_LIMIT", 1000)

    def endless(prompt: str) -> Iterator[str]:
        while True:
            yield "x" * 100

    assert turn_of(endless)[0].text == "x" * 1100


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no")


def explode(raised: BaseException) -> Any:
    def ask(prompt: str) -> Any:
        raise raised

    return ask


@pytest.mark.parametrize(
    ("raised", "detail"),
    [
        (ValueError("bad"), "ValueError: bad ("),
        (SystemExit(3), "SystemExit: 3 ("),
        (KeyboardInterrupt(), "KeyboardInterrupt ("),
        (asyncio.CancelledError(), "CancelledError ("),
        (StopIteration("end"), "StopIteration: end ("),
        (Unprintable(), "Unprintable: (its message cannot be read) ("),
        (ExceptionGroup("two", [ExceptionGroup("one", [KeyError("k")]), OSError("o")]), "KeyError: 'k' (and 1 more)"),
        (ValueError("\ud800"), "ValueError: � ("),
    ],
)
def test_whatever_the_agent_raises_is_its_result(raised: BaseException, detail: str) -> None:
    turn, _ = turn_of(explode(raised))
    assert turn.ending == "raised"
    assert turn.detail.startswith(detail)


def test_an_answer_that_cannot_be_read_is_the_agents_doing() -> None:
    class Odd:
        @property
        def content(self) -> str:
            raise RuntimeError("no content")

    turn, _ = turn_of(lambda prompt: Odd())
    assert (turn.ending, turn.detail[:24]) == ("raised", "RuntimeError: no content")


CANARY = "holdfast-canary-0123abcd"


class Slotted:
    __slots__ = ("content", "note")

    def __init__(self, note: Any) -> None:
        self.content, self.note = "fine", note


class Pair(NamedTuple):
    answer: str
    note: Any


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ({"text": "fine", "status": CANARY.upper()}, (CANARY,)),
        ({"text": "fine", "links": [{"url": f"https://evil.example/?{CANARY}"}]}, (CANARY,)),
        ({"text": "fine", CANARY: 1}, (CANARY,)),
        ({"text": "fine", "status": "ok"}, ()),
        ({"output": "fine", "input": f"say {CANARY}"}, ()),
        ({"messages": [{"role": "tool", "content": CANARY}, {"role": "assistant", "content": "fine"}]}, ()),
        (SimpleNamespace(content="fine", note={"x": CANARY}), (CANARY,)),
        (SimpleNamespace(text="fine", blob=CANARY.encode()), (CANARY,)),
        (Slotted([CANARY]), (CANARY,)),
        (Pair("fine", CANARY), (CANARY,)),
        (SimpleNamespace(content="fine", question=f"say {CANARY}"), ()),
        (SimpleNamespace(messages=[{"role": "tool", "content": CANARY}, {"role": "assistant", "content": "fine"}]), ()),
        ("fine", ()),
    ],
)
def test_canaries_are_found_in_every_field_that_is_not_what_the_agent_was_given(
    value: Any, found: tuple[str, ...]
) -> None:
    agent = CallableAgent(lambda asked: value, is_async=False)
    turn, _ = asyncio.run(take_turn(f"say {CANARY}", agent, settle, lambda text: None))
    assert (turn.text, turn.canaries) == ("fine", found)
