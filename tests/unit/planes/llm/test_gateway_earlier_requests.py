"""Retries of a client library are distinguished from the agent's own calls."""

from __future__ import annotations

import asyncio
import json
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from gateway_agent import run_scripted

from holdfast.model.codec import digest
from holdfast.model.completion import ToolCall
from holdfast.model.scenario import Injection
from holdfast.planes.llm.codecs.request import ChatMessage, ModelRequest, ToolResult
from holdfast.planes.llm.earlier_requests import CALLS_LIMIT, CHARACTERS_LIMIT, Attempts, EarlierCalls
from planes_kit import FakeContext

OPENAI = {"x-stainless-lang": "python"}
GOOGLE = {"x-goog-api-client": "google-genai-sdk/1.50 gl-python/3.11"}


def attempt(
    attempts: Attempts,
    body: bytes,
    count: str | None = None,
    *,
    by: dict[str, str] | None = None,
    ends: str = "well",
) -> int:
    headers = {**(by or {}), **({} if count is None else {"x-stainless-retry-count": count})}
    key = digest(body)
    retry = attempts.find_retry_number(headers.get, key)
    attempts.record_end(key, retry, failed=ends != "well", lost=ends == "lost")
    return retry


def test_the_retry_count_of_a_library_is_used() -> None:
    attempts = Attempts()
    assert [attempt(attempts, b"x", count, ends="failed") for count in ("0", "1", "2")] == [0, 1, 2]
    assert attempt(attempts, b"x", "0") == 0  # the same again, by the agent itself


def test_a_retry_count_cannot_exceed_the_failures() -> None:
    attempts = Attempts()
    assert attempt(attempts, b"x", "2") == 0
    assert attempt(attempts, b"x", "99999999999", ends="failed") == 0
    assert attempt(attempts, b"x", "7", ends="failed") == 1
    assert attempt(attempts, b"x", "0", ends="failed") == 0
    assert attempt(attempts, b"x", "7") == 1
    assert attempt(attempts, b"x", "1") == 0  # after a success there is nothing to repeat


def test_a_repeated_body_is_a_new_call_without_a_known_library() -> None:
    attempts = Attempts()
    assert [attempt(attempts, b"x", ends="failed") for _ in range(3)] == [0, 0, 0]
    assert [attempt(attempts, b"y", ends="lost") for _ in range(3)] == [0, 0, 0]


def test_retries_of_old_libraries_are_recognised_by_headers() -> None:
    attempts = Attempts()
    assert [attempt(attempts, b"x", by=OPENAI, ends="failed") for _ in range(2)] == [0, 1]
    assert attempt(attempts, b"x", by=OPENAI) == 2
    assert attempt(attempts, b"x", by=OPENAI) == 0


def test_googles_library_retries_a_lost_connection_once() -> None:
    attempts = Attempts()
    assert [attempt(attempts, b"x", by=GOOGLE, ends="failed") for _ in range(2)] == [0, 0]
    assert [attempt(attempts, b"y", by=GOOGLE, ends="lost") for _ in range(3)] == [0, 1, 0]


def test_a_different_body_is_a_new_call() -> None:
    attempts = Attempts()
    assert [attempt(attempts, b"x", by=OPENAI, ends="failed"), attempt(attempts, b"y", by=OPENAI)] == [0, 0]


def test_an_invalid_retry_count_is_ignored() -> None:
    attempts = Attempts()
    assert attempt(attempts, b"x", "many", ends="failed") == 0
    assert attempt(attempts, b"x", "many", ends="failed") == 0


# A scripted model is given the conversation that a request leaves to its server (`previous_response_id`).


SCRIPT = """
replies:
  - match: {prompt: "*cost*", tool: stock, turn: 3}
    text: "{{ results.find_item.price }}, {{ arguments.id }}: {{ result }}"
  - match: {prompt: "*cost*", tool: find_item, result: "Error*"}
    text: "sorry"
  - match: {prompt: "*cost*", tool: find_item, turn: 2}
    tool_calls: [{name: stock, arguments: {id: 7}}]
  - match: {prompt: "*cost*"}
    tool_calls: [{name: find_item, arguments: {name: kettle}}]
  - text: "just text"
"""
RESULTS = {"find_item": '{"price": "$24.90"}', "stock": "3"}


