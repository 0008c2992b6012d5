from __future__ import annotations

from holdfast.planes.llm.sources.provider_hosts import AgentHeaders, Key

COMMON = ((b"Host", b"127.0.0.1:1"), (b"User-Agent", b"OpenAI/Python 2.1"), (b"Connection", b"keep-alive, X-Hop"))
OWN = Key("ours", "x-api-key")


def headers(*more: tuple[bytes, bytes]) -> tuple[tuple[bytes, bytes], ...]:
    return (*COMMON, *more)


def test_what_goes_on_is_without_the_connections_own_headers() -> None:
    found = AgentHeaders(headers((b"X-Hop", b"1"), (b"CONTENT-LENGTH", b"3"), (b"Authorization", b"Bearer theirs")))
    kept = ((b"User-Agent", b"OpenAI/Python 2.1"), (b"Authorization", b"Bearer theirs"))
    assert found.to_upstream() == (*kept, (b"accept-encoding", b"identity"))


def test_each_way_on_has_the_key_that_is_meant_for_it() -> None:
    found = AgentHeaders(headers((b"authorization", b"bearer  theirs "), (b"x-api-key", b"other")))
    assert found.key == "theirs"
    without = ((b"User-Agent", b"OpenAI/Python 2.1"), (b"accept-encoding", b"identity"))
    assert found.to_upstream(strip=True) == without
    assert found.to_upstream(OWN) == found.to_upstream(OWN, strip=True) == (*without, (b"x-api-key", b"ours"))
    assert (b"x-api-key", b"other") in found.to_upstream()


def test_no_key_is_told_from_an_empty_one() -> None:
    assert AgentHeaders(COMMON).key is None
    assert AgentHeaders(headers((b"Authorization", b"Bearer "))).key == ""
