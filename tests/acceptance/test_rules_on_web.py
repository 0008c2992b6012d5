"""Rules about requests hold for agents whose HTTP no fault touches: what a rule reads is seen, or nothing is proven."""

from __future__ import annotations

import pytest
from cli import CALM, MakeProject, Serve, contract, python, rule, says

AGENT = """
import urllib.request

def search(query):
    return query

def ask(prompt):
    search(prompt)
    for _ in range(2):
        urllib.request.urlopen(urllib.request.Request("{url}/transfer", b"5", method="POST")).read()
    return "done"
"""


@pytest.mark.parametrize(("isolation", "outcome"), [("fresh", "fail"), ("inline", "unproven")])
def test_a_python_agents_requests_are_seen_where_a_rule_reads_them(
    project: MakeProject, serve: Serve, isolation: str, outcome: str
) -> None:
    shop = serve(lambda asked: says("ok"))
    url = f"{shop.url}/transfer"
    rules = [
        rule("left-alone", "tool_not_called", tool=url),
        rule("once", "side_effect_once", tool=f"POST {url}"),
        rule("few", "max_calls", max=1, tool=url),
        rule("looks", "tool_called", tool="search"),
    ]
    spec = contract(rules, [CALM], agent=python(isolation=isolation))
    result = project(spec, AGENT.replace("{url}", shop.url)).run()
    assert result.outcomes == {
        ("left-alone", "calm"): outcome, ("once", "calm"): outcome, ("few", "calm"): outcome, ("looks", "calm"): "pass",
    }  # fmt: skip
