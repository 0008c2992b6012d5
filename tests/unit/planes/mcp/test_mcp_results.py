from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_talk import Talk, call
from msgspec import UNSET

from holdfast.faults.values import TRIES
from holdfast.model.scenario import Injection
from holdfast.planes.mcp import results
from holdfast.planes.mcp.results import Block, ResultShape, read_tool_value
from holdfast.planes.mcp.trial_state import DeclaredSchema, is_acceptable

TEXT = {"type": "text", "text": "hello"}
IMAGE = {"type": "image", "data": "aGk=", "mimeType": "image/png"}


def changed(result, new):
    value, put = read_tool_value(result)
    return value, put(new)


def test_text_is_the_value_and_other_blocks_stay():
    result = {"content": [IMAGE, TEXT, {"type": "text", "text": "more"}], "isError": False, "_meta": {"k": 1}}
    value, back = changed(result, "other")
    assert value == "hello\nmore"
    assert back == {**result, "content": [IMAGE, {"type": "text", "text": "other"}]}


def test_an_object_is_changed_in_both_its_forms():
    result = {"content": [{"type": "text", "text": '{"a": 1}'}], "structuredContent": {"a": 1, "b": 2}}
    value, back = changed(result, {"a": 2, "b": 2})
    assert value == {"a": 1, "b": 2}
    assert back == {"content": [{"type": "text", "text": '{"a":2,"b":2}'}], "structuredContent": {"a": 2, "b": 2}}


def test_text_in_place_of_an_object_is_not_a_structured_content():
    result = {"content": [TEXT], "structuredContent": {"a": 1, "b": 2}}
    assert changed(result, "cut")[1] == {"content": [{"type": "text", "text": "cut"}]}


def test_a_value_that_an_sdk_has_wrapped_is_unwrapped_and_wrapped_again():
    rows = {
        "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
        "structuredContent": {"result": ["a", "b"]},
    }
    value, back = changed(rows, ["b"])
    assert value == ["a", "b"]
    assert back == {"content": [{"type": "text", "text": "b"}], "structuredContent": {"result": ["b"]}}
    page = {"content": [TEXT], "structuredContent": {"content": "hello"}}
    value, back = changed(page, "bye")
    assert value == "hello"
    assert back == {"content": [{"type": "text", "text": "bye"}], "structuredContent": {"content": "bye"}}


def test_an_object_with_one_field_of_its_own_stays_an_object():
    assert read_tool_value({"content": [TEXT], "structuredContent": {"price": 3}})[0] == {"price": 3}


def test_a_result_without_text_is_its_blocks():
    value, back = changed({"content": [IMAGE]}, [])
    assert (value, back) == ([Block(IMAGE)], {"content": []})
    assert changed({"content": [IMAGE]}, [Block(IMAGE), Block(IMAGE), "more"])[1] == {
        "content": [IMAGE, IMAGE, {"type": "text", "text": "more"}]
    }
    assert changed({"content": [IMAGE]}, "attack")[1] == {"content": [{"type": "text", "text": "attack"}]}


def test_an_image_next_to_an_object_stays():
    result = {"content": [IMAGE, {"type": "text", "text": '{"a":1}'}, IMAGE], "structuredContent": {"a": 1, "b": 2}}
    back = changed(result, {"a": 2, "b": 2})[1]
    assert back["content"] == [IMAGE, {"type": "text", "text": '{"a":2,"b":2}'}, IMAGE]
    alone = {"content": [IMAGE], "structuredContent": {"a": 1, "b": 2}}
    assert changed(alone, {"a": 2, "b": 2})[1] == {"content": [IMAGE], "structuredContent": {"a": 2, "b": 2}}


def test_the_text_of_an_embedded_resource_is_the_value_without_other_text():
    page = {"type": "resource", "resource": {"uri": "file:///a", "mimeType": "text/plain", "text": "price 12"}}
    value, back = changed({"content": [IMAGE, page]}, "price 21")
    assert value == "price 12"
    assert back == {"content": [IMAGE, {**page, "resource": {**page["resource"], "text": "price 21"}}]}


@given(
    st.dictionaries(
        st.sampled_from(["content", "structuredContent", "isError", "x"]),
        st.recursive(
            st.none() | st.text(max_size=3) | st.integers(0, 3),
            lambda inner: (
                st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["type", "text", "result"]), inner)
            ),
            max_leaves=6,
        ),
    )
)
def test_any_result_can_be_read_shown_and_changed(result):
    value, put = read_tool_value(result)
    put(value)
    put("text")
    put(None)
    assert isinstance(results.format_result(result), str)
    results.read_resource_value(result)[1]("x")
    results.read_prompt_value(result)[1]("x")


def test_the_text_of_a_resource_and_of_a_prompt():
    page = {"contents": [{"uri": "a", "blob": "aa"}, {"uri": "b", "text": "page"}]}
    value, put = results.read_resource_value(page)
    assert value == "page"
    assert put("new") == {"contents": [{"uri": "a", "blob": "aa"}, {"uri": "b", "text": "new"}]}
    talk = {"messages": [{"role": "user", "content": TEXT}, {"role": "assistant", "content": IMAGE}]}
    value, put = results.read_prompt_value(talk)
    assert value == "hello"
    assert put("new")["messages"][0] == {"role": "user", "content": {"type": "text", "text": "new"}}


