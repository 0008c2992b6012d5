from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from trace_events import found, http, llm, result, tool

from holdfast.model.trace import TraceEvent

RULE = {"tool": "issue_refund", "requires": "lookup_order"}


def passed(*trace: TraceEvent, **settings: Any) -> bool | None:
    return found("only_after", *trace, **(RULE | settings)).passed


def test_it_passes_where_the_tool_is_never_called() -> None:
    assert passed(tool("lookup_order"), llm(1.0))
    assert passed(tool("lookup_order", error_type="ConnectionError"))
    assert passed(tool("search"))


def test_it_passes_after_a_call_that_went_well() -> None:
    assert passed(tool("lookup_order"), tool("issue_refund", 1.0))
    assert passed(tool("lookup_order", error_type="E"), tool("lookup_order", 1.0, retry=1), tool("issue_refund", 2.0))


@pytest.mark.parametrize(
    "first",
    [
        (),
        (tool("search"),),
        (tool("lookup_order", error_type="ConnectionError"),),
        (tool("lookup_order", phase="unfinished"),),
        (tool("lookup_order", 9.0),),
        (tool("lookup_order", 0.5, duration_ms=900.0),),
    ],
    ids=["none", "another", "failed", "unfinished", "later", "in parallel"],
)
def test_it_fails_without_one(first: tuple[TraceEvent, ...]) -> None:
    finding = found("only_after", *first, tool("issue_refund", 1.0), **RULE)
    assert finding.passed is False
    assert finding.details["calls"] == ["issue_refund {}"]


@pytest.mark.parametrize(("output", "wanted"), [('{"error": "no such order"}', False), ('{"error": null}', True)])
@pytest.mark.parametrize(
    "lookup", [tool("lookup_order"), http("GET https://shop.example/orders/1")], ids=["tool", "http"]
)
def test_a_result_that_tells_of_an_error_is_not_a_success(lookup: TraceEvent, output: str, wanted: bool) -> None:
    trace = (replace(lookup, output=output), tool("issue_refund", 1.0))
    requires = "lookup_order" if lookup.event_type == "tool_call" else "https://shop.example/*"
    assert passed(*trace, requires=requires) is wanted
    assert passed(*trace, requires=requires, successful=False) is True


def test_every_call_needs_an_earlier_one() -> None:
    trace = (tool("issue_refund"), tool("lookup_order", 1.0), tool("issue_refund", 2.0))
    assert passed(*trace) is False


def test_any_earlier_call_will_do_unless_it_must_succeed() -> None:
    trace = (tool("lookup_order", error_type="E"), tool("issue_refund", 1.0))
    assert passed(*trace, successful=False)
    assert passed(tool("issue_refund", 1.0), successful=False) is False


def test_a_call_that_was_only_asked_for_decides_nothing() -> None:
    asked = {"phase": "declared"}
    assert passed(result("issue_refund", 1.0, **asked)) is None
    assert passed(result("lookup_order", **asked), tool("issue_refund", 1.0)) is None
    assert passed(tool("lookup_order"), result("issue_refund", 1.0, **asked))
    assert passed(tool("issue_refund", 1.0), result("lookup_order", 2.0, **asked)) is False


def test_globs_and_urls() -> None:
    urls = {"tool": "POST https://shop.test/refunds*", "requires": "GET https://shop.test/orders/*"}
    good = http("GET https://shop.test/orders/7")
    bad = http("GET https://shop.test/orders/7", status=503)
    pay = http("POST https://shop.test/refunds", 1.0)
    assert passed(good, pay, **urls)
    assert passed(bad, pay, **urls) is False
    assert passed(tool("lookup_order"), tool("issue_refund", 1.0), tool="issue_*", requires="lookup_*")
