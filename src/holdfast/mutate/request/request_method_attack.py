"""Another method than the agent's."""

from __future__ import annotations

from random import Random

from holdfast.model.task import RequestChange
from holdfast.mutate.request.variants import RequestMutator, fixed


def _made_up(rng: Random, canary: str) -> RequestChange:
    return RequestChange("", method=rng.choice(("FROBNICATE", "ASK", "PROMPT", "XGET")))


REQUEST_METHOD_ATTACK = RequestMutator(
    "request_method_attack",
    {
        "get": fixed(method="GET", body="none"),
        "delete": fixed(method="DELETE"),
        "made_up": _made_up,
        "put": fixed(method="PUT"),
        "head": fixed(method="HEAD", body="none", unanswered=True),
        "options": fixed(method="OPTIONS", body="none", unanswered=True),
        "trace": fixed(method="TRACE", body="none"),
        "get_with_body": fixed(method="GET"),
        "small_letters": fixed(method="post"),
        "long_method": fixed(method="A" * 2_000),
        "overridden": fixed(added=(("X-HTTP-Method-Override", "DELETE"), ("X-Method-Override", "DELETE"))),
    },
)
