from __future__ import annotations

import pytest
from trace_events import found, http, llm, result, tool

from error_code import has_code
from golden_words import Golden
from holdfast.errors import HarnessError
from holdfast.model.shorten import shorten
from holdfast.model.trace import TEXT_KEPT


def test_tool_called_counts_the_agents_own_calls_not_a_librarys_retries() -> None:
    calls = (tool("search"), tool("search", 1.0, retry=1), tool("other", 2.0))
    assert found("tool_called", *calls, tool="search").passed
    assert found("tool_called", *calls, tool="sea*", at_least=2).passed is False
    assert found("tool_called", *calls, tool="*", at_least=2).passed
    assert found("tool_called", *calls, tool="pay").passed is False


def test_tool_called_at_most() -> None:
    calls = (tool("search"), tool("search", 1.0))
    assert found("tool_called", *calls, tool="search", at_most=2).passed
    over = found("tool_called", *calls, tool="search", at_most=1)
    assert over.passed is False
    assert over.code == "calls-above"


@pytest.mark.parametrize(
    ("wanted", "passed"),
    [({"q": "AC*"}, True), ({"q": "ACME", "n": 3}, True), ({"n": 3.0}, True), ({"n": "3"}, True), ({"n": 4}, False),
     ({"live": True}, True), ({"live": 1}, False), ({"missing": "*"}, False), ({"tags": ["a"]}, True)],
)  # fmt: skip
def test_tool_called_with_arguments(wanted: dict[str, object], passed: bool) -> None:
    call = tool("search", input='{"q":"ACME","n":3,"live":true,"tags":["a"]}')
    assert found("tool_called", call, tool="search", arguments=wanted).passed is passed


def test_tool_called_never_guesses_at_arguments_that_were_cut() -> None:
    cut = tool("search", input=shorten('{"q":"' + "x" * (2 * TEXT_KEPT) + 'y"}', TEXT_KEPT))
    with pytest.raises(HarnessError, check=has_code("check-input-lost")):
        found("tool_called", cut, tool="search", arguments={"q": "x*"})
    assert found("tool_called", cut, tool("search", 1.0, '{"q":"x"}'), tool="search", arguments={"q": "x*"}).passed


def test_a_call_seen_on_two_planes_counts_once() -> None:
    calls = (tool("search"), result("search", 0.5), result("inner", 0.6))
    assert found("tool_called", *calls, tool="search", at_most=1).passed
    assert found("max_calls", *calls, max=2).passed
    assert found("max_calls", *calls, max=1).passed is False


def test_a_call_that_a_model_only_asked_for_is_neither_called_nor_not_called() -> None:
    asked = result("pay", phase="declared")
    assert found("tool_called", asked, tool="pay").passed is None
    assert found("tool_not_called", asked, tool="pay").passed is None
    assert found("tool_not_called", asked, result("pay", 1.0), tool="pay").passed is False
    assert found("tool_called", asked, result("pay", 1.0), tool="pay", at_most=1).passed is None


def test_tool_not_called() -> None:
    assert found("tool_not_called", tool("search"), llm(), tool="pay").passed
    bad = found("tool_not_called", tool("pay", input='{"amount":5}'), tool="p*")
    assert bad.passed is False
    assert '{"amount":5}' in bad.reason


def test_a_call_in_which_the_process_died_was_made() -> None:
    assert found("tool_not_called", tool("pay", phase="unfinished"), tool="pay").passed is False


@pytest.mark.parametrize(
    ("glob", "passed"),
    [("https://api.example.com/*", True), ("POST https://api.example.com/v1/pay", True),
     ("GET https://api.example.com/*", False), ("https://other.example.com/*", False), ("*", False)],
)  # fmt: skip
def test_a_glob_with_a_scheme_means_requests_and_one_without_means_tools(glob: str, passed: bool) -> None:
    assert found("tool_called", http("POST https://api.example.com/v1/pay"), tool=glob).passed is passed


def test_what_is_not_a_url_at_all_is_never_meant() -> None:
    assert found("tool_not_called", http("GET https://[x:99999/"), tool="https://api.example.com/*").passed


def test_tool_order_lets_others_stand_between_unless_strict(golden: Golden) -> None:
    calls = (tool("a"), tool("x", 1.0), llm(1.5), tool("b", 2.0), tool("c", 3.0))
    assert found("tool_order", *calls, tools=("a", "b", "c")).passed
    assert found("tool_order", *calls, tools=("a", "b"), strict=True).passed is False
    assert found("tool_order", *calls, tools=("b", "c"), strict=True).passed
    wrong = found("tool_order", *calls, tools=("b", "a"))
    assert wrong.passed is False
    assert wrong.code == "order-broken"
    golden(wrong.key)


def test_max_calls_by_tool_and_plane() -> None:
    calls = (tool("a"), tool("a", 1.0), llm(2.0), http("GET https://x.example/", 3.0))
    assert found("max_calls", *calls, max=4).passed
    assert found("max_calls", *calls, max=3).passed is False
    assert found("max_calls", *calls, max=1, plane="llm").passed
    assert found("max_calls", *calls, max=1, tool="a").passed is False
    assert found("max_calls", *calls, max=0, tool="b").passed
