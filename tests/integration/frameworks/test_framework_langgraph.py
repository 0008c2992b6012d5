"""A LangGraph agent through whole runs: imported, served and started as a program."""

# ruff: noqa: F401  (the tests that all share are taken in by their names)
from __future__ import annotations

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

ASKED_STORIES = {
    "calm": Story("answered", ANSWER, "200 200"),
    "burst": BURST,
    "limited": Story("raised", "OpenAIRateLimitError: Error code: 429", "429 429+1 429+2", (1, 2, 3)),
    "overloaded": Story("raised", "OpenAIAPIError: Error code: 503", "503 503+1 503+2", (1, 2, 3)),
    "html": Story("raised", "OpenAIAPIError: Error code: 502", "502 502+1 502+2", (1, 2, 3)),
    # Half a sentence passes as the answer: nothing in the reply says that it is one.
    "silent": Story("answered", "According to search", "200 200", (2,)),
    "no_choices": Story("raised", "IndexError: list index out of range", "200", (1,)),
    # An empty answer, and no exception: only the reply's metadata say why.
    "filtered": Story("answered", "", "200 200", (2,)),
    # Arguments that are not JSON make a call that does not count as one: the graph ends, with an empty answer.
    "malformed": Story("answered", "", "200", (1,)),
    "unknown": Story("answered", ANSWER, "200 200 200", (1,)),
    # The model is told of its mistake as often as the recursion limit allows: 8 steps are 4 calls.
    "unknown_always": Story(
        "raised", "GraphRecursionError: Recursion limit of 8 reached", "200 200 200 200", (1, 2, 3, 4)
    ),
    "hang": Story("raised", "OpenAIConnectionError: Connection error.", "timeout timeout+1 timeout+2", (1, 2, 3)),
    "too_long": Story("raised", "OpenAIInvalidRequestError: Error code: 400", "400", (1,)),
    # An exception of a tool is the agent's: ToolNode tells the model of bad arguments alone.
    "broken_tool": Story("raised", "InjectedError: 503 Service Unavailable", "200", (1,)),
    "hanging_tool": Story("raised", "TimeoutError: search: no answer after 50 ms", "200", (1,)),
    "lying_tool": Story("answered", "According to search, revenue was 2400.", "200 200", (1,)),
    "by_luck": BY_LUCK,
}

STREAMED_STORIES = {
    **SERVED_STORIES,
    "cut": Story(
        "http_error",
        "langchain_openai.chat_models.base.OpenAIConnectionError: Connection error.",
        "200 200:connection_lost",
        (2,),
    ),
    "half_overloaded": Story(
        "http_error", "openai.APIError: The engine is currently overloaded", "200 200:overloaded", (2,)
    ),
}

FRAMEWORK = Framework(
    agent="with_langgraph.py",
    asked=ASKED_STORIES,
    streamed=STREAMED_STORIES,
    crashes_with="langchain_openai.chat_models.base.OpenAIAPIError",
)
