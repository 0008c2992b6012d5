"""Who is let in, decided from the head of a request alone."""

from __future__ import annotations

import pytest

from holdfast.http1.heads import RequestHead
from holdfast.web.web_reply import Gate, WebReply, create_token

TOKEN = "t" * 32
GATE = Gate(TOKEN, 8123)


def enter(target: str = f"/{TOKEN}/api/runs", method: str = "GET", host: str = "127.0.0.1:8123", **more: str) -> object:
    headers = [(b"Host", host.encode()), *((k.replace("_", "-").encode(), v.encode()) for k, v in more.items())]
    found = GATE.enter(RequestHead(method, target, tuple(headers)))
    return found.status if isinstance(found, WebReply) else found


def test_the_token_opens_what_lies_below_it() -> None:
    assert enter() == "api/runs"
    assert enter(f"/{TOKEN}/") == ""
    assert enter(f"/{TOKEN}/api/search?q=a/b") == "api/search?q=a/b"
    assert enter(method="PUT") == enter(method="HEAD") == "api/runs"
    assert enter(host="localhost:8123") == enter(host="[::1]:8123") == "api/runs"


def test_without_it_there_is_nothing_whatever_is_asked() -> None:
    for method in ["GET", "PUT", "POST", "DELETE"]:
        for target in [
            "/",
            "/api/runs",
            f"/{TOKEN}",
            f"/{TOKEN}?a=/",
            f"/{TOKEN[:-1]}/",
            f"/{TOKEN}x/",
            f"//{TOKEN}/",
            f"{TOKEN}/",
            f"/./{TOKEN}/",
            f"http://127.0.0.1:8123/{TOKEN}/",
            "*",
            "",
            f"/{TOKEN.upper()}/",
            "/%74" + TOKEN[1:] + "/",
        ]:
            assert enter(target, method) == 404, (method, target)


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8123", "127.0.0.1", "127.0.0.1:80", "localhost", "127.0.0.1:8123.evil.example", ""],
)
def test_another_name_of_this_address_is_refused(host: str) -> None:
    assert enter(host=host) == 403


def test_a_host_that_is_given_twice_or_not_at_all_is_refused() -> None:
    twice = RequestHead("GET", f"/{TOKEN}/", ((b"Host", b"127.0.0.1:8123"), (b"host", b"evil")))
    none = RequestHead("GET", f"/{TOKEN}/", ())
    assert [GATE.enter(head).status for head in (twice, none)] == [403, 403]  # type: ignore[union-attr]


@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_a_page_of_another_site_is_refused_with_the_token_too(method: str) -> None:
    assert enter(method=method, Origin="http://evil.example") == 403
    assert enter(method=method, Origin="null") == 403
    assert enter(method=method, Origin="http://127.0.0.1:8124") == 403
    assert enter(method=method, Sec_Fetch_Site="cross-site") == 403
    assert enter(method=method, Sec_Fetch_Site="same-site") == 403
    assert enter(method=method, Origin="http://127.0.0.1:8123", Sec_Fetch_Site="same-origin") == "api/runs"


def test_a_link_to_the_page_may_be_followed_from_anywhere() -> None:
    assert enter(f"/{TOKEN}/", Sec_Fetch_Site="cross-site") == ""


@pytest.mark.parametrize("method", ["POST", "DELETE", "PATCH", "OPTIONS", "CONNECT", "TRACE"])
def test_other_methods_are_refused(method: str) -> None:
    assert enter(method=method) == 405


def test_a_token_is_long_and_another_each_time() -> None:
    assert len({create_token() for _ in range(50)}) == 50
    assert len(create_token()) >= 32
