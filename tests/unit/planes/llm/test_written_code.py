"""Tool calls in the code that a model writes for smolagents' CodeAgent."""

from __future__ import annotations

import pytest

from holdfast.planes.llm.codecs import openai_chat_request
from holdfast.planes.llm.codecs.openai_chat_request import extract_code, extract_output, find_called_tool, find_calls

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


def test_what_the_code_printed_is_the_tools_result() -> None:
    (result,) = openai_chat_request.read_request("/chat/completions", BODY).results
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


def test_another_result_stands_in_its_place() -> None:
    changed = openai_chat_request.replace_results(BODY, {"call_1": "Error: 503"}, frozenset())
    text = changed["messages"][2]["content"][0]["text"]
    assert text == "Observation:\nExecution logs:\nError: 503\nLast output from code snippet:\nNone"
