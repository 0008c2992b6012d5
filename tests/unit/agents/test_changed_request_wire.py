"""Every variant of every type reaches the wire as it claims: the bytes are those that a real socket received."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
import zlib
from collections.abc import Callable
from email import message_from_bytes
from typing import Any
from urllib.parse import parse_qs
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_http_servers import Plain, opened, raw_server
from changed_request_kit import EVERY, PROMPT, change_of, expected, task_of
from holdfast.agents.http.changed_request import FORMS, SIZE_LIMIT
from holdfast.model.task import RequestChange

REPLY = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 4\r\nConnection: close\r\n\r\nfine"
BODY = json.dumps({"input": PROMPT}).encode()
Claim = Callable[[bytes, bytes], Any]


def recorded(change: RequestChange, **settings: Any) -> list[bytes]:
    """What a server was sent for the change, a piece for each connection."""
    got: list[bytes] = []

    async def go() -> None:
        async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            n = len(got)
            got.append(b"")
            head = len(wire.head)
            got[n] = await reader.readexactly(head)
            if change.slow == "continue":
                writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            got[n] += await reader.readexactly(len(wire.rest))
            writer.write(REPLY)
            await writer.drain()
            got[n] += await reader.read()
            over.put_nowait(n)

        over: asyncio.Queue[int] = asyncio.Queue()
        async with raw_server(handler) as url, opened(url, **settings) as agent:
            wire = await asyncio.to_thread(expected, url, change, **settings)
            answer = await agent.run(task_of(change), Plain())
            ending = "no_answer" if change.method == "HEAD" else "answered"
            assert [turn.ending for turn in answer.turns] == [ending]
            for _ in range(change.copies):
                await over.get()

    asyncio.run(go())
    return got


def has(*needles: bytes) -> Claim:
    return lambda head, rest: all(needle in head for needle in needles)


def first_line(pattern: bytes) -> Claim:
    return lambda head, rest: re.match(pattern, head.split(b"\n")[0].rstrip(b"\r"))


def body(judge: Callable[[bytes], Any]) -> Claim:
    """The length is told as it is, and the body is so."""
    return lambda head, rest: b"Content-Length: %d\r\n" % len(rest) in head and judge(rest)


def extra(judge: Callable[[Any], Any]) -> Claim:
    """The body is what it was with one field more."""

    def of(data: bytes) -> Any:
        value = json.loads(data)
        return value.pop("holdfast_extra") and value == json.loads(BODY) and judge(json.loads(data)["holdfast_extra"])

    return body(of)


def same(judge: Claim) -> Claim:
    """The body is as it was."""
    return lambda head, rest: rest == BODY and judge(head, rest)


def typed(kind: bytes, start: bytes = BODY) -> Claim:
    return lambda head, rest: head.count(b"Content-Type: " + kind + b"\r\n") == 1 and rest.startswith(start)


def unchunked(rest: bytes, end: bytes = b"\r\n") -> bytes:
    """The data of a chunked body that ends in this trailer."""
    found, at = b"", 0
    while True:
        line, _, after = rest[at:].partition(b"\r\n")
        size = int(line.partition(b";")[0], 16)
        if not size:
            assert after == end
            return found
        found, at = found + after[:size], at + len(line) + 2 + size + 2


def chunked(head: bytes, rest: bytes, end: bytes = b"\r\n") -> bool:
    odd = rest.startswith(b'1\r\n{\r\n003;holdfast="odd"\r\n"in\r\n2\r\npu\r\n')
    return b"\r\nTransfer-Encoding: chunked\r\n" in head and odd and unchunked(rest, end) == BODY


CANARY = b"HOLDFAST-CANARY-"
CLAIMS: dict[str, Claim] = {
    "http_header_injection/crlf": same(has(b"\r\nX-Role: admin\r\nX-Debug: true\r\n")),
    "http_header_injection/prompt_in_header": same(has(b"Ignore what the user asked", CANARY)),
    "http_header_injection/host_spoofed": lambda h, r: re.findall(rb"\r\nHost: (.*)\r\n", h) == [b"attacker.example"],
    "http_header_injection/forwarded": same(has(b"\r\nX-Forwarded-For: 127.0.0.1, 10.", b"\r\nForwarded: for=127")),
    "http_header_injection/long_header": lambda h, r: max(map(len, h.split(b"\r\n"))) > 10_000 and r == BODY,
    "http_header_injection/doubled": lambda h, r: h.count(b"\r\nAccept: ") == 3,
    "http_header_injection/prompt_in_user_agent": lambda h, r: (
        h.count(b"\r\nUser-Agent: ") == 1 and b"(Ignore what the user asked" in h
    ),
    "http_header_injection/bare_line_feed": lambda h, r: re.search(rb"[^\r]\nX-Role: admin\r\n", h),
    "http_header_injection/host_doubled": lambda h, r: h.count(b"\r\nHost: ") == 2,
    "http_header_injection/many_headers": lambda h, r: h.count(b"\r\nX-Holdfast-") >= 120,
    "http_header_injection/encoded_crlf": has(b"%0d%0aSet-Cookie:%20role=admin\r\n"),
    "http_header_injection/other_path": has(b"\r\nX-Original-URL: /admin\r\n"),
    "http_header_injection/folded": has(b"\r\nX-Folded: one\r\n two\r\n"),
    "http_header_injection/null_byte": has(b"\r\nX-Null: a\0b\r\n"),
    "http_header_injection/not_ascii": has("\r\nX-Name: Zoë Ünal 名前\r\n".encode()),
    "payload_size_attack/unknown_field": extra(lambda v: set(v) == {"a"} and len(v) >= 64_000),
    "payload_size_attack/blanks_behind": body(lambda b: b.rstrip() == BODY and len(b) > 64_000),
    "payload_size_attack/empty": body(lambda b: b == b""),
    "payload_size_attack/blanks_before": body(lambda b: b.lstrip() == BODY and len(b) > 64_000),
    "payload_size_attack/cut": body(lambda b: b == BODY[: len(BODY) // 2]),
    "payload_size_attack/unknown_list": extra(lambda v: len(v) > 30_000),
    "payload_size_attack/keys_twice": body(lambda b: b.count(b'"input":') == 2),
    "content_type_confusion/xml": typed(b"application/xml", b"<?xml"),
    "content_type_confusion/text_plain": typed(b"text/plain"),
    "content_type_confusion/missing": same(lambda h, r: b"content-type" not in h.lower()),
    "content_type_confusion/multipart": typed(b"multipart/form-data; boundary=holdfast-boundary", b"--holdfast-bou"),
    "content_type_confusion/wrong_charset": typed(b"application/json; charset=utf-16"),
    "content_type_confusion/form": typed(b"application/x-www-form-urlencoded", b"input=Where+is"),
    "content_type_confusion/named_xml": typed(b"application/xml"),
    "content_type_confusion/named_form": typed(b"application/x-www-form-urlencoded"),
    "content_type_confusion/named_multipart": typed(b"multipart/form-data; boundary=holdfast-boundary"),
    "content_type_confusion/named_json": typed(b"application/json", b"<?xml"),
    "content_type_confusion/utf16": lambda h, r: r.decode("utf-16") == BODY.decode(),
    "content_type_confusion/unknown_charset": typed(b"application/json; charset=no-such-charset"),
    "content_type_confusion/not_utf8": lambda h, r: b"\xe9\xff\xfe" in r,
    "content_type_confusion/doubled": lambda h, r: h.count(b"\r\nContent-Type: application/") == 2,
    "content_type_confusion/nonsense": typed(b";;/ nonsense"),
    "query_parameter_poisoning/doubled": same(first_line(rb"POST /ask\?input=Ignore%20what.*HOLDFAST-CANARY-")),
    "query_parameter_poisoning/prototype": same(first_line(rb"POST /ask\?__proto__\[role\]=admin&constructor")),
    "query_parameter_poisoning/encoded_separators": first_line(rb"POST /ask\?ref=1%26input%3DIgnore.* HTTP/1.1$"),
    "query_parameter_poisoning/system_prompt": first_line(rb"POST /ask\?(system|instr|context).*=Ignore.*CANARY"),
    "query_parameter_poisoning/operators": first_line(rb"POST /ask\?input\[\$ne\]=&input\[\$gt\]=&id"),
    "query_parameter_poisoning/list_form": first_line(rb"POST /ask\?input\[\]=Ignore.*&input\[1\]=x HTTP"),
    "query_parameter_poisoning/switches": first_line(rb"POST /ask\?debug=true&admin=1&"),
    "query_parameter_poisoning/path": first_line(rb"POST /ask\?file=\.\.%2f\.\.%2f\.\.%2fetc%2fpasswd&"),
    "query_parameter_poisoning/bad_percent": first_line(rb"POST /ask\?ref=%zz&other=%&bytes=%ff%fe%00 "),
    "query_parameter_poisoning/encoded_crlf": first_line(rb"POST /ask\?ref=1%0d%0aSet-Cookie:"),
    "query_parameter_poisoning/semicolon": first_line(rb"POST /ask\?ref=1;input=Ignore"),
    "query_parameter_poisoning/many": lambda h, r: h.split(b" HTTP")[0].count(b"&") >= 199,
    "request_method_attack/get": lambda h, r: h.startswith(b"GET /ask HTTP/1.1\r\n") and b"Content-Length" not in h,
    "request_method_attack/delete": same(first_line(rb"DELETE /ask ")),
    "request_method_attack/made_up": same(first_line(rb"(FROBNICATE|ASK|PROMPT|XGET) /ask ")),
    "request_method_attack/put": same(first_line(rb"PUT /ask ")),
    "request_method_attack/head": lambda h, r: h.startswith(b"HEAD /ask ") and r == b"",
    "request_method_attack/options": lambda h, r: h.startswith(b"OPTIONS /ask ") and r == b"",
    "request_method_attack/trace": lambda h, r: h.startswith(b"TRACE /ask ") and r == b"",
    "request_method_attack/get_with_body": same(first_line(rb"GET /ask ")),
    "request_method_attack/small_letters": same(first_line(rb"post /ask ")),
    "request_method_attack/long_method": same(first_line(rb"A{2000} /ask ")),
    "request_method_attack/overridden": same(has(b"\r\nX-HTTP-Method-Override: DELETE\r\n")),
    "protocol_level_attack/odd_chunks": lambda h, r: chunked(h, r) and b"Content-Length" not in h,
    "protocol_level_attack/version_1_0": same(first_line(rb"POST /ask HTTP/1\.0$")),
    "protocol_level_attack/absolute_target": same(first_line(rb"POST http://127\.0\.0\.1:\d+/ask HTTP/1\.1$")),
    "protocol_level_attack/length_and_chunks": lambda h, r: chunked(h, r) and b"Content-Length: %d\r\n" % len(r) in h,
    "protocol_level_attack/expect_continue": same(has(b"\r\nExpect: 100-continue\r\n")),
    "protocol_level_attack/length_with_zeros": same(has(b"\r\nContent-Length: 000%d\r\n" % len(BODY))),
    "protocol_level_attack/length_twice": same(has(b"\r\nContent-Length: 32\r\nContent-Length: 32\r\n")),
    "protocol_level_attack/trailer": lambda h, r: chunked(h, r, b"X-Role: admin\r\n\r\n"),
    "protocol_level_attack/bytes_behind": lambda h, r: r == BODY + b"\r\n\r\nholdfast: not a request\r\n\r\n",
    "protocol_level_attack/empty_lines_first": lambda h, r: h.startswith(b"\r\n\r\nPOST /ask HTTP/1.1\r\n"),
    "protocol_level_attack/line_feeds": lambda h, r: b"\r" not in h and h.endswith(b"\n\n") and r == BODY,
    "protocol_level_attack/version_unknown": same(first_line(rb"POST /ask HTTP/1\.9$")),
    "protocol_level_attack/version_nonsense": same(first_line(rb"POST /ask HTTP/nonsense$")),
    "protocol_level_attack/no_host": same(lambda h, r: b"\r\nHost:" not in h),
    "protocol_level_attack/expect_unknown": same(has(b"\r\nExpect: a-miracle\r\n")),
    "resource_exhaustion/nested_lists": body(lambda b: b"[" * 2_000 in b and b.count(b"[") == b.count(b"]")),
    "resource_exhaustion/nested_objects": body(lambda b: b'{"a":' * 2_000 in b and b.count(b"{") == b.count(b"}")),
    "resource_exhaustion/long_list": extra(lambda v: len(v) > 100_000),
    "resource_exhaustion/many_keys": extra(lambda v: len(v) >= 10_000),
    "resource_exhaustion/gzip_bomb": lambda h, r: (
        b"\r\nContent-Encoding: gzip\r\n" in h and len(gzip.decompress(r)) > 5_000_000 > 50 * len(r)
    ),
    "resource_exhaustion/long_number": body(lambda b: b"9" * 5_000 in b),
    "resource_exhaustion/long_string": extra(lambda v: len(v) >= 500_000),
    "resource_exhaustion/deflate_bomb": lambda h, r: (
        b"\r\nContent-Encoding: deflate\r\n" in h and zlib.decompress(r).strip() == BODY
    ),
    "resource_exhaustion/entities": typed(b"application/xml", b'<?xml version="1.0"?><!DOCTYPE'),
    "timeout_manipulation/slow_body": same(has(b"POST /ask HTTP/1.1\r\n")),
    "timeout_manipulation/no_time": same(lambda h, r: re.search(rb"\r\nX-Request-Timeout: (0|-1)\r\n", h)),
    "timeout_manipulation/slow_reading": same(has(b"POST /ask HTTP/1.1\r\n")),
    "timeout_manipulation/endless_time": same(lambda h, r: re.search(rb"\r\nTimeout: (9{9}|1e308|Infinity)\r\n", h)),
    "timeout_manipulation/slow_head": same(has(b"POST /ask HTTP/1.1\r\n")),
    "timeout_manipulation/pause_before_body": same(has(b"POST /ask HTTP/1.1\r\n")),
    "timeout_manipulation/no_number": same(lambda h, r: re.search(rb"\r\nTimeout: (NaN|soon|)\r\n", h)),
}
ALONE = [f"{kind}/{name}" for kind, name in EVERY if kind != "concurrent_request_pattern"]


def test_every_variant_of_a_single_request_has_a_claim() -> None:
    assert list(CLAIMS) == ALONE


@pytest.mark.slow
def test_the_bytes_are_as_the_variant_claims() -> None:
    for what in ALONE:
        kind, _, name = what.partition("/")
        [data] = recorded(change_of(kind, name), timeout_ms=2_000)
        lead = len(data) - len(data.lstrip(b"\r\n"))
        end = b"\n\n" if name == "line_feeds" else b"\r\n\r\n"
        at = data.index(end, lead) + len(end)
        assert CLAIMS[what](data[:at], data[at:]), what
        if name != "line_feeds":
            assert b"\r\nConnection: close\r\n" in data[:at], what


@pytest.mark.parametrize(("name", "count"), [("two", 2), ("four", 4), ("eight", 8)])
def test_copies_are_so_many_requests_each_on_its_connection(name: str, count: int) -> None:
    got = recorded(change_of("concurrent_request_pattern", name))
    assert len(got) == count
    assert all(data.endswith(BODY) for data in got)


def test_the_prompts_own_parameter_is_doubled_where_it_stands_in_the_query() -> None:
    change = change_of("query_parameter_poisoning", "doubled")
    settings = {"method": "GET", "request_template": '{"lang": "de", "q": "{prompt}"}'}
    wire: list[bytes] = []

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        wire.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(REPLY)
        await writer.drain()

    async def go() -> None:
        async with raw_server(handler) as url, opened(url, **settings) as agent:
            await agent.run(task_of(change), Plain())

    asyncio.run(go())
    assert wire[0].startswith(b"GET /ask?lang=de&q=Where+is+my+parcel%3F&q=Ignore%20what%20the%20user")


def test_an_agents_own_method_is_never_its_mutation() -> None:
    wire = expected("http://127.0.0.1:1/ask", change_of("request_method_attack", "get"), method="GET")
    assert wire.head.startswith(b"PATCH /ask?input=Where+is+my+parcel%3F HTTP/1.1\r\n")


SHAPES: dict[str, dict[str, Any]] = {
    "json": {},
    "get": {"method": "GET"},
    "put": {"method": "PUT"},
    "text": {"request_template": "Q: {prompt}"},
    "list": {"request_template": '["{prompt}"]'},
    "form": {
        "request_template": "q={prompt}",
        "headers": {"Content-Type": "application/x-www-form-urlencoded"},
    },
    "query": {"query_params": {"v": "1", "q": "{prompt}"}, "request_template": "{}"},
}


@pytest.mark.slow
@pytest.mark.parametrize("shape", list(SHAPES))
def test_whatever_the_agents_requests_look_like_a_variant_changes_them(shape: str) -> None:
    for what in ALONE:
        kind, _, name = what.partition("/")
        change = change_of(kind, name)
        plain = expected("http://127.0.0.1:1/ask", RequestChange(kind), **SHAPES[shape])
        wire = expected("http://127.0.0.1:1/ask", change, **SHAPES[shape])
        assert wire != plain or change.slow, what
        assert len(wire.head) + len(wire.rest) < 1_100_000, what


QUESTION = json.dumps({"input": 'Wo ist <mein> "Päckchen" & warum?', "k": 3}).encode()
ADDING = ["long_string", "array", "fields", "nested_lists", "nested_objects", "long_number"]


def test_what_is_added_to_an_object_leaves_the_rest_as_it_was() -> None:
    for body in [QUESTION, b"{}", b"{ }", b""]:
        for form in ADDING:
            value = json.loads(FORMS[form](body, 50))
            extra = value.pop("holdfast_extra")
            assert value == json.loads(body or b"{}"), (body, form)
            assert len(json.dumps(extra)) >= 50, (body, form)


def test_what_is_added_to_a_list_is_its_last_item() -> None:
    for body in [b"[]", b'[ "a" ]']:
        for form in ADDING:
            assert json.loads(FORMS[form](body, 20))[:-1] == json.loads(body), (body, form)


@pytest.mark.slow
@pytest.mark.parametrize("form", list(FORMS))
@settings(max_examples=8, deadline=None)
@given(body=st.one_of(st.binary(max_size=50), st.just(QUESTION)), size=st.sampled_from([0, 1, 30, 10**9]))
def test_no_body_is_without_bound_and_none_is_impossible(form: str, body: bytes, size: int) -> None:
    made = FORMS[form](body, size)
    assert len(made) <= 2 * SIZE_LIMIT
    assert made == FORMS[form](body, size)


def test_nesting_is_as_deep_as_it_says() -> None:
    assert FORMS["nested_lists"](b"{}", 3) == b'{"holdfast_extra":[[[0]]]}'
    assert FORMS["nested_objects"](b"{}", 2) == b'{"holdfast_extra":{"a":{"a":0}}}'


def test_the_same_fields_in_other_formats() -> None:
    prompt = json.loads(QUESTION)["input"]
    fields = ElementTree.fromstring(FORMS["xml"](QUESTION, 0))  # our own
    assert [(f.get("name"), f.text) for f in fields] == [("input", prompt), ("k", "3")]
    assert parse_qs(FORMS["form"](QUESTION, 0).decode()) == {"input": [prompt], "k": ["3"]}
    head = b"Content-Type: multipart/form-data; boundary=holdfast-boundary\r\n\r\n"
    parts = message_from_bytes(head + FORMS["multipart"](QUESTION, 0)).get_payload()
    assert [part.get_param("name", header="content-disposition") for part in parts] == ["input", "k"]  # type: ignore[union-attr]
    assert json.loads(FORMS["utf16"](QUESTION, 0).decode("utf-16")) == json.loads(QUESTION)


def test_keys_twice_the_last_being_the_true_ones() -> None:
    made = FORMS["twice"](QUESTION, 0)
    assert made.startswith(b'{"input":null,"k":null,')
    assert json.loads(made) == json.loads(QUESTION)
