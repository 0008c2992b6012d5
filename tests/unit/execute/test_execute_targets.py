"""Tool faults after a calm trial that showed no tools: refused, with what was seen."""

from __future__ import annotations

import pytest

from holdfast.errors import SpecError
from holdfast.execute.plane_needs import check_tools_offered
from holdfast.model.scenario import Injection, Scenario
from holdfast.model.spec import AgentSpec, Spec
from holdfast.model.trace import TraceEvent

PLACE = "chatgpt.com speaks ChatGPT's own API"


@pytest.mark.parametrize("calls", [(), ("llm:gpt", "unread"), ("llm:gpt", f"unread:{PLACE}")])
def test_a_model_that_is_asked_in_an_unknown_format_is_named(calls: tuple[str, ...]) -> None:
    spec = Spec("spec.yaml", AgentSpec(), scenarios=(Scenario("down", (Injection("tool", "pay", "error"),)),))
    with pytest.raises(SpecError) as refused:
        check_tools_offered(spec, [TraceEvent(1.0, "llm_call", "gpt")], calls)
    (problem,) = refused.value.problems
    assert problem.code == "no-tools-seen"
    assert (PLACE in problem.message) == (f"unread:{PLACE}" in calls)
