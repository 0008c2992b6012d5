"""The HTTP plane stands, and looks into TLS, where a rule about calls reads HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.execute.plane_needs import list_rule_urls, needs_planes, needs_web_plane
from holdfast.model.spec import AgentSpec, Invariant, Spec

PYTHON = AgentSpec(type="python", endpoint="agent:ask")


def spec(check: str, settings: dict[str, Any], agent: AgentSpec = PYTHON) -> Spec:
    return Spec("c.yaml", agent, invariants=(Invariant("r", check, settings),))


def test_a_rule_that_reads_http_puts_the_plane_in_place() -> None:
    for check, settings, urls in [
        ("tool_not_called", {"tool": "POST https://example.com/transfer"}, ("https://example.com/transfer",)),
        ("tool_called", {"tool": "https://example.com/*"}, ("https://example.com/*",)),
        ("tool_order", {"tools": ["look", "https://a.com/x"]}, ("https://a.com/x",)),
        ("side_effect_once", {}, ("*",)),
        ("side_effect_once", {"tool": "https://a.com/*"}, ("https://a.com/*",)),
        ("max_calls", {"max": 3}, ("*",)),
        ("max_calls", {"max": 3, "plane": "http"}, ("*",)),
        ("retries_within", {"max": 1, "tool": "https://a.com/*"}, ("https://a.com/*",)),
        ("recovers_within_ms", {"max_ms": 1, "tool": "https://a.com/*"}, ("https://a.com/*",)),
        ("tool_not_called", {"tool": "https://{{ params.host }}/*"}, ("*",)),
    ]:
        made = spec(check, settings)
        assert list_rule_urls(made) == urls, (check, settings, urls)
        assert needs_web_plane(made), (check, settings, urls)
        assert needs_planes(made), (check, settings, urls)


@pytest.mark.parametrize(
    ("check", "settings"),
    [
        ("tool_not_called", {"tool": "pay"}),
        ("side_effect_once", {"tool": "pay"}),
        ("max_calls", {"max": 3, "plane": "tool"}),
        ("max_calls", {"max": 3, "tool": "pay"}),
        ("retries_within", {"max": 1}),
        ("contains", {"value": "https://example.com"}),
    ],
)
def test_a_rule_about_tools_or_text_does_not(check: str, settings: dict[str, Any]) -> None:
    made = spec(check, settings)
    assert list_rule_urls(made) == ()
    assert not needs_web_plane(made)
    assert not needs_planes(made)
