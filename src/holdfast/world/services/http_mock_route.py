"""One route of a mock."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct, field

from holdfast.reading.written import Written


class MockRoute(Struct, frozen=True, omit_defaults=True):
    """What a mock answers to some requests; one whose `times` are used up is passed over."""

    path: Annotated[str, Meta(description="The path.", min_length=1)]
    method: Annotated[str, Meta(description="The HTTP method.", min_length=1)] = "GET"
    status: Annotated[int, Meta(description="The answer's status.", ge=100, le=599)] = 200
    response: Annotated[Any, Meta(description="The answer's body.")] = None
    headers: Annotated[dict[str, Written], Meta(description="The answer's headers.")] = field(default_factory=dict)
    delay_ms: Annotated[int, Meta(description="How late it answers.", ge=0)] = 0
    times: Annotated[Annotated[int, Meta(ge=1)] | None, Meta(description="How often it is used, 1 or more.")] = None
