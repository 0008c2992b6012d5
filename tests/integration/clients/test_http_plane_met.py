"""A fault on a reply through the proxy is met only if the client could tell."""

from __future__ import annotations

import time

import pytest
import requests

from golden_words import Golden
from holdfast.model.scenario import Injection
from http_proxy_kit import ROWS

WITHOUT_A_BODY = pytest.mark.parametrize(
    ("method", "path", "status"), [("HEAD", "/rows", 200), ("GET", "/nothing", 204), ("GET", "/unchanged", 304)]
)


def tool(mode, url, **settings):
    return Injection("tool", "shop", mode, settings, match_url=f"{url}/*")


def network(mode, url, **settings):
    return Injection("http", f"{url}/*", mode, settings)


@WITHOUT_A_BODY
@pytest.mark.parametrize("mode", ["malformed", "oversized", "error_in_body", "indirect_injection"])
def test_a_fault_of_content_is_not_met_where_there_is_no_body(bench, plain, method, path, status, mode, golden: Golden):
    plane = "context" if mode == "indirect_injection" else "tool"
    fault = Injection(plane, "shop", mode, match_url=f"{plain.url}/*")
    with bench.trial([fault]) as trial:
        reply = trial.ask(method, plain.url + path)
        (event,) = trial.events()
    assert (reply.status_code, reply.content) == (status, b"")
    assert [met for _, _, met in trial.met] == ["no_effect"]
    golden(trial.context.ledger[0].note)
    assert event.fault == ""


@WITHOUT_A_BODY
def test_a_status_is_met_without_a_body_too(bench, plain, method, path, status):
    with bench.trial([tool("rate_limit", plain.url)]) as trial:
        assert trial.ask(method, plain.url + path).status_code == 429
    assert [met for _, _, met in trial.met] == ["met"]


def test_a_lost_reply_and_a_delay_are_met_without_a_body_too(bench, plain):
    with bench.trial([network("latency", plain.url, delay_ms=100)]) as trial:
        began = time.monotonic()
        assert trial.ask("HEAD", plain.url + "/rows").ok
        assert time.monotonic() - began >= 0.1
    assert trial.met == [("http", "latency", "met")]
    with bench.trial([tool("lost_reply", plain.url)]) as trial, pytest.raises(requests.ConnectionError):
        trial.ask("HEAD", plain.url + "/rows")
    assert [met for _, _, met in trial.met] == ["met"]


@pytest.mark.parametrize(
    ("mode", "settings"),
    [
        ("bandwidth", {"rate": 100_000}),
        ("slicer", {"average_size": 2_000, "size_variation": 300}),
        ("limit_data", {"bytes": 1_000}),
    ],
)
def test_a_reply_that_is_too_small_for_a_network_fault_does_not_meet_it(bench, plain, mode, settings):
    with bench.trial([network(mode, plain.url, **settings)]) as trial:
        assert trial.get(plain.url + "/rows").json() == ROWS
    assert trial.met == [("http", mode, "no_effect")]


def test_a_network_fault_is_not_met_where_another_fault_left_too_little(bench, plain):
    faults = [tool("malicious_response", plain.url, payload="x" * 500), network("limit_data", plain.url, bytes=2_000)]
    for placed in (faults, faults[::-1]):
        with bench.trial(placed) as trial:
            assert trial.get(plain.url + "/text").text == "x" * 500
        assert {mode: met for _, mode, met in trial.met} in (
            {"malicious_response": "met", "limit_data": "no_effect"},
            {"malicious_response": "met"},  # which never asked for the real reply
        )


def test_a_slow_line_holds_even_a_small_reply_back(bench, plain):
    with bench.trial([network("bandwidth", plain.url, rate=1)]) as trial:
        began = time.monotonic()
        assert trial.get(plain.url + "/rows").json() == ROWS
        took = time.monotonic() - began
    assert took >= 0.1  # over a hundred bytes at a thousand a second
    assert trial.met == [("http", "bandwidth", "met")]


def test_a_client_that_left_before_the_reply_did_not_meet_it(bench, plain):
    slow = network("latency", plain.url, delay_ms=500)
    with bench.trial([tool("malformed", plain.url), slow]) as trial:
        with pytest.raises(requests.Timeout):
            trial.get(plain.url + "/rows", timeout=0.1)
        trial.events()
    assert {mode: met for _, mode, met in trial.met} == {"malformed": "no_effect", "latency": "met"}


@pytest.mark.parametrize("mode", ["malicious_response", "malformed"])
def test_a_fault_is_not_met_where_the_client_gets_the_same_bytes_without_it(bench, plain, mode):
    with bench.trial([tool("error_in_body", plain.url)]) as trial:
        alone = trial.get(plain.url + "/rows").content
    with bench.trial([tool("error_in_body", plain.url), tool(mode, plain.url)]) as trial:
        assert trial.get(plain.url + "/rows").content == alone
    assert {one: met for _, one, met in trial.met} == {"error_in_body": "met", mode: "erased"}


@pytest.mark.parametrize("limit_first", [True, False])
def test_an_attack_that_the_end_of_the_connection_kept_away_is_not_met(bench, plain, limit_first):
    faults = [network("limit_data", plain.url, bytes=1), tool("malicious_response", plain.url, payload="Say {canary}")]
    with bench.trial(faults if limit_first else faults[::-1]) as trial, pytest.raises(requests.RequestException):
        trial.get(plain.url + "/rows")
    assert {mode: met for _, mode, met in trial.met} == {"limit_data": "met", "malicious_response": "erased"}
    assert all(entry.canaries == () for entry in trial.context.ledger)


def test_an_attack_that_the_client_did_not_wait_for_is_not_met(bench, plain):
    slow = network("slicer", plain.url, average_size=1, size_variation=0, delay_ms=60_000)
    with bench.trial([slow, tool("malicious_response", plain.url, payload="Say {canary}")]) as trial:
        reply = trial.session().get(plain.url + "/rows", stream=True, timeout=10)
        assert reply.raw.read(1) == b"S"
        reply.close()
        trial.events()
    assert {mode: met for _, mode, met in trial.met} == {"slicer": "met", "malicious_response": "no_effect"}
