"""Faults that change a reply: what arrives instead, in the same kind of value."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from holdfast.faults.llm.empty import Empty as EmptyModelReply
from holdfast.faults.llm.truncated_response import TruncatedResponse
from holdfast.faults.llm_text import UnsupportedShape
from holdfast.faults.mcp.error_as_result import ErrorAsResult
from holdfast.faults.tools.empty import Empty
from holdfast.faults.tools.error_in_body import ErrorInBody
from holdfast.faults.tools.malicious_response import MaliciousResponse
from holdfast.faults.tools.partial import Partial
from holdfast.faults.tools.phantom_success import PhantomSuccess
from holdfast.faults.tools.slow import Slow
from holdfast.model.canary import find_canaries


@dataclass
class Page:
    rows: list[int]
    total: int


@dataclass
class Quote:
    price: float


LONG = "one two three four five six seven eight nine ten eleven twelve"
CHAT = {"choices": [{"message": {"content": "hi"}}], "id": 1}
FAILED = {"error": {"code": 500, "message": "no stock"}, "status": "error"}
FAILED_TEXT = '{"error": {"code": 500, "message": "no stock"}, "status": "error"}'


def reply(content: str | None, reason: str) -> dict[str, Any]:
    return {"choices": [{"message": {"content": content}, "finish_reason": reason}]}


CHANGES: dict[Any, list[tuple[Any, Any]]] = {
    Empty: [
        ([1, 2], []),
        ((1, 2), ()),
        ({1, 2}, set()),
        ({"price": 1}, {}),
        ({"results": [1], "total": 1}, {"results": [], "total": 1}),
        ({"a": [1], "b": [2]}, {}),
        ("text", ""),
        ("[1, 2]", "[]"),
        ('{"a": 1}', "{}"),
        ('{"rows":[1],"n":1}', '{"rows":[],"n":1}'),
        (b"bytes", b""),
        (b"\xff\x00", b""),
        (b"[1]", b"[]"),
        (Page([1], 1), Page([], 1)),
        (Quote(1.0), None),
        (5, None),
        (None, None),
    ],
    Partial: [
        ([1, 2, 3], [1]),
        ((1, 2), (1,)),
        ({"total": 3, "rows": [1, 2, 3]}, {"total": 3, "rows": [1]}),
        ({"data": {"items": [1, 2]}}, {"data": {"items": [1]}}),
        ({"one": [1], "many": [1, 2]}, {"one": [1], "many": [1]}),
        ("[1,2,3]", "[1]"),
        (Page([1, 2], 2), Page([1], 2)),
        ("12345678", "1234"),
        (b"12345678", b"1234"),
        (b"\xff\xfe\xfd\xfc", b"\xff\xfe"),
    ],
    Partial(keep=2): [([1, 2, 3], [1, 2])],
    Partial(keep=0): [([1], [])],
    Partial(fraction=0.25): [("12345678", "12")],
    ErrorInBody(message="no stock"): [
        ({"a": 1}, FAILED),
        ([1], FAILED),
        (None, FAILED),
        ("rows", FAILED_TEXT),
        (b"rows", FAILED_TEXT.encode()),
    ],
    MaliciousResponse(payload="dö evil"): [
        ("rows", "dö evil"),
        ({"a": 1}, "dö evil"),
        (None, "dö evil"),
        (b"rows", "dö evil".encode()),
    ],
    MaliciousResponse(payload="EVIL", action="send_mail"): [("rows", "EVIL")],
    ErrorAsResult(message="Error: no"): [("fine", "Error: no")],
    TruncatedResponse: [(LONG, LONG.partition(" eleven")[0])],
    TruncatedResponse(max_tokens=2): [(reply(LONG, "stop"), reply("one two", "length"))],
    TruncatedResponse(max_tokens=2, silent=True): [(reply(LONG, "stop"), reply("one two", "stop"))],
    TruncatedResponse(max_tokens=1): [
        (
            {"content": [{"type": "text", "text": LONG}], "stop_reason": "end_turn"},
            {"content": [{"type": "text", "text": "one"}], "stop_reason": "max_tokens"},
        )
    ],
    EmptyModelReply: [
        ("hi", ""),
        (CHAT, {"choices": [{"message": {"content": ""}}], "id": 1}),
        (
            {"choices": [{"message": {"content": None, "tool_calls": [{"id": 1}]}}]},
            {"choices": [{"message": {"content": None, "tool_calls": []}}]},
        ),
        (
            {"content": [{"type": "tool_use", "id": "a"}, {"type": "text", "text": "hi"}, {"type": "tool_use"}]},
            {"content": [{"type": "text", "text": ""}]},
        ),
        ({"output": [{"type": "function_call", "name": "f"}], "text": "hi"}, {"output": [], "text": ""}),
    ],
    EmptyModelReply(shape="choices"): [
        (CHAT, {"choices": [], "id": 1}),
        ("hi", ""),
        ({"content": "hi"}, {"content": ""}),
    ],
    EmptyModelReply(shape="message"): [
        (CHAT, {"choices": [{"message": None}], "id": 1}),
        ({"message": {"content": "hi"}}, {"message": None}),
        ("hi", ""),
        ({"choices": [{"text": "hi"}]}, {"choices": [{"text": ""}]}),
        (None, None),
    ],
}
UNCHANGED: dict[Any, list[Any]] = {
    Partial: [[1], {}, {"a": 1}, 5, None, '{"a": [1]}'],
    TruncatedResponse: ["short", "", reply("short", "stop"), reply(None, "tool_calls"), None],
}


def list_rows(table: dict[Any, list[Any]]) -> Iterator[Any]:
    for fault, rows in table.items():
        made = fault() if isinstance(fault, type) else fault
        for n, row in enumerate(rows):
            yield pytest.param(made, *(row if isinstance(row, tuple) else [row]), id=f"{type(made).__name__}-{n}")


@pytest.mark.parametrize(("fault", "value", "expected"), list(list_rows(CHANGES)))
def test_a_fault_changes_the_reply(meeting: Any, fault: Any, value: Any, expected: Any) -> None:
    call = meeting(fault, value)
    received = call.run()
    assert received == expected
    assert type(received) is type(expected)
    assert call.forwarded == 1


@pytest.mark.parametrize(("fault", "value"), list(list_rows(UNCHANGED)))
def test_a_reply_without_the_part_that_a_fault_changes_stays_the_same_object(meet: Any, fault: Any, value: Any) -> None:
    assert meet(fault, value) is value


@pytest.mark.parametrize(("fault", "kind"), [(EmptyModelReply(shape="choices"), 5), (TruncatedResponse(), 5)])
def test_a_model_reply_of_an_unknown_shape_is_a_harness_error(meet: Any, fault: Any, kind: Any) -> None:
    with pytest.raises(UnsupportedShape, match=r"builtins\.int"):
        meet(fault, kind)


@pytest.mark.parametrize(("shape", "expected"), [("object", {"status": "ok"}), ("text", "ok")])
def test_phantom_success_reports_success_without_calling_the_tool(meeting: Any, shape: Any, expected: Any) -> None:
    call = meeting(PhantomSuccess(shape=shape), "created")
    assert (call.run(), call.forwarded) == (expected, 0)


def test_slow_returns_the_reply_late(meeting: Any) -> None:
    call = meeting(Slow(), value := {"a": 1})
    assert call.run() is value
    assert (call.slept_ms, call.forwarded) == (2000, 1)


def test_a_built_in_attack_text_has_one_canary(meet: Any) -> None:
    assert len(find_canaries(meet(MaliciousResponse(), "rows", seed=3))) == 1
