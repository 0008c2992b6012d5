"""Requests as the client libraries send them, in the neutral form; and with other tool results."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from codec_clients import anthropic_client, google_client, ollama_client, openai_client, plain, quietly

from codec_kit import CODECS, SUNNY
from holdfast.planes.llm.codecs.request import ModelRequest
from holdfast.planes.llm.sources.assigned import to_openai_chat

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
CALLED = {"name": "weather", "arguments": '{"city": "Bern"}'}


def openai_chat() -> tuple[str, dict[str, Any]]:
    wire = plain(CODECS["openai_chat"], SUNNY)
    openai_client(wire).chat.completions.create(
        model="m",
        messages=[
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "Weather?"}]},
            {"role": "assistant", "tool_calls": [{"id": "c1", "type": "function", "function": CALLED}]},
            {"role": "tool", "tool_call_id": "c1", "content": "12 degrees"},
        ],
        tools=[{"type": "function", "function": {"name": "weather", "description": "d", "parameters": SCHEMA}}],
        tool_choice={"type": "function", "function": {"name": "weather"}},
        max_completion_tokens=50,
        temperature=0.5,
        response_format={"type": "json_object"},
    )
    return wire.path, wire.body


def openai_responses() -> tuple[str, dict[str, Any]]:
    wire = plain(CODECS["openai_responses"], SUNNY)
    openai_client(wire).responses.create(
        model="m",
        instructions="Be brief.",
        input=[
            {"role": "user", "content": [{"type": "input_text", "text": "Weather?"}]},
            {"type": "function_call", "call_id": "c1", **CALLED},
            {"type": "function_call_output", "call_id": "c1", "output": "12 degrees"},
        ],
        tools=[{"type": "function", "name": "weather", "description": "d", "parameters": SCHEMA, "strict": False}],
        tool_choice={"type": "function", "name": "weather"},
        max_output_tokens=50,
        temperature=0.5,
        text={"format": {"type": "json_object"}},
    )
    return wire.path, wire.body


def anthropic() -> tuple[str, dict[str, Any]]:
    wire = plain(CODECS["anthropic"], SUNNY)
    anthropic_client(wire).messages.create(
        model="m",
        system=[{"type": "text", "text": "Be brief."}],
        messages=[
            {"role": "user", "content": "Weather?"},
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Bern"}}],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "12 degrees"}]}
                ],
            },
        ],
        tools=[{"name": "weather", "description": "d", "input_schema": SCHEMA}],
        tool_choice={"type": "tool", "name": "weather"},
        max_tokens=50,
        extra_body={"temperature": 0.5},
        output_config={"format": {"type": "json_schema", "schema": SCHEMA}},
    )
    return wire.path, wire.body


def gemini() -> tuple[str, dict[str, Any]]:
    wire, types = plain(CODECS["gemini"], SUNNY), quietly("google.genai.types")
    call = types.Part.from_function_call(name="weather", args={"city": "Bern"})
    result = types.Part.from_function_response(name="weather", response={"result": "12 degrees"})
    google_client(wire).models.generate_content(
        model="m",
        contents=[
            types.Content(role="user", parts=[types.Part(text="Weather?")]),
            types.Content(role="model", parts=[call]),
            types.Content(role="user", parts=[result]),
        ],
        config={
            "system_instruction": "Be brief.",
            "tools": [{"function_declarations": [{"name": "weather", "description": "d", "parameters": SCHEMA}]}],
            "tool_config": {"function_calling_config": {"mode": "ANY", "allowed_function_names": ["weather"]}},
            "max_output_tokens": 50,
            "temperature": 0.5,
            "response_mime_type": "application/json",
        },
    )
    return wire.path, wire.body


def ollama_chat() -> tuple[str, dict[str, Any]]:
    wire = plain(CODECS["ollama_chat"], SUNNY)
    ollama_client(wire).chat(
        "m",
        messages=[
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Weather?"},
            {"role": "assistant", "tool_calls": [{"function": {"name": "weather", "arguments": {"city": "Bern"}}}]},
            {"role": "tool", "tool_name": "weather", "content": "12 degrees"},
        ],
        tools=[{"type": "function", "function": {"name": "weather", "description": "d", "parameters": SCHEMA}}],
        options={"num_predict": 50, "temperature": 0.5},
        format="json",
    )
    return wire.path, wire.body


SENT = {"openai_chat": openai_chat, "openai_responses": openai_responses, "anthropic": anthropic, "gemini": gemini}
SENT |= {"ollama_chat": ollama_chat}
every_format = pytest.mark.parametrize("name", SENT)


def asked_of(name: str) -> tuple[ModelRequest, dict[str, Any]]:
    path, body = SENT[name]()
    return CODECS[name].read_request(path, body), body


@every_format
def test_a_request_of_the_real_client_is_understood(name: str) -> None:
    asked, _ = asked_of(name)
    assert (asked.model, asked.stream) == ("m", False)
    assert [message.role for message in asked.messages] == ["system", "user", "assistant", "tool"]
    assert (asked.messages[0].text, asked.prompt) == ("Be brief.", "Weather?")
    (call,) = asked.messages[2].tool_calls
    (result,) = asked.results
    assert (call.name, call.arguments.replace(" ", "")) == ("weather", '{"city":"Bern"}')
    assert (result.key, result.name, result.text, result.arguments) == (
        call.id,
        "weather",
        "12 degrees",
        call.arguments,
    )
    (tool,) = asked.tools
    assert (tool.name, tool.description, list(tool.parameters["properties"])) == ("weather", "d", ["city"])
    assert (asked.max_tokens, asked.temperature, asked.json_reply) == (50, 0.5, True)
    assert asked.tool_choice == (None if name == "ollama_chat" else "weather")


@every_format
def test_only_the_named_results_change_and_the_request_stays_as_it_was(name: str) -> None:
    asked, body = asked_of(name)
    before = copy.deepcopy(body)
    codec = CODECS[name]
    changed = codec.replace_results(body, {asked.results[0].key: "99 degrees"}, frozenset())
    assert codec.read_request("models/m:generateContent", changed).results[0].text == "99 degrees"
    assert body == before
    assert codec.replace_results(body, {"another": "x"}, frozenset()) == before
    back = codec.replace_results(changed, {asked.results[0].key: "12 degrees"}, frozenset())
    assert back == before


@every_format
def test_every_format_can_be_served_by_a_compatible_server(name: str) -> None:
    asked, _ = asked_of(name)
    body = to_openai_chat(asked, "other")
    again = CODECS["openai_chat"].read_request("/chat/completions", body)
    assert body["model"] == "other"
    assert again.messages == asked.messages
    assert body["tools"][0]["function"]["parameters"]["properties"]["city"]["type"] == "string"
    assert (again.max_tokens, again.temperature, again.tool_choice) == (50, 0.5, asked.tool_choice)
    assert body["response_format"] == {"type": "json_object"}
    assert "stream" not in body


def test_a_translated_stream_asks_for_its_usage() -> None:
    body = to_openai_chat(ModelRequest("m", stream=True), "other")
    assert (body["stream"], body["stream_options"]) == (True, {"include_usage": True})
    assert "tools" not in body


def test_a_failed_result_says_so_where_the_format_can() -> None:
    for name in ("anthropic", "gemini"):
        asked, body = asked_of(name)
        key = asked.results[0].key
        assert not asked.results[0].failed
        changed = CODECS[name].replace_results(body, {key: "boom"}, frozenset([key]))
        (result,) = CODECS[name].read_request("m:generateContent", changed).results
        assert (result.text, result.failed) == ("boom", True)


def test_parts_other_than_text_stay_in_a_changed_result() -> None:
    image = {"type": "image", "source": {"type": "base64", "data": "x"}}
    content = [image, {"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    block = {"type": "tool_result", "tool_use_id": "c", "content": content}
    body = {"messages": [{"role": "user", "content": [block]}]}
    changed = CODECS["anthropic"].replace_results(body, {"c": "new"}, frozenset())
    assert changed["messages"][0]["content"][0]["content"] == [image, {"type": "text", "text": "new"}]


def test_a_result_that_is_an_object_stays_one_if_the_new_text_is() -> None:
    part = {"functionResponse": {"name": "w", "response": {"degrees": 12}}}
    body = {"contents": [{"role": "user", "parts": [part]}]}
    changed = CODECS["gemini"].replace_results(body, {"w#1": '{"degrees":99}'}, frozenset())
    assert changed["contents"][0]["parts"][0]["functionResponse"]["response"] == {"degrees": 99}
    broken = CODECS["gemini"].replace_results(body, {"w#1": '{"degrees":'}, frozenset())
    assert broken["contents"][0]["parts"][0]["functionResponse"]["response"] == {"result": '{"degrees":'}


def test_results_without_ids_are_told_apart_by_number() -> None:
    turn = [{"role": "model", "parts": [{"functionCall": {"name": "w", "args": {"n": 1}}}]}]
    turn += [{"role": "user", "parts": [{"functionResponse": {"name": "w", "response": {"result": "a"}}}]}]
    results = CODECS["gemini"].read_request("m:generateContent", {"contents": turn * 2}).results
    assert [result.key for result in results] == ["w#1", "w#2"]


def test_an_id_that_comes_again_is_another_result() -> None:
    call = {"id": "c1", "type": "function", "function": CALLED}
    turn = [{"role": "assistant", "tool_calls": [call]}, {"role": "tool", "tool_call_id": "c1", "content": "x"}]
    body = {"model": "m", "messages": turn * 2}
    keys = [result.key for result in CODECS["openai_chat"].read_request("", body).results]
    assert keys == ["c1", "c1#2"]
    changed = CODECS["openai_chat"].replace_results(body, {"c1#2": "new"}, frozenset())
    assert [message.get("content") for message in changed["messages"]] == [None, "x", None, "new"]


def test_a_nameless_result_of_ollama_answers_the_first_open_call() -> None:
    calls = [{"function": {"name": name, "arguments": {}}} for name in ("a", "b")]
    messages = [{"role": "assistant", "tool_calls": calls}, *[{"role": "tool", "content": "x"}] * 2]
    assert [r.name for r in CODECS["ollama_chat"].read_request("", {"messages": messages}).results] == ["a", "b"]


def test_streams_are_recognised() -> None:
    assert CODECS["openai_chat"].read_request("", {"stream": True}).stream
    assert not CODECS["openai_chat"].read_request("", {}).stream
    assert CODECS["ollama_chat"].read_request("", {}).stream
    assert CODECS["gemini"].read_request("/v1beta/models/g-2:streamGenerateContent?alt=sse", {}).stream
    assert CODECS["gemini"].read_request("/v1beta/models/g-2:generateContent", {}).model == "g-2"


def test_on_azure_the_model_is_in_the_path() -> None:
    asked = CODECS["openai_chat"].read_request(
        "/openai/deployments/gpt-x/chat/completions?api-version=1", {"messages": []}
    )
    assert asked.model == "gpt-x"


def test_ollama_generate_has_a_prompt_and_a_system_text() -> None:
    asked = CODECS["ollama_generate"].read_request("/api/generate", {"model": "m", "system": "s", "prompt": "p"})
    assert [(message.role, message.text) for message in asked.messages] == [("system", "s"), ("user", "p")]
    assert "messages" not in CODECS["ollama_generate"].replace_results({"prompt": "p"}, {}, frozenset())
