from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agent_http_servers import ask_raw, ask_web, recorded
from holdfast.agents.http.agent import HttpAgent
from holdfast.agents.http.client import FixedHead
from holdfast.agents.http.reply_headers import CookieJar
from holdfast.agents.http.request import read_url
from holdfast.errors import AgentUnavailable
from holdfast.model.spec import AgentSpec


def kept(*lines: str, url: str = "http://api.agent.test/chat/ask?q=1", given: str = "") -> str:
    jar = CookieJar(read_url(url), given)
    for line in lines:
        jar.store(((b"Set-Cookie", line.encode()), (b"Other", b"x=y")))
    return jar.header


@pytest.mark.parametrize(
    ("lines", "sent"),
    [
        ([], ""),
        (['sid="a b=c"; HttpOnly; SameSite=Lax', "empty=; Path=/"], 'sid="a b=c"; empty='),
        (["a=1; Path=/", "b=2; Path=/", "a=3; Path=/"], "a=3; b=2"),
        (["a=1; Path=/", "a=2; Path=/chat"], "a=2; a=1"),  # the longest path comes first
        *(([f"a=1; Path={path}"], "a=1") for path in ("/", "/chat", "/chat/", "/chat/ask", "", "odd")),
        *(([f"a=1; path={path}"], "") for path in ("/ch", "/other", "/chat/ask/more")),
        *(([f"a=1; Domain={domain}"], "a=1") for domain in ("agent.test", ".agent.test", "API.agent.test")),
        *(([f"a=1; Domain={domain}"], "") for domain in ("gent.test", "x.test")),
        *(([line], "") for line in ("", ";", "novalue", "=x", " ; Path=/")),
    ],
)
def test_cookies_that_are_sent_back(lines: list[str], sent: str) -> None:
    assert kept(*lines) == sent


@pytest.mark.parametrize(
    ("ending", "ended"),
    [
        ("Max-Age=0", True),
        ("max-age=-1", True),
        ("Expires=Thu, 01 Jan 1970 00:00:00 GMT", True),
        ("Max-Age=0; Expires=junk", True),
        ("Max-Age=60", False),
        ("Expires=Fri, 31 Dec 2100 23:59:59 GMT", False),
        ("Expires=junk", False),
        ("Max-Age=x", False),
    ],
)
def test_a_cookie_that_has_ended_is_not_sent(ending: str, ended: bool) -> None:
    assert kept("a=1; Path=/", f"a=2; Path=/; {ending}") == ("" if ended else "a=2")


def test_a_secure_one_is_for_https() -> None:
    assert kept("a=1; Secure") == ""
    assert kept("a=1; Secure", url="https://127.0.0.1/") == "a=1"


def test_cookies_of_the_spec_go_along_until_the_agent_sets_them_again() -> None:
    assert kept(given="who=me; theme=dark") == "who=me; theme=dark"
    assert kept("who=you", given="who=me; theme=dark") == "theme=dark; who=you"


def written(url: str = "http://x.test/a", method: str = "POST", body: bytes | None = b"hi", **more: Any) -> list[str]:
    head = FixedHead(read_url(url), more.pop("headers", {}), keep=more.pop("keep", True))
    return head.write_request(method, read_url(url).endpoint.target, body, head.cookie).decode().split("\r\n")


def test_a_request_as_it_is_sent() -> None:
    first, *lines, empty, body = written()
    assert (first, empty, body) == ("POST /a HTTP/1.1", "", "hi")
    names = [line.partition(": ")[0] for line in lines]
    assert names == ["Host", "User-Agent", "Accept", "Accept-Encoding", "Content-Length"]
    assert lines[-1] == "Content-Length: 2"


def test_headers_of_the_spec_take_the_place_of_ours_in_any_spelling() -> None:
    lines = written(headers={"accept": "text/plain", "USER-AGENT": "me", "X-K": "é", "host": "other"})[1:6]
    assert lines == ["host: other", "USER-AGENT: me", "accept: text/plain", "Accept-Encoding: gzip, deflate", "X-K: é"]


def test_a_get_has_no_length_and_an_empty_post_has_one() -> None:
    assert not any(line.startswith("Content-Length") for line in written(method="GET", body=None))
    assert "Content-Length: 0" in written(body=None)


def test_a_connection_that_is_not_kept_is_said_to_close() -> None:
    assert "Connection: close" in written(keep=False)
    assert "Connection: close" not in written()


@pytest.mark.parametrize(
    ("url", "target", "host"),
    [
        ("http://x.test", "/", "x.test"),
        ("http://x.test:81/a b?c=d e#f", "/a%20b?c=d%20e", "x.test:81"),
        ("http://bücher.test/ü?q=ä", "/%C3%BC?q=%C3%A4", "xn--bcher-kva.test"),
        ("http://[::1]:9/", "/", "[::1]:9"),
        ("http://u:p@x.test/", "/", "x.test"),
    ],
)
def test_urls_on_the_wire(url: str, target: str, host: str) -> None:
    first, second = written(url)[:2]
    assert (first, second) == (f"POST {target} HTTP/1.1", f"Host: {host}")


def test_user_and_password_of_the_url_are_sent_as_a_header() -> None:
    with recorded() as (seen, handler):
        ask_web(handler, headers={})
    assert "Authorization" not in seen[0]["headers"]
    assert "Authorization: Basic dTpwQHNz" in written("http://u:p%40ss@x.test/")


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"endpoint": "http://u:p@x.test/", "headers": {"Authorization": "Bearer x"}}, "cannot be combined"),
        ({"headers": {"Content-Length": "3"}}, "content-length is computed from the body"),
        ({"headers": {"transfer-encoding": "chunked"}}, "transfer-encoding is computed from the body"),
        ({"headers": {"not a name": "x"}}, "not a header name"),
    ],
)
def test_headers_that_cannot_be_sent_are_a_configuration_error(settings: dict[str, Any], why: str) -> None:
    async def go() -> None:
        await HttpAgent.open(AgentSpec(**{"endpoint": "http://x.test/", **settings}), limit=1)

    with pytest.raises(AgentUnavailable, match=why) as caught:
        asyncio.run(go())
    assert caught.value.config


def test_lines_that_end_in_lf_alone_are_read() -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\nContent-Type: text/plain\nContent-Length: 2\n\nok")
        await writer.drain()

    assert ask_raw(handler, method="GET").turns[0].text == "ok"
