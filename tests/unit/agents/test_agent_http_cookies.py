from __future__ import annotations

import pytest

from holdfast.agents.http.reply_headers import CookieJar
from holdfast.agents.http.request import read_url


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
