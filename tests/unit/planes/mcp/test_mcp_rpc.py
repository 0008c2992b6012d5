import json

from hypothesis import given
from hypothesis import strategies as st

from holdfast.planes.mcp import rpc

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


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


def test_a_request_that_says_its_version_is_stateless():
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