def agent(url: str, kept_in: str) -> str:
    """Goes on by what its server keeps; what the model says in the end."""
    at, said = urlsplit(url), [{"role": "user", "content": "What does it cost?"}]
    more: dict[str, Any] = {}
    while True:
        with closing(HTTPConnection("127.0.0.1", at.port or 0, timeout=10)) as line:
            line.request("POST", f"{at.path}/responses", json.dumps({"model": "m", "input": said, **more}))
            reply = json.load(line.getresponse())
        calls = [item for item in reply["output"] if item["type"] == "function_call"]
        if not calls:
            return str(reply["output"][0]["content"][0]["text"])
        said = [
            {"type": "function_call_output", "call_id": call["call_id"], "output": RESULTS[call["name"]]}
            for call in calls
        ]
        more = {kept_in: reply["id"]}


def answered(folder: Path, *faults: Injection, kept_in: str = "previous_response_id") -> tuple[str, FakeContext]:
    replies: list[str] = []

    async def main(url: str) -> None:
        replies.append(await asyncio.to_thread(agent, url, kept_in))

    context = run_scripted(folder, SCRIPT, main, *faults)
    return replies[0], context


@pytest.mark.parametrize("kept_in", ["previous_response_id", "conversation"])
def test_rules_of_a_script_see_the_conversation_that_the_server_keeps(tmp_path: Path, kept_in: str) -> None:
    said, context = answered(tmp_path, kept_in=kept_in)
    assert said == "$24.90, 7: 3"
    assert [event.tool for event in context.trace if event.event_type == "tool_call"] == ["find_item", "stock"]


def test_rules_of_a_script_see_results_after_faults(tmp_path: Path) -> None:
    said, context = answered(tmp_path, Injection("tool", "find_item", "error"))
    assert said == "sorry"
    assert [met.effect for met in context.ledger] == ["met"]


CALL = ToolCall("c1", "find_item", '{"name": "kettle"}')
USER = ChatMessage("user", "What does it cost?")
GOES_ON = ModelRequest("m", (ChatMessage("tool", results=(ToolResult("c1", "", "3"),)),), continues=True)


def test_a_request_with_its_own_conversation_is_not_changed() -> None:
    continued = EarlierCalls()
    continued.keep((CALL,), "", ModelRequest("m", (USER,)))
    own = ModelRequest("m", GOES_ON.messages)
    assert continued.add_conversation(own) is own
    other = ModelRequest("m", (ChatMessage("tool", results=(ToolResult("c2", "", "3"),)),), continues=True)
    assert continued.add_conversation(other) is other


def test_new_instructions_replace_earlier_ones() -> None:
    continued = EarlierCalls()
    continued.keep((CALL,), "", ModelRequest("m", (ChatMessage("system", "Be kind."), USER)))
    assert [m.text for m in continued.add_conversation(GOES_ON).messages if m.role == "system"] == ["Be kind."]
    request = ModelRequest("m", (ChatMessage("system", "Be brief."), *GOES_ON.messages), continues=True)
    assert [m.text for m in continued.add_conversation(request).messages if m.role == "system"] == ["Be brief."]


def test_the_memory_of_conversations_and_calls_is_limited() -> None:
    continued = EarlierCalls()
    continued.keep((CALL,), "", ModelRequest("m", (ChatMessage("user", "x" * (CHARACTERS_LIMIT + 1)),)))
    whole = continued.add_conversation(GOES_ON)
    assert [message.role for message in whole.messages] == ["assistant", "tool"]
    assert whole.results[0].name == "find_item"
    for n in range(CALLS_LIMIT):
        continued.keep((ToolCall(f"d{n}", "find_item", "{}"),), "", ModelRequest("m", (USER,)))
    assert continued.add_conversation(GOES_ON) is GOES_ON
