"""Which route of a mock answers, and with what."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from golden_words import Golden
from holdfast.world.services.mock.routes import MockReply, MockRoute, PathPattern, RoutedRequest, Routes
from holdfast.world.services.mock.server import BODY_KEPT, RECORD_KEPT, REQUESTS_KEPT, RequestRecord


def routes(*some: MockRoute, default: int = 404) -> Routes:
    return Routes(some, default)


def asked(path: str = "/", method: str = "GET", body: str = "", query: str = "", **headers: str) -> RoutedRequest:
    return RoutedRequest(method, path, query, tuple(headers.items()), body)


def answered(response: Any, request: RoutedRequest, path: str = "/**") -> MockReply:
    return routes(MockRoute(path, "*", response=response)).reply(request)


def test_path_patterns() -> None:
    for pattern, path, fits in [
        ("/a", "/a", True),
        ("/a", "/a/", False),
        ("/a", "/A", False),
        ("/a.b", "/axb", False),
        ("/users/{id}", "/users/7", True),
        ("/users/{id}", "/users/7/mail", False),
        ("/users/{id}", "/users/", False),
        ("/users/{id}/mail", "/users/a%20b/mail", True),
        ("/users/a%20b", "/users/a%20b", True),
        ("/users/a b", "/users/a%20b", True),
        ("/users/a%20b", "/users/a b", True),
        ("/projects/group%2Fname/*", "/projects/group%2Fname/issues", True),
        ("/projects/group%2fname", "/projects/group%2Fname", True),
        ("/caf%C3%A9/{id}", "/caf%c3%a9/1", True),
        ("/a%2Ab", "/a*b", True),
        ("/a%2Ab", "/axb", False),
        ("/%7Bid%7D", "/7", False),
        ("/100%", "/100%25", True),
        ("/a%20b", "/a%2520b", False),
        ("/*.json", "/a.json", True),
        ("/*.json", "/a/b.json", False),
        ("/**", "/a/b/c", True),
        ("/a/**/z", "/a/b/c/z", True),
        ("/{a}/{a}", "/1/2", True),
        ("/{1}", "/x", True),
        ("/{", "/{", True),
        ("/**", "/line%0Abreak", True),
    ]:
        got = routes(MockRoute(pattern, response="ok")).reply(asked(path))
        assert (got.status == 200) is fits, (pattern, path, fits)


def test_a_long_path_and_many_wildcards_cost_little() -> None:
    pattern = "/" + "**/a" * 10 + "/*a*a*a*a*a" + "/{x}/z"
    began = time.perf_counter()
    assert routes(MockRoute(pattern, response="ok")).reply(asked("/a" * 2_000 + "/" + "a" * 3_900)).status == 404
    assert time.perf_counter() - began < 5


@pytest.mark.parametrize(
    ("wanted", "method", "fits"),
    [("GET", "GET", True), ("GET", "HEAD", True), ("POST", "GET", False), ("*", "PATCH", True), ("ANY", "PUT", True)],
)
def test_methods(wanted: str, method: str, fits: bool) -> None:
    assert (routes(MockRoute("/", wanted)).reply(asked(method=method)).status == 200) is fits


def test_routes_are_tried_in_order_and_used_up_ones_passed_over() -> None:
    some = routes(
        MockRoute("/a", status=500, times=2), MockRoute("/a", status=429, times=1), MockRoute("/a"), default=418
    )
    assert [some.reply(asked("/a")).status for _ in range(5)] == [500, 500, 429, 200, 200]
    assert some.reply(asked("/b")).status == 418


def test_a_request_that_does_not_fit_uses_nothing_up() -> None:
    some = routes(MockRoute("/a", "POST", times=1))
    some.reply(asked("/a"))
    assert some.reply(asked("/a", "POST")).status == 200


@pytest.mark.parametrize(
    ("response", "body", "kind"),
    [
        (None, "", None),
        ("hello", "hello", "text/plain; charset=utf-8"),
        ('{"ok":true}', '{"ok":true}', "application/json"),
        ({"ok": True}, '{"ok":true}', "application/json"),
        ([1], "[1]", "application/json"),
    ],
)
def test_bodies_and_what_they_are(response: Any, body: str, kind: str | None) -> None:
    got = answered(response, asked())
    assert (got.body, dict(got.headers).get("content-type")) == (body, kind)


def test_headers_of_the_route_win() -> None:
    got = routes(MockRoute("/", response="{}", headers={"Content-Type": "text/x", "X-A": "1"})).reply(asked())
    assert got.headers == (("Content-Type", "text/x"), ("X-A", "1"))


def test_templates() -> None:
    for template, text in [
        ("{{ request.method }} {{request.path}}", "POST /users/7"),
        ("{{ request.path.id }}", "7"),
        ("{{ request.query.q }}", "x y"),
        ("{{ request.headers.x-key }}", "k"),
        ("{{ request.body.to }}", "a@b"),
        ("{{ request.body.items.1.id }}", "4"),
        ("{{ request.body.items[1].id }}", "4"),
        ("{{ request.body.items }}", '[{"id":3},{"id":4}]'),
        ("{{ request.body.gone.deep }}", ""),
        ("{{ request.body.flag }}", "true"),
        ("{{ n }}", "1"),
        ("{{ other.thing }}", "{{ other.thing }}"),
        ("{{ request.nothing }}", ""),
    ]:
        body = '{"to": "a@b", "items": [{"id": 3}, {"id": 4}], "flag": true}'
        request = asked("/users/7", "POST", body, "q=x+y", **{"X-Key": "k"})
        assert answered(template, request, "/users/{id}").body == text, (template, text)


def test_a_form_is_read_too_and_the_whole_body_can_be_told() -> None:
    assert answered("{{ request.body.a }}-{{ request.body }}", asked(body="a=1&b=2")).body == "1-a=1&b=2"


def test_n_counts_the_answers_of_the_route() -> None:
    some = routes(MockRoute("/", response={"id": "m-{{ n }}"}))
    assert [json.loads(some.reply(asked()).body)["id"] for _ in range(3)] == ["m-1", "m-2", "m-3"]


@pytest.mark.parametrize("body", ["[" * 100_000, '{"x": "\\ud800"}', '{"x": ["\\ud800"]}', "", "\x00", '{"x": NaN}'])
def test_no_body_that_an_agent_sends_breaks_a_mock(body: str) -> None:
    answered({"x": "{{ request.body.x }}"}, asked(body=body)).body.encode()


@given(st.text())
def test_what_a_request_says_stays_inside_of_its_quotes(said: str) -> None:
    body = json.dumps({"x": said})
    got = answered('{"said": "{{ request.body.x }}", "ok": true}', asked(body=body)).body
    assert json.loads(got) == {"said": said, "ok": True}


# -- the record -----------------------------------------------------------------------------------
def test_the_record_keeps_the_first_requests_and_counts_the_rest(golden: Golden) -> None:
    record = RequestRecord("smtp")
    for n in range(REQUESTS_KEPT + 3):
        record.add(asked(f"/{n}"), MockReply(200), float(n))
    assert (len(record.requests), record.dropped) == (REQUESTS_KEPT, 3)
    assert record.requests[-1].path == f"/{REQUESTS_KEPT - 1}"
    golden(record.notes)


def test_the_record_has_a_size() -> None:
    record = RequestRecord("smtp")
    big = "x" * BODY_KEPT
    for _ in range(100):
        record.add(asked(body=big), MockReply(200, body=big), 0.0)
    record.add(asked(), MockReply(200), 0.0)
    assert len(record.requests) == RECORD_KEPT // (2 * BODY_KEPT + 1)
    assert len(record.requests) + record.dropped == 101


def test_a_record_with_nothing_odd_has_no_notes(golden: Golden) -> None:
    record = RequestRecord("smtp")
    record.add(asked(), MockReply(200), 0.0)
    assert record.notes == ()
    record.add(asked()._replace(cut=True), MockReply(200), 0.0)
    golden(record.notes)


# Patterns of paths: fitting, and what is taken by name.


@given(st.text(max_size=40))
def test_any_text_can_be_a_pattern(text: str) -> None:
    PathPattern(text).match(text)


@pytest.mark.parametrize(
    ("pattern", "path", "named"),
    [
        ("/users/{id}/mail/{n}", "/users/7/mail/3", {"id": "7", "n": "3"}),
        ("/{a}/{a}", "/1/2", {"a": "1"}),
        ("/{1}", "/x", {}),
        ("/**/{last}", "/a/b/c", {"last": "c"}),
        ("", "", {}),
        ("", "/", None),
    ],
)
def test_what_is_taken_by_name(pattern: str, path: str, named: dict[str, str] | None) -> None:
    assert PathPattern(pattern).match(path) == named
