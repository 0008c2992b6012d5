"""A streamed call in pieces: what one piece leaves out, a later one may say."""

from __future__ import annotations

import json
from typing import Any

import pytest

from codec_kit import CODECS, read
from holdfast.model.completion import ToolCall

FIRST = {"index": 0, "id": "c1", "function": {"name": "find", "arguments": '{"q"'}}
REST = {"index": 0, "function": {"arguments": ": 1}"}}


def without(piece: dict[str, Any], *, id: bool = False, name: bool = False) -> dict[str, Any]:
    function = {k: v for k, v in piece["function"].items() if not (name and k == "name")}
    return {k: v for k, v in piece.items() if not (id and k == "id")} | {"function": function}


@pytest.mark.parametrize(
    "pieces",
    [
        (FIRST, REST),
        (without(FIRST, id=True), REST | {"id": "c1"}),
        (without(FIRST, name=True), REST | {"function": {"name": "find", "arguments": ": 1}"}}),
        (FIRST, FIRST | {"function": {"name": "other", "arguments": ": 1}"}}),
    ],
    ids=["id and name first", "id later", "name later", "another name later"],
)
def test_a_call_has_the_first_id_and_the_first_name_that_any_piece_has(pieces: tuple[dict[str, Any], ...]) -> None:
    said = [{"choices": [{"delta": {"tool_calls": [piece]}}]} for piece in pieces]
    data = "".join(f"data: {json.dumps(event)}\n\n" for event in said) + "data: [DONE]\n\n"
    assert read(CODECS["openai_chat"], data.encode()).tool_calls == (ToolCall("c1", "find", '{"q": 1}'),)


def test_another_id_at_the_same_index_is_another_call() -> None:
    whole = {"index": 0, "function": {"name": "find", "arguments": "{}"}}
    said = [{"choices": [{"delta": {"tool_calls": [whole | {"id": id}]}}]} for id in ("c1", "c2")]
    data = "".join(f"data: {json.dumps(event)}\n\n" for event in said) + "data: [DONE]\n\n"
    found = read(CODECS["openai_chat"], data.encode()).tool_calls
    assert [call.id for call in found] == ["c1", "c2"]
