"""The forward proxy, seen from a client: what passes, what is broken, what the ledger and the trace say."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests

from holdfast.faults.tools.wrong_value import WrongValue
from holdfast.model.scenario import Injection, Schedule
from http_proxy_kit import ROWS, wait_for

BOTH = pytest.mark.parametrize("scheme", ["plain", "secure"])


@pytest.fixture
def server(request, scheme):
    return request.getfixturevalue(scheme)


def tool(mode, url, schedule=None, **settings):
    return Injection("tool", "*", mode, settings, schedule or Schedule(), match_url=url)


def network(mode, url, schedule=None, **settings):
    return Injection("http", url, mode, settings, schedule or Schedule())


def test_a_reply_that_a_fault_changed_in_its_place_goes_out_changed(bench, plain, monkeypatch):
    async def in_place(self, call, forward, ctx):
        reply = await forward(call)
        reply.value["rows"] = []
        return reply

    monkeypatch.setattr(WrongValue, "apply", in_place)
    with bench.trial([tool("wrong_value", f"{plain.url}/*")]) as trial:
        assert trial.get(plain.url + "/rows").json() == {"rows": []}
    assert [met[2] for met in trial.met] == ["met"]


# -- passing ----------------------------------------------------------------------------------------
@BOTH
@pytest.mark.parametrize("path", ["/rows", "/text", "/big", "/gzip"])
def test_untouched_traffic_passes_byte_for_byte(bench, server, path, scheme):
    with bench.trial(intercepted=[f"{server.url}/*"]) as trial:
        reply = trial.get(server.url + path, stream=True)
        passed = reply.raw.read(decode_content=False)
    with requests.get(server.url + path, stream=True, verify=False) if scheme == "plain" else reply as direct:
        assert reply.status_code == 200
        assert reply.headers["content-type"] == direct.headers["content-type"]
        assert len(passed) == int(direct.headers["content-length"])
    assert trial.met == []


@BOTH
def test_every_request_is_in_the_trace(bench, server, scheme):
    with bench.trial(intercepted=[f"{server.url}/*"]) as trial:
        trial.ask("POST", server.url + "/orders?x=1", json={"item": 7}, headers={"idempotency-key": "k1"})
        trial.get(server.url + "/missing")
        order, missing = trial.events(2)
    assert order.tool == f"POST {server.url}/orders?x=1"
    assert (order.event_type, order.plane, order.status, order.n) == ("http_call", "http", 200, 1)
    assert json.loads(order.input) == {"item": 7}
    assert json.loads(order.output) == {"done": True, "bytes": 11}
    assert order.write
    assert order.idempotency == "k1"
    assert order.duration_ms > 0
    assert (missing.status, missing.error_type, missing.write) == (404, "http_404", False)


def test_a_request_begins_when_it_arrives(bench, plain):
    with bench.trial(declared=[plain.url]) as trial:
        arrived = trial.context.sink.now()
        trial.get(plain.url + "/late")
        (late,) = trial.events()
    assert late.ts - arrived < 0.3
    assert late.duration_ms >= 400


def test_the_same_write_has_the_same_digest_and_another_has_not(bench, plain):
    with bench.trial(declared=[plain.url]) as trial:
        for item in (1, 1, 2):
            trial.ask("POST", plain.url + "/orders", json={"item": item})
        one, same, other = (event.digest for event in trial.events(3))
    assert one == same != other
    assert [event.n for event in trial.context.trace] == [1, 2, 3]


def test_the_proxys_password_and_hop_by_hop_headers_stay_here(bench, plain):
    with bench.trial(declared=[plain.url]) as trial:
        trial.get(plain.url + "/rows", headers={"x-own": "1", "connection": "x-hop", "x-hop": "1"})
    headers = {name.lower() for name in plain.seen[0][3]}
    assert "x-own" in headers
    assert not headers & {"proxy-authorization", "proxy-connection", "x-hop"}


def test_headers_are_not_in_the_trace(bench, plain):
    with bench.trial(declared=[plain.url]) as trial:
        trial.get(plain.url + "/rows", headers={"authorization": "Bearer sk-very-secret"})
        (event,) = trial.events()
    assert "sk-very-secret" not in repr(event)


@pytest.mark.parametrize("faults", [[], ["slow"]])
def test_a_long_body_arrives_as_it_was_framed(bench, plain, faults):
    injections = [tool(mode, f"{plain.url}/*", delay_ms=1) for mode in faults]
    with bench.trial(injections, declared=[plain.url]) as trial:
        chunked = trial.ask("POST", plain.url + "/orders", data=(b"x" * 1_000_000 for _ in range(12)))
        measured = trial.ask("POST", plain.url + "/orders", data=b"y" * 12_000_000)
    assert chunked.json()["bytes"] == measured.json()["bytes"] == 12_000_000
    assert plain.seen[0][3].get("Transfer-Encoding") == "chunked"
    assert plain.seen[1][3].get("Content-Length") == "12000000"


def test_a_request_without_a_readable_url_is_refused(bench):
    with bench.trial() as trial, trial.session() as session:
        reply = session.get(f"http://127.0.0.1:{trial.port}/path", proxies={"http": ""})
    assert reply.status_code == 400


# -- tool faults by URL -------------------------------------------------------------------------------
@BOTH
def test_error_is_a_status_with_a_json_body(bench, server, scheme):
    with bench.trial([tool("error", f"{server.url}/rows", error_code=503)]) as trial:
        reply = trial.get(server.url + "/rows")
        (event,) = trial.events()
    assert reply.status_code == 503
    assert reply.json()["error"]["code"] == 503
    assert server.seen == []
    assert trial.met == [("http", "error", "met")]
    assert (event.fault, event.error_type) == ("error", "http_503")


@BOTH
def test_rate_limit_says_when_to_come_back_and_heals(bench, server, scheme):
    fault = tool("rate_limit", f"{server.url}/*", Schedule(times=1), retry_after_s=2)
    with bench.trial([fault]) as trial, trial.session() as session:
        limited, healed = session.get(server.url + "/rows"), session.get(server.url + "/rows")
    assert (limited.status_code, limited.headers["retry-after"]) == (429, "2")
    assert healed.json() == ROWS
    assert trial.met == [("http", "rate_limit", "met")]


@BOTH
def test_timeout_hangs_and_closes_without_a_byte(bench, server, scheme):
    with bench.trial([tool("timeout", f"{server.url}/*", delay_ms=150)]) as trial:
        began = time.monotonic()
        with pytest.raises(requests.ConnectionError):
            trial.get(server.url + "/rows")
        assert time.monotonic() - began >= 0.14
        (event,) = trial.events()
    assert server.seen == []
    assert (event.status, event.error_type, event.fault) == (None, "timeout", "timeout")


def test_a_client_that_gives_up_first_ends_the_hang(bench, plain):
    with bench.trial([tool("timeout", f"{plain.url}/*", delay_ms=60_000)]) as trial:
        with pytest.raises(requests.Timeout):
            trial.get(plain.url + "/rows", timeout=0.2)
        (event,) = trial.events()
    assert event.error_type == "client_gone"
    assert trial.met == [("http", "timeout", "met")]


@BOTH
def test_lost_reply_does_the_work_and_resets_the_connection(bench, server, scheme):
    with bench.trial([tool("lost_reply", f"{server.url}/*")]) as trial:
        # Python's TLS may tell of a reset as of an end: that depends on whether it reads or writes when it comes.
        told = "Connection reset" if scheme == "plain" else "closed|Connection reset"
        with pytest.raises(requests.ConnectionError, match=told):
            trial.ask("POST", server.url + "/orders", json={"item": 1})
        (event,) = trial.events()
    assert len(server.seen) == 1
    assert event.error_type == "connection_lost"
    assert trial.context.ledger[0].would.startswith('{"bytes"')


def test_malformed_goes_out_broken_with_the_right_length(bench, plain):
    with bench.trial([tool("malformed", f"{plain.url}/*")]) as trial:
        reply = trial.get(plain.url + "/rows")
    assert reply.status_code == 200
    assert reply.headers["content-type"] == "application/json"
    assert int(reply.headers["content-length"]) == len(reply.content)
    with pytest.raises(requests.JSONDecodeError):
        reply.json()


def test_what_does_not_belong_to_a_changed_body_is_left_out_and_the_rest_kept(bench, plain):
    with bench.trial([tool("empty", f"{plain.url}/*")]) as trial:
        reply = trial.get(plain.url + "/rows")
    assert reply.json() == {"rows": []}
    assert reply.headers["x-own"] == "kept"
    assert "etag" not in reply.headers


def test_only_what_is_named_is_met(bench, plain):
    with bench.trial([tool("error", f"{plain.url}/rows")]) as trial:
        assert trial.get(plain.url + "/text").ok
        assert not trial.get(plain.url + "/rows?page=2").ok
    assert [entry.target for entry in trial.context.ledger] == [f"{plain.url}/rows?page=2"]


def test_match_reads_method_query_and_body(bench, plain):
    fault = tool("error", f"{plain.url}/*", Schedule(match={"method": "POST", "item": 7}))
    with bench.trial([fault]) as trial:
        assert trial.ask("POST", plain.url + "/orders", json={"item": 8}).ok
        assert trial.get(plain.url + "/orders?item=7").ok
        assert not trial.ask("POST", plain.url + "/orders", json={"item": 7}).ok


def test_calls_at_the_same_time_are_said(bench, plain):
    from concurrent.futures import ThreadPoolExecutor

    with bench.trial([tool("slow", f"{plain.url}/*", delay_ms=100)]) as trial, ThreadPoolExecutor() as pool:
        list(pool.map(lambda _: trial.get(plain.url + "/rows"), range(2)))
    assert trial.context.concurrent


def test_a_request_that_the_client_has_left_does_not_overlap_the_next(bench, plain):
    with bench.trial([tool("error", f"{plain.url}/*", Schedule(on_call=9))]) as trial:
        with pytest.raises(requests.exceptions.ReadTimeout):
            trial.get(plain.url + "/late", timeout=0.1)
        trial.get(plain.url + "/rows")
    assert not trial.context.concurrent


def test_a_reply_over_the_limit_is_late_but_whole(bench, plain):
    with bench.trial([tool("slow", f"{plain.url}/*", delay_ms=10)]) as trial:
        assert len(trial.get(plain.url + "/big").content) == 12_000_000
    assert any("longer than" in note for note in trial.context.notes)


# -- the end of a trial -----------------------------------------------------------------------------
def test_requests_under_way_when_the_trial_ends_are_reported_as_unfinished(bench, plain):
    slow, hang = tool("slow", f"{plain.url}/rows", delay_ms=60_000), network("timeout", f"{plain.url}/text")

    async def leave(trial):
        trial.plane.end_trial(trial.context)

    with bench.trial([slow, hang]) as trial, ThreadPoolExecutor(2) as pool:
        asking = [pool.submit(trial.get, plain.url + path) for path in ("/rows", "/text")]
        wait_for(lambda: len(trial.context.ledger) == 2)
        trial.run(leave(trial))
        told = {event.tool.rpartition("/")[2]: (event.phase, event.error_type) for event in trial.context.trace}
        trial.run(trial.listener.close())
        assert all(isinstance(one.exception(5), requests.RequestException) for one in asking)
    assert told["rows"] == ("unfinished", "client_gone")
    assert told["text"][1] == "timeout"
    assert len(trial.context.trace) == 2
