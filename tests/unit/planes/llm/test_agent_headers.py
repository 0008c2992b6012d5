from __future__ import annotations

from holdfast.planes.llm.sources.provider_hosts import Key, agent_headers

COMMON = ((b"Host", b"127.0.0.1:1"), (b"User-Agent", b"OpenAI/Python 2.1"), (b"Connection", b"keep-alive, X-Hop"))
OWN = Key("ours", "x-api-key")


def headers(*more: tuple[bytes, bytes]) -> tuple[tuple[bytes, bytes], ...]:
    return (*COMMON, *more)


def test_headers_that_differ_in_their_length_alone_are_read_once() -> None:
    first = agent_headers(headers((b"Content-Length", b"10"), (b"X-Trace", b"1")))
    assert agent_headers(headers((b"Content-Length", b"11"), (b"X-Trace", b"1"))) is first
    assert agent_headers(headers((b"Content-Length", b"11"), (b"X-Trace", b"2"))) is not first


def test_what_goes_on_is_without_the_connections_own_headers() -> None:
    found = agent_headers(headers((b"X-Hop", b"1"), (b"CONTENT-LENGTH", b"3"), (b"Authorization", b"Bearer theirs")))
    kept = ((b"User-Agent", b"OpenAI/Python 2.1"), (b"Authorization", b"Bearer theirs"))
    assert found.onward() == (*kept, (b"accept-encoding", b"identity"))


def test_each_way_on_has_the_key_that_is_meant_for_it() -> None:
    found = agent_headers(headers((b"authorization", b"bearer  theirs "), (b"x-api-key", b"other")))
    assert found.key == "theirs"
    without = ((b"User-Agent", b"OpenAI/Python 2.1"), (b"accept-encoding", b"identity"))
    for _ in range(2):  # remembered, each for itself
        assert found.onward(strip=True) == without
        assert found.onward(OWN) == found.onward(OWN, strip=True) == (*without, (b"x-api-key", b"ours"))
        assert (b"x-api-key", b"other") in found.onward()


def test_no_key_is_told_from_an_empty_one() -> None:
    assert agent_headers(COMMON).key is None
    assert agent_headers(headers((b"Authorization", b"Bearer "))).key == ""
