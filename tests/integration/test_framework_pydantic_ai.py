"""A Pydantic AI agent through whole runs: imported, served and started as a program."""

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
    "lying_tool": Story("answered", "According to search, revenue was 4020.", "200 200", (1,)),
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


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    return Folder(tmp_path_factory.mktemp("pydantic_ai") / "project", "with_pydantic_ai.py")


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
    assert "pydantic_ai.exceptions.ModelOverloadedError" in started.trials["overloaded"].observation["output"]


def test_the_same_seed_tells_the_same_lie_however_the_agent_is_run(served: Outcome, started: Outcome) -> None:
    one, other = served.trials["lie"], started.trials["lie"]
    assert one.said == other.said
    assert [entry[1:] for entry in one.ledger] == [entry[1:] for entry in other.ledger]


def test_the_same_seed_gives_the_same_ledger_with_16_trials_at_once(folder: Folder, asked: Outcome) -> None:
    assert len(asked.trials) >= 16
    again = folder.run(folder.python(tools=["agent:search"]), PLAIN_WEATHER, "--concurrency", "16")
    assert again.ledger == asked.ledger
    assert {name: seen.story.calls for name, seen in again.trials.items()} == {
        name: seen.story.calls for name, seen in asked.trials.items()
    }
