"""`http_mock_assertions`: a mock was called correctly."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

from msgspec import UNSET, Struct
from msgspec.structs import replace

from holdfast.checks.patterns import find_pattern_problem, lint_pattern
from holdfast.checks.state import mock_requests
from holdfast.checks.state.recorded import build_evidence, read_evidence
from holdfast.checks.values import AS_EXPECTED, Expectation, Mismatch, is_equal, select_value_codes, to_number, to_text
from holdfast.checks.wording import shorten
from holdfast.errors import HarnessError
from holdfast.model.codec import make_encodable
from holdfast.model.observation import Observation
from holdfast.model.traits import CheckTraits, ServiceRead
from holdfast.model.verdict import Finding
from holdfast.model.world import Evidence
from holdfast.protocols.check import Exhibit
from holdfast.protocols.world import World
from holdfast.reading.fields import about
from holdfast.reading.words import format_plural


class AssertionResult(NamedTuple):
    """Whether an assertion holds, None if unknown, and why."""

    holds: bool | None
    why: str
    code: str = AS_EXPECTED
    key: tuple[str, ...] = ()
    empty: bool = False
    """There is nothing to look at: no such request, or a path into a body that is not JSON."""


class Assertion(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One condition on the requests that a mock recorded."""

    field: Annotated[str, about("The value to check, such as request_count or last_request.body.", min_length=1)]
    filters: Annotated[dict[str, Any], about("Which requests count, by method, path, header or body field.")] = {}
    equals: Annotated[Any, about("An equal JSON value.")] = UNSET
    contains: Annotated[Any, about("A substring, key or member.")] = UNSET
    matches: Annotated[str | None, about("A regular expression that matches.")] = None
    at_least: Annotated[float | None, about("The lowest value that passes.")] = None
    at_most: Annotated[float | None, about("The highest value that passes.")] = None

    @property
    def expected(self) -> Expectation:
        return Expectation(self.equals, self.contains, self.matches, self.at_least, self.at_most)


def judge_assertion(one: Assertion, requests: mock_requests.MockRequests) -> AssertionResult:
    """Decide whether the assertion holds for these requests."""
    counted = mock_requests.filter_requests(requests.requests, one.filters)
    maybe = mock_requests.find_uncertain_requests(requests.requests, one.filters)
    if one.field == "request_count":
        if not one.filters:
            return _judge_count(one, len(counted) + requests.more, 0, ())
        return _judge_count(one, len(counted), requests.more, maybe)
    index, part = mock_requests.split_field(one.field)
    if maybe:
        return AssertionResult(None, f"{one.field} is not known: {_explain_hidden(maybe)}")
    if requests.more and (index < 0 or index >= len(counted)):
        return AssertionResult(None, f"{one.field} is not known: {requests.more} further requests were not stored")
    if not -len(counted) <= index < len(counted):
        of = " that match the filters" if one.filters else ""
        why = f"there is no {one.field}: {format_plural(len(counted), 'request')}{of}, of {len(requests.requests)}"
        return AssertionResult(False, why, "request-missing", empty=True)
    return _judge_request(one, counted[index], part)


def _judge_count(
    one: Assertion, count: int, more: int, maybe: Sequence[mock_requests.StoredRequest]
) -> AssertionResult:
    """Return a count of requests; it may be higher if some were not stored, or more may match."""
    filtered = f" of {shorten(to_text(dict(one.filters)), 60)}" if one.filters else ""
    result = _build_result(f"request_count{filtered}", f"is {count}", _find_mismatch(one, count))
    what = result.why
    if not more and not maybe:
        return result
    limits = (one.at_most, to_number(one.equals))
    if any(limit is not None and count > limit for limit in limits):
        return result
    enough = one.at_least is not None and count >= one.at_least and one.at_most is None and one.equals is UNSET
    overflow = f", and {more} further requests were not stored" if more else ""
    return AssertionResult(
        True if enough else None, f"{what}{overflow}{f'; {_explain_hidden(maybe)}' if maybe else ''}"
    )


def _explain_hidden(maybe: Sequence[mock_requests.StoredRequest]) -> str:
    return f"the filters look at the body of {format_plural(len(maybe), 'request')}, but {maybe[0].hidden}"


def _judge_request(one: Assertion, request: mock_requests.StoredRequest, part: str) -> AssertionResult:
    if request.hidden and (not part or part.startswith("body")):
        return AssertionResult(None, f"{shorten(one.field)} is not known: {request.hidden}")
    value = mock_requests.get_request_value(request, part)
    if value is mock_requests.MISSING:
        unread = part.startswith("body") and mock_requests.parse_body(request.body) is mock_requests.MISSING
        why = "; the body is not JSON, or has a duplicate key" if unread else ""
        return AssertionResult(False, f"there is nothing at {shorten(one.field)}{why}", "request-missing", empty=unread)
    if part == "headers" and isinstance(one.contains, str) and one.contains.lower() in value:
        value = {**value, one.contains: ""}  # header names are case-insensitive
    return _build_result(shorten(one.field), "is as expected", _find_mismatch(one, value, body=part == "body"))


