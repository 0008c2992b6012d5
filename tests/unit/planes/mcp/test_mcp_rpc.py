from __future__ import annotations

import json
from itertools import permutations
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_talk import Talk, call

from holdfast.model.scenario import Injection, Schedule
from holdfast.planes import sse
from holdfast.planes.mcp import rpc
from holdfast.planes.sse import EventSplitter, format_message

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.slow
@given(st.binary(max_size=60) | VALUES.map(lambda value: json.dumps(value).encode()))
def test_anything_can_be_read_without_raising(line):
    message = rpc.read_message(line)
    if message is not None:
        rpc.read_request(message, line)
        rpc.find_cancelled(message)


@given(st.integers(-(2**53), 2**53) | st.text(), st.dictionaries(st.text(), VALUES, max_size=3))
def test_a_request_keeps_its_id_and_parameters(id, params):
    line = json.dumps({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).encode()
    request = rpc.read_request(rpc.read_message(line), line)
    assert (request.id, request.method, request.params, request.raw) == (id, "tools/call", params, line)


def test_notifications_answers_and_batches_are_not_requests():
    for line in (
        b'{"jsonrpc":"2.0","method":"notifications/initialized"}',
        b'{"jsonrpc":"2.0","id":1,"result":{}}',
        b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"no"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[1]}',
    ):
        assert rpc.read_request(rpc.read_message(line), line) is None
    assert rpc.read_message(b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]') is None


def test_only_answers_answer():
    assert rpc.read_message(b'{"id":1,"result":{}}').is_answer
    assert rpc.read_message(b'{"id":1,"error":{}}').is_answer
    assert not rpc.read_message(b'{"id":1,"method":"ping"}').is_answer


def test_other_arguments_make_another_message_and_the_same_none():
    line = b'{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"t","arguments":{"x":1},"_meta":{"k":2}}}'
    request = rpc.read_request(rpc.read_message(line), line)
    assert request.replace_arguments(request.params["arguments"]) is request
    other = json.loads(request.replace_arguments({"y": 2}).raw)
    assert other["params"] == {"name": "t", "arguments": {"y": 2}, "_meta": {"k": 2}}
    assert (other["id"], other["jsonrpc"]) == ("a", "2.0")


def test_a_request_with_its_version_is_stateless():
    def stateless(params):
        return rpc.RpcRequest(1, "ping", params, b"").is_stateless

    assert stateless({"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}})
    assert not stateless({"_meta": {"progressToken": 1}})
    assert not stateless({"_meta": 3})


def test_a_cancellation_names_its_request():
    message = rpc.read_message(b'{"method":"notifications/cancelled","params":{"requestId":7}}')
    assert rpc.find_cancelled(message) == 7
    assert (
        rpc.find_cancelled(rpc.read_message(b'{"method":"notifications/cancelled","params":{"requestId":null}}'))
        is None
    )
    assert rpc.find_cancelled(rpc.read_message(b'{"method":"notifications/progress","params":{"requestId":7}}')) is None


STREAM = b': ping\n\nevent: message\nid: 7\ndata: {"a":\ndata: 1}\n\ndata: x\r\n\r\ndata:y\r\n\n:c\r\rhalf\r\n'


@given(st.lists(st.integers(0, len(STREAM)), max_size=6))
def test_events_are_found_however_the_bytes_are_cut(cuts):
    events, found, at = EventSplitter(), [], 0
    for cut in [*sorted(cuts), len(STREAM)]:
        found += events.feed(STREAM[at:cut])
        at = cut
    assert b"".join(one.raw for one in found).strip() == STREAM.removesuffix(b"half\r\n").strip()
    messages = [(one.data, one.id) for one in found if one.data]
    assert messages == [(b'{"a":\n1}', b"7"), (b"x", b""), (b"y", b"")]


@given(st.binary(max_size=30).filter(lambda data: not data.startswith(b" ")))
def test_an_event_carries_its_message(data):
    (one,) = EventSplitter().feed(format_message(data, b"3"))
    assert (one.id, one.data) == (b"3", data.replace(b"\r\n", b"\n").replace(b"\r", b"\n"))


@given(st.lists(st.integers(0, 400), max_size=6))
def test_an_event_over_the_limit_is_reported_as_such_and_the_next_is_read(cuts):
    stream = b"data: " + b"x" * 300 + b"\n\ndata: y\n\n"
    events, found, at = EventSplitter(), [], 0
    with patch.object(sse, "LIMIT", 100):
        for cut in [*sorted(min(cut, len(stream)) for cut in cuts), len(stream)]:
            found += events.feed(stream[at:cut])
            assert len(events._partial) <= 100
            at = cut
    assert [(one.is_too_long, one.data) for one in found] == [(True, None), (False, b"y")]


# Several faults on one call of an MCP tool: what the client received decides which of them were met.


NEVER = Schedule(on_call=10_000)
RESULTS = (
    {"content": [{"type": "text", "text": "There are 12 of them."}]},
    {"content": [], "structuredContent": {"item": "lamp", "rows": ["a", "b"], "count": 12}},
    {"content": [], "structuredContent": {"result": [1, 2]}},
)
KINDS: tuple[tuple[Any, str], ...] = (
    ("tool", "empty"),
    ("tool", "error"),
    ("tool", "error_in_body"),
    ("tool", "lost_reply"),
    ("tool", "oversized"),
    ("tool", "partial"),
    ("tool", "wrong_value"),
    ("context", "indirect_injection"),
    ("mcp", "error_as_result"),
    ("mcp", "result_as_error"),
)


def talked(kinds: tuple[tuple[Any, str], ...], result: dict[str, Any], left_out: int = -1) -> tuple[Talk, Any]:
    placed = [
        Injection(
            plane, "*", mode, {"bytes": 300} if mode == "oversized" else {}, NEVER if at == left_out else Schedule()
        )
        for at, (plane, mode) in enumerate(kinds)
    ]
    talk = Talk(placed, result=result)
    outcome = talk.say(call())
    return talk, (outcome.kind, outcome.line)


@pytest.mark.slow
@pytest.mark.parametrize("result", RESULTS, ids=["text", "record", "list"])
def test_each_of_two_faults_is_met_if_it_changed_the_message(result: dict[str, Any]) -> None:
    calm = talked((), result)[1]
    for kinds in permutations(KINDS, 2):
        talk, got = talked(kinds, result)
        met = {entry.index for entry in talk.context.ledger if entry.effect == "met"}
        fired = {entry.index for entry in talk.context.ledger}
        explained = {at for at in fired if talked(kinds, result, at)[1] != got}
        assert len(talk.asked) <= 1
        if talk.asked and got == calm:
            assert met == set(), kinds
        elif talk.asked and explained:
            assert met == explained, kinds
        elif talk.asked:  # each would have been enough: one stands for both
            assert len(met) == 1, kinds
        else:
            assert met, kinds
            assert met - {max(fired)} == explained - {max(fired)}, kinds
