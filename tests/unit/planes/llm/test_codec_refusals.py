"""Errors in each provider's words."""

from __future__ import annotations

import json

import pytest

from codec_kit import CODECS
from holdfast.planes.llm.codecs.refusals import write_refusal
from holdfast.protocols.fault import Failed

PROVIDERS = ["openai", "anthropic", "google", "ollama"]


@pytest.mark.parametrize(
    ("failed", "status"),
    [
        (Failed("x"), 500),
        (Failed("x", status=502), 502),
        (Failed("x", status=418), 418),
        (Failed("x", kind="rate_limit"), 429),
        (Failed("x", kind="quota"), 429),
        (Failed("x", kind="server_error"), 500),
        (Failed("x", kind="server_error", status=504), 504),
        (Failed("x", kind="context_length"), 400),
        (Failed("x", kind="auth"), 401),
        (Failed("x", kind="html"), 502),
        (Failed("x", kind="a_plug_in's"), 500),
    ],
)
def test_the_status_of_each_kind(failed: Failed, status: int) -> None:
    for provider in PROVIDERS:
        assert write_refusal(provider, failed).status == status, provider


@pytest.mark.parametrize("status", [None, 503, 529])
def test_overloaded_has_each_providers_own_status(status: int | None) -> None:
    failed = Failed("x", status=status, kind="overloaded")
    assert [write_refusal(provider, failed).status for provider in PROVIDERS] == [503, 529, 503, 503]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_time_to_wait_is_told_only_where_there_is_one(provider: str) -> None:
    assert dict(write_refusal(provider, Failed("x", status=429, retry_after_s=1.0)).headers)["retry-after"] == "1"
    assert "retry-after" not in dict(write_refusal(provider, Failed("x", status=429)).headers)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_gateways_page_is_the_same_whoever_is_behind_it(provider: str) -> None:
    page = write_refusal(provider, Failed("x", status=504, kind="html"))
    assert dict(page.headers)["content-type"] == "text/html"
    assert b"<title>504 Gateway Timeout</title>" in page.body
    assert write_refusal(provider, Failed("x", kind="html", body="<p>own</p>")).body == b"<p>own</p>"


@pytest.mark.parametrize("name", CODECS)
@pytest.mark.parametrize("kind", ["rate_limit", "overloaded", "server_error", "auth"])
def test_an_error_body_reads_back_as_its_kind(name: str, kind: str) -> None:
    if name.startswith("ollama"):  # whose errors are bare texts
        return
    body = json.loads(CODECS[name].write_refusal(Failed("x", kind=kind)).body)
    assert [getattr(delta, "kind", None) for delta in CODECS[name].read_reply(body).deltas] == [kind]