def _build_result(what: str, right: str, wrong: Mismatch | None) -> AssertionResult:
    if wrong is None:
        return AssertionResult(True, f"{what} {right}")
    return AssertionResult(False, f"{what} {wrong.why}", wrong.code, wrong.key)


def _find_mismatch(one: Assertion, value: Any, *, body: bool = False) -> Mismatch | None:
    """Return the first condition that the value does not meet."""
    text = shorten(to_text(value), 60)
    equal = _is_equal_body if body else _is_equal_value
    return next(one.expected.find_mismatches(value, text, equal=equal, readings=_iter_readings), None)


def _is_equal_value(value: Any, wanted: Any) -> bool:
    """Compare as JSON; a number also equals its text."""
    if isinstance(value, str) != isinstance(wanted, str):
        number = to_number(value)
        return number is not None and number == to_number(wanted)
    return is_equal(value, wanted)


def _is_equal_body(body: str, wanted: Any) -> bool:
    """Compare a body as text; if both are JSON, by value and not by format."""
    if isinstance(wanted, str):
        meant = mock_requests.parse_body(wanted)
        return body == wanted or (isinstance(meant, dict | list) and is_equal(mock_requests.parse_body(body), meant))
    return is_equal(mock_requests.parse_body(body), wanted)


def _iter_readings(value: Any) -> Iterator[str]:
    """Yield the value as text; JSON strings also unescaped."""
    yield to_text(value)
    meant = mock_requests.parse_body(value) if isinstance(value, str) and "\\" in value else mock_requests.MISSING
    if meant is not mock_requests.MISSING:
        yield make_encodable(json.dumps(meant, ensure_ascii=False))


@dataclass(frozen=True)
class HttpMockAssertions:
    """Every assertion holds for the requests that a mock recorded."""

    service: Annotated[str, about("A service of type http_mock with record: true.", min_length=1, examples=["mail"])]
    assertions: Annotated[
        tuple[Assertion, ...],
        about("The assertions.", min_length=1, examples=[[{"field": "request_count", "equals": 1}]]),
    ]

    traits: ClassVar[CheckTraits] = CheckTraits(polarity="positive", reads="state")

    def configured(self) -> CheckTraits:
        return replace(self.traits, services=(ServiceRead("service", self.service, "recorder"),))

    codes: ClassVar[Mapping[str, str]] = {
        "request-missing": "There is no such request, or nothing at the field.",
        **select_value_codes("value-wrong-type"),
    }

    async def gather(self, world: World, observation: Observation) -> Evidence:
        return build_evidence([self.service], mock_requests.read_requests(mock_requests.get_mock(world, self.service)))

    def decide(self, exhibit: Exhibit) -> Finding:
        requests = read_evidence(exhibit, [self.service], mock_requests.MockRequests)
        dead = {n: why for n, one in enumerate(self.assertions) for _, _, why in lint_pattern("", one.matches)}
        live = [replace(one, matches=None) if n in dead else one for n, one in enumerate(self.assertions)]
        verdicts = [judge_assertion(one, requests) for one in live]
        worst = min(range(len(verdicts)), key=lambda n: (_ORDER[verdicts[n].holds], verdicts[n].empty, n))
        holds, why, code, key, empty = verdicts[worst]
        if holds is None:  # it is unknown because of a limit of Holdfast
            raise HarnessError(shorten(why, 220), code="check-input-lost")
        if holds and dead:
            return Finding(None, next(iter(dead.values())), "pattern-cannot-match", details=_build_details(requests))
        if holds:
            why = "; ".join(one.why for one in verdicts)
        cause = () if holds else (str(worst), *key)
        return Finding(holds, shorten(why, 220), code, cause, details=_build_details(requests), empty=empty)

    def lint(self) -> Iterable[tuple[str, str, str]]:
        for n, one in enumerate(self.assertions):
            yield from lint_pattern(f"assertions[{n}].matches", one.matches)

    def problems(self) -> Iterable[tuple[str, str]]:
        for n, one in enumerate(self.assertions):
            if not mock_requests.FIELD.fullmatch(one.field):
                fields = "request_count, last_request…, requests[N]…"
                yield f"assertions[{n}].field", f"unknown field {one.field[:60]!r}: expected {fields}"
            elif fault := mock_requests.find_field_error(one.field):
                yield f"assertions[{n}].field", fault
            if one.expected.empty:
                yield f"assertions[{n}]", "needs one of equals, contains, matches, at_least, at_most"
            yield from find_pattern_problem(f"assertions[{n}].matches", one.matches)


_ORDER = {False: 0, None: 1, True: 2}
"""The order of results: a failed assertion decides; then an unknown one."""


def _build_details(requests: mock_requests.MockRequests) -> dict[str, Any]:
    listed = [f"{one.method} {shorten(one.path)} {shorten(one.body, 200)}".rstrip() for one in requests.requests[:20]]
    return {"requests": listed} if listed else {}
