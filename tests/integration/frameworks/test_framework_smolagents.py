"""A smolagents agent through whole runs: imported, served and started as a program."""

# ruff: noqa: F401  (the tests that all share are taken in by their names)
from __future__ import annotations

import pytest
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
from framework_weather import ANSWER, BURST, BY_LUCK, MODEL, SERVED_STORIES, Story

pytestmark = pytest.mark.long
"""LangGraph goes through whole runs in `make test`, the others in `make test-long`."""

FAILED = "AgentGenerationError: Error while generating output:\n"

SPEAKS_BY_TOOL = {
    "replies": [
        {
            "match": rule.get("match", {}),
            "tool_calls": rule.get("tool_calls") or [{"name": "final_answer", "arguments": {"answer": rule["text"]}}],
        }
        for rule in MODEL["replies"]
    ]
}
"""The model for an agent whose every reply is a call, the last one of `final_answer`."""

ASKED_STORIES = {
    "calm": Story("answered", ANSWER, "200 200"),
    "burst": BURST,
    # After the SDK's three attempts smolagents waits two minutes and more before it tries again: it looks hung.
    "limited": Story("timeout", "no answer within 8000 ms", "429 429+1 429+2", (1, 2, 3)),
    "overloaded": Story("raised", f"{FAILED}Error code: 503", "503 503+1 503+2", (1, 2, 3)),
    "html": Story("raised", f"{FAILED}Error code: 502", "502 502+1 502+2", (1, 2, 3)),
    # All it says is in tool calls, its answer too: there is no text to cut, and the cells are unproven.
    "silent": Story("answered", ANSWER, "200 200"),
    "no_choices": Story("raised", f"{FAILED}list index out of range", "200", (1,)),
    # It asks again until its steps are used up, then once more without tools; the answer is empty.
    "filtered": Story("answered", "", "200 200 200 200 200", (2, 3, 4, 5)),
    # Arguments that are not JSON are handed to the tool as they are: `search('{"query":"A')` runs.
    "malformed": Story("answered", ANSWER, "200 200", (1,)),
    "unknown": Story("answered", ANSWER, "200 200 200", (1,)),
    # The answer is the word None.
    "unknown_always": Story("answered", "None", "200 200 200 200 200", (1, 2, 3, 4, 5)),
    "hang": Story("raised", f"{FAILED}Connection error.", "timeout timeout+1 timeout+2", (1, 2, 3)),
    "too_long": Story("raised", f"{FAILED}Error code: 400", "400", (1,)),
    # An exception of a tool is told to the model as a message of the user's, until the steps are used up.
    "broken_tool": Story("answered", "None", "200 200 200 200 200", (1, 2, 3, 4)),
    "hanging_tool": Story("answered", "None", "200 200 200 200 200", (1, 2, 3, 4)),
    "lying_tool": Story("answered", "According to search, revenue was 4020.", "200 200", (1,)),
    "by_luck": BY_LUCK,
}

STREAMED_STORIES = {
    **SERVED_STORIES,
    "cut": Story("http_error", f"smolagents.utils.{FAILED}Connection error.", "200 200:connection_lost", (2,)),
    "half_overloaded": Story(
        "http_error", f"smolagents.utils.{FAILED}The engine is currently overloaded", "200 200:overloaded", (2,)
    ),
}

FRAMEWORK = Framework(
    agent="with_smolagents.py",
    asked=ASKED_STORIES,
    streamed=STREAMED_STORIES,
    crashes_with="smolagents.utils.AgentGenerationError",
    options={"tools": ["agent:search"], "timeout": 8000},
    model=SPEAKS_BY_TOOL,
)
