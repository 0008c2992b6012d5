"""`http_mock_assertions`: fields, filters and operators."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from error_code import has_code
from holdfast.checks.state import mock_requests
from holdfast.checks.state.http_mock_assertions import Assertion, HttpMockAssertions
from holdfast.errors import HarnessError
from holdfast.model.verdict import Finding
from holdfast.protocols.service import Recorded
from world_kit import FakeDatabase, FakeMock, FakeWorld, gathered, request, rows

MAIL = request(body='{"to": "finance@co", "text": "renewal due", "n": 1}', headers={"X-Key": "k1", "Accept": "a"})
OTHER = request(
    "PUT", "/api/drafts/7", '{"to": "hr@co", "items": [{"id": 3}, {"id": 4}]}', headers={"Accept": "b", "accept": "c"}
)
PING = request("GET", "/health", query="v=1", status=200)
ALL = (MAIL, OTHER, PING)


def judged(*assertions: dict[str, Any], requests: tuple[Recorded, ...] = ALL, dropped: int = 0) -> Finding:
    check = HttpMockAssertions("smtp", tuple(Assertion(**one) for one in assertions))
    assert not list(check.problems())
    world = FakeWorld(Path("/nowhere"), FakeMock(*requests, dropped=dropped))
    finding: Finding = check.decide(gathered(check, world))
    return finding


def test_a_duplicate_key_of_a_body_hides_no_value_and_proves_none() -> None:
    twice = (request(body='{"to": "eve@x", "in": {"to": "bob@co"}, "to": "bob@co"}'),)
    for to, count in (("eve@x", 1), ("bob@co", 1), ("ann@co", 0)):
        found = judged({"field": "request_count", "filters": {"to": to}, "equals": count}, requests=twice)
        assert found.passed is True, to
    found = judged({"field": "last_request.body.to", "equals": "bob@co"}, requests=twice)
    assert (found.passed, found.code, found.empty) == (False, "request-missing", True)


@pytest.mark.parametrize(
    ("filters", "count"),
    [
        ({}, 3),
        ({"method": "POST"}, 1),
        ({"method": "post", "path": "/api/messages"}, 1),
        ({"path": "/api/*"}, 2),
        ({"path": "/health"}, 1),
        ({"path": "/health?v=1"}, 0),
        ({"to": "finance@co"}, 1),
        ({"to": "finance"}, 0),
        ({"n": 1}, 1),
        ({"n": "1"}, 0),
        ({"n": True}, 0),
        ({"x-key": "k1"}, 1),
        ({"X-KEY": "k2"}, 0),
        ({"accept": "b, c"}, 1),
        ({"nothing": "x"}, 0),
    ],
)
def test_filters(filters: dict[str, Any], count: int) -> None:
    assert judged({"field": "request_count", "filters": filters, "equals": count}).passed is True
    assert judged({"field": "request_count", "filters": filters, "equals": count + 1}).passed is False


@pytest.mark.parametrize(
    ("field", "operator", "passed"),
    [
        ("request_count", {"at_least": 3, "at_most": 3}, True),
        ("request_count", {"at_most": 2}, False),
        ("last_request.method", {"equals": "GET"}, True),
        ("last_request.path", {"matches": "^/heal"}, True),
        ("last_request.query", {"equals": "v=1"}, True),
        ("last_request.status", {"at_most": 299}, True),
        ("last_request.body", {"equals": ""}, True),
        ("requests[0].body", {"contains": "renewal"}, True),
        ("requests[0].body", {"contains": "Renewal"}, False),
        ("requests[0].body", {"equals": {"to": "finance@co", "text": "renewal due", "n": 1}}, True),
        ("requests[0].body", {"equals": '{"n":1,"to":"finance@co","text":"renewal due"}'}, True),
        ("requests[0].body", {"equals": {"to": "finance@co"}}, False),
        ("requests[0].body.text", {"matches": "due$"}, True),
        ("requests[0].body.n", {"equals": 1}, True),
        ("requests[0].body.n", {"equals": True}, False),
        ("requests[0].body.n", {"equals": "1"}, True),
        ("requests[0].body.n", {"equals": "2"}, False),
        ("requests[0].headers", {"contains": "k1"}, True),
        ("requests[0].headers", {"contains": "k9"}, False),
        ("requests[1].body.items", {"contains": '"id"'}, True),
        ("requests[0].body.gone", {"equals": None}, False),
        ("requests[1].body.items[1].id", {"equals": 4}, True),
        ("requests[1].body.items.0.id", {"at_least": 3}, True),
        ("requests[1].body.$.items[*].id", {"contains": 4}, True),
        ("requests[1].body.items", {"contains": {"id": 3}}, True),
        ("requests[1].body.items[0]", {"contains": "id"}, True),
        ("requests[1].body.items[0]", {"contains": "no"}, False),
        ("requests[0].headers", {"contains": "X-Key"}, True),
        ("requests[0].headers", {"contains": "X-None"}, False),
        ("requests[0].headers.x-KEY", {"equals": "k1"}, True),
        ("requests[0].headers.none", {"equals": "k1"}, False),
        ("requests[0]", {"contains": "body"}, True),
        ("requests[2].body.x", {"equals": 1}, False),
        ("requests[3]", {"contains": "body"}, False),
        ("requests[0].body.text", {"at_least": 1}, False),
    ],
)
def test_fields_and_operators(field: str, operator: dict[str, Any], passed: bool) -> None:
    assert judged({"field": field, **operator}).passed is passed


def test_a_request_that_is_not_there_fails_with_the_count() -> None:
    result = judged({"field": "last_request.body", "filters": {"method": "DELETE"}, "contains": "x"})
    assert (result.code, result.key) == ("request-missing", ("0",))
    result = judged({"field": "requests[3].body", "contains": "x"})
    assert (result.code, result.key) == ("request-missing", ("0",))
    assert judged({"field": "last_request.body", "contains": "x"}, requests=()).passed is False
    assert judged({"field": "request_count", "equals": 0}, requests=()).passed is True
    assert judged({"field": "request_count", "equals": "0"}, requests=()).passed is True
    assert judged({"field": "request_count", "equals": "1"}, requests=()).passed is False


def test_every_assertion_must_hold_and_the_first_that_does_not_is_named() -> None:
    good = {"field": "request_count", "equals": 3}
    bad = {"field": "last_request.method", "equals": "PUT"}
    assert judged(good, good).passed
    result = judged(good, bad)
    assert (result.code, result.key[0]) == ("value-differs", "1")


def test_what_json_escapes_is_found_as_it_is_meant() -> None:
    sent = request(body=json.dumps({"text": "Größe – für Sie"}))
    assert "\\u" in sent.body
    assert judged({"field": "last_request.body", "contains": "Größe"}, requests=(sent,)).passed
    assert judged({"field": "last_request.body", "matches": "für Sie"}, requests=(sent,)).passed


@pytest.mark.parametrize("body", ["[" * 50_000, '{"a": NaN}', "\\ud800", '"\\ud800"', "a=1&b=2", "\x00"])
def test_odd_bodies_are_not_error(body: str) -> None:
    for operator in ({"equals": {"a": 1}}, {"contains": "zz"}, {"matches": "zz"}, {"at_least": 4}):
        assert judged({"field": "last_request.body", **operator}, requests=(request(body=body),)).passed is False
    assert judged({"field": "request_count", "filters": {"a": 1}, "equals": 0}, requests=(request(body=body),)).passed


POSTS = sum(one.method == "POST" for one in ALL)


@pytest.mark.parametrize(
    ("assertion", "passed"),
    [
        ({"field": "request_count", "equals": 8}, True),
        ({"field": "request_count", "equals": 3}, False),
        ({"field": "request_count", "at_most": 7}, False),
        ({"field": "request_count", "at_most": 9}, True),
        ({"field": "request_count", "at_least": 8}, True),
        ({"field": "request_count", "filters": {"method": "POST"}, "equals": POSTS}, None),
        ({"field": "request_count", "filters": {"method": "POST"}, "equals": POSTS - 1}, False),
        ({"field": "request_count", "filters": {"method": "POST"}, "equals": POSTS + 1}, None),
        ({"field": "request_count", "filters": {"method": "POST"}, "at_most": POSTS - 1}, False),
        ({"field": "request_count", "filters": {"method": "POST"}, "at_most": 9}, None),
        ({"field": "request_count", "filters": {"method": "POST"}, "at_least": POSTS}, True),
        ({"field": "request_count", "filters": {"method": "POST"}, "at_least": POSTS + 1}, None),
        ({"field": "requests[0].method", "equals": "POST"}, True),
        ({"field": "requests[5].method", "equals": "POST"}, None),
        ({"field": "last_request.method", "equals": "GET"}, None),
    ],
)
def test_where_more_came_than_is_kept_only_what_is_known_is_decided(assertion: dict[str, Any], passed: Any) -> None:
    if passed is None:
        with pytest.raises(HarnessError, check=has_code("check-input-lost")):
            judged(assertion, dropped=5)
    else:
        assert judged(assertion, dropped=5).passed is passed


def test_evidence_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mock_requests, "KEPT", 100)
    big = request(body="x" * 60)
    assert mock_requests.read_requests(FakeMock(big, big, big)).more == 2


def test_a_fail_weighs_more_than_what_cannot_be_told() -> None:
    unknown, wrong = {"field": "last_request.body", "contains": "x"}, {"field": "request_count", "at_most": 1}
    assert judged(unknown, wrong, dropped=1).passed is False


@pytest.mark.parametrize(
    ("assertion", "place"),
    [
        ({"field": "nothing", "equals": 1}, "assertions[0].field"),
        ({"field": "last_request.bdy", "equals": 1}, "assertions[0].field"),
        ({"field": "requests[x].body", "equals": 1}, "assertions[0].field"),
        ({"field": "requests[0].body.$.[", "equals": 1}, "assertions[0].field"),
        ({"field": "request_count"}, "assertions[0]"),
        ({"field": "request_count", "matches": "("}, "assertions[0].matches"),
    ],
)
def test_problems(assertion: dict[str, Any], place: str) -> None:
    assert [field for field, _ in HttpMockAssertions("smtp", (Assertion(**assertion),)).problems()] == [place]


def test_a_service_that_is_not_a_mock_is_an_error() -> None:
    check = HttpMockAssertions("db", (Assertion(field="request_count", equals=0),))
    with pytest.raises(HarnessError, check=has_code("check-service-wrong")):
        gathered(check, FakeWorld(Path("/nowhere"), FakeDatabase(lambda sql: rows())))


CUT = request("POST", "/api/upload", '{"to": "finance@co", "text": "ren', cut=True, headers={"X-Key": "k9"})
UPLOAD = {"path": "/api/upload"}


@pytest.mark.parametrize(
    "assertion",
    [
        {"field": "last_request.body", "contains": "renewal"},
        {"field": "last_request.body", "contains": "finance"},
        {"field": "last_request.body.to", "equals": "finance@co"},
        {"field": "requests[3].body[0]", "equals": 1},
        {"field": "last_request", "contains": "body"},
        {"field": "request_count", "filters": {"to": "finance@co"}, "equals": 1},
        {"field": "request_count", "filters": {"to": "finance@co"}, "equals": 2},
        {"field": "request_count", "filters": {"to": "nobody@co"}, "equals": 0},
        {"field": "request_count", "filters": {"to": "finance@co", **UPLOAD}, "at_least": 1},
        {"field": "last_request.status", "filters": {"to": "finance@co"}, "equals": 202},
    ],
)
@pytest.mark.parametrize(("unread", "why"), [("", "was cut"), ("it is no gzip", "cannot be read: it is no gzip")])
def test_what_a_body_that_is_not_known_says_is_an_error(assertion: dict[str, Any], unread: str, why: str) -> None:
    with pytest.raises(HarnessError, check=has_code("check-input-lost")):
        judged(assertion, requests=(*ALL, replace(CUT, unread=unread)))


@pytest.mark.parametrize(
    ("assertion", "passed"),
    [
        ({"field": "request_count", "equals": 4}, True),
        ({"field": "request_count", "filters": UPLOAD, "equals": 1}, True),
        ({"field": "request_count", "filters": {"x-key": "k9"}, "equals": 1}, True),
        ({"field": "request_count", "filters": {"to": "finance@co"}, "at_least": 1}, True),
        ({"field": "request_count", "filters": {"to": "finance@co"}, "equals": 0}, False),
        ({"field": "request_count", "filters": {"to": "finance@co", "path": "/api/messages"}, "equals": 1}, True),
        ({"field": "last_request.path", "equals": "/api/upload"}, True),
        ({"field": "last_request.headers.x-key", "equals": "k9"}, True),
        ({"field": "requests[0].body.to", "equals": "finance@co"}, True),
        ({"field": "requests[0].body.to", "equals": "hr@co"}, False),
    ],
)
def test_a_body_that_is_not_known_hides_nothing_else(assertion: dict[str, Any], passed: bool) -> None:
    assert judged(assertion, requests=(*ALL, CUT)).passed is passed


def test_one_assertion_that_does_not_hold_convicts_though_another_cannot_be_told() -> None:
    cannot = {"field": "last_request.body", "contains": "renewal"}
    assert judged(cannot, {"field": "request_count", "equals": 9}, requests=(*ALL, CUT)).passed is False


def test_a_pattern_that_can_never_match_proves_nothing_unless_something_else_is_wrong() -> None:
    dead = {"field": "request_count", "matches": r"\\$\\d"}
    assert judged(dead).passed is None
    assert judged({**dead, "equals": 77}).passed is False
