"""Recorded responses of a replayed session, as HTTP clients get them: nobody upstream is asked."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import requests
from requests.adapters import HTTPAdapter
from urllib3.util.retry import Retry

from holdfast.model.scenario import Injection, Schedule
from holdfast.planes.egress_policy import Policy
from holdfast.planes.llm.codecs.formats import is_model_call
from planes_kit import answer, replay, uses

NOWHERE = "https://api.nowhere.test"


def replaying(bench: Any, *responses: Any, live: bool = False, **more: Any) -> Any:
    """A trial with this recording; as in a run, all TLS is looked into unless unknown calls are let through."""
    globs = [one.tool for one in responses if "/" in one.tool] + ([] if live else ["*"])
    return bench.trial(task=replay(*responses, live=live), intercepted=globs, **more)


def test_json_and_text_come_in_order_with_their_status_and_nobody_is_asked(bench, plain):
    glob = f"{plain.url}/*"
    recording = [answer(glob, {"n": 1}), answer(glob, "words", 201), answer(glob, '{"as": "text"}'), answer(glob)]
    with replaying(bench, *recording, answer(glob, None, 204)) as trial:
        got = [trial.get(f"{plain.url}/rows?q={n}") for n in range(5)]
        assert [(r.status_code, r.text) for r in got] == [
            (200, '{"n": 1}'), (201, "words"), (200, '{"as": "text"}'), (200, "null"), (204, ""),
        ]  # fmt: skip
        kinds = [r.headers.get("content-type") for r in got]
        assert kinds == ["application/json", "text/plain; charset=utf-8", *["application/json"] * 2, None]
        assert uses(trial.context.recorded)[:2] == [(glob, 1, 200), (glob, 2, 201)]
        assert [(e.status, e.unsent, e.output) for e in trial.events(5)][:2] == [
            (200, False, '{"n":1}'), (201, False, "words"),
        ]  # fmt: skip
    assert plain.seen == []
    assert trial.context.troubles == []


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "HEAD"])
def test_any_method_is_answered(bench, plain, method):
    with replaying(bench, answer(f"{plain.url}/rows", {"n": 1})) as trial:
        got = trial.ask(method, f"{plain.url}/rows", data=b"x" * 100)
        assert (got.status_code, got.text) == (200, "" if method == "HEAD" else '{"n": 1}')
        assert trial.context.recorded[0].call == f"{method} {plain.url}/rows"
    assert plain.seen == []


@pytest.mark.parametrize(
    ("status", "body", "kind", "text"),
    [
        (429, {"error": "slow down"}, "application/json", '{"error":"slow down"}'),
        (500, "it broke", "text/plain; charset=utf-8", "it broke"),
        (503, None, "application/json", '{"error":{"code":503,"message":"503 Service Unavailable"}}'),
    ],
)
def test_errors_have_the_recorded_status_and_body(bench, plain, status, body, kind, text):
    with replaying(bench, answer(f"{plain.url}/rows", body, status)) as trial:
        got = trial.get(f"{plain.url}/rows")
        assert (got.status_code, got.headers["content-type"], got.text) == (status, kind, text)
        assert [(e.status, e.error_type, e.fault) for e in trial.events()] == [(status, f"http_{status}", "")]


def test_status_0_closes_the_connection(bench, plain):
    with replaying(bench, answer(f"{plain.url}/rows", None, 0), answer(f"{plain.url}/rows", "back")) as trial:
        with pytest.raises(requests.ConnectionError):
            trial.get(f"{plain.url}/rows")
        assert trial.get(f"{plain.url}/rows").text == "back"
        assert [(e.error_type, e.unsent) for e in trial.events(2)] == [("connection_lost", True), ("", False)]


def test_unknown_and_used_up_calls_are_closed_and_listed(bench, plain):
    with replaying(bench, answer(f"{plain.url}/rows", 1)) as trial:
        assert trial.get(f"{plain.url}/rows").json() == 1
        for path in ("/rows", "/text"):
            with pytest.raises(requests.ConnectionError):
                trial.get(f"{plain.url}{path}")
        assert [(u.is_known, u.call) for u in trial.context.recorded] == [
            (True, f"GET {plain.url}/rows"),
            (False, f"GET {plain.url}/rows"),
            (False, f"GET {plain.url}/text"),
        ]
        assert [e.unsent for e in trial.events(3)] == [False, True, True]
    assert plain.seen == []
    assert trial.context.troubles == []


def test_live_lets_unknown_calls_through(bench, plain):
    with replaying(bench, answer(f"{plain.url}/rows", 1), live=True) as trial:
        assert trial.get(f"{plain.url}/rows").json() == 1
        assert "rows" in trial.get(f"{plain.url}/rows").json()
        assert [(u.is_known, u.passed) for u in trial.context.recorded] == [(True, False), (False, True)]
    assert [(method, path) for method, path, _, _ in plain.seen] == [("GET", "/rows")]


def test_a_host_that_does_not_exist_any_more_is_answered_over_tls(bench):
    with replaying(bench, answer(f"{NOWHERE}/v1/*", {"n": 1})) as trial, trial.session() as session:
        assert session.get(f"{NOWHERE}/v1/rows", timeout=10).json() == {"n": 1}
        with pytest.raises(requests.ConnectionError):
            session.get("https://other.nowhere.test/v1/rows", timeout=10)
        assert [(u.is_known, u.call) for u in trial.context.recorded] == [
            (True, f"GET {NOWHERE}/v1/rows"),
            (False, "GET https://other.nowhere.test/v1/rows"),
        ]
    assert trial.context.troubles == []


def test_latency_is_waited_and_no_longer_than_the_client_does(bench, plain):
    with replaying(
        bench, answer(f"{plain.url}/rows", 1, latency_ms=300), answer(f"{plain.url}/rows", 2, 200, 60_000)
    ) as trial:
        begun = time.monotonic()
        assert trial.get(f"{plain.url}/rows").json() == 1
        assert time.monotonic() - begun >= 0.3
        with pytest.raises(requests.ReadTimeout):
            trial.get(f"{plain.url}/rows", timeout=0.2)
        assert [e.error_type for e in trial.events(2)] == ["", "client_gone"]


def test_a_librarys_retries_take_the_next_responses(bench, plain):
    url = f"{plain.url}/rows"
    recording = [answer(url, None, 503), answer(url, None, 0), answer(url, "third")]
    with replaying(bench, *recording) as trial, trial.session() as session:
        session.mount("http://", HTTPAdapter(max_retries=Retry(4, status_forcelist=[503], backoff_factor=0)))
        assert session.get(url, timeout=10).text == "third"
        assert uses(trial.context.recorded) == [(url, 1, 503), (url, 2, 0), (url, 3, 200)]


def test_calls_at_once_get_each_response_once(bench, plain):
    url = f"{plain.url}/rows"
    with replaying(bench, *[answer(url, n, latency_ms=20) for n in range(12)]) as trial, ThreadPoolExecutor(12) as pool:
        got = list(pool.map(lambda _: trial.get(url).json(), range(12)))
    assert sorted(got) == list(range(12))


def test_a_model_call_at_any_host_is_not_a_tools_call(bench, plain):
    with replaying(bench, answer("search", 1), asks_model=is_model_call, declared=[plain.url]) as trial:
        got = trial.ask("POST", f"{plain.url}/v1/chat/completions", json={"model": "m", "messages": []})
        assert got.json()["done"] is True
        with pytest.raises(requests.ConnectionError):
            trial.ask("POST", f"{plain.url}/v1/messages", json={"to": "a friend"})
        assert [u.call for u in trial.context.recorded] == [f"POST {plain.url}/v1/messages"]
    assert [path for _, path, _, _ in plain.seen] == ["/v1/chat/completions"]


def test_a_fault_acts_around_the_recording(bench, plain):
    url = f"{plain.url}/rows"
    storm = [Injection("tool", "*", "error", {"error_code": 502}, Schedule(on_call=1), match_url=url)]
    with replaying(bench, answer(url, "recorded"), injections=storm) as trial:
        assert trial.get(url).status_code == 502
        assert trial.get(url).text == "recorded"
        assert uses(trial.context.recorded) == [(url, 1, 200)]


def test_a_fault_of_connecting_acts_before_the_recording(bench):
    storm = [Injection("http", f"{NOWHERE}/*", "tls_error", {}, Schedule(times=1))]
    with replaying(bench, answer(f"{NOWHERE}/*", "recorded"), injections=storm) as trial:
        with pytest.raises(requests.exceptions.SSLError):
            trial.get(f"{NOWHERE}/rows")
        assert trial.get(f"{NOWHERE}/rows").text == "recorded"
        assert trial.met == [("http", "tls_error", "met")]


def test_what_a_live_replay_lets_out_needs_the_networks_leave(bench, secure):
    policy = Policy(default="deny")
    with replaying(bench, answer(f"{secure.url}/rows", 1), live=True, policy=policy) as trial:
        assert trial.get(f"{secure.url}/rows").json() == 1
        assert trial.get(f"{secure.url}/rows").status_code == 403
    assert secure.seen == []
