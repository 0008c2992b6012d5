"""The schema that an MCP server sends for a tool's results: nothing is fetched for it, and it is read once."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from mcp_talk import Talk, call
from msgspec import UNSET

from holdfast.faults.values import TRIES
from holdfast.model.scenario import Injection
from holdfast.planes.mcp.trial_state import is_acceptable, read_declared_schema

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
            assert is_acceptable(read_declared_schema({"outputSchema": schema}), {"item": "lamp"}, {"item": "desk"}), (
                schema
            )
    assert elsewhere.asked == []


def test_of_a_schema_that_cannot_be_read_the_shape_that_the_server_gave_decides() -> None:
    for schema in [*pointing("http://127.0.0.1:9/x"), {"type": "no"}, {"$ref": "#/none"}]:
        one = read_declared_schema({"outputSchema": schema})
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
