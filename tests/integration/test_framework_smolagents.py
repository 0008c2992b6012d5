"""A smolagents agent through whole runs: imported, served and started as a program."""

from __future__ import annotations

import pytest
from framework_kit import Folder, Outcome, check_calm, check_honest, check_story
from framework_weather import (
    ANSWER,
    BURST,
    BY_LUCK,
    MODEL,
    PLAIN_WEATHER,
    SERVED_STORIES,
    STARTED_WEATHER,
    STREAM_WEATHER,
    TOOL_WEATHER,
    Story,
)

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
    "lying_tool": Story("answered", "According to search, revenue was 2400.", "200 200", (1,)),
    "by_luck": BY_LUCK,
}

STREAMED_STORIES = {
    **SERVED_STORIES,
    "cut": Story("http_error", f"smolagents.utils.{FAILED}Connection error.", "200 200:connection_lost", (2,)),
    "half_overloaded": Story(
        "http_error", f"smolagents.utils.{FAILED}The engine is currently overloaded", "200 200:overloaded", (2,)
    ),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    return Folder(tmp_path_factory.mktemp("smolagents") / "project", "with_smolagents.py", SPEAKS_BY_TOOL)


@pytest.fixture(scope="module")
def asked(folder: Folder) -> Outcome:
    """Imported once, forked for every trial."""
    return folder.run(folder.python(tools=["agent:search"], timeout=8000), PLAIN_WEATHER, "--concurrency", "4")


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
    assert "smolagents.utils.AgentGenerationError" in started.trials["overloaded"].observation["output"]


def test_the_same_seed_tells_the_same_lie_however_the_agent_is_run(served: Outcome, started: Outcome) -> None:
    one, other = served.trials["lie"], started.trials["lie"]
    assert one.said == other.said
    assert [entry[1:] for entry in one.ledger] == [entry[1:] for entry in other.ledger]