@pytest.mark.parametrize(
    ("schema", "form"),
    [
        (None, ResultShape()),
        ({"properties": {"a": {}, "b": {}}}, ResultShape(structured=True)),
        ({"properties": {"price": {"type": "number"}}}, ResultShape(structured=True)),
        ({"properties": {"result": {"type": "array"}}}, ResultShape(structured=True, key="result")),
        ({"properties": {"content": {"type": "string"}}}, ResultShape(structured=True, key="content", text=True)),
    ],
)
def test_the_form_that_a_tool_declares(schema, form):
    assert results.read_result_shape({"name": "t", "outputSchema": schema}) == form


def test_a_made_up_result_has_the_declared_form():
    ok = {"status": "ok"}
    assert results.build_result(ok, ResultShape()) == {
        "content": [{"type": "text", "text": '{"status":"ok"}'}],
        "isError": False,
    }
    assert results.build_result(ok, ResultShape(structured=True))["structuredContent"] == ok
    text = ResultShape(structured=True, key="content", text=True)
    assert results.build_result(ok, text)["structuredContent"] == {"content": '{"status":"ok"}'}


# The schema that an MCP server sends for a tool's results: nothing is fetched for it, and it is read once.


NEVER: dict[str, Any] = {"not": {}}
"""What a fetched schema would say: nothing is valid."""


class Elsewhere:
    """A server of schemas that keeps what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        asked = self.asked

        class Answers(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked.append(self.path)
                self.send_response(200)
                self.end_headers()
                self.wfile.write(json.dumps(NEVER).encode())

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Answers)
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def elsewhere() -> Iterator[Elsewhere]:
    kept = Elsewhere()
    thread = threading.Thread(target=kept.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield kept
    kept.server.shutdown()
    thread.join()
    kept.server.server_close()


def pointing(at: str) -> list[dict[str, Any]]:
    """Schemas that refer to a URL, in every place where a schema may."""
    ref = {"$ref": at}
    return [
        ref,
        {"type": "object", "properties": {"item": ref}},
        {"type": "object", "$defs": {"a": ref}, "properties": {"item": {"$ref": "#/$defs/a"}}},
        {"allOf": [{"if": {}, "then": ref}]},
        {"$dynamicRef": at},
        {"$id": at + "/base", "properties": {"item": {"$ref": "other"}}},
        {"$schema": at, "type": "object"},
        {"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"item": ref}},
    ]


def test_a_schema_that_refers_to_other_places_has_nothing_fetched(elsewhere: Elsewhere, tmp_path: Path) -> None:
    file = tmp_path / "schema.json"
    file.write_text(json.dumps(NEVER))
    for at in (elsewhere.url, file.as_uri()):
        for schema in pointing(at):
            assert is_acceptable(DeclaredSchema(schema), {"item": "lamp"}, {"item": "desk"}), schema
    assert elsewhere.asked == []


def test_of_a_schema_that_cannot_be_read_the_shape_that_the_server_gave_decides() -> None:
    for schema in [*pointing("http://127.0.0.1:9/x"), {"type": "no"}, {"$ref": "#/none"}]:
        one = DeclaredSchema(schema)
        assert is_acceptable(one, {"item": "lamp"}, {"item": "desk"}), schema
        assert not is_acceptable(one, {"item": 1}, {"item": "desk"}), schema
        assert not is_acceptable(one, UNSET, {"item": "desk"}), schema


@pytest.mark.parametrize("mode", ["error_in_body", "malicious_response", "oversized"])
def test_a_schema_is_read_once_for_a_tool_and_the_tries_are_bounded(mode: str, monkeypatch: Any) -> None:
    compiled: list[Any] = []
    tries: list[Any] = []
    real = jsonschema_rs.validator_for

    class Counting:
        def __init__(self, schema: Any, **settings: Any) -> None:
            compiled.append(schema)
            self._validator = real(schema, **settings)

        def is_valid(self, value: Any) -> bool:
            tries.append(value)
            return self._validator.is_valid(value)

    monkeypatch.setattr(jsonschema_rs, "validator_for", Counting)
    record = {f"key{n}": f"{n}" for n in range(500)}
    talk = Talk([Injection("tool", "*", mode)], result={"content": [], "structuredContent": record})
    schema = {"title": f"only one, for {mode}", "const": record}
    for _ in range(2):
        talk.visit.add_listed_tool("search", {"name": "search", "outputSchema": schema})
        talk.say(call())
    assert [met.effect for met in talk.context.ledger] == ["no_effect"] * 2
    assert f"the first {TRIES} places" in talk.context.ledger[0].note
    assert len(compiled) == 1
    assert 2 * (TRIES - 1) <= len(tries) <= 2 * TRIES  # a change may leave no structured content to validate
