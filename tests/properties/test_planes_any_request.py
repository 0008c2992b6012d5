"""No request, whatever its line, its fields or its body, makes a plane break or ends the trial."""

from __future__ import annotations

from collections.abc import Iterator
from json import dumps

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from example_counts import examples
from holdfast.model.scenario import Injection
from hostile_requests import Planes, planes, send

FAULTS = [Injection("http", "*", "latency", {"latency_ms": 1}), Injection("llm", "*", "garbage")]
FEW = settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

signs = rb"\xff \xed\xa0\x80 \0 \r \n : @ [ ] / // ? # .. % %00 %ff xn-- \xc2\xad \xef\xbc\x8f -1 99999"
odd = st.sampled_from([b" ", b"a" * 70, *signs.decode("unicode_escape").encode("latin-1").split(b" ")])
word = st.lists(
    odd | st.binary(max_size=4) | st.sampled_from([b"a", b"1", b"127.0.0.1", b"localhost", b"::1"]), max_size=5
)
part = word.map(b"".join)
method = st.sampled_from([b"GET", b"POST", b"CONNECT", b"PUT", b"HEAD", b"OPTIONS", b"TRACE"]) | part
names = b"host content-length transfer-encoding upgrade connection expect accept content-type content-encoding cookie"
name = st.sampled_from([b"idempotency-key", b"mcp-session-id", *names.split()]) | part
value = (
    st.sampled_from([b"chunked", b"websocket", b"upgrade", b"100-continue", b"3", b"gzip", b"application/json"]) | part
)
field = st.tuples(name, value).map(b": ".join).map(lambda line: line + b"\r\n")
fields = st.lists(field, max_size=3).map(b"".join)
place = st.tuples(st.sampled_from([b"http://", b"https://", b"HTTP://", b"ftp://", b""]), part, part).map(b"".join)
paths = (
    b"openai/v1/ openai/v1/chat/completions anthropic/v1/messages google/v1beta/models/ ollama/api/chat mcp/shop mcp/"
)
path = st.sampled_from([b"", *paths.split()])
text = st.text(st.characters(categories=["Cs", "L", "Cc"]), max_size=3)
NAMES = st.sampled_from(
    ["model", "messages", "role", "content", "tool_calls", "tools", "input", "contents", "params", "id"]
)
values = st.recursive(
    text | st.none() | st.integers(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES | text, inner, max_size=3),
    max_leaves=8,
)


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Planes]:
    with planes(tmp_path_factory.mktemp("planes"), FAULTS) as opened:
        yield opened


@FEW
@given(method, place, fields, part)
def test_of_the_proxy(trial: Planes, method: bytes, place: bytes, fields: bytes, body: bytes) -> None:
    trial.proxied(place, fields, body, method)
    assert trial.broken == []


@FEW
@given(method, place | part, fields, part)
def test_of_a_host_that_we_stand_for(trial: Planes, method: bytes, place: bytes, fields: bytes, body: bytes) -> None:
    trial.stood(place, fields, body, method)
    assert trial.broken == []


@FEW
@given(method, path, part, fields, part)
def test_of_our_own_paths(trial: Planes, method: bytes, path: bytes, rest: bytes, fields: bytes, body: bytes) -> None:
    trial.own(path + rest, fields, body, method)
    assert trial.broken == []


@FEW
@given(path, values)
def test_of_a_body(trial: Planes, path: bytes, value: object) -> None:
    body = dumps(value).encode()
    trial.own(path, b"content-length: %d\r\n" % len(body), body)
    assert trial.broken == []


@FEW
@given(st.binary(max_size=60))
def test_of_bytes(trial: Planes, data: bytes) -> None:
    send(trial.address.port, data)
    assert trial.broken == []
