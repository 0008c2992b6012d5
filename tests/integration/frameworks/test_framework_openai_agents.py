"""An agent of the OpenAI Agents SDK through whole runs: imported, served and started as a program."""

# ruff: noqa: F401  (the tests that all share are taken in by their names)
from __future__ import annotations

import pytest
from framework_kit import Outcome
from framework_runs import (
    Framework,
    test_a_healthy_trial_is_in_the_trace_with_calls_result_and_tokens,
    test_a_program_that_an_overloaded_model_kills_has_crashed,
    test_a_tool_is_met_by_name_and_the_ledger_says_that_it_ran,
    test_attacks_are_told_apart_by_success,
    test_no_cell_is_green_without_its_fault_met_and_nothing_is_an_error_of_ours,
    test_the_same_seed_tells_the_same_lie_however_the_agent_is_run,
    test_what_the_agent_does_when_it_is_asked,
    test_what_the_agent_does_when_its_model_streams,
)
from framework_weather import ANSWER, BURST, BY_LUCK, SERVED_STORIES, Story

pytestmark = pytest.mark.long
"""LangGraph goes through whole runs in `make test`, the others in `make test-long`."""

ASKED_STORIES = {
    "calm": Story("answered", ANSWER, "200 200"),
    "burst": BURST,
    "limited": Story("raised", "RateLimitError: Error code: 429", "429 429+1 429+2", (1, 2, 3)),
    "overloaded": Story("raised", "InternalServerError: Error code: 503", "503 503+1 503+2", (1, 2, 3)),
    "html": Story("raised", "InternalServerError: Error code: 502", "502 502+1 502+2", (1, 2, 3)),
    # Half a sentence passes as the answer: nothing in the reply says that it is one.
    "silent": Story("answered", "According to search", "200 200", (2,)),
    # A reply without any output is an answer without any text: no exception.
    "no_choices": Story("answered", "", "200", (1,)),
    "filtered": Story(
        "raised",
        "ModelBehaviorError: Responses stream ended with terminal event `response.incomplete`",
        "200 200",
        (2,),
    ),
    "malformed": Story("answered", ANSWER, "200 200 200", (1,)),
    # A tool that does not exist ends the run; the model is not told.
    "unknown": Story("raised", "ModelBehaviorError: Tool search_v2 not found in agent Analyst", "200", (1,)),
    "unknown_always": Story("raised", "ModelBehaviorError: Tool search_v2 not found in agent Analyst", "200", (1,)),
    "hang": Story("raised", "APIConnectionError: Connection error.", "timeout timeout+1 timeout+2", (1, 2, 3)),
    "too_long": Story("raised", "BadRequestError: Error code: 400", "400", (1,)),
    # An exception of a tool becomes a result that says so.
    "broken_tool": Story("answered", "The data is unavailable right now.", "200 200 200", (1, 2)),
    "hanging_tool": Story("answered", "The data is unavailable right now.", "200 200 200", (1, 2)),
    "lying_tool": Story("answered", "According to search, revenue was 2400.", "200 200", (1,)),
    "by_luck": BY_LUCK,
}

STREAMED_STORIES = {
    **SERVED_STORIES,
    "cut": Story("http_error", "openai.APIConnectionError: Connection error.", "200 200:connection_lost", (2,)),
    "half_overloaded": Story(
        "http_error",
        "agents.exceptions.ModelBehaviorError: Responses stream ended with terminal event `response.failed`.",
        "200 200:overloaded",
        (2,),
    ),
}


TOOL = {"name": "search", "callable": "agent:look_up"}
"""The function behind the SDK's own tool object."""

FRAMEWORK = Framework(
    agent="with_openai_agents.py",
    asked=ASKED_STORIES,
    streamed=STREAMED_STORIES,
    crashes_with="openai.InternalServerError",
    options={"tools": [TOOL], "env": {"OPENAI_AGENTS_DISABLE_TRACING": "1"}},
)


def test_telemetry_that_finds_nobody_is_a_note_and_no_error(served: Outcome) -> None:
    seen = served.trials["calm"]
    (sent,) = [event for event in seen.trace if event["event_type"] == "http_call"]
    assert (sent["tool"], sent["status"]) == ("POST https://api.openai.com/v1/traces/ingest", 404)
    assert any("/v1/traces/ingest" in note for note in seen.observation["notes"])
