"""`http_mock_assertions`: a mock was called the right way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from msgspec.structs import replace

from holdfast.checks.patterns import fault_in, why_never
from holdfast.checks.state.mock_assertion import Assertion, judged, unseen
from holdfast.checks.state.mock_requests import FIELD, MockRequests, fault_in_field, kept
from holdfast.checks.state.recorded import record, recorded
from holdfast.checks.wording import shorten
from holdfast.errors import HarnessError
from holdfast.model.observation import Observation
from holdfast.model.traits import CheckTraits, ServiceRead
from holdfast.model.verdict import Finding
from holdfast.model.world import Evidence
from holdfast.protocols.check import Exhibit
from holdfast.protocols.service import Mock
from holdfast.protocols.world import World
from holdfast.reading.fields import about


@dataclass(frozen=True)
class HttpMockAssertions:
    """A mock service was called the right way: every assertion holds of the requests that it recorded."""

    service: Annotated[str, about("A service of type http_mock with record: true.", min_length=1, examples=["mail"])]
    assertions: Annotated[
        tuple[Assertion, ...],
        about("What must hold.", min_length=1, examples=[[{"field": "request_count", "equals": 1}]]),
    ]

    traits: ClassVar[CheckTraits] = CheckTraits(polarity="positive", reads="state")

    def configured(self) -> CheckTraits:
        return replace(self.traits, services=(ServiceRead("service", self.service, "recorder"),))

    codes: ClassVar[Mapping[str, str]] = {
        "request-missing": "There is no such request, or nothing at the field.",
        "value-as-expected": "The value is as expected.",
        "value-differs": "The value is another one.",
        "value-lacks": "The value lacks a part.",
        "value-no-match": "The value does not match the pattern.",
        "value-above": "The value is too large.",
        "value-below": "The value is too small.",
        "value-no-number": "The value is not a number.",
    }

    async def gather(self, world: World, seen: Observation) -> Evidence:
        mock = world.services.get(self.service)
        if not isinstance(mock, Mock):
            raise HarnessError(f"{self.service} is no http_mock service")
        return record([self.service], kept(mock))

    def decide(self, exhibit: Exhibit) -> Finding:
        found = recorded(exhibit, [self.service], MockRequests)
        dead = {n: why for n, one in enumerate(self.assertions) if (why := _why_never(one))}
        live = [replace(one, matches=None) if n in dead else one for n, one in enumerate(self.assertions)]
        verdicts = [judged(one, found) for one in live]
        blank = [unseen(one, found) for one in live]
        worst = min(range(len(verdicts)), key=lambda n: (_ORDER[verdicts[n].holds], blank[n], n))
        holds, why, code = verdicts[worst]
        if holds is None:  # what is not known is so by a limit of ours
            raise HarnessError(shorten(why, 220))
        if holds and dead:
            return Finding(None, next(iter(dead.values())), "pattern-cannot-match", details=_details(found))
        if holds:
            why = "; ".join(one.why for one in verdicts)
        key, nothing = () if holds else (str(worst),), not holds and blank[worst]
        return Finding(holds, shorten(why, 220), code, key, details=_details(found), empty=nothing)

    def lint(self) -> Iterable[tuple[str, str, str]]:
        for n, one in enumerate(self.assertions):
            if why := _why_never(one):
                yield "lint-never-matches", f"assertions[{n}].matches", why

    def problems(self) -> Iterable[tuple[str, str]]:
        for n, one in enumerate(self.assertions):
            if not FIELD.fullmatch(one.field):
                known = "request_count, last_request…, requests[N]…"
                yield f"assertions[{n}].field", f"unknown field {one.field[:60]!r}: expected {known}"
            elif fault := fault_in_field(one.field):
                yield f"assertions[{n}].field", fault
            if one.empty:
                yield f"assertions[{n}]", "needs one of equals, contains, matches, at_least, at_most"
            if one.matches is not None and (fault := fault_in(one.matches)):
                yield f"assertions[{n}].matches", fault


_ORDER = {False: 0, None: 1, True: 2}
"""One that does not hold decides; then one that cannot be told."""


def _why_never(one: Assertion) -> str | None:
    """Why the assertion's regex can match nothing; None if it has none, or one that can."""
    return None if one.matches is None else why_never(one.matches)


def _details(found: MockRequests) -> dict[str, Any]:
    shown = [f"{one.method} {shorten(one.path)} {shorten(one.body, 200)}".rstrip() for one in found.requests[:20]]
    return {"requests": shown} if shown else {}
