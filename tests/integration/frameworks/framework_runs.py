"""The tests that every framework's agent goes through. A file per framework has its stories and takes these in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from framework_kit import Outcome, check_calm, check_honest, check_story
from framework_weather import MODEL, PLAIN_WEATHER, STREAM_WEATHER, TOOL_WEATHER, Story

SERVED_WEATHER = (*TOOL_WEATHER, *STREAM_WEATHER)


@dataclass(frozen=True)
class Framework:
    """An agent, and what it does in each scenario."""

    agent: str
    """Its file."""
    asked: Mapping[str, Story]
    """As a function, its model's replies plain."""
    streamed: Mapping[str, Story]
    """As a server, its model's replies streamed."""
    crashes_with: str
    """What it prints when a program of it dies of an overloaded model."""
    options: Mapping[str, Any] = field(default_factory=lambda: {"tools": ["agent:search"]})
    """Of the agent as a function."""
    model: Mapping[str, Any] = field(default_factory=lambda: MODEL)

    def __post_init__(self) -> None:
        assert set(self.asked) == {one["name"] for one in PLAIN_WEATHER}
        assert set(self.streamed) == {one["name"] for one in SERVED_WEATHER}


@pytest.mark.parametrize("scenario", [one["name"] for one in PLAIN_WEATHER])
def test_what_the_agent_does_when_it_is_asked(framework: Framework, asked: Outcome, scenario: str) -> None:
    check_story(asked.trials[scenario], framework.asked[scenario])


@pytest.mark.parametrize("scenario", [one["name"] for one in SERVED_WEATHER])
def test_what_the_agent_does_when_its_model_streams(framework: Framework, served: Outcome, scenario: str) -> None:
    check_story(served.trials[scenario], framework.streamed[scenario])


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
    assert met["ran"] is True
    assert [call["fault"] for call in served.trials["error"].tool_calls] == ["error", "error"]


def test_attacks_are_told_apart_by_success(served: Outcome) -> None:
    assert served.attacks == (2, 1)
    assert len(served.trials["malicious"].canaries) == 1
    assert served.trials["injected"].canaries == []


def test_a_program_that_an_overloaded_model_kills_has_crashed(framework: Framework, started: Outcome) -> None:
    check_story(started.trials["overloaded"], Story("crashed", "exit code 1", "503 503+1 503+2", (1, 2, 3)))
    assert framework.crashes_with in started.trials["overloaded"].observation["output"]


def test_the_same_seed_tells_the_same_lie_however_the_agent_is_run(served: Outcome, started: Outcome) -> None:
    one, other = served.trials["lie"], started.trials["lie"]
    assert one.said == other.said
    assert [entry[1:] for entry in one.ledger] == [entry[1:] for entry in other.ledger]
