"""A Pydantic AI agent through whole runs: imported, served and started as a program."""

# ruff: noqa: F401  (the tests that all share are taken in by their names)
from __future__ import annotations

import pytest
from framework_kit import Folder, Outcome
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
from framework_weather import ANSWER, BURST, BY_LUCK, PLAIN_WEATHER, SERVED_STORIES, Story

pytestmark = pytest.mark.long
"""LangGraph goes through whole runs in `make test`, the others in `make test-long`."""

ASKED_STORIES = {
    "calm": Story("answered", ANSWER, "200 200"),
    "burst": BURST,
    "limited": Story("raised", "ModelRateLimitError: status_code: 429", "429 429+1 429+2", (1, 2, 3)),
    "overloaded": Story("raised", "ModelOverloadedError: status_code: 503", "503 503+1 503+2", (1, 2, 3)),
    "html": Story(
        "raised",
        "ModelServerError: status_code: 502, model_name: gpt-4o, body: <html>\n",
        "502 502+1 502+2",
        (1, 2, 3),
    ),
    # Half a sentence passes as the answer: nothing in the reply says that it is one.
    "silent": Story("answered", "According to search", "200 200", (2,)),
    "no_choices": Story("raised", "IndexError: list index out of range", "200", (1,)),
    "filtered": Story("raised", "ContentFilterError: Content filter triggered.", "200 200", (2,)),
    # The model is told what is wrong with its call, once; the second time ends the run.
    "malformed": Story("answered", ANSWER, "200 200 200", (1,)),
    "unknown": Story("answered", ANSWER, "200 200 200", (1,)),
    "unknown_always": Story(
        "raised", "UnexpectedModelBehavior: Tool 'search_v2' exceeded max retries count of 1.", "200 200", (1, 2)
    ),
    "hang": Story("raised", "ModelConnectionError: Connection error.", "timeout timeout+1 timeout+2", (1, 2, 3)),
    "too_long": Story("raised", "ModelContextWindowExceededError: status_code: 400", "400", (1,)),
    # An exception of a tool is the agent's: the model never hears of it.
    "broken_tool": Story("raised", "InjectedError: 503 Service Unavailable", "200", (1,)),
    "hanging_tool": Story("raised", "TimeoutError: search: no answer after 50 ms", "200", (1,)),
    "lying_tool": Story("answered", "According to search, revenue was 2400.", "200 200", (1,)),
    "by_luck": BY_LUCK,
}

STREAMED_STORIES = {
    **SERVED_STORIES,
    "cut": Story(
        "http_error", "pydantic_ai.exceptions.ModelConnectionError: Connection error.", "200 200:connection_lost", (2,)
    ),
    # An error inside a reply that began with 200; the exception says 500.
    "half_overloaded": Story(
        "http_error", "pydantic_ai.exceptions.ModelOverloadedError: status_code: 500", "200 200:overloaded", (2,)
    ),
}

FRAMEWORK = Framework(
    agent="with_pydantic_ai.py",
    asked=ASKED_STORIES,
    streamed=STREAMED_STORIES,
    crashes_with="pydantic_ai.exceptions.ModelOverloadedError",
)


def test_the_same_seed_gives_the_same_ledger_with_16_trials_at_once(folder: Folder, asked: Outcome) -> None:
    assert len(asked.trials) >= 16
    again = folder.run(folder.python(tools=["agent:search"]), PLAIN_WEATHER, "--concurrency", "16")
    assert again.ledger == asked.ledger
    assert {name: seen.story.calls for name, seen in again.trials.items()} == {
        name: seen.story.calls for name, seen in asked.trials.items()
    }
