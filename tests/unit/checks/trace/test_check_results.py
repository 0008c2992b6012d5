"""Which results of a call report an error: yes, no, or an error next to a result."""

from __future__ import annotations

import pytest
from trace_events import found, tool

from holdfast.checks.state.claim_matches_state import Claim, ClaimMatchesState
from holdfast.checks.trace.call_content import reports_error
from holdfast.model.observation import Exhibit, Observation, Turn

ERRORS = [
    '{"error": "card declined"}',
    '{"error": {"code": 500, "message": "no"}}',
    '{"error": true, "message": "no such order"}',
    '{"errors": ["card declined"]}',
    '{"errors": [{"message": "no"}], "data": null}',
    '{"error": "not found", "code": 404, "request_id": "q-1"}',
    '{"error": "no such order", "order": 7}',
    '{"error": "no such order", "order_id": 7}',
    '{"error": "declined", "receipt": null}',
    '{"error": "declined", "refunds": [], "total": 0}',
    '{"isError": true, "content": [{"type": "text", "text": "no"}]}',
    '{"is_error": true, "content": "no"}',
    '{"success": false, "receipt": "r-1"}',
    '{"ok": false, "detail": "no"}',
    ' {"status": "ERROR", "receipt": "r-1"}',
    '{"status": "failed", "reason": "card declined"}',
    '{"error": "declined", "status": "DECLINED"}',
    '{"error": "no", "status": "404 Not Found"}',
    '{"error": "no", "status": 503}',
    '{"error": "no", "status": ""}',
]
SUCCESSES = [
    '{"ok": true, "error": null}',
    '{"errors": []}',
    '{"error": ""}',
    '{"error": "None"}',
    '{"error": false, "receipt": "r-1"}',
    '{"error": 0}',
    '{"error": {}}',
    '{"receipt": "r-1", "errors": null}',
    '{"status": "shipped", "error": null}',
    '{"status": "ok"}',
    '{"order": {"error": "of an item"}}',
    '{"error_rate": 0.2, "error_count": 3}',
    '[{"error": "of one of many"}]',
    '{"error": cut',
    '"error"',
    "no error",
    "",
]
MIXED = [
    '{"receipt": "r-1", "error": "mail not sent"}',
    '{"receipt": "r-1", "errors": ["mail not sent"]}',
    '{"ok": true, "error": "mail not sent"}',
    '{"success": true, "errors": ["mail not sent"]}',
    '{"data": {"refund": "r-1"}, "errors": [{"message": "no"}]}',
    '{"status": "failed", "payment_id": "p-1"}',
    '{"status": "success", "error": "mail not sent"}',
    '{"status": "completed", "message": "refunded", "error": "mail not sent"}',
    '{"status": 200, "error": "mail not sent"}',
    '{"refunded": true, "error": "mail not sent"}',
]
TABLE = [*((one, True) for one in ERRORS), *((one, False) for one in SUCCESSES), *((one, None) for one in MIXED)]


@pytest.mark.parametrize(("output", "wanted"), TABLE)
def test_a_result_reports_an_error_or_not(output: str, wanted: bool | None) -> None:
    event = tool("issue_refund", input='{"order":7,"count":1}', output=output)
    assert reports_error(event) is wanted
    twice = found("side_effect_once", event, event, tool="issue_refund")
    assert twice.passed is (False if wanted is False else None)


@pytest.mark.parametrize(("output", "wanted"), TABLE)
def test_the_agent_is_blamed_only_if_the_result_is_clear(output: str, wanted: bool | None) -> None:
    passes = {True: False, False: True, None: None}[wanted]
    hit = tool("lookup_order", -1.0, fault="error", error_type="ToolError", duration_ms=10.0)
    lookup = tool("lookup_order", input='{"order":7}', output=output)
    order = found("only_after", lookup, tool("refund", 9.0), tool="refund", requires="lookup_order")
    assert order.passed is passes
    assert found("recovers_within_ms", hit, lookup, max_ms=5000).passed is passes
    claim = Claim(says="found", did={"type": "tool_call", "tool": "lookup_order"})
    turn = Turn("?", "I found it.", ending="answered")
    exhibit = Exhibit("I found it.", turn, Observation("t", (turn,), trace=(lookup,)))
    assert ClaimMatchesState((claim,)).decide(exhibit).passed is passes
