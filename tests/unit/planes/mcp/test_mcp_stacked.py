"""Several faults on one call of an MCP tool: what the client received decides which of them were met."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
from mcp_talk import Talk, call

from holdfast.model.scenario import Injection, Schedule

NEVER = Schedule(on_call=10_000)
RESULTS = (
    {"content": [{"type": "text", "text": "There are 12 of them."}]},
    {"content": [], "structuredContent": {"item": "lamp", "rows": ["a", "b"], "count": 12}},
    {"content": [], "structuredContent": {"result": [1, 2]}},
)
KINDS: tuple[tuple[Any, str], ...] = (
    ("tool", "empty"),
    ("tool", "error"),
    ("tool", "error_in_body"),
    ("tool", "lost_reply"),
    ("tool", "oversized"),
    ("tool", "partial"),
    ("tool", "wrong_value"),
    ("context", "indirect_injection"),
    ("mcp", "error_as_result"),
    ("mcp", "result_as_error"),
)


def talked(kinds: tuple[tuple[Any, str], ...], result: dict[str, Any], left_out: int = -1) -> tuple[Talk, Any]:
    placed = [
        Injection(
            plane, "*", mode, {"bytes": 300} if mode == "oversized" else {}, NEVER if at == left_out else Schedule()
        )
        for at, (plane, mode) in enumerate(kinds)
    ]
    talk = Talk(placed, result=result)
    outcome = talk.say(call())
    return talk, (outcome.kind, outcome.line)


@pytest.mark.parametrize("result", RESULTS, ids=["text", "record", "list"])
def test_each_of_two_faults_is_met_if_the_client_would_have_got_something_else(result: dict[str, Any]) -> None:
    calm = talked((), result)[1]
    for kinds in permutations(KINDS, 2):
        talk, got = talked(kinds, result)
        met = {entry.index for entry in talk.context.ledger if entry.effect == "met"}
        fired = {entry.index for entry in talk.context.ledger}
        explained = {at for at in fired if talked(kinds, result, at)[1] != got}
        assert len(talk.asked) <= 1
        if talk.asked and got == calm:
            assert met == set(), kinds
        elif talk.asked and explained:
            assert met == explained, kinds
        elif talk.asked:  # each would have been enough: one stands for both
            assert len(met) == 1, kinds
        else:
            assert met, kinds
            assert met - {max(fired)} == explained - {max(fired)}, kinds
