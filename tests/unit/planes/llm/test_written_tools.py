"""Tool calls and results that smolagents writes into the texts of a conversation."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.planes.llm.codecs.openai_chat import OPENAI_CHAT
from holdfast.planes.llm.codecs.openai_chat_request import (
    extract_code,
    extract_output,
    find_called_tool,
    find_calls,
    read_written_calls,
)

CALL = {"id": "call_1", "type": "function", "function": {"name": "search", "arguments": {"query": "it's"}}}
TEXTS = st.text(max_size=40)
MESSAGES = st.fixed_dictionaries(
    {}, optional={"role": TEXTS | st.sampled_from(["assistant", "user"]), "content": TEXTS}
)


def said(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": [{"type": "text", "text": text}]}


def conversation(*calls: Any, then: str = 'Observation:\n{"revenue": 4200}') -> list[Any]:
    listed = f"I look it up.\nCalling tools:\n{list(calls)}"
    return [said("user", "New task:\nrevenue?"), said("assistant", listed), said("user", then)]


def test_a_written_result_is_the_result_of_the_call_before_it() -> None:
    asked = OPENAI_CHAT.read_request("/chat/completions", {"model": "m", "messages": conversation(CALL)})
    (result,) = asked.results
    assert (result.key, result.name, result.text) == ("call_1", "search", '{"revenue": 4200}')
    assert result.arguments == '{"query":"it\'s"}'
    assert asked.prompt == "New task:\nrevenue?"


def test_another_result_is_written_as_the_framework_writes_it() -> None:
    body = {"messages": conversation(CALL)}
    changed = OPENAI_CHAT.replace_results(body, {"call_1": "{}"}, frozenset())
    assert changed["messages"] == conversation(CALL, then="Observation:\n{}")
    assert OPENAI_CHAT.replace_results(body, {}, frozenset()) == body


@pytest.mark.parametrize("written", ["Observation:\n", "Observation:\nExecution logs:\n"])
def test_a_written_result_without_output_gets_one(written: str) -> None:
    body = {"messages": conversation(CALL, then=written)}
    changed = OPENAI_CHAT.replace_results(body, {"call_1": "{}"}, frozenset())
    assert changed["messages"] == conversation(CALL, then=written + "{}")


def test_results_of_several_calls_cannot_be_distinguished_and_stay_text() -> None:
    body = {"messages": conversation(CALL, {**CALL, "id": "call_2"})}
    asked = OPENAI_CHAT.read_request("/chat/completions", body)
    assert asked.results == ()
    assert len(asked.messages[1].tool_calls) == 2


@pytest.mark.parametrize(
    "messages",
    [
        [said("user", "Observation:\nI see a ship.")],
        [said("assistant", "Calling tools:\nlater"), said("user", "Observation:\nnone")],
        [said("assistant", "Calling tools:\n[1, 'x']"), said("user", "Observation:\nnone")],
        [said("assistant", f"Calling tools:\n{[CALL] * 2000}"), said("user", "Observation:\nnone")],
        [said("assistant", f"Calling tools:\n{'[' * 5000}"), said("user", "Observation:\nnone")],
        [said("assistant", f"Calling tools:\n{[CALL]}"), said("user", "Hello"), said("user", "Observation:\nx")],
    ],
)
def test_other_texts_are_what_they_are(messages: list[Any]) -> None:
    assert [message for message in read_written_calls(messages) if message["role"] == "tool"] == []


@given(st.lists(MESSAGES | st.none() | st.integers()))
def test_odd_messages_pass_as_they_are_and_what_is_not_an_object_is_empty(messages: list[Any]) -> None:
    assert read_written_calls(messages) == [message or {} if isinstance(message, dict) else {} for message in messages]


# Tool calls in the code that a model writes for smolagents' CodeAgent.


CODE = 'price = get_price(item="lamp")\nprint(price)'
REPLY = f"Thought: I look it up.\n<code>\n{CODE}\n</code>"
RUN = {"id": "call_1", "type": "function", "function": {"name": "python_interpreter", "arguments": CODE}}
OBSERVED = 'Observation:\nExecution logs:\n{"price": 189.3}\nLast output from code snippet:\nNone'
BODY = {
    "model": "m",
    "messages": [
        {"role": "user", "content": "New task:\nprice?"},
        {"role": "assistant", "content": f"{REPLY}\nCalling tools:\n{[RUN]}"},
        {"role": "user", "content": [{"type": "text", "text": OBSERVED}]},
    ],
}


@pytest.mark.parametrize(
    "text",
    [
        REPLY,
        REPLY.removesuffix("</code>"),
        f"Thought.\n```python\n{CODE}\n```",
        f"Thought.\n```py\n{CODE}\n```<end_code>",
    ],
    ids=["tags", "stopped before the end", "python", "py"],
)
def test_the_code_is_found_as_the_framework_finds_it(text: str) -> None:
    assert extract_code(text) == CODE
    (call,) = find_calls(text)
    assert (call.name, call.arguments) == ("get_price", '{"item":"lamp"}')


@pytest.mark.parametrize(
    ("code", "name", "arguments"),
    [
        ("print(search(query=q, most=3))", "search", '{"query":"q","most":3}'),
        ("for x in range(3):\n    search('a')", "search", "{}"),
        ("search(query='a'); fetch(url='b')", "python_interpreter", None),
        ("import math\nfrom os import path as p\nprint(math.sqrt(2), p('x'))", "python_interpreter", None),
        ("def mine(): return 1\nmine()", "python_interpreter", None),
        ("final_answer('done')", "python_interpreter", None),
        ("this is no code", "python_interpreter", None),
        ("search(" * 3000, "python_interpreter", None),
    ],
)
def test_the_one_tool_that_the_code_calls_is_the_call(code: str, name: str, arguments: str | None) -> None:
    found = find_called_tool(code)
    assert found[0] == name
    if arguments is not None:
        assert found[1] == arguments


def test_the_output_of_code_is_the_result_of_its_tool() -> None:
    (result,) = OPENAI_CHAT.read_request("/chat/completions", BODY).results
    assert (result.key, result.name, result.text, result.arguments) == (
        "call_1",
        "get_price",
        '{"price": 189.3}',
        '{"item":"lamp"}',
    )
    assert (
        extract_output("Execution logs:\n\nLast output from code snippet:\n5") == "\nLast output from code snippet:\n5"
    )
    assert extract_output("5") == "5"


def test_a_changed_result_replaces_only_the_output() -> None:
    changed = OPENAI_CHAT.replace_results(BODY, {"call_1": "Error: 503"}, frozenset())
    text = changed["messages"][2]["content"][0]["text"]
    assert text == "Observation:\nExecution logs:\nError: 503\nLast output from code snippet:\nNone"
