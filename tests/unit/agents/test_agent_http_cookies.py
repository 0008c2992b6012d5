from __future__ import annotations

import pytest

from holdfast.agents.http.cookies import CookieJar
from holdfast.agents.http.url import read_url


def kept(*lines: str, url: str = "http://api.agent.test/chat/ask?q=1", given: str = "") -> str:
    jar = CookieJar(read_url(url), given)
    for line in lines:
        jar.take(((b"Set-Cookie", line.encode()), (b"Other", b"x=y")))
    return jar.header


def test_nothing_set_is_nothing_sent() -> None:
    assert kept() == ""


def test_values_are_sent_back_as_they_came() -> None:
    assert kept('sid="a b=c"; HttpOnly; SameSite=Lax', "empty=; Path=/") == 'sid="a b=c"; empty='


def test_a_later_one_takes_the_place_of_its_like() -> None:
    assert kept("a=1; Path=/", "b=2; Path=/", "a=3; Path=/") == "a=3; b=2"


@pytest.mark.parametrize("path", ["/", "/chat", "/chat/", "/chat/ask", "", "odd"])
def test_a_path_that_covers_the_agents_is_kept(path: str) -> None:
    assert kept(f"a=1; Path={path}") == "a=1"


@pytest.mark.parametrize("path", ["/ch", "/other", "/chat/ask/more"])
def test_a_path_that_does_not_cover_it_is_not(path: str) -> None:
    assert kept(f"a=1; path={path}") == ""


def test_the_longest_path_comes_first() -> None:
    assert kept("a=1; Path=/", "a=2; Path=/chat") == "a=2; a=1"


@pytest.mark.parametrize(
    ("domain", "sent"),
    [("agent.test", True), (".agent.test", True), ("API.agent.test", True), ("gent.test", False), ("x.test", False)],
)
def test_cookies_of_other_hosts_are_not_kept(domain: str, sent: bool) -> None:
    assert (kept(f"a=1; Domain={domain}") == "a=1") is sent


def test_a_secure_one_is_for_https() -> None:
    assert kept("a=1; Secure") == ""
    assert kept("a=1; Secure", url="https://127.0.0.1/") == "a=1"


@pytest.mark.parametrize(
    "ending", ["Max-Age=0", "max-age=-1", "Expires=Thu, 01 Jan 1970 00:00:00 GMT", "Max-Age=0; Expires=junk"]
)
def test_one_that_has_ended_is_not_sent(ending: str) -> None:
    assert kept("a=1; Path=/", f"a=gone; Path=/; {ending}") == ""


@pytest.mark.parametrize("ending", ["Max-Age=60", "Expires=Fri, 31 Dec 2100 23:59:59 GMT", "Expires=junk", "Max-Age=x"])
def test_one_that_has_not_ended_is_sent(ending: str) -> None:
    assert kept(f"a=1; {ending}") == "a=1"


@pytest.mark.parametrize("line", ["", ";", "novalue", "=x", " ; Path=/"])
def test_what_is_no_cookie_is_none(line: str) -> None:
    assert kept(line) == ""


def test_cookies_of_the_spec_go_along_until_the_agent_sets_them_anew() -> None:
    assert kept(given="who=me; theme=dark") == "who=me; theme=dark"
    assert kept("who=you", given="who=me; theme=dark") == "theme=dark; who=you"
