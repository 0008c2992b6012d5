"""A LangGraph agent through whole runs: imported, served and started as a program."""

from __future__ import annotations

import pytest
from framework_kit import Folder, Outcome, check_calm, check_honest, check_story
from framework_weather import (
    ANSWER,
    BURST,
    BY_LUCK,
    PLAIN_WEATHER,
    SERVED_STORIES,
    STARTED_WEATHER,
    STREAM_WEATHER,
    TOOL_WEATHER,
    Story,
)

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
    "lying_tool": Story("answered", "According to search, revenue was 4020.", "200 200", (1,)),
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


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    return Folder(tmp_path_factory.mktemp("langgraph") / "project", "with_langgraph.py")


@pytest.fixture(scope="module")
def asked(folder: Folder) -> Outcome:
    """Imported once, forked for every trial."""
    return folder.run(folder.python(tools=["agent:search"]), PLAIN_WEATHER, "--concurrency", "4")


@pytest.fixture(scope="module")
def served(folder: Folder) -> Outcome:
    """One server for all trials; it streams."""
    return folder.run(folder.http(), [*TOOL_WEATHER, *STREAM_WEATHER], "--concurrency", "1")


@pytest.fixture(scope="module")
def started(folder: Folder) -> Outcome:
    """A program for every trial."""
    return folder.run(folder.command(), STARTED_WEATHER, "--no-preflight")


@pytest.mark.parametrize("scenario", ASKED_STORIES)
def test_what_the_agent_does_when_it_is_asked(asked: Outcome, scenario: str) -> None:
    check_story(asked.trials[scenario], ASKED_STORIES[scenario])


@pytest.mark.parametrize("scenario", STREAMED_STORIES)
def test_what_the_agent_does_when_its_model_streams(served: Outcome, scenario: str) -> None:
    check_story(served.trials[scenario], STREAMED_STORIES[scenario])


def test_a_healthy_trial_is_in_the_trace_with_calls_result_and_tokens(asked: Outcome, served: Outcome) -> None:
    check_calm(asked.trials["calm"], "tool")
    check_calm(served.trials["calm"], "tool_result")


def test_no_cell_is_green_without_its_fault_met_and_nothing_is_an_error_of_ours(
    asked: Outcome, served: Outcome, started: Outcome
) -> None:
    for run in (asked, served, started):
        assert run.code == 1
        check_honest(run)


def test_a_tool_is_met_by_name_and_the_ledger_says_that_it_ran(served: Outcome) -> None:
    (met,) = served.trials["lie"].met
    assert (met["plane"], met["target"], met["mode"]) == ("tool_result", "search", "wrong_value")
    assert met["note"].startswith("the tool itself ran")
    assert [call["fault"] for call in served.trials["error"].tool_calls] == ["error", "error"]


def test_attacks_are_told_apart_by_success(served: Outcome) -> None:
    assert served.attacks == (2, 1)
    assert len(served.trials["malicious"].canaries) == 1
    assert served.trials["injected"].canaries == []


def test_a_program_that_an_overloaded_model_kills_has_crashed(started: Outcome) -> None:
    check_story(started.trials["overloaded"], Story("crashed", "exit code 1", "503 503+1 503+2", (1, 2, 3)))
    assert "langchain_openai.chat_models.base.OpenAIAPIError" in started.trials["overloaded"].observation["output"]


def test_the_same_seed_tells_the_same_lie_however_the_agent_is_run(served: Outcome, started: Outcome) -> None:
    one, other = served.trials["lie"], started.trials["lie"]
    assert one.said == other.said
    assert [entry[1:] for entry in one.ledger] == [entry[1:] for entry in other.ledger]
